Feature: With GPUDirect RDMA the run waits for MOFED
  GPU_DIRECT_RDMA_ENABLED and a Mellanox card make driver-manager wait, without limit, until the network driver is there.
  Upstream: cmd/driver-manager/main.go, isGPUDirectRDMAEnabled and waitForMofedDriver.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting GPU_DIRECT_RDMA_ENABLED is true

  Rule: It waits only where there is a Mellanox card

    @verified
    Scenario: There is none
      Recorded: rdma-no-mlx.
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Unbinding vfio-pci driver from all devices
        info: No Mellanox devices were found
        """
      And the log says nothing of "Waiting for MOFED"

    @verified
    Scenario: The vendor is compared letter by letter
      Recorded: rdma-mlx-upper.
      Given a network card of vendor "0x15B3" at "0000:19:00.0"
      When driver-manager runs
      Then the log says "No Mellanox devices were found" 1 times

    Scenario: It was not asked for
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting GPU_DIRECT_RDMA_ENABLED is false
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Mellanox"

  Rule: What it waits for depends on USE_HOST_MOFED

    @verified @since-v0.9.1
    Scenario: The MOFED container's sign
      Recorded: rdma-container-ready.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And the file "/run/mellanox/drivers/.driver-ready" holds ""
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Mellanox device found at 0000:19:00.0
        info: GPUDirectRDMA is enabled, validating MOFED driver installation
        info: Waiting for MOFED to be installed
        """
      And the log says nothing of "Waiting for MOFED to be installed..."

    @verified @since-v0.9.1
    Scenario: The host's module
      Recorded: rdma-host-ready.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting USE_HOST_MOFED is true
      And the module "mlx5_core" is loaded
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Waiting for MOFED to be installed..."

    @verified @since-v0.9.1
    Scenario Outline: The other one's sign does not count
      Recorded: rdma-container-later, rdma-host-later.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting USE_HOST_MOFED is <host>
      And the file "<sign>" holds ""
      And the module "<module>" is loaded
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And the log says "Waiting for MOFED to be installed..." 12 times

      Examples:
        | host  | sign                                | module    |
        | false | /run/mellanox/nothing               | mlx5_core |
        | true  | /run/mellanox/drivers/.driver-ready | mlx4_core |

    @quirk @verified @until-v0.9.0
    Scenario Outline: v0.9.0 looked for the other one's sign
      Upstream: pull request #131. Recorded: rdma-container-ready, rdma-host-ready.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting USE_HOST_MOFED is <host>
      And the file "<sign>" holds ""
      And the module "<module>" is loaded
      When driver-manager runs and is watched for 60 seconds
      Then it is still running

      Examples:
        | host  | sign                                | module    |
        | true  | /run/mellanox/nothing               | mlx5_core |
        | false | /run/mellanox/drivers/.driver-ready | mlx4_core |

  Rule: It waits as long as it takes, asking every five seconds, and holds the node meanwhile

    @verified @since-v0.9.1
    Scenario: The sign comes late
      Recorded: rdma-container-later.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And after 100 seconds the file "/run/mellanox/drivers/.driver-ready" appears
      When driver-manager runs
      Then the exit code is 0
      And it takes between 100 and 106 seconds
      And the log says "Waiting for MOFED to be installed..." 20 times
      And the node is schedulable
      And no label changes but those that are created empty

    @quirk @verified
    Scenario: Meanwhile the node is cordoned, its operands are paused, its GPUs have no driver
      Upstream: cmd/driver-manager/main.go, waitForMofedDriver has no limit. Recorded: rdma-host-noproc.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the node is cordoned
      And the operands stay paused
      And all GPUs are on no driver

    @verified @since-v0.9.1
    Scenario: The list of modules cannot be read
      Recorded: rdma-host-noproc.
      Given the host "clean"
      And a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting USE_HOST_MOFED is true
      And the file "/proc/modules" is missing
      When driver-manager runs and is watched for 20 seconds
      Then it is still running
      And the log has, in this order:
        """
        warning: Failed to read /proc/modules: open /proc/modules: no such file or directory
        info: Waiting for MOFED to be installed...
        warning: Failed to read /proc/modules: open /proc/modules: no such file or directory
        info: Waiting for MOFED to be installed...
        """
