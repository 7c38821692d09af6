"""What modprobe's configuration forbids."""

from __future__ import annotations

import pytest

from simulator.host.modprobe import goes_on_to_load, is_blacklisted
from simulator.host.spec import File, HostSpec
from simulator.host.tree import render


@pytest.mark.parametrize(
    ("text", "blacklisted", "loads"),
    [
        ("", False, True),
        ("blacklist nvidia-drm\n", True, True),
        ("  blacklist nvidia_*\n", True, True),
        ("# blacklist nvidia_drm\n", False, True),
        ("blacklist\nblacklist nvidia\n", False, True),
        ("install nvidia_drm /bin/false\n", False, False),
        ("alias nvidia_drm off\n", False, False),
    ],
)
def test_a_blacklist_and_an_explicit_modprobe(text, blacklisted, loads):
    """A blacklist stops what is found at boot, `install` and `alias ... off` stop modprobe itself."""
    tree = render(HostSpec("x", files=(File("/etc/modprobe.d/x.conf", text),)))
    assert is_blacklisted(tree, "nvidia_drm") == blacklisted
    assert goes_on_to_load(tree, "nvidia_drm") == loads
