"""Names as people write them: settings."""

from __future__ import annotations

import pytest

from simulator.manager.releases import GO_RELEASES, flow
from simulator.manager.variables import KNOWN, SETTINGS
from simulator.manager.whatif import WHAT_IFS
from simulator.naming import check_setting, unread_settings
from simulator.predicting.run import SCRIPT_SINCE
from simulator.reading import InputError


def test_each_variable_that_a_release_or_a_what_if_reads_is_a_setting():
    """Whichever brought it."""
    flows = [flow(tag, what_if=name) for tag in GO_RELEASES for name in ("", *WHAT_IFS)]
    read = {flag.env for resolved in flows for flag in resolved.flags} | {name for more in SCRIPT_SINCE.values() for name in more}
    assert read <= SETTINGS < KNOWN


def test_a_mistyped_setting_gets_a_remark_with_the_nearest():
    """One line each; none for what is read, or is there for another reason."""
    said = [*unread_settings(["FORCE_REINSTAL", "FORCE_REINSTALL", "PATH"])]
    assert said == ["no release reads FORCE_REINSTAL; did you mean FORCE_REINSTALL?"]


def test_a_mistyped_setting_of_a_scenario_is_refused():
    """There it would make a test pass for nothing."""
    with pytest.raises(InputError, match="no release reads NODE_NAM; did you mean NODE_NAME"):
        check_setting("NODE_NAM")
    assert check_setting("KUBERNETES_SERVICE_HOST") == "KUBERNETES_SERVICE_HOST"
