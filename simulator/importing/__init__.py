"""A host file from what is there: a container image, a tar archive, a root directory.

`sources` opens what a person names, `roots` and `archive` look into it without being led out of it, `host` makes the host.
"""
