"""The programs around driver-manager on a GPU node: the sandbox validator, the sandbox device plugin, vfio-manager's pod."""
