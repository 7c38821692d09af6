"""From a log of driver-manager to the releases and the decisions that print it.

`text` reads the log, `matching` holds what the model prints against it, `go_answers` and `shell_answers` answer the model's
questions as the log allows, `search` tries every answer, `pages` knows what is printed without a log, `words` says in plain words
what came out, `explanation` is all of it.
"""
