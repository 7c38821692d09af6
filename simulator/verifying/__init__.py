"""A real image held against the model: recorded cases, and worlds drawn at random.

`recorder` makes recordings of an image; `judging` runs a world on both and compares; `random_worlds` draws worlds,
`settling` moves what happens in them out of the way of races, `shrinking` makes the world of a difference small.
"""
