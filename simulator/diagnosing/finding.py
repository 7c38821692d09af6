"""A finding, and the closed list of kinds of findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.diagnosing.commands import Command
from simulator.manager.charts import CHARTS
from simulator.manager.releases import RELEASES

_MAIN: Final = "k8s-driver-manager cmd/driver-manager/main.go"
_STATE_MANAGER: Final = "gpu-operator controllers/state_manager.go"
_CONSTS: Final = "k8s-operator-libs pkg/upgrade/consts.go"
_UPGRADE: Final = "k8s-operator-libs pkg/upgrade/common_manager.go"
_PASSTHROUGH: Final = "k8s-driver-manager internal/nvpassthrough/nvpassthrough.go"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding. `since` and `until` bound the releases of driver-manager it is looked for in; "" for no bound."""

    name: str
    """Stable: scripts may ask for it."""
    summary: str
    upstream: str
    """Where it comes from: a repository and a file of it, with the function."""
    since: str = ""
    until: str = ""
    of_host: bool = False
    """Does it rest on what is on the host? Then it is not looked for where nobody looked there."""

    @property
    def releases(self) -> tuple[str, ...]:
        """The modelled releases it holds for, oldest first."""
        tags = list(RELEASES)
        first = tags.index(self.since) if self.since else 0
        last = tags.index(self.until) if self.until else len(tags) - 1
        return tuple(tags[first : last + 1])

    @property
    def charts(self) -> tuple[str, ...]:
        """The charts that bring one of these releases, oldest first."""
        brought = {chart for tag in self.releases for chart in RELEASES[tag].charts}
        return tuple(chart for chart in CHARTS if chart in brought)


KINDS: Final = {
    kind.name: kind
    for kind in (
        # --- what everything else waits for
        Kind("driver-held", "Pods hold the driver, and nobody ends them: each run fails until they have ended.", f"{_MAIN} unloadDriver"),
        Kind("init-container-fails", "driver-manager's container fails again and again.", f"{_MAIN} main; k8s.io/kubelet: CrashLoopBackOff"),
        # --- the host's own driver
        Kind("pre-installed-without-driver", "The driver label says pre-installed, and the host has no driver.", f"{_MAIN} disableContainerizedDriver", of_host=True),
        Kind("host-driver-labelled-container", "The host has a driver, and the driver label asks for the container's.", f"{_MAIN} isHostDriver", of_host=True),
        Kind("host-driver-unseen", "The host's driver is loaded, and the host check does not see it.", f"{_MAIN} isHostDriver", of_host=True),
        Kind("host-driver-blocks-vfio", "The host has a driver, so vfio-manager's init container ends before it gives the GPUs away.", f"{_MAIN} isHostDriver; issue #191", of_host=True),
        Kind("host-driver-blocks-vgpu-manager", "The host has a driver, so vgpu-manager's init container fails for ever.", f"{_MAIN} isHostDriver; gpu-operator issue #1018", of_host=True),
        Kind("answer-without-driver", "Something answers as nvidia-smi on the host, and there is no driver.", f"{_MAIN} isHostDriver", of_host=True),
        # --- operand labels
        Kind("operands-paused", "Operands are paused by driver-manager.", f"{_MAIN} evictAllGPUOperatorComponents"),
        Kind("operands-paused-by-another", "Operands are paused by somebody else, which no run of driver-manager heals.", "vgpu-device-manager, mig-parted: maybeSetPaused; gpu-operator issue #2845"),
        Kind("operands-blank", "Operand labels are there and empty, so that no pod is placed.", f"{_STATE_MANAGER} addGPUStateLabels; gpu-operator issue #491"),
        Kind("operand-value-unknown", "An operand label has a value that no DaemonSet selects.", f"{_STATE_MANAGER} addGPUStateLabels"),
        Kind("eviction-label-missing", "The node lacks the label that NODE_LABEL_FOR_GPU_POD_EVICTION names.", f"{_MAIN} evictAllGPUOperatorComponents"),
        # --- the upgrade controller, and who cordoned
        Kind("upgrade-failed", "The upgrade controller gave this node up, until its driver pod is Ready.", f"{_UPGRADE} ProcessUpgradeFailedNodes, isDriverPodFailing"),
        Kind("upgrade-state-stale", "The node is marked as being upgraded, and no upgrade controller is at work.", f"{_CONSTS} UpgradeStateLabelKeyFmt; gpu-operator controllers/upgrade_controller.go"),
        Kind("upgrade-annotation-stale", "The annotation that switches eviction and drain off is left where no upgrade controller takes their place.", f"{_STATE_MANAGER} applyDriverAutoUpgradeAnnotation; gpu-operator issue #1277"),
        Kind("upgrade-notes-stale", "Annotations of an upgrade are left, and no upgrade is under way.", f"{_CONSTS} UpgradeInitialStateAnnotationKeyFmt"),
        Kind("upgrade-request-stale", "An upgrade was requested by annotation, and no controller will see it.", f"{_UPGRADE} IsUpgradeRequested"),
        Kind("upgrade-skipped", "A label keeps the node out of every upgrade.", f"{_CONSTS} UpgradeSkipNodeLabelKeyFmt"),
        Kind(
            "drain-skipped-by-gpu-pod",
            "A pod that uses a GPU is labelled so that the upgrade controller's drain leaves it.",
            "gpu-operator controllers/upgrade_controller.go UpgradeSkipDrainLabelSelector",
        ),
        Kind("cordon-of-driver-manager", "The node is cordoned by a run of driver-manager that did not end well, or has not ended.", f"{_MAIN} cleanupOnFailure"),
        Kind("cordon-of-upgrade-controller", "The node is cordoned by the upgrade controller.", f"{_CONSTS} UpgradeStateCordonRequired"),
        Kind("cordon-of-another", "The node is cordoned, by neither of them.", f"{_MAIN} uninstallDriver; issue #212"),
        # --- what a driver left on the host
        Kind("stale-driver-root", "The driver container's root is still mounted, without the driver that was in it.", f"{_MAIN} unmountRootfs; pull request #201", of_host=True),
        Kind("stale-pid-file", "The driver container's PID file is left, without the driver.", f"{_MAIN} cleanupDriver", of_host=True),
        Kind("stale-state-file", "The digest of a container's driver is left beside a driver of the host's own.", f"{_MAIN} shouldUpdateDriverConfig", since="v0.10.0", of_host=True),
        Kind("stale-mofed-root", "The MOFED container's root is still mounted, without its driver.", f"{_MAIN} waitForMofedDriver", of_host=True),
        Kind("stale-mofed-sign", "The MOFED container's ready file is left, without its driver.", f"{_MAIN} waitForMofedDriver", since="v0.8.1", of_host=True),
        Kind("modules-half-unloaded", "Some of the driver's modules are gone, nvidia itself is loaded.", f"{_MAIN} unloadDriver", since="v0.9.0", of_host=True),
        Kind("nvidia-drm-loaded", "nvidia_drm holds the driver, and no release unloads it.", f"{_MAIN} unloadDriver", of_host=True),
        Kind("nouveau-in-use", "nouveau holds a GPU and is in use, so that it cannot be unloaded.", f"{_MAIN} unloadNouveau; issue #37", of_host=True),
        # --- GPUs
        Kind("gpus-split", "The GPUs are on different drivers.", f"{_PASSTHROUGH} BindToVFIODriver", of_host=True),
        Kind("gpu-without-driver", "A GPU has no driver, and nobody is about to give it one.", f"{_PASSTHROUGH} UnbindFromDriver", of_host=True),
        Kind("vfio-on-container-node", "GPUs are on vfio-pci on a node whose pods are to use them.", f"{_MAIN} unbindVfioPCI", of_host=True),
        Kind("nvidia-on-passthrough-node", "GPUs are on nvidia on a node that gives them to virtual machines.", "gpu-operator cmd/nvidia-validator/main.go VfioPCI", of_host=True),
        Kind("iommu-group-not-viable", "A function of a GPU's IOMMU group is on another driver, so no virtual machine can have the GPU.", f"{_PASSTHROUGH} BindToVFIODriver; gpu-operator issue #1328", of_host=True),
        Kind("resources-do-not-fit", "The node offers GPU resources that its drivers do not give.", "kubelet device manager; kubevirt-gpu-device-plugin pkg/device_plugin/device_plugin.go", of_host=True),
        # --- pods
        Kind("pod-stuck-terminating", "A pod has been told to go and is still there.", "k8s.io/kubectl/pkg/drain/drain.go waitForDelete; gpu-operator issue #566"),
        Kind("gpu-user-invisible", "A pod holds the driver that eviction does not count as a GPU pod.", "k8s-driver-manager internal/kubernetes/client.go podUsesGPU; gpu-operator issue #2570", of_host=True),
        Kind("claims-wait-for-driver", "Pods hold DRA claims, and no driver is loaded: each run waits for them, and they for the driver.", "issue #213, pull requests #217 and #219", until="v0.11.0", of_host=True),
        # --- settings
        Kind("setting-refused", "A setting is of the wrong type: every run ends before it begins.", f"{_MAIN} main", since="v0.9.0"),
        Kind("setting-empty", "A boolean setting is empty, which means false, where false is not its default.", "github.com/urfave/cli/v2 flag_bool.go", since="v0.9.0"),
        Kind("eviction-label-with-value", "NODE_LABEL_FOR_GPU_POD_EVICTION holds key=value, and the whole is taken for the key.", f"{_MAIN} fetchCurrentLabels", since="v0.9.0"),
        Kind("waits-for-mofed", "A run waits for MOFED, whose sign is not there.", f"{_MAIN} waitForMofedDriver; issue #123", since="v0.8.1", of_host=True),
    )
}  # fmt: skip
"""Name -> kind, in the order in which findings are told."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is left over on the node, or keeps it from working."""

    kind: str
    what: str
    """What is the case, in one sentence."""
    why: str
    """What follows from it."""
    commands: tuple[Command, ...]
    """They mend it, run in this order; none where only a person can say how."""
    risk: str
    """What running them may cost."""
    evidence: tuple[str, ...] = ()
    """What of the world shows it, one fact each."""
    mended_with: str = ""
    """The kind of the finding whose commands mend this one, too; it has none of its own then."""
