"""The environment variables that driver-manager's releases read, and those that are there for other reasons."""

from __future__ import annotations

from typing import Final

from simulator.config import FLAGS, FORCE_REINSTALL
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST
from simulator.manager.whatif import WHAT_IFS

SETTINGS: Final = frozenset(
    {
        DRIVER_CONFIG_DIGEST,
        *(flag.env for flag in (*FLAGS, FORCE_REINSTALL)),
        *(flag.env for what_if in WHAT_IFS.values() for flag in what_if.flags),
    }
)
"""Settings: read by the program of a release, Go or shell, or of a what-if."""

_NVDRAIN: Final = ("DEBUG", "DRY_RUN", "DELETE_EMPTYDIR_DATA", "USE_FORCE", "TIMEOUT_SECONDS", "GRACE_PERIOD")
PLAIN: Final = frozenset(
    {
        "HOME",
        "HOSTNAME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        "LANG",
        "LC_ALL",
        "NO_PROXY",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_VISIBLE_DEVICES",
        "PATH",
        "POSIXLY_CORRECT",
        "TERM",
        "TZ",
        *(f"NVDRAIN_{name}" for name in _NVDRAIN),
    }
)
"""Variables of the container, the shell, Go's and Kubernetes' libraries, nvdrain: no settings, and no typing errors either."""
KNOWN: Final = SETTINGS | PLAIN
