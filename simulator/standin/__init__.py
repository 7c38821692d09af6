"""The stand-in: a release of the model as a process, acting on real files, real processes and a real API server.

It proves what is built around the real program (the container runner, the server, the recorder) and the model's own IO;
about the real program it proves nothing.
"""
