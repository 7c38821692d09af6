"""The validator of each chart of the GPU Operator.

v22.9.0 and v22.9.1 looked at the link `driver` themselves, v22.9.0 of every NVIDIA function; they are taken as v22.9.2.
go-nvlib before v0.8.1, which charts up to v25.3 vendor, is taken as v0.8.1.

Source: NVIDIA/gpu-operator at each tag: validator/main.go, cmd/nvidia-validator/main.go, go.mod.
"""

from __future__ import annotations

from typing import Final

from simulator.manager.charts import CHARTS
from simulator.node.validator.program import Validator
from simulator.vfio.nvpci import NvPci
from simulator.vfio.releases import flow


class _WithCapitals(Validator):
    """v22.9.2: no version in the log, and errors of the label begin with a capital."""

    chart = "v22.9.2"
    capital_errors = True
    logs_version = False


class _SaysItsVersion(_WithCapitals):
    """v23.9.0: the first line is the version."""

    chart = "v23.9.0"
    logs_version = True


class _TakesGrace(Validator):
    """v26.3.0: nvgrace_gpu_vfio_pci counts."""

    chart = "v26.3.0"
    drivers = frozenset({"vfio-pci", "nvgrace_gpu_vfio_pci"})
    nvpci: type[NvPci] = flow("v0.11.0").nvpci or NvPci  # go-nvlib v0.10.0


class _WithNewerNvlib(_TakesGrace):
    """v26.7.0: go-nvlib v0.12.0."""

    chart = "v26.7.0"
    nvpci: type[NvPci] = flow("v0.12.0").nvpci or NvPci


_VALIDATORS: Final = (_WithCapitals, _SaysItsVersion, Validator, _TakesGrace, _WithNewerNvlib)


def validator(chart: str) -> type[Validator]:
    """The validator of a chart. Raises KeyError for an unknown chart."""
    order = list(CHARTS)
    at = order.index(chart) if chart in CHARTS else -1
    if at < 0:
        raise KeyError(chart)
    fitting = [known for known in _VALIDATORS if order.index(known.chart) <= at]
    return fitting[-1] if fitting else _VALIDATORS[0]
