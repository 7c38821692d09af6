"""What a release will do to a node: a run of the model on the world as it is after an event, and the answers read from it.

Pure: worlds and outcomes in, frozen answers out. `prediction.predict` is the way in.
"""
