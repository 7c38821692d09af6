"""The step library: what a scenario may say. `python -m simulator.bdd.vocabulary` prints it."""
