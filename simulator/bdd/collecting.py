"""A `.feature` file as a module of tests, and how its steps' definitions are found.

pytest-bdd binds scenarios only where a Python module asks for them, so each file is collected as a module that does. For a
step it then goes through every fixture, twice; in a suite of hundreds of scenarios once for each sentence and folder will do.
"""

from __future__ import annotations

import importlib
import re
import types
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, TypeAlias

import pytest
from pytest_bdd import scenarios
from pytest_bdd.compat import get_fixture_names, getfixturedefs
from pytest_bdd.exceptions import GherkinParseError, NoScenariosFound
from pytest_bdd.parser import Step
from pytest_bdd.steps import StepFunctionContext, step_function_context_registry

_Found: TypeAlias = "list[pytest.FixtureDef[Any]]"
RESERVED: Final = ("stage", "watched", "platform", "dmsim_release", "dmsim_runner")
"""The fixtures that the steps ask for."""


class FeatureFile(pytest.Module):
    """A `.feature` file as the module that binds its scenarios."""

    is_binding = False
    """Are scenarios of a file being bound right now? Then a tag is one of theirs. Of the class: pytest-bdd does not say whose."""

    def _getobj(self) -> types.ModuleType:
        try:
            name = self.path.relative_to(self.config.rootpath)
        except ValueError:
            name = self.path
        module = types.ModuleType("feature_" + re.sub(r"\W", "_", str(name)))
        module.__file__ = str(self.path)
        namespace = vars(module)
        namespace["scenarios"] = scenarios
        FeatureFile.is_binding = True
        try:
            # Binds into the namespace it is called from. Every path is whole, whatever base pytest-bdd is told of.
            exec(f"scenarios({str(self.path)!r}, features_base_dir={str(self.path.parent)!r})", namespace)  # noqa: S102  # our own words
        except (GherkinParseError, NoScenariosFound, UnicodeDecodeError, pytest.UsageError) as error:
            raise self.CollectError(f"{name}: {_told(error)}") from None
        except KeyError as error:
            if error.args != ("feature",):
                raise
            raise self.CollectError(
                f'{name}: holds no feature; begin with "Feature: ..."'
            ) from None  # pytest-bdd takes it for given
        finally:
            FeatureFile.is_binding = False
        return module

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """The scenarios. Raises CollectError where a fixture of the project's stands in the way of the steps'."""
        found = super().collect()
        manager: Any = self.session._fixturemanager
        for name in RESERVED:
            definitions = getfixturedefs(manager, name, self)
            module = definitions[-1].func.__module__ if definitions else ""
            if definitions and not module.startswith("simulator.bdd."):
                raise self.CollectError(f'the fixture "{name}" of {module} stands in the way of dmsim\'s; give it another name')
        return found


def _told(error: Exception) -> str:
    """A parser's error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


class Search:
    """pytest-bdd's look-up of a step's definitions, remembered for each folder: of one folder all scenarios have the same.

    `start` puts it in pytest-bdd's place, `stop` takes it away again. What is no feature file of ours is looked up as ever.
    """

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._usual: Callable[..., Iterable[pytest.FixtureDef[Any]]] = list
        self._definitions: dict[pytest.Collector, list[tuple[Any, StepFunctionContext]]] = {}
        self._matching: dict[tuple[pytest.Collector, str, str], _Found] = {}

    def start(self) -> None:
        """Take pytest-bdd's place."""
        machinery = importlib.import_module("pytest_bdd.scenario")
        self._usual = machinery.find_fixturedefs_for_step
        self._patch.setattr(machinery, "find_fixturedefs_for_step", self._find)
        for asked in ("signature", "get_required_args"):  # of the same few functions, for each step
            self._patch.setattr(machinery, asked, cache(getattr(machinery, asked)))

    def stop(self) -> None:
        """Leave pytest-bdd as it was."""
        self._patch.undo()

    def _find(self, step: Step, fixturemanager: Any, node: pytest.Item) -> _Found:
        file = node.parent
        if not isinstance(file, FeatureFile) or not isinstance(file.parent, pytest.Collector):
            return list(self._usual(step=step, fixturemanager=fixturemanager, node=node))
        key = file.parent, step.type or "", step.name
        if key not in self._matching:
            definitions = self._of_folder(fixturemanager, file.parent)
            self._matching[key] = [
                found
                for found, context in definitions
                if context.type in {None, step.type} and context.parser.is_matching(step.name)
            ]
        return self._matching[key]

    def _of_folder(self, fixturemanager: Any, folder: pytest.Collector) -> list[tuple[pytest.FixtureDef[Any], StepFunctionContext]]:
        """Every step definition that the scenarios of a folder can see: the library's, and those of the project's conftest files."""
        if folder not in self._definitions:
            self._definitions[folder] = [
                (fixturedef, step_function_context_registry[fixturedef.func])
                for name in get_fixture_names(fixturemanager)
                for fixturedef in getfixturedefs(fixturemanager, name, folder) or ()
                if fixturedef.func in step_function_context_registry
            ]
        return self._definitions[folder]
