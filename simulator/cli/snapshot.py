"""A world file of your own node, for `dmsim run`, `predict` and `diagnose`. Only looks; keeps nothing that looks like a secret.

PATH is a folder, an archive (tar, zip) or a file, several may be given: what `kubectl get ... -o yaml|json` printed (the node,
its pods; DaemonSets, ClusterPolicy, resource claims, disruption budgets), `kubectl describe node`, a must-gather of the GPU
Operator, the output of the host script (dmsim snapshot host-script). The node alone is enough; each thing more makes it surer.
Without PATH, or with --kubeconfig or --context, the cluster is asked: with kubectl, by GET only.

What could not be seen, and what was assumed instead, is told on standard error and at the top of the world file.

Example:
  kubectl get node gpu-1 -o yaml > node.yaml
  kubectl get pods -A --field-selector spec.nodeName=gpu-1 -o yaml > pods.yaml
  kubectl get daemonsets -A -o yaml > daemonsets.yaml
  dmsim snapshot node.yaml pods.yaml daemonsets.yaml -o world.yaml
  dmsim run --world world.yaml

  dmsim snapshot --kubeconfig kubeconfig --node gpu-1 node.txt -o world.yaml
  dmsim snapshot must-gather.tar.gz --node gpu-1 --anonymize -o world.yaml
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from simulator.importing.roots import DirectoryRoot
from simulator.reading import printable
from simulator.snapshot.anonymizing import anonymized
from simulator.snapshot.bundle import Bundle, bundle_of
from simulator.snapshot.collecting import Kubectl, collect
from simulator.snapshot.contents import Contents, read_contents
from simulator.snapshot.files import read_files
from simulator.snapshot.node import make_scenario
from simulator.writing import world_document, write_file, yaml_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="what was saved of the node: folders, archives, files")
    parser.add_argument(
        "--node", metavar="NAME", default="", help="which node, where several were saved or the cluster has several"
    )
    parser.add_argument("--kubeconfig", metavar="FILE", default="", help="ask the cluster of this kubeconfig")
    parser.add_argument("--context", metavar="NAME", default="", help="ask the cluster of this context of the kubeconfig")
    parser.add_argument(
        "--kubectl", metavar="PATH", default="kubectl", help="the kubectl to ask it with (default: kubectl on PATH)"
    )
    parser.add_argument(
        "--root", metavar="DIR", type=Path, help="the node's root directory, looked at instead of the script's output"
    )
    parser.add_argument(
        "--anonymize", action="store_true", help="names of node, namespaces and pods become others; the operator's own stay"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default=None, help="write the world file here (default: print it)")
    parser.add_argument("--logs", metavar="FILE", default=None, help="write what driver-manager logged here, for dmsim explain")


def run(options: argparse.Namespace) -> int:
    """Write it."""
    bundle = _bundle(options)
    if options.anonymize:
        bundle = anonymized(bundle)
    comments = [*_paragraph("Could not be seen:", bundle.unseen), *_paragraph("Assumed:", bundle.assumed)]
    scenario = bundle.scenario
    document = world_document(scenario.world, release=scenario.release, what_if=scenario.what_if, description=scenario.description)
    text = yaml_text(document, comments)
    if options.logs is not None:
        write_file(options.logs, "".join(bundle.logs.values()))
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_file(options.output, text)
    sys.stderr.write("".join(f"{printable(line)}\n" for line in comments))
    return 0


def _bundle(options: argparse.Namespace) -> Bundle:
    found = Contents(", ".join(str(path) for path in options.paths) or "the cluster")
    for path in options.paths:
        found.add(read_contents(read_files(path), str(path)))
    if not options.paths or options.kubeconfig or options.context:
        kubectl = Kubectl(options.kubectl, options.kubeconfig, options.context)
        collect(found, kubectl, options.node, with_logs=options.logs is not None)
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(contextlib.closing(DirectoryRoot(options.root))) if options.root is not None else None
        return bundle_of(make_scenario(found, options.node, root))


def _paragraph(title: str, sentences: tuple[str, ...]) -> list[str]:
    return [title, *(f"- {sentence}" for sentence in sentences)] if sentences else []
