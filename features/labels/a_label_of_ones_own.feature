Feature: A label of the user's own is paused with the operands
  NODE_LABEL_FOR_GPU_POD_EVICTION names one label more, whose DaemonSets make room for the driver too.
  Upstream: cmd/driver-manager/main.go, fetchCurrentLabels and evictAllGPUOperatorComponents.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting NODE_LABEL_FOR_GPU_POD_EVICTION is example.com/gpu-app

  Rule: Where the node has the label, its pods leave

    @verified
    Scenario: They leave and the label comes back
      Recorded: custom-label-pods.
      Given the node has the label "example.com/gpu-app" with the value "true"
      And the pods:
        | pod         | owner         | selector                 |
        | apps/client | DaemonSet/app | example.com/gpu-app=true |
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Getting current value of the "example.com/gpu-app" node label used by custom operands
        info: Current value of "example.com/gpu-app"=true
        info: Shutting down GPU clients using node selector label "example.com/gpu-app"=true
        """
      And the node has the label "example.com/gpu-app" with the value "true"
      And the pod "apps/client" is gone

    @quirk @verified
    Scenario: Nobody waits for them
      Upstream: cmd/driver-manager/main.go, waitForPodsToTerminate knows the operands only. Recorded: custom-label-pods.
      Given the node has the label "example.com/gpu-app" with the value "true"
      And the pods:
        | pod         | owner         | selector                 | termination |
        | apps/client | DaemonSet/app | example.com/gpu-app=true | never       |
      When driver-manager runs
      Then the exit code is 0
      And the pod "apps/client" is still there
      And all GPUs are on no driver

    Scenario: Any value is paused in its own way
      Given the cluster "container-node"
      And the node has the label "example.com/gpu-app" with the value "blue"
      And the pod "nvidia-dcgm-exporter-2hvjf" never terminates
      When driver-manager runs and is watched for 20 seconds
      Then the node has the label "example.com/gpu-app" with the value "blue_paused-for-driver-upgrade"

    @verified
    Scenario: It may be an operand's own label
      Recorded: custom-label-clash.
      Given the setting NODE_LABEL_FOR_GPU_POD_EVICTION is nvidia.com/gpu.deploy.dcgm
      When driver-manager runs
      Then the exit code is 0
      And the log says "Shutting down GPU clients using node selector label" 1 times
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "true"

  Rule: Where the node lacks it, nothing happens

    @verified
    Scenario: It is not created either
      Recorded: custom-label-absent.
      When driver-manager runs
      Then the exit code is 0
      And the log says "node label used by custom operands" 1 times
      And the log says nothing of "Shutting down GPU clients using node selector label"
      And no label changes but those that are created empty

  Rule: It is read last, and must be readable

    @verified @until-v0.11.0
    Scenario: The twelfth request fails
      Recorded: custom-label-get-fails.
      Given the API server answers 500 to GET "/nodes/", 1 times, after the first 11
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to fetch current labels: failed to get custom operand label example.com/gpu-app: failed to get node gpu-1: injected fault 500
        """
      And nothing else on the node or host changed
