"""The single faults of a run: which there are, the run that each of them makes, and what it does to the node.

`domains` says what can fail at a call and why, `planning` finds the calls and makes the worlds, `damage` judges an end,
`table` runs all of it. Nothing here prints.
"""
