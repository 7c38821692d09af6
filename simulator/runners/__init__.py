"""Runners: they execute driver-manager against a world and leave a trace."""
