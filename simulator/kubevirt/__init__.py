"""GPUs for virtual machines: how Cozystack's platform chart wires KubeVirt, and what KubeVirt makes of it."""
