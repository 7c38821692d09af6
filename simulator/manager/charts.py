"""Which driver-manager a GPU Operator chart brings.

Three DaemonSets run it: of the driver, of vfio-manager, of the vGPU host manager. Their images were of one release in
every chart but a few of 2023.

Source: deployments/gpu-operator/values.yaml at each tag of NVIDIA/gpu-operator: `driver.manager`,
`vgpuManager.driverManager`, `vfioManager.driverManager`. Dates are those of the tagged commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DRIVER_MANAGER_CONTAINER: Final = "k8s-driver-manager"
"""The init container in which each of them runs it."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart's version, and the release of driver-manager in each DaemonSet; "" for the same as the driver's."""

    version: str
    date: str
    driver: str
    vgpu: str = ""
    vfio: str = ""

    @property
    def number(self) -> tuple[int, int]:
        """The first two numbers of its version."""
        year, month, *_ = self.version.removeprefix("v").split(".")
        return int(year), int(month)

    @property
    def releases(self) -> dict[str, str]:
        """DaemonSet -> release."""
        return {"driver": self.driver, "vgpu-manager": self.vgpu or self.driver, "vfio-manager": self.vfio or self.driver}


CHARTS: Final = {
    chart.version: chart
    for chart in (
        Chart("v22.9.0", "2022-09-30", "v0.4.2"),
        Chart("v22.9.1", "2022-12-13", "v0.5.1"),
        Chart("v22.9.2", "2023-01-30", "v0.6.0"),
        Chart("v23.3.0", "2023-04-04", "v0.6.1"),
        Chart("v23.3.1", "2023-04-05", "v0.6.1"),
        Chart("v23.3.2", "2023-05-22", "v0.6.1"),
        Chart("v23.6.0", "2023-08-04", "v0.6.2"),
        Chart("v23.6.1", "2023-08-30", "v0.6.2"),
        Chart("v23.6.2", "2023-12-13", "v0.6.5", vfio="v0.6.2"),
        Chart("v23.9.0", "2023-10-20", "v0.6.4", vfio="v0.6.2"),
        Chart("v23.9.1", "2023-12-07", "v0.6.5", vgpu="v0.6.4", vfio="v0.6.2"),
        Chart("v23.9.2", "2024-03-06", "v0.6.5", vgpu="v0.6.4", vfio="v0.6.2"),
        Chart("v24.3.0", "2024-04-29", "v0.6.8"),
        Chart("v24.6.0", "2024-07-29", "v0.6.10"),
        Chart("v24.6.1", "2024-08-08", "v0.6.10"),
        Chart("v24.6.2", "2024-09-24", "v0.6.10"),
        Chart("v24.9.0", "2024-10-31", "v0.7.0"),
        Chart("v24.9.1", "2024-12-04", "v0.7.0"),
        Chart("v24.9.2", "2025-01-24", "v0.7.0"),
        Chart("v25.3.0", "2025-03-26", "v0.8.0"),
        Chart("v25.3.1", "2025-06-05", "v0.8.0"),
        Chart("v25.3.2", "2025-07-24", "v0.8.0"),
        Chart("v25.3.3", "2025-09-09", "v0.8.1"),
        Chart("v25.3.4", "2025-09-17", "v0.8.1"),
        Chart("v25.10.0", "2025-10-22", "v0.9.0"),
        Chart("v25.10.1", "2025-12-03", "v0.9.1"),
        Chart("v26.3.0", "2026-03-18", "v0.10.0"),
        Chart("v26.3.1", "2026-04-17", "v0.10.0"),
        Chart("v26.3.2", "2026-05-27", "v0.11.0"),
        Chart("v26.3.3", "2026-06-23", "v0.11.0"),
        Chart("v26.7.0", "2026-08-20", "v0.12.0"),
    )
}
"""Version -> chart, in the order of versions."""


def charts_with(release: str) -> tuple[str, ...]:
    """The charts whose driver DaemonSet brings a release, oldest first."""
    return tuple(chart.version for chart in CHARTS.values() if chart.driver == release)
