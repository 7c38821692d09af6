"""A faithful model of NVIDIA's k8s-driver-manager, run against hosts and clusters in memory.

Start at `simulator.runners.simulated.simulate`; `docs/architecture.md` is the map.
"""

__version__ = "0.1.0"
