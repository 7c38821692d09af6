"""The schema of a host file: `simulator.host.spec.read_host`."""

from __future__ import annotations

import errno
from typing import Final

from simulator.host.spec import GPU_STATES, KINDS, LOADERS, STATES
from simulator.schemas.words import (
    FLAG,
    FORMAT_KEY,
    NODE_PATH,
    TEXT,
    Schema,
    choice,
    either,
    fields,
    list_of,
    map_of,
    or_null,
    said,
    text,
    whole,
)

FILE_NAME: Final = text(r"^(?!\.{1,2}$)[^/\u0000-\u001f]+$")
_ADDRESS: Final = text(r"^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$")
_MODULE_NAME: Final = text("^[A-Za-z0-9_]+$")
_VERSION: Final = text(r"^[0-9]+(\.[0-9]+)+$")
_MODE: Final = text("^0?[0-7]{3}$")
_EXIT_CODE: Final = whole(0, 255)
ERRNO: Final = choice(*sorted({*errno.errorcode.values()}), "ENOTSUP", "EWOULDBLOCK", "EDEADLOCK")
KERNEL_ANSWER: Final = choice("ok", "real", *ERRNO["enum"])
"""What the kernel is made to answer: errors by the names that this system has."""
_ANSWERS: Final = either(KERNEL_ANSWER, list_of(KERNEL_ANSWER))


def _hex(digits: int) -> Schema:
    return text(f"^0x[0-9a-f]{{{digits}}}$")


def _function(*, gpu: bool) -> Schema:
    vendor = said(_hex(4), "The vendor's id." + (' "0x10de" where nothing is said.' if gpu else ""))
    may = {
        "device": said(_hex(4), 'The device\'s id, such as "0x2236".'),
        "class": said(_hex(6), 'The class: "0x030200" is a 3D controller, "0x030000" a VGA one, "0x020000" a network card.'),
        "driver": said(FILE_NAME, "The driver it is bound to; left out for none."),
        "attributes": said(map_of(TEXT, FILE_NAME), "Further files of its directory in sysfs, by name."),
        "iommu_group": said(whole(0, 2**20), "The number of its IOMMU group."),
    }
    need = {"address": said(_ADDRESS, 'The PCI address with its domain: "0000:3b:00.0".')}
    if gpu:
        return fields({**may, "vendor": vendor, "state": said(choice(*GPU_STATES), "What NVML makes of the GPU.")}, need)
    return fields(may, {**need, "vendor": vendor})


def _absent(*keys: str) -> Schema:
    return {"not": {"anyOf": [{"required": [key]} for key in keys]}}


def _given(key: str) -> Schema:
    return {"required": [key], "properties": {key: {"type": "string"}}}


_PROGRAM: Final = fields(
    {
        "stdout": said(TEXT, "What it prints."),
        "stderr": said(TEXT, "What it prints on standard error."),
        "exit_code": said(_EXIT_CODE, "What it exits with."),
        "mode": said(_MODE, 'Permission bits, in quotes: "0755".'),
        "driver_version": said(_VERSION, "Makes it NVIDIA's own nvidia-smi of this driver: the host's state decides its answer."),
        "state": said(choice(*STATES), "With driver_version: what nvidia-smi finds beside modules and devices."),
        "interpreter": said(NODE_PATH, "What the kernel needs to start it; null: it names none."),
        "exec": said(NODE_PATH, "The program a script hands over to."),
        "needs": said(list_of(NODE_PATH), "Shared libraries without which it does not start."),
        "architecture": said(choice(*LOADERS), "Of the binary; the host's own where nothing is said."),
    },
    allOf=[
        {
            "if": _given("driver_version"),
            "then": _absent("stdout", "stderr", "exit_code", "exec"),
            "else": _absent("state"),
        },
        {"if": _given("exec"), "then": _absent("exit_code")},
    ],
)
_FILE: Final = either(TEXT, fields({"text": said(TEXT, "Its text."), "mode": said(_MODE, 'Permission bits: "0644".')}))
_PACKAGE: Final = either(
    TEXT,
    fields(
        {
            "version": said(TEXT, "Its version."),
            "status": said(choice("ii", "hi", "rc", "un", "iF", "iU"), "dpkg's: ii installed, rc only its configuration is left."),
            "auto": said(FLAG, "Did it come along with another, so that `apt autoremove` may take it?"),
            "depends": said(TEXT, "What it needs, as dpkg's field Depends has it."),
        }
    ),
)
_MODULE: Final = fields(
    {
        "size": said(whole(0, 2**40), "Bytes, as /proc/modules has it."),
        "used_by": said(list_of(_MODULE_NAME), "The loaded modules that hold it."),
        "users": said(whole(0, 2**20), "How many others hold it: open files."),
        "pods": said(list_of(TEXT), "Pods (namespace/name) whose processes are the users."),
        "processes": said(list_of(TEXT), "Processes among the users, for people."),
        "taint": said(TEXT, 'As /proc/modules has it; "(OE)" where nothing is said.'),
        "version": said(_VERSION, "As /sys/module/NAME/version has it."),
    },
    {"name": said(_MODULE_NAME, "Its name, with underscores.")},
)
_STAND_IN: Final = fields({"exit_code": said(_EXIT_CODE, "What it exits with."), "stderr": TEXT, "mode": _MODE})

HOST: Final = fields(
    {
        "format": FORMAT_KEY,
        "description": said(TEXT, "What host it is, in a sentence."),
        "source": said(TEXT, "Where its facts are from."),
        "kind": said(choice(*KINDS), "Which kind of host it is an example of, as docs/hosts.md counts them."),
        "verdict": said(
            fields(
                {"why": said(TEXT, "In a sentence.")},
                {
                    "host_check": said(FLAG, "What the host check is expected to say: is a driver there?"),
                    "driver": said(FLAG, "The truth: does the host's own driver own a GPU, or could it?"),
                },
            ),
            "What its author expects.",
        ),
        "os": said(
            fields({"name": TEXT, "version": TEXT, "kernel": TEXT, "architecture": choice(*LOADERS)}),
            "Name, version, kernel (uname -r), architecture (uname -m).",
        ),
        "root": said(choice("normal", "empty", "absent"), "What /host is in the container."),
        "packages": said(map_of(_PACKAGE), "Package -> its version, or what dpkg says of it."),
        "gpus": said(list_of(_function(gpu=True)), "NVIDIA's functions."),
        "pci": said(list_of(_function(gpu=False)), "Other PCI functions."),
        "modules": said(list_of(_MODULE), "Loaded kernel modules."),
        "installable_modules": said(list_of(_MODULE_NAME), "Modules on disk for the running kernel."),
        "programs": said(map_of(_PROGRAM, NODE_PATH), "Path -> a program."),
        "links": said(map_of(text(r"^[^\u0000]+$"), NODE_PATH), "Path -> where the link points."),
        "files": said(map_of(_FILE, NODE_PATH), "Path -> a file's text, or its text and mode."),
        "directories": said(list_of(NODE_PATH), "Empty directories."),
        "mounts": said(list_of(NODE_PATH), "Mount points."),
        "proc_modules": said(TEXT, "The text of /proc/modules, in place of what modules gives; null: there is no such file."),
        "container": said(
            fields(
                {
                    "files": said(map_of(_FILE, NODE_PATH), "Files of the container's own."),
                    "programs": said(
                        map_of(or_null(_STAND_IN), text("^[^/]+$")),
                        "Command -> a stand-in for the image's own; null: the image lacks it.",
                    ),
                }
            ),
            "What driver-manager's container itself has.",
        ),
        "kernel": said(
            fields(
                {
                    "delete_module": said(
                        map_of(
                            either(
                                KERNEL_ANSWER,
                                list_of(KERNEL_ANSWER),
                                fields({}, {"busy_while_pods": said(list_of(TEXT), "Pods (namespace/name) that hold it.")}),
                            )
                        ),
                        "Module -> the answer to unloading it, or one for each attempt.",
                    ),
                    "umount": said(map_of(_ANSWERS, NODE_PATH), "Mount point -> the answer to unmounting it."),
                    "unlink": said(map_of(_ANSWERS, NODE_PATH), "Path -> the answer to removing it."),
                    "init_module": said(map_of(_ANSWERS), "Module -> the answer to loading it."),
                }
            ),
            'What the kernel is made to answer: "ok", "real" or an errno such as EBUSY.',
        ),
    }
)
