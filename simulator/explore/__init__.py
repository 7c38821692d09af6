"""Runs of the model against a world that is made up as it is asked: choosing, and the ports that ask."""
