"""driver-manager up to v0.8.1: a bash script, and the programs of its image."""
