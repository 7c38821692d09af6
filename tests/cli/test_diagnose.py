"""`dmsim diagnose`: exit codes, the three forms, bad input."""

from __future__ import annotations

import json
import shlex

import pytest

from simulator.cli.main import main
from simulator.diagnosing.finding import KINDS
from simulator.manager.charts import CHARTS
from simulator.manager.releases import RELEASES
from simulator.report.text import log_text
from simulator.runners.simulated import START, simulate
from simulator.scenario import load_host, make_world

IN_ORDER = "format: 1\nhost: clean\nenv: {NODE_NAME: gpu-1}\n"
STUCK = """\
format: 1
host: clean
release: v0.10.0
env: {NODE_NAME: gpu-1}
cluster:
  node:
    name: gpu-1
    unschedulable: true
    labels:
      nvidia.com/gpu.deploy.driver: pre-installed
      nvidia.com/gpu.deploy.device-plugin: paused-for-driver-upgrade
"""
FOUND = ["pre-installed-without-driver", "operands-paused", "cordon-of-driver-manager"]
HOSTILE = """\
format: 1
host: {mounts: ["/run/nvidia/driver/$(reboot)\\n\\e[31m"]}
env: {NODE_NAME: gpu-1, DRAIN_TIMEOUT_SECONDS: "\\e[2J</pre>`x`"}
"""


@pytest.fixture
def diagnose(capsys, tmp_path):
    """Runs it on a world. Gives exit code, standard output and standard error."""

    def run(text, *arguments):
        path = tmp_path / "world.yaml"
        path.write_text(text, encoding="utf-8")
        code = main(["diagnose", str(path), *arguments])
        return code, *capsys.readouterr()

    return run


def test_a_node_in_order_is_exit_code_0(diagnose):
    """And one line."""
    assert diagnose(IN_ORDER) == (0, "gpu-1: nothing is left over that is known (v0.10.0)\n", "")


def test_the_document_has_all_of_each_finding(diagnose):
    """With a format version; commands as arguments and as text; releases and charts it holds for."""
    code, out, _ = diagnose(STUCK, "-o", "json")
    document = json.loads(out)
    assert code == 1
    assert {key: document[key] for key in ("format", "node", "release", "host_seen", "unseen", "assumed")} == {
        "format": 1,
        "node": "gpu-1",
        "release": "v0.10.0",
        "host_seen": True,
        "unseen": [],
        "assumed": [],
    }
    assert [finding["kind"] for finding in document["findings"]] == FOUND
    for finding in document["findings"]:
        assert set(finding["releases"]) <= set(RELEASES)
        assert set(finding["charts"]) <= set(CHARTS)
        assert finding["upstream"]
        for command in finding["commands"]:
            assert shlex.split(command["text"]) == command["argv"]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_people_read_every_finding_and_can_copy_its_commands(diagnose, form):
    """A command stands on a line of its own, whole."""
    code, out, _ = diagnose(STUCK, "-o", form)
    assert code == 1
    lines = [line.strip() for line in out.splitlines()]
    assert "kubectl label node gpu-1 nvidia.com/gpu.deploy.driver=true --overwrite" in lines
    assert "kubectl uncordon gpu-1" in lines
    assert all(kind in out for kind in FOUND)


def test_the_release_can_be_named(diagnose):
    """One that is not known is an error with the nearest."""
    assert diagnose(STUCK, "--release", "v0.12.0")[1].startswith("gpu-1: 3 findings (v0.12.0)\n")
    code, _, err = diagnose(STUCK, "--release", "v0.12")
    assert (code, "v0.12.0" in err) == (2, True)


def test_a_chart_names_the_release_of_the_nodes_own_daemonset(diagnose):
    """Of 2023's charts it is another one in each; both at once is an error."""
    passthrough = IN_ORDER + "cluster: vm-passthrough-node\n"
    assert diagnose(IN_ORDER, "--chart", "v26.7.0")[1].endswith("(v0.12.0)\n")
    assert diagnose(IN_ORDER, "--chart", "v23.6.2")[1] != diagnose(passthrough, "--chart", "v23.6.2")[1]
    assert diagnose(IN_ORDER, "--chart", "v26.7.0", "--release", "v0.12.0")[0] == 2
    assert "v26.7.0" in diagnose(IN_ORDER, "--chart", "v26.7")[2]


def test_a_host_that_nobody_looked_at_is_told_in_the_first_line(capsys, tmp_path):
    """A node object alone."""
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: gpu-7}\n")
    assert main(["diagnose", str(tmp_path / "node.yaml")]) == 0
    assert (
        capsys.readouterr().out.splitlines()[0] == "gpu-7: nothing is left over that is known (v0.10.0, nobody looked at the host)"
    )


def test_a_bundles_logs_are_explained(capsys, tmp_path):
    """A node object and a log beside it."""
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: gpu-7}\n")
    world = make_world(load_host("runfile-580"), env={"NODE_NAME": "gpu-7"})
    (tmp_path / "driver-manager.log").write_text(log_text(simulate(world), START))
    assert main(["diagnose", str(tmp_path), "-o", "json"]) == 0
    (happened,) = json.loads(capsys.readouterr().out)["happened"]
    assert "v0.10.0" in {candidate["release"] for candidate in happened["candidates"]}


@pytest.mark.parametrize(("deployed", "stays"), [("driver", False), ("vfio-manager", True)])
def test_a_log_is_explained_for_the_nodes_own_daemonset(capsys, tmp_path, deployed, stays):
    """vfio-manager's pod stays on the node, whatever the driver's label says."""
    labels = f"{{nvidia.com/gpu.present: 'true', nvidia.com/gpu.deploy.{deployed}: 'true'}}"
    (tmp_path / "node.yaml").write_text(f"apiVersion: v1\nkind: Node\nmetadata: {{name: gpu-7, labels: {labels}}}\n")
    world = make_world(load_host("runfile-580"), env={"NODE_NAME": "gpu-7"})
    (tmp_path / "driver-manager.log").write_text(log_text(simulate(world), START))
    main(["diagnose", str(tmp_path)])
    out = capsys.readouterr().out
    assert ("vfio-manager's pod stays" in " ".join(out.split())) is stays
    assert ("driver.enabled=false" in out) is not stays


def test_bad_input_is_one_message(capsys, tmp_path):
    """A path to nothing, and a world that is none."""
    assert main(["diagnose", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.startswith("dmsim diagnose: ")
    (tmp_path / "odd.yaml").write_text("host: clean\nenv: {A: 1}\n")
    assert main(["diagnose", str(tmp_path / "odd.yaml")]) == 2
    assert "env.A" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_what_a_file_says_steers_no_terminal_and_no_page(diagnose, form):
    """Control characters are shown escaped; in Markdown no tag and no code span is begun."""
    code, out, _ = diagnose(HOSTILE, "-o", form)
    assert code == 1
    assert all(char.isprintable() or char == "\n" for char in out)
    if form == "markdown":
        prose = "".join(out.split("```")[::2])
        assert "</pre>" not in prose
        assert "`x`" not in prose.replace("\\`", "")


def test_a_commands_text_is_whole_in_a_shell(diagnose):
    """Also where a path has characters that a shell or a terminal would take for its own."""
    _, out, _ = diagnose(HOSTILE, "-o", "json")
    commands = [command for finding in json.loads(out)["findings"] for command in finding["commands"]]
    assert [command["argv"] for command in commands] == [["umount", "--lazy", "/run/nvidia/driver/$(reboot)\n\x1b[31m"]]
    assert commands[0]["text"] == r"umount --lazy $'/run/nvidia/driver/$(reboot)\n\033[31m'"


def test_every_kind_is_known_by_a_name_that_stays():
    """Scripts ask for it."""
    assert all(kind.name == name and name.replace("-", "").isalnum() and name.islower() for name, kind in KINDS.items())
