Feature: The KubeVirt CR over time
  Cozystack's platform writes permittedHostDevices itself. Who edits the CR by hand keeps that until the release is upgraded.
  Upstream: cozystack internal/operator/package_reconciler.go, kubevirt pkg/virt-handler/vm.go.

  Background:
    Given on a node lspci prints:
      """
      3b:00.0 3D controller [0302]: NVIDIA Corporation AD102GL [L20] [10de:26ba] (rev a1)
        Kernel driver in use: vfio-pci
      """
    And a VM that asks for 1 "nvidia.com/AD102GL_L20"
    And somebody edits the KubeVirt CR:
      """
      permittedHostDevices:
        pciHostDevices:
        - {pciVendorSelector: "10DE:26BA", resourceName: nvidia.com/AD102GL_L20, externalResourceProvider: true}
      """

  Rule: A hand edit works until something of the release changes

    Scenario: Before
      When the VM starts
      Then the VM has 0000:3b:00.0

    Scenario: Flux comes by, and nothing has changed
      There is no drift detection: the CR stays as it was edited.
      Given since it runs, Flux has come by with the values:
        """
        {}
        """
      When the VM starts
      Then the VM has 0000:3b:00.0

    Scenario: The values have changed
      Given since it runs, Flux has come by with the values:
        """
        gpu:
          permittedHostDevices:
            pciHostDevices:
            - {pciVendorSelector: "10DE:26B3", resourceName: nvidia.com/AD102GL_L40G, externalResourceProvider: true}
        """
      When the VM starts
      Then virt-controller stops it, for the reason "FailedCreate", and says:
        """
        failed to render launch manifest: GPU nvidia.com/AD102GL_L20 is not permitted in permittedHostDevices configuration
        """

    Scenario: The values say what the hand edit said
      Given since it runs, Flux has come by with the values:
        """
        gpu:
          permittedHostDevices:
            pciHostDevices:
            - {pciVendorSelector: "10DE:26BA", resourceName: nvidia.com/AD102GL_L20, externalResourceProvider: true}
        """
      When the VM starts
      Then the VM has 0000:3b:00.0

    Scenario: It can be seen before
      When I ask whether the names agree
      Then the answer says:
        | field              | value                                      |
        | findings.kind      | cr-differs                                 |
        | findings.said.when | when the VM starts anew after that upgrade |
