"""The fake host: described in YAML, rendered as a tree, with a kernel and a few programs behind it."""
