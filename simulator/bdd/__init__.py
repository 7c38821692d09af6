"""Scenarios about driver-manager in Gherkin, for any project: a pytest plugin, its step library, its runners.

pytest loads `plugin` at every start, by its entry point; the rest is imported only where a project sets `dmsim_features`. A
project's own steps may use `sentences.Sentence`, the fixture `stage` (`stage.Stage`) and `stage.rows`. `docs/downstream.md` is for
those who use it.
"""
