"""The releases of the sandbox device plugin that are modelled, and which chart brings which.

Source: deployments/gpu-operator/values.yaml at each tag of NVIDIA/gpu-operator, `sandboxDevicePlugin.version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulator.manager.charts import CHARTS
from simulator.node.plugin.v1_4_0 import DevicePlugin
from simulator.node.plugin.v1_5_0 import DevicePluginV150
from simulator.node.plugin.v1_6_0 import DevicePluginV160

PLUGINS: Final[Mapping[str, type[DevicePlugin]]] = {
    plugin.release: plugin for plugin in (DevicePlugin, DevicePluginV150, DevicePluginV160)
}
"""Release -> its model."""

_FIRST_CHARTS: Final = {
    "v22.9.0": "v1.2.1",
    "v23.6.0": "v1.2.2",
    "v23.9.0": "v1.2.3",
    "v23.9.1": "v1.2.4",
    "v24.3.0": "v1.2.7",
    "v24.6.0": "v1.2.9",
    "v24.9.0": "v1.2.10",
    "v25.3.0": "v1.3.1",
    "v25.3.3": "v1.4.0",
    "v26.3.0": "v1.5.0",
    "v26.7.0": "v1.6.0",
}
"""A chart -> the release that it and those after it bring, up to the next one here."""


def plugin_release(chart: str) -> str:
    """The release that a chart brings; not each of them is modelled. Raises KeyError for an unknown chart."""
    found = ""
    for known in CHARTS:
        found = _FIRST_CHARTS.get(known, found)
        if known == chart:
            return found
    raise KeyError(chart)
