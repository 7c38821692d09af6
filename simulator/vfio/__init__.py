"""vfio-manage: the program that gives GPUs to vfio-pci and takes them back.

`script` is the shell version of v0.9.x. The Go version of v0.10.0 and later is `bind` and `unbind` (its commands),
`nvpassthrough` and `modalias` (its decisions) and `nvpci` (the vendored library that lists the devices, where releases
differ). `releases` says which is which; `program` runs one.
"""
