"""A world from what can be seen of a person's own node: saved Kubernetes objects, what the host says of itself, logs.

Read-only: nothing here changes a cluster or a host, and nothing that looks like a secret is kept.
"""
