"""An image against a world, by a real engine: what a small program does and sees is what the world says."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from simulator.cluster.objects import ClusterSpec, Node, Pod
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec, Module, PciFunction, Program
from simulator.runners.container import tracer
from simulator.scenario import IN_POD_FILES, load_host
from simulator.trace import ApiRequest, Change, ChildProcess, KernelCall, LogLine, Signal
from simulator.world import PlannedChange, World

pytestmark = [pytest.mark.container, pytest.mark.slow]

KUBECONFIG = json.dumps(
    {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:6443"}}],
    }
)
NODE = Node("gpu-1", {"nvidia.com/gpu.present": "true"})
LOADED = (Module("nvidia", used_by=("nvidia_uvm",)), Module("nvidia_uvm"))
GET_NODE = "wget -q -O /dev/null http://127.0.0.1:6443/api/v1/nodes/gpu-1"
"""BusyBox's shell runs its own applets without a look at PATH; `$(which NAME)` looks."""


@pytest.fixture(params=[False, True], ids=["docker", "traced"])
def traced(request):
    if request.param and tracer.why_not():
        pytest.skip(f"no tracer: {tracer.why_not()}")
    return request.param


@pytest.fixture
def run(image, traced):
    """Run a script in a world."""
    from simulator.runners.container.runner import run_image

    def runs(script, *, note_tree=False, cluster=None, env=None, cancelled=None, **settings):
        world_settings = {key: settings.pop(key) for key in ("changes", "signal", "stop_after", "pid_1", "path") if key in settings}
        files = (File("/etc/kubeconfig", KUBECONFIG), *settings.pop("container_files", ()))
        host = settings.pop("host", None) or HostSpec("test", container_files=files, **settings)
        world = World(
            host,
            cluster or ClusterSpec("test", NODE),
            env={"NODE_NAME": "gpu-1", "KUBECONFIG": "/etc/kubeconfig", "SCRIPT": script, **(env or {})},
            **world_settings,
        )
        return run_image(world, image, tracer=traced, note_tree=note_tree, cancelled=cancelled)

    return runs


def log(outcome):
    return [event.message for event in outcome.log]


def test_output_requests_and_the_exit_code_are_seen_in_their_order(run, traced):
    outcome = run(f"say info one; {GET_NODE}; say warning 'two\n'; {GET_NODE}x 2>/dev/null; echo evicting pod; exit 3")
    told = [
        (event.level, event.message) if isinstance(event, LogLine) else (event.method, event.path, event.status)
        for event in outcome.events
        if isinstance(event, LogLine | ApiRequest)
    ]
    assert told == [
        ("info", "one"),
        ("GET", "/api/v1/nodes/gpu-1", 200),
        ("warning", "two\n"),
        ("GET", "/api/v1/nodes/gpu-1x", 404),
    ]
    assert outcome.stdout == "evicting pod\n"
    assert outcome.exit_code == 3
    assert outcome.panic == ""
    assert outcome.stopped_after is None
    assert outcome.after.node.labels == {"nvidia.com/gpu.present": "true"}
    assert outcome.unobserved == (frozenset() if traced else {"kernel", "exec"})


def test_it_is_process_1_with_the_images_environment_and_the_worlds_on_top(run):
    outcome = run('echo "$$ $FROM_IMAGE $NODE_NAME"; pwd; echo "$PATH"; id -u; tr "\\0" " " </proc/self/cmdline')
    pid, directory, path, user, *_ = outcome.stdout.splitlines()
    assert pid == "1 yes gpu-1"
    assert directory == "/work"
    assert path == "/usr/local/bin:/usr/bin:/bin"
    assert user == "0"


def test_it_need_not_be_process_1(run):
    number = run("echo $$", pid_1=False).stdout
    assert number.strip().isdigit()
    assert number != "1\n"


def test_a_world_may_have_a_path_of_its_own_and_chroot_is_on_it(run):
    outcome = run("echo $PATH; which chroot", path=("/sbin", "/usr/bin"))
    assert outcome.stdout == "/sbin:/usr/bin\n/usr/bin/chroot\n"


def test_no_module_can_be_loaded_or_unloaded_for_real(run):
    outcome = run("grep -i ^capbnd /proc/self/status; mknod /tmp/x c 1 1 2>/dev/null && echo made")
    bounding = int(outcome.stdout.split()[1], 16)
    assert not bounding & 1 << 16  # CAP_SYS_MODULE
    assert "made" not in outcome.stdout


def test_unloading_succeeds_as_the_world_says(run, traced):
    script = (
        "say info 'Unloading NVIDIA driver kernel modules'; rmmod nvidia_uvm; ls /sys/module; cat /sys/module/nvidia/refcnt;"
        " cat /proc/modules; rmmod nvidia"
    )
    outcome = run(script, modules=LOADED)
    assert outcome.stderr == ""
    if not traced:
        assert outcome.unobserved == {"kernel", "exec", "modules_after", "gpu_drivers"}
        return
    assert outcome.stdout == "nvidia\n0\nnvidia 16384 0 - Live 0x0000000000000000 (OE)\n"
    assert outcome.after.modules == ()
    assert [(call.call, call.argument, call.result) for call in outcome.kernel_calls] == [
        ("delete_module", "nvidia_uvm", "ok"),
        ("delete_module", "nvidia", "ok"),
    ]


def test_unloading_fails_as_the_world_says(run, traced):
    answers = {"nvidia": "EPERM", "nvidia_uvm": "EPERM"}
    outcome = run("say info 'Unloading NVIDIA driver kernel modules'; rmmod nvidia 2>&1", modules=LOADED, delete_module=answers)
    assert "Operation not permitted" in outcome.stdout
    assert outcome.after.modules == ("nvidia", "nvidia_uvm")
    assert "modules_after" not in outcome.unobserved
    if traced:
        assert [call.result for call in outcome.kernel_calls] == ["EPERM"]


def test_answers_that_differ_need_the_tracer(run, traced):
    from simulator.runners.container.unfit import Unfit

    script = "say info 'Unloading NVIDIA driver kernel modules'; sleep 0.1; rmmod nvidia || rmmod nvidia || exit 1"
    settings = {"modules": (Module("nvidia"),), "delete_module": {"nvidia": ("EBUSY", "ok")}}
    if traced:
        assert run(script, **settings).exit_code == 0
    else:
        with pytest.raises(Unfit, match="answer differently"):
            run(script, **settings)
    assert run("exit 0", **settings).exit_code == 0


def test_mounts_are_real_and_in_their_order(run):
    outcome = run(
        "ls /run/nvidia/driver; umount -l /run/nvidia/driver; ls /run/nvidia/driver",
        mounts=("/run/nvidia/driver", "/run/nvidia/driver", "/run/nvidia/driver/dev", "/run/other"),
        files=(File("/run/nvidia/driver/hidden", ""),),
    )
    assert outcome.before.mounts == ("/run/nvidia/driver", "/run/nvidia/driver", "/run/nvidia/driver/dev", "/run/other")
    assert outcome.after.mounts == ("/run/nvidia/driver", "/run/other")
    assert outcome.after.files["/run/nvidia/driver"]


def test_files_that_go_and_come_are_seen(run):
    outcome = run(
        "rm /run/nvidia/nvidia-driver.pid; echo new > /host/etc/new; ln -s /x /run/link; rmdir /run/empty",
        note_tree=True,
        files=(File("/run/nvidia/nvidia-driver.pid", "1\n"), File("/etc/os-release", "ID=a\n")),
        programs=(Program("/usr/bin/nvidia-smi"),),
        directories=("/run/empty",),
    )
    before, after = outcome.before.tree, outcome.after.tree
    assert outcome.after.files["/run/nvidia/nvidia-driver.pid"] is False
    changed = {path: after.get(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == {
        "/run/nvidia/nvidia-driver.pid": None,
        "/host/etc/new": "new\n",
        "/run/link": "-> /x",
        "/run/empty/": None,
    }


@pytest.mark.parametrize(("text", "expected"), [("nvidia 1 0 - Live 0x0\n", "nvidia 1 0 - Live 0x0\n"), ("", ""), (None, "none\n")])
def test_the_modules_file_is_the_worlds(text, expected, run):
    assert run("cat /proc/modules 2>/dev/null || echo none", proc_modules=text).stdout == expected


HOSTS = (
    "clean",
    "fedora-atomic-library-missing",
    "foreign-architecture",
    "gpu-unknown-error",
    "nixos",
    "no-host-root",
    "runfile-580",
    "talos-nvidia-extensions",
    "ubuntu-24.04-driver-580-open",
    "wrapper-prints-anything",
)
ASK = "$(which chroot) /host nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null; echo $?"


@pytest.mark.parametrize("name", HOSTS)
def test_a_real_chroot_gives_what_the_model_says(name, image):
    from simulator.runners.container.runner import run_image

    spec = load_host(name)
    path = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    expected = FakeHost(spec, path).run(["chroot", "/host", "nvidia-smi"])
    outcome = run_image(World(spec, ClusterSpec("test", NODE), env={"SCRIPT": ASK}, path=path), image, tracer=False)
    assert outcome.stdout == f"{expected.stdout}{expected.exit_code}\n"


def test_what_nvidia_smi_does_to_the_host_is_done(run):
    spec = replace(load_host("ubuntu-24.04-driver-580-open"), modules=(), pci=(PciFunction("0000:3b:00.0", "0x10de"),))
    outcome = run(f"{ASK}; cat /sys/module/nvidia/refcnt; readlink /sys/bus/pci/devices/0000:3b:00.0/driver", host=spec)
    assert outcome.stdout == "580.82.07\n0\n0\n/sys/bus/pci/drivers/nvidia\n"


def test_stand_ins_answer(run):
    stand_ins = {"chroot": None, "vfio-manage": Program("/usr/bin/vfio-manage", stderr="boom\n", exit_code=7)}
    outcome = run("which chroot; ls /bin/chroot 2>/dev/null; vfio-manage 2>&1; echo $?", container_programs=stand_ins)
    assert outcome.stdout == "boom\n7\n"


def test_a_function_is_taken_from_its_driver_by_its_control_file(run):
    pci = (PciFunction("0000:3b:00.0", "0x10de", driver="vfio-pci"), PciFunction("0000:18:00.0", "0x10de", driver="vfio-pci"))
    outcome = run(
        "echo > /sys/bus/pci/devices/0000:3b:00.0/driver_override;"
        " printf 0000:3b:00.0 > /sys/bus/pci/drivers/vfio-pci/unbind;"
        " printf 0000:18:00.0 > /sys/bus/pci/drivers/vfio-pci/bind; sleep 0.5; ls /sys/bus/pci/drivers/vfio-pci",
        note_tree=True,
        pci=pci,
    )
    assert outcome.after.gpu_drivers == {"0000:3b:00.0": "", "0000:18:00.0": "vfio-pci"}
    assert outcome.stdout.split() == ["0000:18:00.0", "bind", "new_id", "remove_id", "unbind"]
    assert "/sys/bus/pci/devices/0000:3b:00.0/driver" not in outcome.after.tree
    assert outcome.after.tree["/sys/bus/pci/devices/0000:3b:00.0/driver_override"] == "(null)\n"


def test_planned_changes_happen_in_their_time(run):
    changes = (
        PlannedChange(0, {"/run/mellanox/drivers/.at-once": ""}),
        PlannedChange(1.0, {"/run/mellanox/drivers/.driver-ready": "it's\n"}, ("/run/old",), ("a/b",)),
    )
    outcome = run(
        "ls -A /run/mellanox/drivers; while [ ! -s /run/mellanox/drivers/.driver-ready ]; do sleep 0.1; done; say info ready;"
        " cat /run/mellanox/drivers/.driver-ready; sleep 0.5; ls /run",
        changes=changes,
        files=(File("/run/old", ""),),
        cluster=ClusterSpec("test", NODE, (Pod("a", "b"), Pod("a", "c"))),
    )
    assert outcome.stdout.splitlines()[0] == ".at-once"
    assert "it's" in outcome.stdout
    assert "old" not in outcome.stdout.splitlines()
    assert outcome.after.pods == ("a/c",)
    happened = [event for event in outcome.events if isinstance(event, Change | LogLine)]
    assert [type(event) for event in happened] == [Change, Change, LogLine]
    assert 1.0 <= happened[1].at / 1e9 < 1.9
    assert happened[1].what == changes[1].document()


@pytest.mark.parametrize(
    ("name", "after", "pid_1", "code"), [("TERM", 0.5, False, -15), ("KILL", 0.0, True, -9), ("INT", 0.0, False, -2)]
)
def test_a_signal_ends_it(name, after, pid_1, code, run):
    """Also one that comes at once."""
    outcome = run("sleep 30 & wait", signal=(name, after), pid_1=pid_1)
    assert outcome.exit_code == code
    assert [event.name for event in outcome.events if isinstance(event, Signal)] == [name]
    assert outcome.elapsed < 20e9


def test_process_1_gets_a_signal_only_if_it_has_a_handler(run):
    outcome = run(
        "trap 'say info caught; exit 5' USR1; n=0; while [ $n -lt 10 ]; do sleep 0.1; n=$((n + 1)); done", signal=("TERM", 0.3)
    )
    assert outcome.exit_code == 0
    outcome = run("trap 'say info caught; exit 5' TERM; while :; do sleep 0.1; done", signal=("TERM", 0.5))
    assert (outcome.exit_code, log(outcome)) == (5, ["caught"])


def test_a_run_that_goes_on_is_stopped(run):
    outcome = run("say info begins; while :; do sleep 1; done", stop_after=1)
    assert (outcome.exit_code, outcome.stopped_after, log(outcome)) == (None, 1, ["begins"])


def test_an_api_that_is_down_refuses(run):
    outcome = run(f"{GET_NODE} 2>&1", cluster=ClusterSpec("test", NODE, api_down=True))
    assert "Connection refused" in outcome.stdout
    assert outcome.requests == []


def test_a_clusters_api_that_is_down_refuses_at_its_own_address(run):
    """The address is there, as a Service's is; nobody listens."""
    outcome = run(
        "wget -q -O /dev/null http://10.96.0.1:443/ 2>&1",
        cluster=ClusterSpec("test", NODE, api_down=True),
        env={"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"},
        container_files=IN_POD_FILES,
    )
    assert "Connection refused" in outcome.stdout
    assert outcome.requests == []


def test_a_pods_service_account_vouches_for_the_server(run):
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    placeholder = "-----BEGIN CERTIFICATE-----\nsimulated\n"
    outcome = run(
        f"cat {account}/ca.crt; ip -4 addr show lo",
        env={"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"},
        container_files=(File(f"{account}/token", "t"), File(f"{account}/ca.crt", placeholder)),
    )
    assert outcome.stdout.startswith("-----BEGIN CERTIFICATE-----\n")
    assert "simulated" not in outcome.stdout
    assert "10.96.0.1/32" in outcome.stdout


def test_a_host_that_cannot_be_had_is_unfit(run):
    from simulator.runners.container.unfit import Unfit

    world = {"env": {"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": "api.example", "KUBERNETES_SERVICE_PORT": "443"}}
    files = (File("/var/run/secrets/kubernetes.io/serviceaccount/token", "t"),)
    with pytest.raises(Unfit, match="no IPv4 address"):
        run("exit 0", container_files=files, **world)


def test_children_and_calls_are_seen_under_the_tracer(run, traced):
    if not traced:
        pytest.skip("only the tracer sees them")
    outcome = run(
        "$(which chroot) /host true; $(which rmmod) nvidia 2>/dev/null; say info end; exit 137", delete_module={"nvidia": "EIO"}
    )
    seen = [event for event in outcome.events if isinstance(event, ChildProcess | KernelCall | LogLine)]
    assert [event[1:] for event in seen] == [
        (("/bin/chroot", "/host", "true"), None),
        (("/bin/rmmod", "nvidia"), None),
        ("delete_module", "nvidia", "EIO"),
        ("info", "end"),
    ]
    assert outcome.exit_code == 137, "which is no signal, though a shell says so of one"


def test_a_cancelled_run_ends_at_once(run):
    cancelled = threading.Event()
    threading.Timer(2, cancelled.set).start()
    with pytest.raises(KeyboardInterrupt):
        run("sleep 60", cancelled=cancelled)


def test_a_container_that_goes_away_is_no_outcome(image, docker_engine, monkeypatch):
    from simulator.runners.container import engine, runner
    from simulator.runners.container.supervisor import Broken

    monkeypatch.setattr(runner, "_ALIVE", 0.5)

    def kill():
        mine = {"label": f"{engine.LABEL}={engine.own_mark()}"}
        while not (found := docker_engine.containers.list(filters=mine)):
            pass
        found[0].kill()

    thread = threading.Thread(target=kill)
    thread.start()
    world = World(HostSpec("test"), ClusterSpec("test", NODE), env={"SCRIPT": "sleep 60"})
    monkeypatch.setattr(runner.supervisor, "PATIENCE", 1.0)
    with pytest.raises(Broken):
        runner.run_image(world, image, tracer=False)
    thread.join()


def test_many_worlds_at_once_come_with_their_position(image):
    from simulator.runners.container.runner import run_images
    from simulator.runners.container.unfit import Unfit

    def world(script, **host):
        return World(HostSpec("test", **host), ClusterSpec("test", NODE), env={"SCRIPT": script})

    busy = {"modules": (Module("nvidia"),), "delete_module": {"nvidia": ("EBUSY", "ok")}}
    worlds = [
        world("exit 4"),
        world("say info 'Unloading NVIDIA driver kernel modules'; sleep 1", **busy),
        world("exit 6"),
    ]
    results = dict(run_images(worlds, image, tracer=False, parallel=2))
    assert results[0].exit_code == 4
    assert isinstance(results[1], Unfit)
    assert results[2].exit_code == 6
    assert results[0].release == image
