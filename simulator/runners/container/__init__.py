"""The container runner: a real image, run by Docker, against a world that is laid out on disk and served over HTTP."""
