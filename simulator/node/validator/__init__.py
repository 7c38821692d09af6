"""nvidia-validator, the GPU Operator's, as the sandbox-validator DaemonSet runs it."""
