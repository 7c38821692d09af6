Feature: What is read from the node
  The labels one request each, then the annotation that says who evicts. Upstream: cmd/driver-manager/main.go,
  fetchCurrentLabels and fetchAutoUpgradeAnnotation.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: The labels are read in a fixed order

    @verified @until-v0.11.0
    Scenario: Eleven labels
      Recorded: label-true-full.
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Fetching current component labels
        info: Getting current value of the "nvidia.com/gpu.deploy.operator-validator" node label
        info: Current value of "nvidia.com/gpu.deploy.operator-validator"=true
        info: Getting current value of the "nvidia.com/gpu.deploy.container-toolkit" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.device-plugin" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.gpu-feature-discovery" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.dcgm-exporter" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.dcgm" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.mig-manager" node label
        info: Current value of "nvidia.com/gpu.deploy.mig-manager"=
        info: Getting current value of the "nvidia.com/gpu.deploy.nvsm" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.sandbox-validator" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.sandbox-device-plugin" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.vgpu-device-manager" node label
        info: Current value of AUTO_UPGRADE_POLICY_ENABLED=
        """
      And the log says "Getting current value" 11 times

    @verified @since-v0.12.0
    Scenario: Five more of v0.12.0
      Recorded: label-true-full.
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Getting current value of the "nvidia.com/gpu.deploy.operator-validator" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.vgpu-device-manager" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.client" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.dra-driver" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.dra-validator" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.dcgm-dra" node label
        info: Getting current value of the "nvidia.com/gpu.deploy.dcgm-exporter-dra" node label
        """
      And the log says "Getting current value" 16 times

  Rule: A request that fails ends the run before anything is changed

    @verified
    Scenario: The first label cannot be read
      Recorded: api-get-500-first.
      Given the API server answers 500 to GET "/nodes/", 1 times
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to fetch current labels: failed to get label nvidia.com/gpu.deploy.operator-validator: failed to get node gpu-1: injected fault 500
        """
      And only the host check is run as a child process
      And nothing else on the node or host changed

    @verified
    Scenario Outline: The annotation cannot be read
      Recorded: api-annotation-get-500, api-annotation-get-500-dra.
      Given the API server answers 500 to GET "/nodes/", after the first <labels>
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to fetch auto upgrade annotation: failed to get node gpu-1 annotation: failed to get node gpu-1: injected fault 500
        """
      And nothing else on the node or host changed

      @until-v0.11.0
      Examples: eleven labels
        | labels |
        | 11     |

      @since-v0.12.0
      Examples: sixteen labels
        | labels |
        | 16     |

    @verified
    Scenario: The node is unknown
      Recorded: api-node-missing.
      Given the cluster "unknown-node"
      When driver-manager runs
      Then the exit code is 1
      And the log is:
        """
        info: Starting driver uninstallation process
        info: Fetching current component labels
        info: Getting current value of the "nvidia.com/gpu.deploy.operator-validator" node label
        fatal: failed to fetch current labels: failed to get label nvidia.com/gpu.deploy.operator-validator: failed to get node gpu-1: nodes "gpu-1" not found
        """
      And nothing else on the node or host changed

    @verified
    Scenario: The API server does not answer
      Recorded: api-down.
      Given the cluster "unreachable"
      When driver-manager runs
      Then the exit code is 1
      And nothing else on the node or host changed
