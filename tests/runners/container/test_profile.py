"""The seccomp profile."""

from __future__ import annotations

import json

from simulator.runners.container.profile import profile


def test_the_answer_to_delete_module_stands_first_and_nothing_loads_a_module():
    first, rest = json.loads(profile(16))["syscalls"]
    assert first == {"names": ["delete_module"], "action": "SCMP_ACT_ERRNO", "errnoRet": 16}
    assert {"init_module", "finit_module", "kexec_load", "reboot", "bpf"} <= set(rest["names"])
    assert rest["errnoRet"] == 1
