"""`python -m simulator` is `dmsim`."""

from simulator.cli.main import entry

entry()
