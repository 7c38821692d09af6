Feature: A host driver makes driver-manager give way
  The node is labelled, the driver DaemonSet's pod gets a minute to leave, the run fails. Nothing else is looked at.
  Upstream: cmd/driver-manager/main.go, uninstallDriver and disableContainerizedDriver.

  Background:
    Given the host "runfile-580"
    And the cluster "container-node"

  Rule: One label, one minute, one failure

    @verified
    Scenario: The driver's own DaemonSet leaves, the operands stay
      Recorded: hostdrv-driver-ds.
      When driver-manager runs
      Then the exit code is 1
      And it takes 60 seconds
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        """
      And only these labels change:
        | label                        | before | after         |
        | nvidia.com/gpu.deploy.driver | true   | pre-installed |
      And the pod "nvidia-driver-daemonset-c6b9x" is gone
      And only the host check is run as a child process
      And nothing else on the node or host changed

    @verified
    Scenario: The label is there already
      Recorded: hostdrv-already-labelled. The minute passes all the same.
      Given the cluster "bare-node"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      When driver-manager runs
      Then the exit code is 1
      And it takes 60 seconds
      And 1 PATCH requests go to "/nodes/gpu-1"
      And no label changes
      And nothing else on the node or host changed

    @verified
    Scenario: A driver container's leavings beside the host's driver are not touched
      Recorded: hostdrv-loaded-too.
      Given the host "container-driver-loaded"
      And the program "/usr/bin/nvidia-smi" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And the pod "nvidia-driver-daemonset-c6b9x" is gone
      And "/run/nvidia/driver" is still mounted
      And all GPUs are on "nvidia"
      And nothing else on the node or host changed

    Scenario: A foreign cordon stays
      Given somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the node is cordoned

    @quirk
    Scenario: Operands that an aborted run left paused are not restored
      Upstream: cmd/driver-manager/main.go, uninstallDriver returns before the labels are read.
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"

  Rule: A label that cannot be set fails the run at once

    @verified @until-v0.9.1
    Scenario: One attempt
      Recorded: hostdrv-patch-403.
      Given the API server answers 403 to PATCH "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And 1 PATCH requests go to "/nodes/gpu-1"
      And the log has, in this order:
        """
        fatal: failed to disable containerized driver: failed to update the labels of node gpu-1: injected fault 403
        """
      And nothing else on the node or host changed

    @verified @since-v0.10.0
    Scenario: Several attempts
      Recorded: hostdrv-patch-403.
      Given the API server answers 403 to PATCH "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        warning: Failed to update labels on node gpu-1, retrying: injected fault 403
        fatal: failed to disable containerized driver: injected fault 403
        """
      And no label changes
      And all GPUs are on "nvidia"
      And nothing else on the node or host changed

    @verified
    Scenario: The node is unknown
      Recorded: hostdrv-node-missing.
      Given the cluster "unknown-node"
      When driver-manager runs
      Then the exit code is 1
      And the log says "Labeling node gpu-1 with nvidia.com/gpu.deploy.driver=pre-installed" 1 times
      And the log says nothing of "Fetching current component labels"

    @verified
    Scenario: The API server does not answer
      Recorded: hostdrv-api-down.
      Given the cluster "unreachable"
      When driver-manager runs
      Then the exit code is 1
      And the API server is never asked
      And nothing else on the node or host changed
