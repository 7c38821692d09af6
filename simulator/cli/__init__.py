"""The command `dmsim`, one module a subcommand."""
