Feature: Sharing a GPU between VMs
  Upstream: kubevirt-gpu-device-plugin pkg/device_plugin/device_plugin.go, generic_vgpu_device_plugin.go; kubevirt
  pkg/virt-launcher/virtwrap/device/hostdevice.

  Rule: A MIG device is no PCI function

    Scenario: A VM asks for one
      Whatever instances an A100 has, on the bus there is one function, and one device is announced.
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)
          Kernel driver in use: vfio-pci
        """
      And a VM that asks for 1 "nvidia.com/mig-1g.10gb"
      When I ask whether the names agree
      Then the answer says:
        | field                   | value                                                   |
        | resources.name          | nvidia.com/GA100_A100_PCIE_80GB, nvidia.com/mig-1g.10gb |
        | resources.announced     | 0, 1                                                    |
        | findings.kind           | vm-mig                                                  |
        | findings.said.component | virt-controller                                         |

  Rule: A virtual function is a PCI function

    Scenario: Two of an L40S, bound to vfio-pci
      They have the card's id, so they have its name, and are counted like cards.
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9] (rev a1)
          Kernel driver in use: nvidia
        3b:00.4 3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9] (rev a1)
          Kernel driver in use: vfio-pci
        3b:00.5 3D controller [0302]: NVIDIA Corporation AD102GL [L40S] [10de:26b9] (rev a1)
          Kernel driver in use: vfio-pci
        """
      And a VM that asks for 1 "nvidia.com/AD102GL_L40S"
      When I ask whether the names agree
      Then the answer says:
        | field               | value                      |
        | resources.announced | 2                          |
        | resources.devices   | 0000:3b:00.4, 0000:3b:00.5 |
        | findings.kind       | none                       |

  Rule: A mediated device is called by its type

    Scenario: It reaches its VM by its own variable
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)
          Kernel driver in use: nvidia
        """
      And a mediated device of the type "NVIDIA A10-24Q"
      And somebody edits the KubeVirt CR:
        """
        permittedHostDevices:
          mediatedDevices:
          - {mdevNameSelector: NVIDIA A10-24Q, resourceName: nvidia.com/NVIDIA_A10-24Q, externalResourceProvider: true}
        """
      And a VM that asks for 1 "nvidia.com/NVIDIA_A10-24Q"
      When the VM starts
      Then the VM has 53764d0e-85a0-42b4-af5c-2046b460b1d0

    @quirk
    Scenario: The platform's table of vGPUs names none of them so
      The plugin keeps the type's first word, which the table leaves out. Upstream: cozystack
      packages/core/platform/files/gpu-vgpu-defaults.yaml, kubevirt-gpu-device-plugin device_plugin.go.
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation GA102GL [A10] [10de:2236] (rev a1)
          Kernel driver in use: nvidia
        """
      And a mediated device of the type "NVIDIA A10-24Q"
      And somebody edits the KubeVirt CR:
        """
        permittedHostDevices:
          mediatedDevices:
          - {mdevNameSelector: NVIDIA A10-24Q, resourceName: nvidia.com/A10-24Q, externalResourceProvider: true}
        """
      And a VM that asks for 1 "nvidia.com/A10-24Q"
      When the VM starts
      Then kube-scheduler stops it, for the reason "FailedScheduling", and says:
        """
        0/1 nodes are available: 1 Insufficient nvidia.com/A10-24Q. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
        """
