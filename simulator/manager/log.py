"""The program's logger (logrus): levels, and where they go."""

from __future__ import annotations

from simulator.ports import Output


class Log:
    """`logrus.Logger`."""

    __slots__ = ("_output",)

    def __init__(self, output: Output) -> None:
        self._output = output

    def info(self, message: str) -> None:
        """Info, Infof, Printf."""
        self._output.log("info", message)

    def warning(self, message: str) -> None:
        """Warn, Warnf."""
        self._output.log("warning", message)

    def error(self, message: str) -> None:
        """Error, Errorf."""
        self._output.log("error", message)

    def fatal(self, message: str) -> None:
        """Fatal; the caller ends the program with exit code 1."""
        self._output.log("fatal", message)
