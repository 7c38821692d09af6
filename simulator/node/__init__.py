"""A GPU node over time: its host, kubelet and operator, and the programs around driver-manager, on one clock."""
