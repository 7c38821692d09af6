"""The quirks: upstream's bugs and surprises that the model reproduces, never "fixes".

Each has a name, the upstream function it is in, the releases it holds for, and, where there is one, the recorded case of
the real program that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.manager.releases import RELEASES

_MAIN: Final = "cmd/driver-manager/main.go"
_CLIENT: Final = "internal/kubernetes/client.go"
_PASSTHROUGH: Final = "internal/nvpassthrough/nvpassthrough.go"


@dataclass(frozen=True, slots=True)
class Quirk:
    """One quirk. `until` is the last release that has it, "" if the newest still has."""

    name: str
    upstream: str
    """File and function."""
    summary: str
    """What happens, in one sentence."""
    since: str = "v0.9.0"
    until: str = ""
    case: str = ""
    """A recorded case that shows it; "" if none does."""

    def holds_for(self, release: str) -> bool:
        """Does a release have it? Raises ValueError for an unknown one."""
        tags = list(RELEASES)
        last = tags.index(self.until or tags[-1])
        return tags.index(self.since) <= tags.index(release) <= last


QUIRKS: Final = {
    quirk.name: quirk
    for quirk in (
        # --- the host check
        Quirk(
            "host-check-takes-any-output",
            f"{_MAIN} isHostDriver",
            "Whatever nvidia-smi prints with exit code 0 is a host driver, an empty line or a warning too.",
            case="hostdrv-garbage-ok",
        ),
        Quirk(
            "host-check-swallows-errors",
            f"{_MAIN} isHostDriver",
            "Whatever keeps the check from running (no chroot, no /host, a failing nvidia-smi) means: no host driver, without a word.",
            case="hostdrv-no-chroot",
        ),
        Quirk(
            "pre-installed-label-stays",
            f"{_MAIN} disableContainerizedDriver",
            "The label nvidia.com/gpu.deploy.driver=pre-installed is set and never removed, also when the host's driver is gone.",
            case="hostdrv-usr-bin",
        ),
        Quirk(
            "host-driver-leaves-paused-labels",
            f"{_MAIN} uninstallDriver",
            "On a host with a driver the labels that an aborted run left paused are not restored.",
        ),
        # --- labels and waits
        Quirk(
            "labels-created-empty",
            f"{_MAIN} evictAllGPUOperatorComponents, rescheduleGPUOperatorComponents",
            "Operand labels that the node lacks are created with an empty value.",
            case="clean-no-labels",
        ),
        Quirk(
            "underscores-trimmed-by-restore",
            f"{_MAIN} maybeSetTrue",
            "Restoring a label also trims underscores that were its own, and a label paused twice comes back empty.",
            case="label-twice-skip",
        ),
        Quirk(
            "nvsm-never-waited-for",
            f"{_MAIN} waitForPodsToTerminate",
            "nvsm is paused, but nobody waits for its pod.",
            case="wait-nvsm",
        ),
        Quirk(
            "custom-label-never-waited-for",
            f"{_MAIN} waitForPodsToTerminate",
            "Pods behind NODE_LABEL_FOR_GPU_POD_EVICTION are told to go, but nobody waits for them.",
            case="custom-label-pods",
        ),
        Quirk(
            "false-is-waited-for",
            f"{_MAIN} waitForPodsToTerminate",
            'mig-manager and the sandbox operands are waited for if their label has any value, "false" too.',
            case="label-false-full",
        ),
        Quirk(
            "every-patch-error-retried",
            f"{_CLIENT} UpdateNodeLabels",
            "A label patch is tried again whatever the error, also one that can never succeed (403, 404).",
            since="v0.10.0",
            case="hostdrv-patch-403",
        ),
        Quirk(
            "reschedule-failure-forgotten",
            f"{_MAIN} uninstallDriver",
            "A run whose restoring patch fails exits 0 and leaves the operands paused.",
            until="v0.10.0",
            case="api-resched-403",
        ),
        # --- eviction and drain
        Quirk(
            "drain-minds-daemonsets",
            f"{_CLIENT} DrainNode",
            "The full drain does not ignore DaemonSets, so that any DaemonSet's pod on the node, the driver's own too, makes it fail.",
            case="drain-busy-ds-pod",
        ),
        Quirk(
            "drain-helper-without-writers",
            f"{_CLIENT} DrainNode",
            "The drain helper has no writers: its first output (a pod to evict, a warning about force) is a nil-pointer panic.",
            case="drain-evict-500-then-drain",
        ),
        Quirk(
            "nil-pod-list-panics",
            f"{_CLIENT} DeleteOrEvictPods",
            "If the drain helper's own list of pods fails, its result is nil and reading it is a panic.",
        ),
        Quirk(
            "selector-ignored-by-eviction",
            f"{_CLIENT} DeleteOrEvictPods",
            "DRAIN_POD_SELECTOR_LABEL holds for the full drain only; GPU pods are evicted whether or not it matches.",
            case="rnd-027",
        ),
        Quirk(
            "counts-compared-not-pods",
            f"{_CLIENT} DeleteOrEvictPods",
            "Whether every GPU pod can go is decided by comparing two numbers of two lists, not the pods.",
        ),
        Quirk(
            "gpu-by-prefix",
            f"{_CLIENT} gpuPodSpecFilter, podUsesGPU",
            "Any resource beginning with nvidia.com/gpu or nvidia.com/mig- counts, of any quantity; init containers do not.",
            case="pods-gpumem",
        ),
        Quirk(
            "blocked-eviction-hot-loop",
            "k8s.io/kubectl/pkg/drain/drain.go evictPods",
            "The retry delay of a blocked eviction is left zero: it is tried as fast as the client's rate limit lets it.",
            since="v0.11.0",
            case="pods-pdb-forever-8s",
        ),
        Quirk(
            "cannot-delete-said-twice",
            "k8s.io/kubectl/pkg/drain/filters.go unreplicatedFilter",
            "The reason why a pod without a controller stays says `cannot delete` twice.",
            until="v0.11.0",
            case="pods-unmanaged",
        ),
        Quirk(
            "foreign-cordon-lifted",
            f"{_MAIN} uninstallDriver, cleanupOnFailure",
            "A cordon that somebody else made is lifted at the end, wherever eviction or auto-drain is on.",
            case="clean-paused",
        ),
        Quirk(
            "kept-driver-keeps-cordon",
            f"{_MAIN} uninstallDriver",
            "Where the desired driver stays, the node is not uncordoned, nor are GPUs taken from vfio-pci.",
            since="v0.10.0",
            case="skip-cordoned",
        ),
        # --- clean-up that does not happen
        Quirk(
            "no-clean-up-after-cordon-failure",
            f"{_MAIN} uninstallDriver",
            "If the node cannot be cordoned, the run ends at once and leaves the operands paused.",
            case="api-cordon-patch-403",
        ),
        Quirk(
            "no-clean-up-on-kept-driver-path",
            f"{_MAIN} uninstallDriver",
            "Where the desired driver stays and its stale mounts cannot be unmounted, the operands are left paused.",
            since="v0.10.0",
        ),
        Quirk(
            "no-clean-up-without-driver",
            f"{_MAIN} uninstallDriver",
            "Any failure on the path for nodes without a loaded driver leaves labels and cordon as they are.",
            since="v0.12.0",
            case="clean-vfio-fail1",
        ),
        Quirk(
            "no-clean-up-after-nouveau",
            f"{_MAIN} uninstallDriver",
            "If nouveau cannot be unloaded the run fails after everything else was done, without clean-up.",
            case="mod-nouveau-too-busy",
        ),
        Quirk(
            "no-clean-up-after-signal",
            f"{_MAIN} main",
            "SIGTERM ends the run where it is: operands paused, node cordoned.",
            case="api-sigterm-cordoned",
        ),
        # --- modules and mounts
        Quirk(
            "nvidia-drm-not-in-list",
            f"{_MAIN} unloadDriver",
            "nvidia_drm is never unloaded, so that on hosts that have it nvidia_modeset and nvidia stay busy.",
            case="mod-drm",
        ),
        Quirk(
            "last-unload-failure-reported",
            f"{_MAIN} unloadDriver",
            "Of several modules that cannot be unloaded only the last one's error is reported.",
            until="v0.10.0",
            case="mod-busy-two-kinds",
        ),
        Quirk(
            "stacked-mounts-unmounted-once",
            f"{_MAIN} unmountRootfs",
            "Of two mounts on the driver's root only the upper one goes.",
            case="mnt-stacked",
        ),
        Quirk(
            "nested-unmount-failure-swallowed",
            "github.com/moby/sys/mount RecursiveUnmount",
            "A mount below the driver's root that cannot be unmounted is no error, unless it is the last in order.",
        ),
        Quirk(
            "rootfs-stays-without-modules",
            f"{_MAIN} uninstallDriver",
            "Where the modules are already gone a driver's root that is still mounted stays.",
            until="v0.11.0",
            case="clean-stale-mount-fail",
        ),
        # --- RDMA
        Quirk(
            "mofed-checks-swapped",
            f"{_MAIN} waitForMofedDriver",
            "USE_HOST_MOFED=true waits for the MOFED container's sign, false for the host's module.",
            until="v0.9.0",
            case="rdma-container-ready",
        ),
        Quirk(
            "mofed-waited-for-without-end",
            f"{_MAIN} waitForMofedDriver",
            "MOFED is waited for without limit; where a driver was loaded, meanwhile the node is cordoned and its operands are paused.",
            case="rdma-host-noproc",
        ),
        # --- the command line
        Quirk(
            "empty-boolean-means-false",
            "github.com/urfave/cli/v2 BoolFlag.Apply",
            'A boolean variable that is set to nothing means false, also where the default is true (ENABLE_AUTO_DRAIN="").',
            case="cli-force-empty",
        ),
        Quirk(
            "empty-node-name-passes",
            "github.com/urfave/cli/v2 checkRequiredFlags",
            'NODE_NAME="" passes as given, and the run fails later.',
            case="cli-empty-node-name",
        ),
        Quirk(
            "seconds-need-a-unit",
            f"{_MAIN} main",
            "DRAIN_TIMEOUT_SECONDS is a duration: 300 is refused, 300s is not.",
            case="cli-drain-timeout-bad",
        ),
        Quirk(
            "preflight-checks-nothing",
            f"{_MAIN} preflightCheck",
            "preflight_check logs two lines and succeeds; it asks neither the API server nor the host.",
            case="cli-preflight",
        ),
        # --- vfio-manage
        Quirk(
            "unbind-takes-any-driver",
            f"{_PASSTHROUGH} UnbindFromDriver; scripts/vfio-manage",
            "`vfio-manage unbind --all` takes every NVIDIA GPU from whatever driver it has, nvidia and nouveau too.",
            case="a10-nvidia-unbind",
        ),
        Quirk(
            "bind-failures-exit-0",
            "cmd/vfio-manage/bind.go bindAll",
            "`vfio-manage bind --all` exits 0 although no GPU could be bound.",
            since="v0.10.0",
            case="fault-bind-eperm-all",
        ),
        Quirk(
            "failed-bind-leaves-no-driver",
            f"{_PASSTHROUGH} BindToVFIODriver; scripts/vfio-manage",
            "A GPU whose bind fails is left without a driver, its driver_override set.",
            case="fault-bind-eperm-all",
        ),
        Quirk(
            "bound-gpu-needs-modprobe",
            f"{_PASSTHROUGH} BindToVFIODriver",
            "A failing modprobe is a failure also for a GPU that is bound already.",
            since="v0.10.0",
            case="modprobe-fails-already-bound",
        ),
        Quirk(
            "one-consumer-only",
            f"{_PASSTHROUGH} getGraphicsAuxDev; scripts/vfio-manage",
            "Of a graphics card's further functions (audio, USB) at most the first is bound along.",
            case="vga-three-consumers-bind",
        ),
        Quirk(
            "device-id-misses-nvswitches",
            "github.com/NVIDIA/go-nvlib nvpci GetGPUByPciBusID",
            "`--device-id` of an NVSwitch says that it is no NVIDIA device, and exits 0.",
            since="v0.11.0",
            case="nvs-device-id-env-bind",
        ),
        Quirk(
            "first-failed-write-ends-all",
            "scripts/vfio-manage (set -e)",
            "The shell version ends at the first write that fails; the GPUs after it stay untouched.",
            until="v0.9.1",
            case="fault-bind-eperm-all",
        ),
    )
}
"""Name -> quirk."""
