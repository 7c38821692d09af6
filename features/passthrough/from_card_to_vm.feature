Feature: From a card to a running VM
  A card has a name in three places: the node announces it, KubeVirt permits it, a VM asks for it. Each way in which they can
  differ ends at another program. Upstream: kubevirt pkg/virt-api, pkg/virt-controller/services/renderresources.go,
  pkg/virt-launcher/virtwrap/device/hostdevice.

  Rule: All three agree

    Scenario: The guide's two A10 of the platform's table
      Given the host "clean"
      And a VM that asks for 2 "nvidia.com/GA102GL_A10"
      When the VM starts
      Then the VM has 0000:18:00.0, 0000:3b:00.0

    Scenario: A card of one's own, added to the table
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation AD102GL [L20] [10de:26ba] (rev a1)
          Kernel driver in use: vfio-pci
        """
      And the platform's values:
        """
        gpu:
          permittedHostDevices:
            pciHostDevices:
            - {pciVendorSelector: "10DE:26BA", resourceName: nvidia.com/AD102GL_L20, externalResourceProvider: true}
        """
      And a VM that asks for 1 "nvidia.com/AD102GL_L20"
      When the VM starts
      Then the VM has 0000:3b:00.0

  Rule: What is not permitted is virt-controller's to refuse, not the webhook's
    The VM object is made; its VMI gets no pod.

    Scenario: A name in other letters
      Given the host "clean"
      And a VM that asks for 1 "nvidia.com/GA102GL_a10"
      When the VM starts
      Then virt-controller stops it, for the reason "FailedCreate", and says:
        """
        failed to render launch manifest: GPU nvidia.com/GA102GL_a10 is not permitted in permittedHostDevices configuration
        """

    Scenario: A block with nothing in it
      Given the host "clean"
      And somebody edits the KubeVirt CR:
        """
        permittedHostDevices: {}
        """
      And a VM that asks for 1 "nvidia.com/GA102GL_A10"
      When the VM starts
      Then virt-controller stops it, for the reason "FailedCreate", and says:
        """
        failed to render launch manifest: GPU nvidia.com/GA102GL_A10 is not permitted in permittedHostDevices configuration
        """

    Scenario: No block at all permits everything
      replaceDefaults with an empty list makes no block; KubeVirt then compares nothing.
      Given the host "clean"
      And the platform's values:
        """
        gpu: {replaceDefaults: true}
        """
      And a VM that asks for 1 "nvidia.com/GA102GL_A10"
      When the VM starts
      Then the VM has 0000:18:00.0

  Rule: The webhook asks for one gate, and only for host devices

    Scenario: With the gates of a cluster without the GPU Operator
      Given the host "clean"
      And somebody edits the KubeVirt CR:
        """
        developerConfiguration: {featureGates: [GPU]}
        """
      And a VM that asks for 1 "nvidia.com/GA102GL_A10" as hostDevices
      When the VM starts
      Then virt-api stops it and says:
        """
        admission webhook "virtualmachine-validator.kubevirt.io" denied the request: Host Devices feature gate is not enabled in kubevirt-config
        """

    Scenario: A VM of Cozystack's needs no gate
      Given the host "clean"
      And somebody edits the KubeVirt CR:
        """
        developerConfiguration: {featureGates: []}
        """
      And a VM that asks for 1 "nvidia.com/GA102GL_A10"
      When the VM starts
      Then the VM has 0000:18:00.0

  Rule: What no node announces is kube-scheduler's to say

    Scenario: A host with a driver of its own
      Given the host "ubuntu-24.04-driver-580-open"
      And a VM that asks for 1 "nvidia.com/GA102GL_A10"
      When the VM starts
      Then kube-scheduler stops it, for the reason "FailedScheduling", and says:
        """
        0/1 nodes are available: 1 Insufficient nvidia.com/GA102GL_A10. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
        """

    Scenario: One card with two entries under an external provider
      Both names are permitted, whichever is last; the node has the plugin's.
      Given the host "clean"
      And the platform's values:
        """
        gpu:
          permittedHostDevices:
            pciHostDevices:
            - {pciVendorSelector: "10DE:2236", resourceName: nvidia.com/MY_A10, externalResourceProvider: true}
        """
      And a VM that asks for 1 "nvidia.com/MY_A10"
      When the VM starts
      Then kube-scheduler stops it, for the reason "FailedScheduling", and says:
        """
        0/1 nodes are available: 1 Insufficient nvidia.com/MY_A10. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
        """

    Scenario: Two ids of one name
      Of two cards the kubelet has one.
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20b1] (rev a1)
          Kernel driver in use: vfio-pci
        86:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)
          Kernel driver in use: vfio-pci
        """
      And a VM that asks for 2 "nvidia.com/GA100_A100_PCIE_40GB"
      When the VM starts
      Then kube-scheduler stops it, for the reason "FailedScheduling", and says:
        """
        0/1 nodes are available: 1 Insufficient nvidia.com/GA100_A100_PCIE_40GB. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.
        """

  Rule: What is announced can still not start

    Scenario: Another function of the card kept its driver
      Given on a node lspci prints:
        """
        01:00.0 VGA compatible controller [0300]: NVIDIA Corporation TU104GL [Tesla T4] [10de:1eb8] (rev a1)
          Kernel driver in use: vfio-pci
        01:00.1 Audio device [0403]: NVIDIA Corporation TU104 HD Audio Controller [10de:10f8] (rev a1)
          Kernel driver in use: vfio-pci
        01:00.2 USB controller [0c03]: NVIDIA Corporation TU104 USB 3.1 Host Controller [10de:1ad8] (rev a1)
          Kernel driver in use: xhci_hcd
        """
      And a VM that asks for 1 "nvidia.com/TU104GL_TESLA_T4"
      When the VM starts
      Then virt-launcher stops it, for the reason "Synchronizing with the Domain failed.", and says:
        """
        server error. command SyncVMI failed: "vfio 0000:01:00.0: group 0 is not viable\nPlease ensure all devices within the iommu_group are bound to their vfio bus driver.
        """

  Rule: A finding names its cause once, whoever was told

    Scenario Outline: One planted fault
      Given on a node lspci prints:
        """
        3b:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:<id>] (rev a1)
          Kernel driver in use: <driver>
        """
      And a VM that asks for 1 "<resource>"
      When I ask whether the names agree
      Then the answer says:
        | field                   | value   |
        | findings.kind           | <kind>  |
        | findings.said.component | <stops> |

      Examples:
        | id   | driver   | resource                        | kind          | stops           |
        | 2236 | vfio-pci | nvidia.com/GA102GL_A10          | none          | none            |
        | 2236 | nvidia   | nvidia.com/GA102GL_A10          | not-bound     | kube-scheduler  |
        | 2236 | vfio-pci | nvidia.com/GA102GL-A10          | vm-spelling   | virt-controller |
        | 2bb9 | vfio-pci | nvidia.com/GB202GL_RTX_PRO_6000 | unknown-id    | virt-controller |
        | 26ba | vfio-pci | nvidia.com/AD102GL_L20          | not-permitted | virt-controller |
