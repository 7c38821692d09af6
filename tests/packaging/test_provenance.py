"""Every file of data has an origin and a licence: fixtures/REUSE.toml."""

import re
import tomllib
from pathlib import Path

import pytest

from simulator.scenario import fixtures

ROWS = tomllib.loads((fixtures() / "REUSE.toml").read_text())["annotations"]
FILES = sorted(str(path.relative_to(fixtures())) for path in fixtures().rglob("*") if path.is_file() and path.suffix != ".pyc")
ORIGINS = {"made up", "experiment", "recorded", "facts", "copied"}
FROM_ELSEWHERE = {"recorded", "facts", "copied"}
LICENCES = {"Apache-2.0", "BSD-3-Clause"}
NOT_OURS = re.compile(r"Copyright \(c\)|Copyright \d{4}|NVIDIA CORPORATION|^package main|^func [a-zA-Z(]", re.MULTILINE)


def covered(row, file):
    """As REUSE has it: one star stands for no slash, two for any text."""
    globs = row["path"] if isinstance(row["path"], list) else [row["path"]]
    return any(re.fullmatch("(.*)".join(_one_level(part) for part in glob.split("**")), file) for glob in globs)


def _one_level(glob):
    return "[^/]*".join(re.escape(part) for part in glob.split("*"))


def test_every_file_is_of_one_row():
    """None is forgotten, and none has two origins."""
    rows = {file: sum(covered(row, file) for row in ROWS) for file in FILES}
    assert {file: count for file, count in rows.items() if count != 1} == {}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["path"]))
def test_a_row_says_what_is_asked_of_it(row):
    """It covers a file, its licence is one we know, and what is from elsewhere names its source."""
    assert any(covered(row, file) for file in FILES)
    assert set(row["SPDX-License-Identifier"].split(" AND ")) <= LICENCES
    assert row["SPDX-FileCopyrightText"]
    assert row["made"]
    assert row["origin"] in ORIGINS
    assert ("source" in row) == (row["origin"] in FROM_ELSEWHERE)


def test_a_glob_of_one_level_stays_on_it():
    """A row for a folder does not swallow what lies below."""
    assert covered({"path": "hosts/*.yaml"}, "hosts/a.yaml")
    assert not covered({"path": "hosts/*.yaml"}, "hosts/b/a.yaml")
    assert covered({"path": ["x", "images/**"]}, "images/b/a")


def test_every_host_names_its_source():
    """Where its facts are from."""
    hosts = [file for file in FILES if file.startswith("hosts/")]
    assert [file for file in hosts if not re.search(r"^source: \S", (fixtures() / file).read_text(), re.MULTILINE)] == []


def test_nothing_carries_a_head_of_others_sources():
    """A copyright line or a line of Go in a text file would be upstream's; pci.ids has its terms in its head."""
    texts = {
        file: (fixtures() / file).read_bytes()
        for file in FILES
        if not file.endswith(".xz") and file not in {"pci.ids", "REUSE.toml"}
    }
    assert [file for file, text in texts.items() if NOT_OURS.search(text.decode())] == []


def test_the_table_of_people_names_every_folder():
    """fixtures/README.md says the same in short."""
    folders = {f"{file.split('/')[0]}/" if "/" in file else file for file in FILES} - {"README.md", "REUSE.toml"}
    text = (Path(fixtures()) / "README.md").read_text()
    assert [folder for folder in sorted(folders) if f"| `{folder}` |" not in text] == []
