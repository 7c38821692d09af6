"""The releases of the sandbox device plugin that are modelled, and which chart brings which.

Source: deployments/gpu-operator/values.yaml at each tag of NVIDIA/gpu-operator, `sandboxDevicePlugin.version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulator.node.plugin.v1_4_0 import DevicePlugin
from simulator.node.plugin.v1_5_0 import DevicePluginV150
from simulator.node.plugin.v1_6_0 import DevicePluginV160

PLUGINS: Final[Mapping[str, type[DevicePlugin]]] = {
    plugin.release: plugin for plugin in (DevicePlugin, DevicePluginV150, DevicePluginV160)
}
"""Release -> its model."""
