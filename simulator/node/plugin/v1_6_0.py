"""What v1.6.0 of the sandbox device plugin changed: what `Allocate` hands out.

A variable names only the function that was asked for, no longer its neighbours in the IOMMU group; a device node stands
once; a Grace node's memory (EGM) comes along when all GPUs of it are asked for.

Source: kubevirt-gpu-device-plugin v1.6.0, pkg/device_plugin/generic_device_plugin.go.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from typing import Final

from simulator.gocompat import GoError, PathError, fields
from simulator.node.plugin import messages as m
from simulator.node.plugin.v1_5_0 import DevicePluginV150
from simulator.vfio.files import join, read_dir, read_file, stat

EGM_CLASS: Final = "/sys/class/egm"


class DevicePluginV160(DevicePluginV150):
    """The plugin as of v1.6.0."""

    release = "v1.6.0"
    egm: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each EGM device's node, and the addresses of its GPUs, as the last call found them."""

    def before_requests(self, name: str) -> None:
        """EGM devices are looked for at each call; an error is no hindrance."""
        self.egm = ()
        try:
            self.egm = tuple(sorted(self.discover_egm_devices()))
        except PathError as error:
            self.out.log(m.EGM_NOT_DISCOVERED % (name, error.text))

    def discover_egm_devices(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """`discoverEGMDevices`. Raises PathError if the directory is there and cannot be read."""
        try:
            names = read_dir(self.host, EGM_CLASS)
        except PathError as error:
            if error.number == errno.ENOENT:
                return
            raise
        for name in names:
            if not name.startswith("egm"):
                continue
            try:
                text = read_file(self.host, join(EGM_CLASS, name, "gpu_devices"))
            except GoError as error:
                self.out.log(m.EGM_UNREADABLE % (name, error.text))
                continue
            gpus = fields(text)
            if not gpus:
                continue
            node = f"/dev/{name}"
            try:
                stat(self.host, node)
            except GoError as error:
                self.out.log(m.EGM_NO_NODE % (name, node, error.text))
                continue
            yield node, tuple(gpus)

    def allocate_one(self, asked: str, nodes: list[str], *, iommufd: bool) -> list[str]:
        """The group is handed over; of its functions only this one is named. Raises GoError."""
        super().allocate_one(asked, nodes, iommufd=iommufd)
        return [asked]

    def give(self, nodes: list[str], node: str) -> None:
        """Once."""
        if node not in nodes:
            nodes.append(node)

    def after_request(self, name: str, request: Sequence[str], nodes: list[str]) -> None:
        """EGM devices all of whose GPUs are asked for."""
        asked = {address.strip().lower() for address in request}
        paths = sorted(path for path, gpus in self.egm if all(gpu.lower() in asked for gpu in gpus))
        for path in paths:
            self.give(nodes, path)
        if paths:
            self.out.log(m.EGM_INJECTED % (name, " ".join(paths)))
