"""From a log of driver-manager to the releases and the decisions that print it.

`text` reads the log, `matching` holds what the model prints against it, `go_world` and `shell_world` answer the model's
questions as the log allows, `search` tries every answer, `words` says in plain words what came out, `explanation` is all of it.
"""
