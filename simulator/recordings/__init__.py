"""Recordings: traces that the real program left, kept as data; read, packed, compared, replayed, written.

`layout` finds them, `worlds` makes the world of a case, `observation` puts an outcome into their form, `comparing` holds
the two against each other; `vfio_worlds` and `vfio_observation` do so for vfio-manage. `replaying` is all of it for one
recording, whichever program it is of.
"""
