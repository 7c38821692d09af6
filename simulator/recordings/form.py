"""The form of a recording: which types stand where, for what is read of it.

A form is checked in one walk that makes nothing of a value that fits. Only for one that does not is its `Place` made, so
that the error names file, case and place in the words of `reading`. What is not read may be anything. The format is
described beside the recordings.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

from simulator.cluster.objects import DROP, object_name
from simulator.cluster.patterns import pattern
from simulator.gocompat import errno_number
from simulator.host.spec import file_name, kernel_answer, link_target, node_path
from simulator.reading import Place
from simulator.runners.simulated import SIGNAL_NUMBERS

_Trail: TypeAlias = "tuple[_Trail, str | int] | None"
"""How a value was reached: the trail to what holds it, and its key there."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that a reader takes. What `fits` quickly need not be read."""

    read: Callable[[Place], object]
    fits: Callable[[Any], bool] = lambda _: False
    options: tuple[str, ...] = ()
    """The texts it may be, where they are few."""


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with these fields; one that need not be there may be null."""

    may: Mapping[str, Form] = field(default_factory=dict)
    need: Mapping[str, Form] = field(default_factory=dict)
    one: bool = False
    """One of those that need not be there has to be: it says what this is."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: Form


@dataclass(frozen=True, slots=True)
class Row:
    """A list of just so many items."""

    items: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys, or with those of a form."""

    item: Form
    key: Leaf | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """One form or another, as the value's type says."""

    forms: Mapping[type, Form]


Form: TypeAlias = "Leaf | Fields | ListOf | Row | MapOf | Either"


_LARGEST: Final = 1e12
_NUMBERED: Final = ("log", "api", "kernel", "exec")
"""Kinds of a timeline's entries that say where in the list of that name they stand."""


def check(document: Any, form: Form, file: str, root: str) -> None:
    """Raises InputError at the first place where a document has not the form. `root` is what its places begin with."""

    def place(trail: _Trail) -> Place:
        if trail is None:
            return Place(document, file, root)
        return place(trail[0]).child(trail[1])

    def refuse(value: Any, trail: _Trail, what: type) -> NoReturn:
        here = place(trail)
        if what is dict:
            here.mapping()
        here.list()
        raise AssertionError(value)

    def walk(value: Any, form: Form, trail: _Trail) -> None:
        match form:
            case Leaf():
                if not form.fits(value):
                    form.read(place(trail))
            case Fields():
                if type(value) is not dict:
                    refuse(value, trail, dict)
                for name, inner in form.need.items():
                    if name not in value:
                        place(trail).fail(f'lacks the key "{name}"', "see the format of recordings")
                    walk(value[name], inner, (trail, name))
                if form.one and sum(value.get(name) is not None for name in form.may) != 1:
                    place(trail).fail(f"holds not one of {', '.join(form.may)}", "write what happens")
                for name, inner in form.may.items():
                    if value.get(name) is not None:
                        walk(value[name], inner, (trail, name))
            case ListOf():
                if type(value) is not list:
                    refuse(value, trail, list)
                for index, item in enumerate(value):
                    walk(item, form.item, (trail, index))
            case Row():
                if type(value) is not list:
                    refuse(value, trail, list)
                if len(value) != len(form.items):
                    place(trail).fail(f"holds {len(value)} items, not {len(form.items)}", "see the format of recordings")
                for index, inner in enumerate(form.items):
                    walk(value[index], inner, (trail, index))
            case MapOf():
                if type(value) is not dict:
                    refuse(value, trail, dict)
                for name, item in value.items():
                    if form.key is not None and not form.key.fits(name):
                        form.key.read(Place(name, file, place(trail).path))
                    walk(item, form.item, (trail, name))
            case Either():
                chosen = form.forms.get(type(value))
                if chosen is None:
                    place(trail).fail(f"is of another type ({type(value).__name__})", "see the format of recordings")
                walk(value, chosen, trail)

    walk(document, form, None)


def _errno(place: Place) -> None:
    if errno_number(place.text()) is None:
        place.fail(f'is "{place.value}"', "write the name of an errno such as EBUSY")


def _base64(place: Place) -> None:
    try:
        base64.b64decode(place.text(), validate=True)
    except ValueError:
        place.fail("is no base64", "see the format of recordings")


def _is_number(value: Any) -> bool:
    return type(value) in {int, float} and abs(value) < _LARGEST


def _number(place: Place) -> None:
    if not _is_number(place.value):
        place.fail("is no number of seconds", "write one")


def _moment(place: Place) -> None:
    """An entry of a timeline: when, what, and where that stands or what it is."""
    row = place.list()
    if len(row) != 3:
        place.fail(f"holds {len(row)} items, not 3", "write when, what and which")
    when, what, which = row
    _number(when)
    if what.text() in _NUMBERED:
        which.integer(0)


def _is_moment(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) == 3
        and _is_number(value[0])
        and value[1] in _NUMBERED
        and type(value[2]) is int
        and value[2] >= 0
    )


def _is_text(value: Any) -> bool:
    return type(value) is str


def _like(expression: str) -> Callable[[Any], bool]:
    """Is it a text that an expression matches wholly?"""
    match = re.compile(expression, re.ASCII).fullmatch
    return lambda value: type(value) is str and match(value) is not None


ANY: Final = Leaf(lambda _: None)
TEXT: Final = Leaf(Place.text, _is_text)
FLAG: Final = Leaf(Place.boolean, lambda value: type(value) is bool)
PATH: Final = Leaf(node_path, _like(r"(/[\w:-][\w.:-]{0,100}){1,30}"))
ROOT: Final = Leaf(Place.path_text)
NAME: Final = Leaf(file_name, _like(r"[\w:-][\w.:-]{0,100}"))
OBJECT: Final = Leaf(object_name, _like("[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?"))
PATTERN: Final = Leaf(pattern)
ANSWER: Final = Leaf(kernel_answer)
ERRNO: Final = Leaf(_errno)
NUMBER: Final = Leaf(_number, _is_number)
SECONDS: Final = Leaf(Place.seconds)
WATCHED: Final = Leaf(lambda place: place.seconds(86_400))
EXIT_CODE: Final = Leaf(lambda place: place.integer(0, 255))
MODE: Final = Leaf(lambda place: place.integer(0, 0o7777))
COUNT: Final = Leaf(lambda place: place.integer(0, 10**6))
WHOLE: Final = Leaf(Place.integer)
TEXTS: Final = ListOf(TEXT)
TEXT_MAP: Final = MapOf(TEXT)
"""Forms of one value, and of several alike."""


def _one_of(*names: str) -> Leaf:
    return Leaf(lambda place: place.choice(*names), options=names)


# --- what driver-manager was given --------------------------------------------------------------------------------

_NULL: Final = type(None)
_ENV: Final = MapOf(Either({str: TEXT, _NULL: ANY}))
_COMMAND: Final = Fields({"stdout": TEXT, "stderr": TEXT, "exit_code": EXIT_CODE, "mode": MODE}, {"path": PATH})
_STAND_IN: Final = Fields({"exit_code": EXIT_CODE, "stderr": TEXT, "mode": MODE})
_ANSWERS: Final[Mapping[type, Form]] = {str: ANSWER, list: ListOf(ANSWER)}
_CONTAINERS: Final = ListOf(Fields({"limits": TEXT_MAP, "requests": TEXT_MAP}))
_NAMED: Final = Fields(need={"namespace": OBJECT, "name": OBJECT})
_CLAIM_OF_POD: Final = ListOf(Fields({"name": TEXT, "resourceClaimName": TEXT, "resourceClaimTemplateName": TEXT}))
_POD: Final = Fields(
    {
        "labels": TEXT_MAP,
        "annotations": TEXT_MAP,
        "nodeName": OBJECT,
        "nodeSelector": TEXT_MAP,
        "phase": _one_of("Pending", "Running", "Succeeded", "Failed", "Unknown"),
        "owner": Fields({"controller": FLAG, "apiVersion": TEXT}, {"kind": TEXT, "name": OBJECT}),
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "emptyDir": FLAG,
        "termination_s": SECONDS,
        "terminating": FLAG,
        "pdb": Fields({"blocked_attempts": COUNT, "retry_after": COUNT}),
        "resourceClaims": _CLAIM_OF_POD,
        "resourceClaimStatuses": _CLAIM_OF_POD,
    },
    _NAMED.need,
)
_FAULT: Final = Fields(
    {
        "match": Fields(
            {
                "method": _one_of("GET", "POST", "PUT", "PATCH", "DELETE"),
                "path_regex": PATTERN,
                "query_regex": PATTERN,
                "body_regex": PATTERN,
            }
        ),
        "skip": COUNT,
        "times": COUNT,
        "retry_after": COUNT,
        "causes": ListOf(TEXT_MAP),
    },
    {"status": Either({int: Leaf(lambda place: place.integer(400, 599)), str: _one_of(DROP)})},
)
_HOST: Final = Fields(
    {
        "host_root": _one_of("normal", "empty", "absent"),
        "chroot_commands": MapOf(Either({dict: _COMMAND, list: ListOf(_COMMAND)})),
        "container_commands": MapOf(Either({dict: _STAND_IN, _NULL: ANY}), NAME),
        "files": MapOf(TEXT, PATH),
        "dirs": ListOf(PATH),
        "mounts": ListOf(PATH),
        "proc_modules": TEXT,
        "symlinks": MapOf(Leaf(link_target), PATH),
        "module_uses": MapOf(ListOf(NAME), NAME),
        "refcnt_while_pods": MapOf(Fields(need={"pods": TEXTS, "more": COUNT}), NAME),
        "delete_module": MapOf(Either({**_ANSWERS, dict: Fields(need={"busy_while_pods": TEXTS})})),
        "umount": MapOf(Either(_ANSWERS)),
        "unlink": MapOf(Either(_ANSWERS)),
        "timed_changes": ListOf(
            Fields({"write": MapOf(TEXT, PATH), "remove": ListOf(PATH), "delete_pods": TEXTS}, {"after_s": SECONDS})
        ),
    }
)
_CLUSTER: Final = Fields(
    {
        "node": Fields({"labels": TEXT_MAP, "annotations": TEXT_MAP, "unschedulable": FLAG}, {"name": OBJECT}),
        "pods": ListOf(_POD),
        "daemonsets": ListOf(_NAMED),
        "resource_claims": ListOf(Fields({"drivers": TEXTS}, _NAMED.need)),
        "faults": ListOf(_FAULT),
        "api_down": FLAG,
        "discovery": Fields({"eviction": _one_of("policy/v1", "policy/v1beta1")}),
        "list_page_size": Leaf(lambda place: place.integer(1, 10**6)),
    }
)
INPUT: Final = Fields(
    {
        "args": TEXTS,
        "env": _ENV,
        "host": _HOST,
        "cluster": _CLUSTER,
        "signal": Fields(need={"name": _one_of(*SIGNAL_NUMBERS), "after_s": SECONDS}),
        "max_s": WATCHED,
    }
)
"""A case of driver-manager."""

# --- what vfio-manage was given -------------------------------------------------------------------------------------

_FILE_TEXT: Final = Either({str: TEXT, dict: Fields(need={"errno": ERRNO})})
_CHANGES: Final = ListOf(
    Fields(
        {
            "attach": Row((NAME, NAME)),
            "remove_device": NAME,
            "remove_driver": NAME,
            "set_files": Row((NAME, MapOf(Either({**_FILE_TEXT.forms, _NULL: ANY}), NAME))),
        },
        one=True,
    )
)
_MODPROBE: Final = Fields({"exit_code": EXIT_CODE, "creates": ListOf(NAME)})
_DEVICE: Final = Fields(
    {
        "files": MapOf(_FILE_TEXT, NAME),
        "driver": NAME,
        "driver_override": TEXT,
        "no_driver_override": FLAG,
        "iommu_group": Either({int: COUNT, str: NAME}),
        "consumers": ListOf(NAME),
        "entries": ListOf(NAME),
        "links": MapOf(NAME, NAME),
        "vfio_dev": NAME,
    }
)
_BUS: Final[Mapping[str, Form]] = {
    "devices": MapOf(_DEVICE, NAME),
    "drivers": MapOf(Fields({"missing_files": TEXTS, "ids": TEXTS}), NAME),
    "modules_alias": TEXT,
    "modprobe": MapOf(Either({dict: _MODPROBE, list: ListOf(_MODPROBE)})),
    "modprobe_in": ListOf(ROOT),
    "dirs": ListOf(PATH),
    "no_devices_dir": FLAG,
    "no_sysfs": FLAG,
    "faults": ListOf(
        Fields(
            {"text": TEXT, "op": _one_of("open"), "skip": COUNT, "times": COUNT, "error": ERRNO, "then": _CHANGES},
            {"path": PATH},
        )
    ),
}
VFIO_INPUT: Final = Fields(
    _BUS, {"kernel_release": NAME, "steps": ListOf(Fields({"env": _ENV, "before": _CHANGES}, {"args": TEXTS}))}
)
"""A case of vfio-manage."""
_LISTING_FIELDS: Final = Fields(
    {"directory": FLAG, "text": TEXT, "base64": Leaf(_base64), "parts": ListOf(Either({str: TEXT, list: Row((TEXT, COUNT))}))}
)


def _listing(place: Place) -> None:
    if not place.mapping(_LISTING_FIELDS.may):
        place.fail("says nothing of the file", "write its text")
    check(place.value, _LISTING_FIELDS, place.file, place.path)


_LISTING: Final = Leaf(_listing)
PLUGIN_INPUT: Final = Fields(
    {
        **_BUS,
        "pci_ids": TEXT,
        "files": ListOf(Fields(need={"case": TEXT, "file": Either({dict: _LISTING, _NULL: ANY}), "ids": TEXTS})),
        "names": _LISTING,
        "shared": _LISTING,
    }
)
"""A case of the sandbox device plugin: a bus, or files of names."""
COZYSTACK_INPUT: Final = Fields({"values": MapOf(ANY), "variant": _one_of("default", "vgpu", "container")})
"""A case of Cozystack's charts."""

# --- what was observed ------------------------------------------------------------------------------------------------

_REQUESTS: Final = ListOf(
    Fields(
        {"content_type": TEXT},
        {
            "body": Either({_NULL: ANY, dict: ANY}),
            "method": TEXT,
            "path": TEXT,
            "query": TEXT_MAP,
            "status": Either({int: WHOLE, str: TEXT}),
            "t": NUMBER,
        },
    )
)
_LOG: Final = ListOf(Fields({"level": TEXT}, {"msg": TEXT}))
_CHILDREN: Final = ListOf(TEXTS)
_ENDED: Final[Mapping[str, Form]] = {
    "kernel": ListOf(Fields(need={"call": TEXT, "arg": TEXT, "result": TEXT})),
    "exit_code": Either({int: WHOLE, _NULL: ANY}),
    "node_after": Either({_NULL: ANY, dict: Fields(need={"labels": TEXT_MAP, "annotations": TEXT_MAP, "unschedulable": FLAG})}),
    "pods_after": TEXTS,
    "mounts_after": TEXTS,
    "files_after": MapOf(FLAG),
    "modules_after": TEXTS,
    "elapsed_s": NUMBER,
}
OBSERVED: Final = Fields(
    {"panic": TEXT, "unobserved": TEXTS},
    {
        **_ENDED,
        "log": ListOf(Fields(need={"level": TEXT, "msg": TEXT})),
        "api": _REQUESTS,
        "exec": _CHILDREN,
        "stdout": TEXT,
        "stderr_other": TEXT,
        "timeline": ListOf(Leaf(_moment, _is_moment)),
    },
)
"""What was seen of a Go release."""
SHELL_OBSERVED: Final = Fields(need={**_ENDED, "api": _REQUESTS, "exec": _CHILDREN, "stdout": TEXTS, "stderr": TEXTS})
"""What was seen of a shell release."""
VFIO_OBSERVED: Final = Fields(need={"steps": ListOf(MapOf(ANY))})
"""What was seen of vfio-manage, which is compared as it is."""
