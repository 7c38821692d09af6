"""The public names of the package with what a caller sees of them, as text. `python -m tests.api.listing` renews the file."""

import dataclasses
import inspect
from pathlib import Path

import simulator

FILE = Path(__file__).with_name("public.txt")


def lines():
    """A function with its signature; a class with its fields, properties and methods."""
    for name in simulator.__all__:
        value = getattr(simulator, name)
        if inspect.isfunction(value):
            yield f"def {name}{inspect.signature(value)}"
            continue
        yield f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if not field.name.startswith("_"):
                    yield f"    {field.name}: {field.type}{'' if _must_be_given(field) else ' = ...'}"
        else:
            yield f"    def __init__{inspect.signature(value.__init__)}"
        for key, member in sorted(vars(value).items()):
            if not key.startswith("_") and inspect.isfunction(member):
                yield f"    def {key}{inspect.signature(member)}"
            elif not key.startswith("_") and isinstance(member, property):
                yield f"    {key} -> {inspect.signature(member.fget).return_annotation}"


def _must_be_given(field):
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
