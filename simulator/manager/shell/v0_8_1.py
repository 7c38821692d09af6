"""What changed from v0.6.2 to v0.8.1 (2025-09-03), over v0.6.3 to v0.8.0. The script has been the same since v0.6.6."""

from __future__ import annotations

from typing import ClassVar, Final

from simulator.gocompat import errno_of, strerror
from simulator.manager.shell import messages as m
from simulator.manager.shell.bash import words
from simulator.manager.shell.change import ShellChange
from simulator.manager.shell.script import Script
from simulator.manager.steps import MELLANOX, MOFED_READY, PCI_DEVICES


class _CustomOperandLabel(Script):
    custom_value = ""

    @property
    def custom_label(self) -> str:
        """NODE_LABEL_FOR_GPU_POD_EVICTION, without a value that was written with it."""
        return " ".join(words(self.variable("NODE_LABEL_FOR_GPU_POD_EVICTION"))).partition("=")[0]

    def fetch_label_of_others(self) -> None:
        """The label of GPU clients of one's own, if one is named."""
        if self.custom_label:
            self.custom_value = self.fetch_label(self.custom_label, m.GETTING_CUSTOM_LABEL % self.custom_label)

    def pause_others(self) -> int:
        """Pause them, if the node has a value for the label."""
        if not self.custom_value:
            return 0
        self.echo(m.SHUTTING_DOWN_CUSTOM % (self.custom_label, self.custom_value))
        return self.label_node({self.custom_label: self.maybe_set_paused(self.custom_value)})

    def restore_others(self) -> int:
        """Restore them, if the node had a value for the label."""
        if not self.custom_value:
            return 0
        self.echo(m.RESTARTING_CUSTOM % (self.custom_label, self.custom_value))
        return self.label_node({self.custom_label: self.maybe_set_true(self.custom_value)})


class _WaitsForMofed(Script):
    def wait_for_rdma(self) -> None:
        """Wait for MOFED where GPUDirect RDMA is on and there is a card for it."""
        if self.gpu_direct_rdma_enabled():
            self.echo(m.RDMA_ENABLED)
            self.wait_for_mofed_driver()

    def gpu_direct_rdma_enabled(self) -> bool:
        """`_gpu_direct_rdma_enabled`: "true" and nothing else means yes."""
        return self.variable("GPU_DIRECT_RDMA_ENABLED", "false") == "true" and self.mellanox_devices_present()

    def mellanox_devices_present(self) -> bool:
        """`_mellanox_devices_present`: the first PCI function of vendor 0x15b3; a vendor that cannot be read keeps the last one."""
        vendor = ""
        for address in self.pci_functions():
            path = f"{PCI_DEVICES}/{address}/vendor"
            try:
                vendor = self.host.read_file(path).partition("\n")[0].replace("\0", "").strip(" \t")
            except OSError as error:
                self.complain(f"{path}: {strerror(errno_of(error))}", "vendor")
            if vendor == MELLANOX:
                self.echo(m.MELLANOX_FOUND % address)
                return True
        self.echo(m.NO_MELLANOX)
        return False

    def pci_functions(self) -> list[str]:
        """The pattern /sys/bus/pci/devices/*, which stands for itself if nothing matches."""
        try:
            names = [name for name in self.host.list_directory(PCI_DEVICES) if not name.startswith(".")]
        except OSError:
            names = []
        return names or ["*"]

    def wait_for_mofed_driver(self) -> None:
        """`_wait_for_mofed_driver`: as long as it takes."""
        while not self.mofed_is_ready():
            self.echo(m.WAITING_FOR_MOFED)
            self.run("sleep", "5")

    def mofed_is_ready(self) -> bool:
        """The host's mlx5_core is loaded, or the MOFED container has left its sign."""
        if self.variable("USE_HOST_MOFED", "false") == "true":
            found = [line for line in self.nested("lsmod").splitlines() if "mlx5_core" in line]
            for line in found:
                self.echo(line)
            return bool(found)
        try:
            self.host.stat(MOFED_READY)
        except OSError:
            self.output.stderr(m.NOT_READY % MOFED_READY + "\n")
            return False
        self.echo(m.READY % MOFED_READY)
        return True


class _UnloadsGdrdrv(Script):
    modules: ClassVar[tuple[str, ...]] = (
        "nvidia-modeset",
        "nvidia-uvm",
        "nvidia-peermem",
        "nvidia-fs",
        "nvidia_vgpu_vfio",
        "gdrdrv",
    )


CHANGES: Final = (
    ShellChange(
        name="custom-operand-label",
        upstream="first in v0.6.3",
        summary="NODE_LABEL_FOR_GPU_POD_EVICTION names a label that is paused and restored; Fleet Command's nodeType no longer is.",
        notice="GPU clients of one's own can be stopped with the operands.",
        action="Set NODE_LABEL_FOR_GPU_POD_EVICTION=nodeType where Fleet Command's label was paused before.",
        script=_CustomOperandLabel,
    ),
    ShellChange(
        name="mofed-waited-for",
        upstream="first in v0.6.4",
        summary="With GPU_DIRECT_RDMA_ENABLED=true and a Mellanox card the script waits for MOFED, as long as it takes.",
        notice="The init container hangs until MOFED is there.",
        script=_WaitsForMofed,
    ),
    ShellChange(
        name="gdrdrv-unloaded",
        upstream="first in v0.6.6",
        summary="gdrdrv is unloaded with the other modules.",
        notice="GDRCopy no longer keeps the driver in use.",
        script=_UnloadsGdrdrv,
    ),
    ShellChange(
        name="nvdrain-of-kubernetes-0.33",
        upstream="first in v0.8.1",
        summary="nvdrain is built with client-go and kubectl v0.33 in place of v0.27.",
        notice="A pod that cannot be read while it is waited for is an error, no longer taken for gone; errors in other words.",
        libraries={
            "version": "v0.33.2",
            "in_cluster_line": 667,
            "fallback_line": 672,
            "root_ca_line": 562,
            "throttled_line": 688,
            "structured_throttling": True,
            "unmanaged_fatal": "cannot delete Pods that declare no controller (use --force to override)",
            "unreadable_pod_counts_as_gone": False,
            "deadline_seen_at_poll": False,
        },
    ),
    ShellChange(
        name="bash-lines-v0.8.1",
        upstream="first in v0.6.6",
        summary="The script has other lines.",
        notice="Another number in bash's own messages.",
        lines={"NODE_NAME": 16, "chroot": 524, "vfio-manage": 636, "vendor": 537, "test": 729},
    ),
)
