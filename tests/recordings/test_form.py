"""Recordings of another form: each is one InputError with its file, case and place, or is compared; none ends in a traceback."""

from __future__ import annotations

import copy
import lzma
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading import InputError
from simulator.recordings.layout import read_folder, write_whole
from simulator.recordings.replaying import differences, replayed
from tests.recorded import recorded

DEEP: list[object] = []
for _ in range(100_000):
    DEEP = [DEEP]
VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    10**400,
    0.5,
    float("nan"),
    "",
    "x",
    "/",
    "../x",
    "\0",
    [],
    [None],
    [[]],
    {},
    {"x": None},
    {"": 1},
)


@cache
def recordings():
    """One of each program and form, and those whose inputs say most."""
    found = {}
    for recording in recorded():
        for key in keys(recording.input):
            found.setdefault((recording.program, recording.release in {"v0.8.1", "v0.9.0"}, key), recording)
    return sorted({(each.release, each.case): each for each in found.values()}.values(), key=lambda each: (each.release, each.case))


def keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def places(value, path=()):
    """Every place of a document, but the document itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


def spoilt(document, chosen, put):
    """The document with another value at a place; `put` None: without the place."""
    out = copy.deepcopy(document)
    *above, key = chosen
    holder = out
    for step in above:
        holder = holder[step]
    if put is None:
        del holder[key]
    else:
        holder[key] = put[0]
    return out


@given(st.data())
def test_whatever_is_spoilt_in_a_recording(data):
    """It replays, or differs, or is refused in one line that names file, case and part."""
    recording = data.draw(st.sampled_from(recordings()))
    part = data.draw(st.sampled_from(["input", "input", "observed"]))
    document = getattr(recording, part)
    for _ in range(data.draw(st.integers(1, 2))):
        if where := list(places(document)):
            document = spoilt(
                document, data.draw(st.sampled_from(where)), data.draw(st.none() | st.tuples(st.sampled_from(VALUES)))
            )
    broken = replace(recording, **{part: document})
    refusal = None
    try:
        list(map(str, differences(broken, replayed(broken))))
    except InputError as error:
        refusal = error
    if refusal:
        assert refusal.file == recording.file
        assert refusal.place.startswith(("input", "observed"))  # without steps it is a case of the other program
        assert "\n" not in str(refusal)


@pytest.mark.parametrize(
    ("part", "change", "text"),
    [
        ("input", {"args": 5}, "input.args is the number, not a list"),
        ("input", {"max_s": "x"}, "input.max_s is text, not a number of seconds"),
        ("input", {"env": {"A": 5}}, "input.env.A is of another type (int)"),
        ("input", {"host": {"files": {"x": ""}}}, 'input.host.files "x" is no absolute path; write "/x"'),
        ("input", {"host": {"mounts": [{}]}}, "input.host.mounts[0] is a mapping, not text"),
        ("input", {"cluster": {"node": {}}}, 'input.cluster.node lacks the key "name"'),
        ("input", {"cluster": {"faults": [{"match": {"path_regex": "("}, "status": 500}]}}, "is no regular expression"),
        ("input", {"cluster": {"pods": [{"namespace": "a", "name": "p"}] * 2}}, 'input.cluster.pods has the pod "a/p" twice'),
        ("observed", {"stdout": None}, "observed.stdout is null, not text"),
        ("observed", {"elapsed_s": 10**400}, "observed.elapsed_s is no number of seconds"),
        ("observed", {"timeline": [[0, "log"]]}, "observed.timeline[0] holds 2 items, not 3"),
        ("observed", {"timeline": [[0, "log", "x"]]}, "observed.timeline[0][2] is text, not a whole number"),
        ("observed", {"node_after": [DEEP]}, "observed"),
    ],
)
def test_the_place_is_named(part, change, text):
    """With file and case."""
    recording = next(each for each in recordings() if each.program == "driver-manager" and each.release == "v0.10.0")
    broken = replace(recording, **{part: {**getattr(recording, part), **change}})
    with pytest.raises(InputError) as caught:
        differences(broken, replayed(broken))
    assert str(caught.value).startswith(f"{recording.file}: {part}")
    assert recording.case in recording.file
    assert text in str(caught.value)


def test_a_count_that_is_none_stays_as_it_is():
    """What pods held of a module whose file says something else."""
    recording = next(each for each in recordings() if "refcnt_while_pods" in each.input.get("host", ()))
    host = recording.input["host"]
    for files, dirs in (({"/sys/module/nvidia/refcnt": "x"}, []), ({}, ["/sys/module/nvidia/refcnt"])):
        spoilt_host = {**host, "files": {**host["files"], **files}, "dirs": dirs}
        if dirs:
            del spoilt_host["files"]["/sys/module/nvidia/refcnt"]
        broken = replace(recording, input={**recording.input, "host": spoilt_host})
        assert differences(broken, replayed(broken)) is not None


def test_half_a_surrogate_pair(tmp_path):
    """Is refused where it stands, packed or not; a whole pair is a character."""
    write = lambda folder, text: write_whole(tmp_path / folder / "c.json", text)  # noqa: E731  # shorter than a function, and as clear
    write("cases", '{"input": {"args": ["--help"], "title": "\\ud83d\\ude00"}}')
    write("recordings/v0.9.0", '{"observed": {"stdout": "\\ud83d"}}')
    with pytest.raises(InputError, match=r"c\.json: observed\.stdout holds half of a surrogate pair"):
        list(read_folder(tmp_path))
    packed = tmp_path / "driver-manager.json.xz"
    packed.write_bytes(lzma.compress(b'{"cases": {"c": {"env": {"\\ud83d": ""}}}}'))
    (tmp_path / "cases").rename(tmp_path / "x")
    with pytest.raises(InputError, match=r"xz: cases\.c\.env holds half of a surrogate pair"):
        list(read_folder(tmp_path))


@pytest.mark.parametrize("change", [{}, {"attach": None}, {"attach": ["0000:01:00.0", "nvidia"], "remove_driver": "nvidia"}])
def test_what_happens_meanwhile_is_one_thing(change):
    """Not nothing, and not two at once."""
    recording = next(each for each in recordings() if each.program == "vfio-manage" and each.input.get("faults"))
    fault = {**recording.input["faults"][0], "then": [change]}
    broken = replace(recording, input={**recording.input, "faults": [fault]})
    with pytest.raises(InputError, match=r"input\.faults\[0\]\.then\[0\] holds not one of attach, remove_device"):
        replayed(broken)
