"""The schemas of a world file (`scenario.read_scenario`) and of a story of a node (`node.story.read_story`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from simulator.manager.charts import CHARTS
from simulator.manager.releases import RELEASES
from simulator.manager.whatif import WHAT_IFS
from simulator.node.operator import VARIANTS
from simulator.node.story import ACT_READERS, SWITCHES
from simulator.node.validator.program import WORKLOADS
from simulator.scenario import names
from simulator.schemas.clusters import CLUSTER, LABEL_KEY, LABEL_VALUE, NAME
from simulator.schemas.hosts import ERRNO, HOST
from simulator.schemas.words import (
    ABSOLUTE,
    FLAG,
    FORMAT_KEY,
    NULL,
    SECONDS,
    TEXT,
    Schema,
    choice,
    either,
    fields,
    known,
    list_of,
    map_of,
    or_null,
    said,
    text,
    whole,
)
from simulator.world import CALLS

_DEFINITIONS: Final = {"host": HOST, "cluster": CLUSTER}
_SOME: Final = {"minItems": 1}


def _host() -> Schema:
    what = "A named host, the path of a host file (from this file's folder), or a host written here."
    return said(known(names("hosts"), either(TEXT, {"$ref": "#/definitions/host"})), what)


def _cluster() -> Schema:
    what = "A named cluster, the path of a cluster file (from this file's folder), or a cluster written here."
    return said(known(names("clusters"), either(TEXT, {"$ref": "#/definitions/cluster"})), what)


def _call_fault() -> Schema:
    """One of three ways in which a call goes wrong; the keys of the others may stand there as null."""
    argument = said(TEXT, "A path, a module, a command line joined by blanks, or a request's method and path.")
    nth = said(or_null(whole(1, 10**6)), "Which of the calls with this argument, counted from 1.")

    def way(calls: Iterable[str], need: Mapping[str, Schema], may: Mapping[str, Schema]) -> Schema:
        made = fields({}, {"call": said(choice(*calls), "The system call, or request."), "argument": argument, **need})
        absent = dict.fromkeys(("error", "exit_code", "late", "signal"), NULL)
        made["properties"] = {**absent, **may, "nth": nth, **made["properties"]}
        return made

    return either(
        way((call for call in CALLS if call != "request"), {"error": said(ERRNO, "It fails with this errno.")}, {}),
        way(
            ("execve",),
            {"exit_code": said(whole(-64, 255), "The program ends so; below zero a signal ended it.")},
            {"late": said(or_null(FLAG), "Does it do its work first?")},
        ),
        way(CALLS, {"signal": said(choice("TERM", "INT", "KILL"), "Comes just before the call.")}, {}),
    )


def world() -> Schema:
    """Of a world file."""
    change = fields(
        {
            "write": said(map_of(TEXT, ABSOLUTE), "Path of the node's -> the text that is written."),
            "remove": said(list_of(ABSOLUTE), "Paths of the node's that go."),
            "delete_pods": said(list_of(TEXT), "Pods (namespace/name) that somebody deletes."),
        },
        {"after_s": said(SECONDS, "The second at which it happens.")},
    )
    signal = fields(
        {},
        {
            "name": said(choice("TERM", "INT", "KILL"), "Without SIG."),
            "after_s": said(SECONDS, "The second at which it comes."),
        },
    )
    return fields(
        {
            "format": FORMAT_KEY,
            "description": said(TEXT, "What world it is, in a sentence."),
            "faults": said(list_of(_call_fault()), "What goes wrong at one call each; requests that fail are the cluster's."),
            "cluster": _cluster(),
            "release": said(known(RELEASES, TEXT), "An upstream tag."),
            "what_if": said(known(WHAT_IFS, TEXT), "A proposed upstream change on top."),
            "args": said(list_of(TEXT), "The program's arguments; uninstall_driver where nothing is said."),
            "env": said(map_of(TEXT), 'The program\'s variables; numbers and booleans in quotes: "true".'),
            "changes": said(list_of(change), "What happens meanwhile."),
            "signal": said(signal, "A signal that reaches the program."),
            "stop_after_s": said({**SECONDS, "maximum": 86_400}, "How long the run is watched."),
            "seed": said(whole(0), "Decides upstream's jitter."),
            "path": said(list_of(TEXT), "The container's PATH, folder by folder; the image's where nothing is said."),
            "in_pod": said(FLAG, "Does the program get what Kubernetes gives a pod? true where nothing is said."),
            "pid_1": said(FLAG, "Is it process 1? true where nothing is said."),
            "version": said(TEXT, "What --version prints."),
        },
        {"host": _host()},
        definitions=_DEFINITIONS,
    )


def story() -> Schema:
    """Of a story of a node over time."""
    time = either(
        text(r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$"),
        {"type": "number", "minimum": 0, "maximum": 30 * 86_400},
    )
    values = fields(
        {
            **dict.fromkeys(SWITCHES, FLAG),
            "default_workload": said(choice(*WORKLOADS), "What a node without the label is for."),
            "driver_manager_env": said(map_of(TEXT), "Variables of driver-manager, in each of its DaemonSets."),
        }
    )
    some_texts = list_of(TEXT, **_SOME)
    yes: Schema = {"const": True}
    acts: dict[str, Schema] = {
        "label": said(or_null(map_of(or_null(LABEL_VALUE), LABEL_KEY)), "kubectl label node; null removes the label."),
        "cordon": said(FLAG, "true: kubectl cordon, false: uncordon."),
        "purge": said(some_texts, "apt purge of these names or patterns."),
        "autoremove": said(yes, "apt autoremove."),
        "mark_manual": said(some_texts, "apt-mark manual of these packages."),
        "update_initramfs": said(choice("all", "newest"), "update-initramfs for all kernels, or the newest."),
        "nvidia_uninstall": said(yes, "The .run installer's uninstaller."),
        "write": said(map_of(TEXT, ABSOLUTE, minProperties=1), "Path -> the text that is written."),
        "remove": said(list_of(ABSOLUTE, **_SOME), "Paths that are removed."),
        "reboot": said(
            or_null(fields({"takes": said(time, "How long the machine is down."), "kernel": said(TEXT, "The kernel it boots.")})),
            "The machine reboots.",
        ),
        "delete_pods": said(some_texts, "kubectl delete pod of those whose names begin so."),
        "values": said(values, "helm upgrade --set of these values."),
        "restart_operator": said(yes, "kubectl rollout restart of the operator."),
    }
    assert set(acts) == set(ACT_READERS)
    step: Schema = {
        "type": "object",
        "properties": {"at": said(time, 'When: seconds, or a duration such as "20m".'), **acts},
        "additionalProperties": False,
        "required": ["at"],
        "oneOf": [{"required": [act]} for act in acts],
    }
    return fields(
        {
            "format": FORMAT_KEY,
            "description": said(TEXT, "What is told, in a sentence."),
            "cluster": _cluster(),
            "chart": said(choice(*CHARTS), "The version of the GPU Operator's chart."),
            "variant": said(choice(*VARIANTS), "A set of the chart's values."),
            "values": said(values, "Values on top of the variant's."),
            "operator": said(choice("old", "new"), "The operator's behaviour; the chart's own where nothing is said."),
            "namespace": said(NAME, "The operator's namespace."),
            "kubelet": said(
                fields(
                    {
                        "relist": said(time, "How often kubelet looks at containers."),
                        "looks_on_time": said(FLAG, "Does it look just in time?"),
                        "seed": said(whole(0), "Decides its jitter."),
                    }
                ),
                "kubelet's pace.",
            ),
            "until": said(time, "When the story ends."),
            "steps": said(list_of(step), "What people do, in the order of its times."),
        },
        {"host": _host()},
        definitions=_DEFINITIONS,
    )
