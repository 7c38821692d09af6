"""What a program under test says, kept apart from any other."""

from __future__ import annotations


class Said:
    """The port `Output` as two texts; a log line is a fault."""

    def __init__(self):
        self.out, self.err = "", ""

    def log(self, level, message):
        raise AssertionError(level, message)

    def stdout(self, text):
        self.out += text

    def stderr(self, text):
        self.err += text
