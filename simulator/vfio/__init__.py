"""vfio-manage: which driver a GPU ends on."""
