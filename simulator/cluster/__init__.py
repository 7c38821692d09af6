"""The fake cluster: an API server's semantics over one node, on virtual time."""
