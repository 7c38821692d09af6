"""Outcomes for people and programs: the log as upstream prints it, what changed, JSON."""
