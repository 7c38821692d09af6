"""What changed from v0.4.2 to v0.6.2 (2023-07-12), over v0.5.0 to v0.6.1."""

from __future__ import annotations

from typing import ClassVar, Final

from simulator import labels
from simulator.manager.shell import messages as m
from simulator.manager.shell.bash import Exit, words
from simulator.manager.shell.change import ShellChange
from simulator.manager.shell.script import NODE_TYPE, Script


class _HostDriverMustAnswer(Script):
    def nvidia_smi_succeeds(self) -> bool:
        """Run nvidia-smi of the host, asked for the driver's version: it must print something."""
        status, version = self.capture("chroot", "/host", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        return status == 0 and version != ""


class _PausedValuesKnown(Script):
    def maybe_set_paused(self, value: str) -> str:
        """`_maybe_set_paused`."""
        return labels.pause(value)


class _NodeTypeRestored(Script):
    def restore_others(self) -> int:
        """Restore the GPU clients of Fleet Command."""
        if not self.deployed[NODE_TYPE]:
            return 0
        self.echo(m.RESTARTING_FLEET)
        return self.label_node(self.restoring((NODE_TYPE,)))


class _AllOperandsPaused(Script):
    def evict_at_first(self) -> int:
        """All operands, whether the driver is in use or not."""
        return self.evict_all_gpu_operator_components()

    def clean_up_loaded_driver(self) -> None:
        """Unload a driver that is loaded."""
        if self.driver_loaded():
            self.clean_up_or_drain()

    def driver_loaded(self) -> bool:
        """`_driver_loaded`."""
        return self.host.is_file("/sys/module/nvidia/refcnt")


class _HonoursUpgradePolicy(Script):
    auto_upgrade_policy_enabled = ""

    def fetch_policy(self) -> None:
        """`_fetch_auto_upgrade_annotation`."""
        status, value = self.get_node("annotations", labels.UPGRADE_ANNOTATION)
        if status:
            self.echo(m.NO_ANNOTATION % labels.UPGRADE_ANNOTATION)
            raise Exit(1)
        self.echo(m.CURRENT_POLICY % value)
        self.auto_upgrade_policy_enabled = value

    def is_driver_auto_upgrade_policy_enabled(self) -> bool:
        """`_is_driver_auto_upgrade_policy_enabled`: echoes each time it is asked and the answer is no."""
        if self.auto_upgrade_policy_enabled == "true":
            return True
        self.echo(m.POLICY_DISABLED % self.node_name)
        return False

    def is_auto_drain_enabled(self) -> bool:
        """`_is_auto_drain_enabled`."""
        if self.is_driver_auto_upgrade_policy_enabled():
            self.echo(m.DRAIN_DISABLED_BY_POLICY % self.node_name)
            return False
        return super().is_auto_drain_enabled()


class _EvictsGpuPods(Script):
    def is_gpu_pod_eviction_enabled(self) -> bool:
        """`_is_gpu_pod_eviction_enabled`: "true" and nothing else means yes."""
        if self.is_driver_auto_upgrade_policy_enabled():
            self.echo(m.EVICTION_DISABLED_BY_POLICY % self.node_name)
            return False
        if self.variable("ENABLE_GPU_POD_EVICTION", "true") == "true":
            return True
        self.echo(m.EVICTION_DISABLED % self.node_name)
        return False

    def could_have_cordoned(self) -> bool:
        """Is there a step that cordons?"""
        return self.is_gpu_pod_eviction_enabled() or self.is_auto_drain_enabled()

    def gpu_pods_must_go(self) -> None:
        """Cordon, whatever becomes of it; evict; where that fails drain the node, if that is allowed."""
        if not self.is_gpu_pod_eviction_enabled():
            return
        self.cordon_k8s_node()
        if self.nvdrain_k8s_node():
            self.echo(m.GPU_DRAIN_FAILED)
            if not self.is_auto_drain_enabled():
                self.echo(m.CANNOT_PROCEED)
                self.exit_failed()
            self.echo(m.ATTEMPTING_DRAIN)
            self.drain_and_clean_up()

    def cordon_k8s_node(self) -> int:
        """`_cordon_k8s_node`."""
        self.echo(m.CORDONING % self.node_name)
        return self.kubectl("cordon", *words(self.node_name))

    def nvdrain_k8s_node(self) -> int:
        """`_nvdrain_k8s_node`."""
        self.echo(m.DRAINING_GPU_PODS % self.node_name)
        status = self.run(
            "nvdrain",
            *words(f"--debug={self.variable('NVDRAIN_DEBUG', 'false')}"),
            *words(f"--node-name={self.node_name}"),
            *words(f"--kubeconfig={self.variable('KUBECONFIG')}"),
            *words(f"--force={self.drain_use_force}"),
            *words(f"--delete-emptydir-data={self.drain_delete_emptydir_data}"),
            *words(f"--timeout={self.drain_timeout_seconds}"),
        )
        return 1 if status else 0


class _UnloadsNvidiaFs(Script):
    modules: ClassVar[tuple[str, ...]] = ("nvidia-modeset", "nvidia-uvm", "nvidia-peermem", "nvidia-fs", "nvidia_vgpu_vfio")


CHANGES: Final = (
    ShellChange(
        name="host-driver-must-answer",
        upstream="first in v0.6.1",
        summary="nvidia-smi of the host is asked for the driver's version, and must print something.",
        notice="A host whose nvidia-smi succeeds without a word no longer counts as one with a driver.",
        script=_HostDriverMustAnswer,
    ),
    ShellChange(
        name="paused-value-known",
        upstream="first in v0.5.0",
        summary="A label that is paused already is left as it is; before, it was paused once more.",
        notice="After a crash the next run restores the operands' labels; before, they grew a suffix and came back empty.",
        script=_PausedValuesKnown,
    ),
    ShellChange(
        name="node-type-restored",
        upstream="first in v0.5.0",
        summary="The label nodeType of Fleet Command is restored if the node has a value for it; before, never.",
        notice="Fleet Command's GPU clients come back.",
        script=_NodeTypeRestored,
    ),
    ShellChange(
        name="all-operands-paused",
        upstream="first in v0.5.0",
        summary="All operands are paused at once, and a loaded driver is unloaded whether it is in use or not.",
        notice="A driver that nobody uses is unloaded too; operands restart with each start of the driver pod.",
        script=_AllOperandsPaused,
    ),
    ShellChange(
        name="upgrade-policy-honoured",
        upstream="first in v0.6.0",
        summary="The operator's upgrade annotation switches eviction and drain off.",
        notice="With driver.upgradePolicy.autoUpgrade the operator evicts, and driver-manager does not.",
        script=_HonoursUpgradePolicy,
    ),
    ShellChange(
        name="gpu-pods-evicted",
        upstream="first in v0.5.0",
        summary="The node is cordoned and nvdrain evicts the pods that hold GPUs; the full drain comes only if that fails.",
        notice="Pods with a GPU go before the modules are unloaded; other pods stay where they are.",
        action="Set ENABLE_GPU_POD_EVICTION=false to keep them.",
        script=_EvictsGpuPods,
    ),
    ShellChange(
        name="nvidia-fs-unloaded",
        upstream="first in v0.6.1",
        summary="nvidia_fs is unloaded with the other modules.",
        notice="GPUDirect Storage no longer keeps the driver in use.",
        script=_UnloadsNvidiaFs,
    ),
    ShellChange(
        name="bash-lines-v0.6.2",
        upstream="first in v0.6.2",
        summary="The script has other lines.",
        notice="Another number in bash's own messages.",
        lines={"NODE_NAME": 16, "chroot": 518, "vfio-manage": 590, "test": 671},
    ),
)
