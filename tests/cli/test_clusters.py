"""`dmsim clusters`: the list, one in full, bad input."""

from __future__ import annotations

import json

from simulator.cli.main import main
from simulator.scenario import load_cluster, names


def test_the_list_names_each_cluster(capsys):
    """With its description."""
    assert main(["clusters"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == names("clusters")
    assert load_cluster("mig-node").description in "\n".join(rows)


def test_one_cluster_shows_the_names_that_sentences_take(capsys):
    """Pods with their namespace, labels as a selector has them."""
    assert main(["clusters", "container-node"]) == 0
    out = capsys.readouterr().out
    assert "gpu-operator/nvidia-driver-daemonset-c6b9x" in out
    assert "  nvidia.com/gpu.deploy.driver=true\n" in out


def test_the_document_has_the_same(capsys):
    """Of a cluster file, too."""
    assert main(["clusters", "container-node", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {
        "name": "gpu-operator/nvidia-driver-daemonset-c6b9x",
        "owner": "DaemonSet/nvidia-driver-daemonset",
        "phase": "Running",
    } in document["pods"]
    assert document["node"]["name"] == "gpu-1"


def test_an_unknown_cluster_is_bad_input(capsys):
    """With the nearest name."""
    assert main(["clusters", "mig"]) == 2
    assert 'there is no cluster named "mig"; did you mean mig-node?' in capsys.readouterr().err
