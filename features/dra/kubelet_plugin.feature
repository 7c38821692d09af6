@since-v0.12.0
Feature: The DRA kubelet plugin is drained last
  From v0.12.0 on a node of the GPU Operator's DRA driver is told by its label dra-driver. The plugin is paused after all
  other operands and workloads, and only if no pod holds a claim on a GPU. Upstream: pull requests #203, #204 and #219.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "dra-node"

  Rule: It goes after the workloads and before the modules

    @verified
    Scenario: A node without workloads
      Recorded: dra-plugin, dra-all-operands.
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Waiting for nvidia-dcgm-dra to shutdown
        info: Cordoning node gpu-1
        info: No GPU pods to delete. Exiting.
        info: Draining the DRA kubelet-plugin (last, after its claim-holding clients)
        info: Waiting for dra-driver to shutdown
        info: Cleaning up NVIDIA driver
        """
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        patch labels
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" is gone
      And no label changes but those that are created empty
      And the paused operands' pods are gone

    Scenario: The first patch leaves it running
      Given the pods:
        | pod        | owner          | claim          | termination |
        | ml/holder  | ReplicaSet/app | gpu.nvidia.com | never       |
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" is still there
      And the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "true"
      And the node has the label "nvidia.com/gpu.deploy.dra-validator" with the value "paused-for-driver-upgrade"
      And the node is cordoned

    @verified
    Scenario: A driver that stays loses it too
      Recorded: dra-plugin-skip, dra-holder-skip.
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the pods:
        | pod       | owner          | claim          |
        | ml/holder | ReplicaSet/app | gpu.nvidia.com |
      When driver-manager runs
      Then the exit code is 0
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" is gone
      And the pod "ml/holder" is still there
      And no module is unloaded
      And no label changes but those that are created empty

    @verified
    Scenario: It does not leave within five minutes
      Recorded: dra-plugin-never.
      Given the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" never terminates
      When driver-manager runs
      Then the exit code is 1
      And it takes between 300 and 320 seconds
      And the log has, in this order:
        """
        error: Failed to wait for dra-driver to shutdown: context deadline exceeded
        info: Performing cleanup on failure
        fatal: failed to evict DRA kubelet-plugin: context deadline exceeded
        """
      And no label changes but those that are created empty
      And the node is schedulable
      And no module is unloaded

    @quirk @verified
    Scenario: A label that says false is drained all the same
      Upstream: cmd/driver-manager/main.go asks only whether there is a value. Recorded: dra-label-false.
      Given the cluster "bare-node"
      And the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "false"
      When driver-manager runs
      Then the exit code is 0
      And the log says "Draining the DRA kubelet-plugin" 1 times
      And the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "false"

  Rule: A pod with a claim on a GPU counts as a GPU pod

    @verified
    Scenario Outline: It counts
      Recorded: dra-template, dra-two-claims, dra-holder-finished-evict.
      Given the pods:
        | pod       | owner          | claim   | phase   |
        | ml/holder | ReplicaSet/app | <claim> | <phase> |
      When driver-manager runs
      Then the exit code is 0
      And the log says "GPU pod - ml/holder" 1 times
      And the pod "ml/holder" is gone

      Examples:
        | claim                     | phase     |
        | gpu.nvidia.com            | Running   |
        | gpu.nvidia.com (template) | Running   |
        | gpu.nvidia.com            | Succeeded |

    @verified
    Scenario Outline: It does not
      Recorded: dra-compute-domain, dra-unallocated, dra-missing-claim, dra-template-unresolved.
      Given the pods:
        | pod       | owner          | claim   |
        | ml/holder | ReplicaSet/app | <claim> |
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/holder" is still there
      And no pod is evicted or deleted

      Examples:
        | claim                       |
        | compute-domain.nvidia.com   |
        | unallocated                 |
        | missing                     |
        | gpu.nvidia.com (unresolved) |

    @verified
    Scenario: Also on a node that has no DRA label
      Recorded: dra-holder-nolabel.
      Given the cluster "bare-node"
      And the pods:
        | pod       | owner          | claim          |
        | ml/holder | ReplicaSet/app | gpu.nvidia.com |
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/holder" is gone
      And the log says nothing of "Draining the DRA kubelet-plugin"

    @verified
    Scenario: A claim that cannot be read keeps the pods
      Recorded: dra-claim-403-drain.
      Given the pods:
        | pod       | owner          | claim          |
        | ml/holder | ReplicaSet/app | gpu.nvidia.com |
      And the API server answers 403 to GET "/resourceclaims/"
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Failed to drain node of GPU pods
        fatal: cannot proceed until all GPU pods are drained from the node
        """
      And the pod "ml/holder" is still there

  Rule: Whoever still holds a claim keeps the plugin

    @verified
    Scenario: Eviction and drain are off
      Recorded: dra-holder-off.
      Given the pods:
        | pod      | owner          | claim          |
        | ml/one   | ReplicaSet/app | gpu.nvidia.com |
        | ml/two   | ReplicaSet/app | gpu.nvidia.com |
        | ml/other | ReplicaSet/app |                |
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Performing cleanup on failure
        fatal: cannot drain the DRA kubelet-plugin: pod(s) still hold GPU resource claims: ml/one, ml/two
        """
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" is still there
      And no module is unloaded
      And no label changes but those that are created empty

    @verified
    Scenario: With drain on they are evicted even with eviction off
      Recorded: dra-holder-noevict.
      Given the pods:
        | pod    | owner          | claim          |
        | ml/one | ReplicaSet/app | gpu.nvidia.com |
      And the setting ENABLE_GPU_POD_EVICTION is false
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/one" is gone
      And the log says "Cordoning node gpu-1" 1 times
      And the node is schedulable

    @verified
    Scenario: A finished pod holds nothing
      Recorded: dra-holder-finished.
      Given the pods:
        | pod    | owner          | claim          | phase  |
        | ml/one | ReplicaSet/app | gpu.nvidia.com | Failed |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/one" is still there
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" is gone

    @verified
    Scenario: A node without the label is not asked
      Recorded: dra-holder-off-nolabel.
      Given the cluster "bare-node"
      And the pods:
        | pod    | owner          | claim          |
        | ml/one | ReplicaSet/app | gpu.nvidia.com |
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 0
      And 0 GET requests go to "/resourceclaims/"

    @verified
    Scenario: A claim that cannot be read fails the run
      Recorded: dra-claim-403-policy.
      Given the pods:
        | pod    | owner          | claim          |
        | ml/one | ReplicaSet/app | gpu.nvidia.com |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And the API server answers 403 to GET "/resourceclaims/"
      When driver-manager runs
      Then the exit code is 1
      And the log says "failed to check for GPU resource claim holders: failed to get ResourceClaim ml/one-claim: injected fault 403" 1 times
      And no label changes but those that are created empty
