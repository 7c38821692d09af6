"""A story: a host, a chart of the GPU Operator, and what people do to the node, each at its time.

Files are checked when they are read; what can only be seen while a story runs (a package that is not installed) is an
error of the same form, with the step's place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from simulator.cluster.kinds import EVENT
from simulator.cluster.objects import ClusterSpec, read_cluster
from simulator.cluster.objects import Node as NodeSpec
from simulator.gocompat import SECOND, Duration, GoError, parse_duration
from simulator.host.spec import HostSpec, read_host
from simulator.manager.charts import CHARTS
from simulator.node.apt import Transaction
