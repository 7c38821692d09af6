"""The pause program waits and ends, on the machine that runs the tests; the other machine's code is compared word by word."""

from __future__ import annotations

import platform
import signal
import subprocess

import pytest

from simulator.reading import InputError
from tests.runners.container.pause import pause_program


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_waits_until_it_is_told_to_end(tmp_path, number):
    path = tmp_path / "pause"
    path.write_bytes(pause_program(platform.machine()))
    path.chmod(0o755)
    with subprocess.Popen([path]) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.send_signal(number)
        assert process.wait(5) == 0


def test_a_stop_and_a_continuation_do_not_end_it(tmp_path):
    path = tmp_path / "pause"
    path.write_bytes(pause_program(platform.machine()))
    path.chmod(0o755)
    with subprocess.Popen([path]) as process:
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.terminate()
        assert process.wait(5) == 0


def test_the_code_for_aarch64():
    """As a disassembler reads it: three system calls, a branch back while w0 is negative, exit_group(0)."""
    program = pause_program("aarch64")
    assert program[:4] == b"\x7fELF"
    assert int.from_bytes(program[18:20], "little") == 183
    words = [int.from_bytes(program[at : at + 4], "little") for at in range(160, len(program), 4)]
    assert words[:2] == [0x528010C8, 0x72A00008]  # mov w8, #0x86; movk w8, #0, lsl #16
    assert words.count(0xD4000001) == 4  # svc #0
    assert words[33] == 0x37FFFEA0  # tbnz w0, #31, -44
    assert words[34:36] == [0x52800BC8, 0x72A00008]  # mov w8, #0x5e


def test_a_machine_that_is_not_known_is_an_error():
    with pytest.raises(InputError, match="is not written for riscv64; known: x86_64, aarch64"):
        pause_program("riscv64")
