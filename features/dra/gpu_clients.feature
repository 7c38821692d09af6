Feature: DaemonSets of one's own join the operands
  From v0.12.0 on a DaemonSet that selects on the label client is paused with the operands and waited for, wherever its pods
  are. Upstream: pull request #205.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the node has the label "nvidia.com/gpu.deploy.client" with the value "true"

  Rule: From v0.12.0 on it is waited for, by its node selector

    @verified @since-v0.12.0
    Scenario: In any namespace
      Recorded: wait-client, dra-client.
      Given the pods:
        | pod        | owner              | selector                          | termination |
        | mon/client | DaemonSet/exporter | nvidia.com/gpu.deploy.client=true | 12          |
      When driver-manager runs
      Then the exit code is 0
      And it takes between 15 and 20 seconds
      And the log has, in this order:
        """
        info: Waiting for nvidia-dcgm-dra to shutdown
        info: Waiting for any daemon set pods with nodeSelector key nvidia.com/gpu.deploy.client to terminate
        info: Waiting for 1 daemon set pod(s) with nodeSelector key "nvidia.com/gpu.deploy.client" to terminate
        info: Cordoning node gpu-1
        """
      And the pod "mon/client" is gone
      And the node has the label "nvidia.com/gpu.deploy.client" with the value "true"

    @verified @since-v0.12.0
    Scenario: Pods of other owners do not count
      Recorded: dra-client.
      Given the pods:
        | pod     | owner          | selector                          | termination |
        | mon/job | ReplicaSet/app | nvidia.com/gpu.deploy.client=true | never       |
      When driver-manager runs
      Then the exit code is 0
      And the pod "mon/job" is still there

    @since-v0.12.0
    Scenario: It never leaves
      Given the pods:
        | pod        | owner              | selector                          | termination |
        | mon/client | DaemonSet/exporter | nvidia.com/gpu.deploy.client=true | never       |
      When driver-manager runs
      Then the exit code is 1
      And it takes between 300 and 310 seconds
      And the log says "Failed to wait for GPU client pods to terminate: context deadline exceeded" 1 times
      And no label changes but those that are created empty

    @verified @since-v0.12.0
    Scenario: Its pods cannot be listed
      Recorded: dra-client-list-500.
      Given the API server answers 500 to GET "^/api/v1/pods$", 1 times
      When driver-manager runs
      Then the exit code is 1
      And the log says "failed to evict GPU operator components: failed to list pods on node gpu-1: injected fault 500" 1 times
      And no label changes but those that are created empty

    @verified @since-v0.12.0
    Scenario: A node without the label asks for nothing
      Recorded: dra-plugin.
      Given the cluster "dra-node"
      When driver-manager runs
      Then the log says nothing of "with nodeSelector key"

  Rule: Before, the label is not known

    @verified @until-v0.11.0
    Scenario: Its pods stay, and nobody waits
      Recorded: wait-client, dra-client.
      Given the pods:
        | pod        | owner              | selector                          |
        | mon/client | DaemonSet/exporter | nvidia.com/gpu.deploy.client=true |
      When driver-manager runs
      Then the exit code is 0
      And the pod "mon/client" is still there
