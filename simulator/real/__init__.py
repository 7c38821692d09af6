"""The model's ports on a real machine: its own files, processes, time, and an API server over HTTP."""
