"""The host over time: what its administrator does to it, and what is left of that after a reboot.

Its disk is a description (`HostSpec`) that each act changes; what runs is a fake host made from it at each boot. Removing a
package takes files and modules from the disk at once, and nothing from memory; a reboot loads what the disk and modprobe's
configuration say, for each device that is found. NVIDIA's rule for udev then loads the driver's other modules, blacklisted
or not.

Each kernel has an initramfs: modules and modprobe's configuration as they were when it was built. It is looked at first. The
driver's modules are in one if the hook of Ubuntu's packages put them there, or /etc/initramfs-tools/modules names them; what is
named there is loaded explicitly. A kernel that was not there before gets its modules and its initramfs when it is installed.

Leaves out drivers that are bound by `vfio-pci.ids=`, and modules of RDMA's packages. Source: udev, kmod and initramfs-tools by
experiment; nvidia-installer's uninstall.c; debian/ of the driver's packages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
