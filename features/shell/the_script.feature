Feature: The shell releases: a script, its kubectl, and its exit codes
  Up to v0.8.1 driver-manager is a bash script. It looks at few of the exit codes of what it runs, and what it looks at
  decides. Upstream: driver-manager (the script), v0.4.2 to v0.8.1.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"
    And the setting OPERATOR_NAMESPACE is gpu-operator

  Rule: A host driver is looked for in /usr/bin

    @until-v0.8.1 @verified
    Scenario: One that is only in /usr/local/bin is not seen
      Recorded: hostdrv-usr-local-bin.
      Given the host "clean"
      And the program "/usr/local/bin/nvidia-smi" on the host prints "580.82.07" and exits 0
      When driver-manager runs
      Then the exit code is 0
      And standard output has "Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels"

    @until-v0.8.1 @verified
    Scenario: The label cannot be set, and the minute is waited nevertheless
      Recorded: hostdrv-patch-403.
      Given the host "clean"
      And the program "/usr/bin/nvidia-smi" on the host prints "580.82.07" and exits 0
      And the API server answers 403 to PATCH "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And it takes between 60 and 61 seconds
      And no label changes

  Rule: All modules or none

    @until-v0.8.1 @verified
    Scenario: A module that is in use keeps all of them
      Recorded: ref-held-uvm-drain, ref-held-train.
      Given the module "nvidia_uvm" is in use
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And standard error has "Could not unload NVIDIA driver kernel modules, driver is in use"
      And no module is unloaded
      And no label changes but those that are created empty

  Rule: A driver root that is not mounted is a failure, after the modules are gone

    @until-v0.8.1 @since-v0.6.2 @verified
    Scenario: The modules are unloaded, and the run fails
      Recorded: user-modules-no-mount-drain, mnt-file.
      Given the mount points are none
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And standard output has "Failed to uninstall nvidia driver components"
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

  Rule: Waits fail softly

    @until-v0.8.1 @since-v0.6.2 @verified
    Scenario: An operand's pod that never goes
      Recorded: ns-never-operator-validator.
      Given the pod "gpu-operator/nvidia-operator-validator-7xk2p" never terminates
      When driver-manager runs
      Then the exit code is 0
      And it takes between 300 and 310 seconds
      And standard error has "error: timed out waiting for the condition on pods/nvidia-operator-validator-7xk2p"
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

  Rule: Restoring drops every underscore

    @until-v0.8.1 @since-v0.6.2 @verified
    Scenario: A value with an underscore inside
      Recorded: label-a_b-skip.
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "a_b"
      When driver-manager runs
      Then the exit code is 0
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "ab"

  Rule: Only "true" is true

    @until-v0.8.1 @since-v0.6.2 @verified
    Scenario Outline: ENABLE_GPU_POD_EVICTION
      Recorded: sh-evict-1, sh-evict-TRUE.
      Given the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <value> |
        | ENABLE_AUTO_DRAIN       | false   |
      And the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is <pod>

      Examples:
        | value | pod         |
        | true  | gone        |
        | TRUE  | still there |
        | 1     | still there |

  Rule: The full drain works

    @until-v0.8.1 @since-v0.6.2 @verified
    Scenario: It leaves DaemonSets' pods alone
      Recorded: user-busy-web-drain, ref-held-ds-drain.
      Given the pods:
        | pod         | owner          |
        | default/web | ReplicaSet/web |
      And unloading "nvidia" fails with EBUSY as long as the pod "default/web" is there
      When driver-manager runs
      Then the exit code is 0
      And standard output has "Unable to cleanup driver modules, attempting again with node drain..."
      And standard output has "node/gpu-1 drained"
      And the pod "default/web" is gone
      And the node is schedulable

  Rule: v0.4.2 unloads only what is in use

    @until-v0.4.2
    Scenario: A driver that nobody uses stays
      Given the host "clean"
      And the module "nvidia" is loaded
      When driver-manager runs
      Then the exit code is 0
      And no module is unloaded
