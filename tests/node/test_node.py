"""The whole node: the guide's numbers, from symptom to recovery, on each kind of host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator import labels
from simulator.cluster.kinds import DAEMON_SET
from simulator.cluster.objects import ClusterSpec
from simulator.cluster.objects import Node as NodeSpec
from simulator.gocompat import SECOND
from simulator.host.spec import PciFunction
from simulator.node.node import Node
from simulator.node.operator import VARIANTS, Values
from simulator.scenario import load_host, names

PACKAGED, RUNFILE = "ubuntu-24.04-driver-580-open", "runfile-580"
RESTARTS = [0, 60, 130, 210, 310, 450, 670, 1030]
SANDBOX_WITH_DRIVER = Values(sandbox_workloads=True, default_workload="vm-passthrough")


@pytest.fixture
def make():
    made = []

    def node(host=PACKAGED, chart="v26.3.1", values=VARIANTS["passthrough"], **options):
        spec = load_host(host) if isinstance(host, str) else host
        made.append(Node(spec, ClusterSpec("test", NodeSpec("gpu-1")), chart, values, **options))
        return made[-1]

    yield node
    for one in made:
        one.kubelet.cut_off()


def after(node, seconds):
    node.run_until(round(seconds * SECOND))


def status(node, name):
    """STATUS of the pod whose name begins so."""
    return next(row["Status"] for row in node.get_pods() if row["Name"].startswith(name))


def began(node):
    return [round(run.began / SECOND, 3) for run in node.timeline.runs]


def recover(node, at):
    """As the guide says: purge or uninstall, blacklist, reboot."""
    after(node, at)
    if node.machine.spec.packages:
        node.machine.purge(["nvidia-*", "libnvidia-*"])
    else:
        node.machine.nvidia_uninstall()
    node.machine.write("/etc/modprobe.d/blacklist-nvidia.conf", "blacklist nouveau\nblacklist nvidia\n")
    node.reboot(takes=100)


@pytest.mark.parametrize("host", [PACKAGED, RUNFILE, "converged-gpu-rdma"])
def test_a_host_with_a_driver_is_a_crash_loop(make, host):
    """The guide's symptom: restarts, statuses, the validator's message, an empty allocatable."""
    node = make(host)
    after(node, 1100)
    assert began(node) == RESTARTS
    assert {run.verdict for run in node.timeline.runs} == {"exit 1: driver is pre-installed on host"}
    assert status(node, "nvidia-vfio-manager") == "Init:CrashLoopBackOff"
    assert status(node, "nvidia-sandbox-validator") == "Init:CrashLoopBackOff"
    assert status(node, "nvidia-sandbox-device-plugin") == "Init:0/2"
    assert node.allocatable == {}
    assert set(node.gpu_drivers.values()) == {"nvidia"}
    first = min(node.gpu_drivers)
    assert {log.lines[-1].message for log in node.timeline.logs if log.container == "vfio-pci-validation"} == {
        f"Error: error validating vfio-pci driver installation: device not bound to 'vfio-pci'; device: {first} driver: 'nvidia'"
    }


def test_a_clean_host_binds_at_first_start(make):
    """One run of driver-manager; thirty seconds of it are the device plugin's shell, which hears no SIGTERM."""
    node = make("clean")
    after(node, 60)
    assert began(node) == [0]
    assert node.timeline.runs[0].ended == 32 * SECOND
    assert set(node.gpu_drivers.values()) == {"vfio-pci"}
    assert [row["Status"] for row in node.get_pods()] == ["Running"] * 3
    assert sum(map(int, node.allocatable.values())) == len(node.gpu_drivers)
    assert {row["Restarts"] for row in node.get_pods()} == {"0"}


def test_a_running_vfio_manager_proves_nothing(make):
    """S10: this root has no modprobe, so each bind fails, with a warning; only the validator says so."""
    node = make("talos-vfio-pci")
    after(node, 60)
    assert set(node.gpu_drivers.values()) == {""}
    assert status(node, "nvidia-vfio-manager") == "Running"
    assert status(node, "nvidia-sandbox-validator") == "Init:CrashLoopBackOff"
    assert node.allocatable == {}


@pytest.mark.parametrize("host", [PACKAGED, RUNFILE])
def test_recovery_as_the_guide_has_it(make, host):
    """Purge, blacklist, reboot: both GPUs bound and the resource there, without deleting a pod."""
    node = make(host)
    recover(node, 1200)
    after(node, 1500)
    assert node.timeline.runs[-1].outcome.exit_code == 0
    assert node.gpu_drivers == {"0000:18:00.0": "vfio-pci", "0000:3b:00.0": "vfio-pci"}
    assert node.allocatable == {"nvidia.com/GA102GL_A10": "2"}
    assert [row["Status"] for row in node.get_pods()] == ["Running"] * 3


@pytest.mark.parametrize("new", [False, True])
def test_deleting_the_pods_skips_the_wait(make, new):
    """The other way out of a long back-off; the label's fate is not touched by it."""
    node = make(RUNFILE, new_operator=new)
    after(node, 1200)
    node.machine.nvidia_uninstall()  # unloads the modules: no reboot
    assert status(node, "nvidia-vfio-manager") == "Init:CrashLoopBackOff"
    for name in ("nvidia-vfio-manager-", "nvidia-sandbox-validator-"):
        assert len(node.delete_pods(name)) == 1
    after(node, 1300)
    assert node.allocatable == {"nvidia.com/GA102GL_A10": "2"}
    assert (labels.DRIVER in node.labels) == new


def test_the_old_operator_takes_the_label_within_five_seconds(make):
    """S1: it comes with each run and is gone before the run is over."""
    node = make()
    after(node, 1100)
    seen = [entry for entry in node.timeline.entries if entry.subject == labels.DRIVER]
    comes = [round(entry.at / SECOND) for entry in seen if entry.text]
    goes = [round(entry.at / SECOND) for entry in seen if not entry.text]
    assert comes == RESTARTS
    assert goes == [at + 5 for at in RESTARTS]


def test_the_new_operator_leaves_the_label_until_something_happens(make):
    """S1: it survives the recovery; another change of the node's configuration takes it."""
    node = make(chart="v26.7.0")
    recover(node, 1200)
    after(node, 2000)
    assert set(node.gpu_drivers.values()) == {"vfio-pci"}
    assert node.labels[labels.DRIVER] == "pre-installed"
    node.label({"nvidia.com/gpu.workload.config": "vm-vgpu"})
    after(node, 2001)
    assert labels.DRIVER not in node.labels


@pytest.mark.parametrize(("new", "label", "pods"), [(False, "true", 1), (True, "pre-installed", 0)])
def test_the_left_over_label_when_the_node_moves_to_containers(make, new, label, pods):
    """With the new operator the driver's DaemonSet never gets a pod; with the old one the label is long gone."""
    node = make(values=SANDBOX_WITH_DRIVER, new_operator=new)
    recover(node, 600)
    after(node, 1500)
    node.label({"nvidia.com/gpu.workload.config": "container"})
    after(node, 2500)
    assert node.labels[labels.DRIVER] == label
    driver = node.store.objects(DAEMON_SET)["gpu-operator/nvidia-driver-daemonset"]["status"]
    assert (driver["desiredNumberScheduled"], driver["numberReady"]) == (pods, pods)
    assert node.allocatable.get("nvidia.com/gpu") == ("2" if pods else None)
    assert node.allocatable["nvidia.com/GA102GL_A10"] == "0"
    assert set(node.gpu_drivers.values()) == ({"nvidia"} if pods else {"vfio-pci"})
    if new:
        node.label({labels.DRIVER: None})
        after(node, 3500)
        assert labels.DRIVER not in node.labels, "a missing label is no reason for a pass"
        node.operator.start()
        after(node, 4500)
        assert node.allocatable["nvidia.com/gpu"] == "2"


def test_a_node_with_a_driver_and_the_container_variant(make):
    """The guide's other way out: the operands use the host's driver, and nothing restarts."""
    node = make(values=VARIANTS["container"])
    after(node, 60)
    assert node.allocatable == {"nvidia.com/gpu": "2"}
    assert not node.timeline.runs
    assert {row["Status"] for row in node.get_pods()} == {"Running"}
    assert node.labels[labels.DRIVER] == "true"


def test_a_container_node_with_a_host_driver_gives_way_to_it(make):
    """The label takes the driver's pod away while its init container still sleeps, and the node works."""
    node = make(values=Values())
    after(node, 300)
    assert began(node) == [0]
    assert node.timeline.runs[0].outcome.exit_code == 2, "SIGTERM, in a Go program that is process 1"
    assert node.labels[labels.DRIVER] == "pre-installed"
    assert not [row for row in node.get_pods() if row["Name"].startswith("nvidia-driver")]
    assert node.allocatable == {"nvidia.com/gpu": "2"}


@pytest.mark.parametrize(("answer", "driver"), [("real", ""), ("EBUSY", "nvidia")])
def test_a_driver_container_that_is_stopped_unloads_its_driver_if_it_can(make, answer, driver):
    """A module in use stays, and the GPUs with it."""
    node = make(replace(load_host("clean"), delete_module={"nvidia": answer}), values=Values())
    after(node, 300)
    assert set(node.gpu_drivers.values()) == {"nvidia"}
    node.label({"nvidia.com/gpu.deploy.operands": "false"})
    after(node, 400)
    assert not node.get_pods()
    assert set(node.gpu_drivers.values()) == {driver}


def test_the_script_hears_no_sigterm(make):
    """Up to v0.8.1 driver-manager is a shell that is process 1: on a container node its pod goes after the grace period."""
    node = make(chart="v25.3.4", values=Values())
    after(node, 29)
    assert [row["Status"] for row in node.get_pods() if row["Name"].startswith("nvidia-driver")] == ["Terminating"]
    after(node, 40)
    assert not [row for row in node.get_pods() if row["Name"].startswith("nvidia-driver")]
    assert [run.verdict for run in node.timeline.runs] == ["cut off"]


def test_a_foreign_cordon_is_left_alone(make):
    """vfio-manager's driver-manager neither evicts nor drains, so it does not uncordon; DaemonSets' pods come all the same."""
    node = make("clean")
    node.cordon(unschedulable=True)
    after(node, 60)
    assert node.store.node["spec"]["unschedulable"]
    assert node.allocatable == {"nvidia.com/GA102GL_A10": "2"}


@pytest.mark.parametrize(("chart", "driver"), [("v25.10.1", ""), ("v26.3.1", "vfio-pci"), ("v26.7.0", "")])
def test_the_pre_stop_hook_of_the_v26_3_charts_does_not_unbind(make, chart, driver):
    """S11. The pod is told to go because its label does."""
    node = make("clean", chart=chart)
    after(node, 100)
    assert set(node.gpu_drivers.values()) == {"vfio-pci"}
    node.label({"nvidia.com/gpu.deploy.operands": "false"})
    after(node, 200)
    assert not node.get_pods()
    assert set(node.gpu_drivers.values()) == {driver}


def test_restarting_vfio_manager_unbinds_every_gpu_first(make):
    """S11: a virtual machine or not."""
    node = make("clean")
    after(node, 100)
    node.delete_pods("nvidia-vfio-manager-")
    after(node, 400)
    texts = [entry.text for entry in node.timeline.entries if entry.lane == "GPU drivers" and entry.subject == "0000:18:00.0"]
    assert texts == ["no driver", "vfio-pci", "no driver", "vfio-pci"]


def test_a_purge_without_a_reboot_leaves_the_module(make):
    """The host check says no, and driver-manager then cannot unload a driver that nvidia_drm holds."""
    node = make()
    after(node, 600)
    node.machine.purge(["nvidia-*", "libnvidia-*"])
    after(node, 1100)
    assert node.timeline.runs[-1].outcome.exit_code == 1
    assert "failed to uninstall nvidia driver components" in node.timeline.runs[-1].verdict
    assert set(node.gpu_drivers.values()) == {"nvidia"}


@pytest.mark.parametrize("chart", ["v22.9.0", "v23.6.2", "v24.9.2", "v25.10.1", "v26.3.3", "v26.7.0"])
def test_every_chart_of_the_table_binds_a_clean_host(make, chart):
    """Shell releases and Go releases; the script of the ConfigMap and vfio-manage."""
    node = make("clean", chart=chart)
    after(node, 1000)
    assert set(node.gpu_drivers.values()) == {"vfio-pci"}
    assert node.allocatable == {"nvidia.com/GA102GL_A10": "2"}
    assert not node.timeline.runs[-1].outcome.exit_code


def test_a_run_that_a_reboot_or_the_end_interrupts(make):
    """The first is cut off, the second still runs."""
    node = make()
    after(node, 30)
    node.reboot(takes=60)
    after(node, 120)
    node.__exit__()
    assert [run.verdict for run in node.timeline.runs] == ["cut off", "still running"]
    assert [(entry.at // SECOND, entry.text) for entry in node.timeline.entries if entry.lane == "driver-manager"] == [
        (0, "starts"),
        (30, "cut off"),
        (90, "starts"),
    ]


@pytest.mark.parametrize("host", names("hosts"))
def test_every_named_host_meets_the_operator(make, host):
    """The first run says what the host's description says of the host check; no GPU, no operands."""
    node = make(host)
    after(node, 65)
    spec = node.machine.spec
    if not any(function.is_gpu for function in spec.pci):
        assert not node.get_pods()
        return
    assert spec.verdict is not None
    first = node.timeline.runs[0]
    assert (first.verdict == "exit 1: driver is pre-installed on host") == spec.verdict.host_check


def test_a_plugin_that_panics_is_a_crash_loop(make):
    """A vendor file of less than two bytes, of a function that comes after the GPUs."""
    host = load_host("clean")
    odd = PciFunction("0000:ff:00.0", "0x10de", "0x0000", "0x040300", attributes={"vendor": "0"})
    node = make(replace(host, pci=(*host.pci, odd)))
    after(node, 120)
    plugin = "nvidia-sandbox-device-plugin"
    assert status(node, plugin) == "CrashLoopBackOff"
    assert any(line.message.startswith("panic: ") for log in node.timeline.logs for line in log.lines)
    assert node.allocatable == {}
