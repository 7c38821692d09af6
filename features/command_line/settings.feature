Feature: Settings are flags or environment variables
  Read as urfave/cli reads them, before anything is done. Upstream: cmd/driver-manager/main.go, main.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: A value that cannot be read ends the run before anything is done

    Scenario Outline: Booleans
      Recorded: cli-badbool-enable_auto_drain, cli-badbool-use_host_mofed, cli-badbool-gpu_direct_rdma_enabled, cli-badbool-drain_delete_emptydir_data.
      Given the setting <variable> is maybe
      When driver-manager runs
      Then the exit code is 1
      And the log is:
        """
        fatal: could not parse "maybe" as bool value from environment variable "<variable>" for flag <flag>: strconv.ParseBool: parsing "maybe": invalid syntax
        """
      And the API server is never asked
      And nothing else on the node or host changed

      @verified
      Examples: recorded
        | variable                   | flag                       |
        | DRAIN_DELETE_EMPTYDIR_DATA | drain-delete-emptydir-data |
        | ENABLE_AUTO_DRAIN          | enable-auto-drain          |
        | GPU_DIRECT_RDMA_ENABLED    | gpu-direct-rdma-enabled    |
        | USE_HOST_MOFED             | use-host-mofed             |

      Examples: not recorded
        | variable                   | flag                       |
        | DRAIN_USE_FORCE            | drain-use-force            |
        | ENABLE_GPU_POD_EVICTION    | enable-gpu-pod-eviction    |

    Scenario Outline: A duration
      Recorded: cli-drain-timeout-bad.
      Given the setting DRAIN_TIMEOUT_SECONDS is <value>
      When driver-manager runs
      Then the exit code is 1
      And the log is:
        """
        fatal: could not parse "<value>" as duration value from environment variable "DRAIN_TIMEOUT_SECONDS" for flag drain-timeout-seconds: time: <problem>
        """

      @verified
      Examples: recorded
        | value | problem                                |
        | bad   | invalid duration "bad"                 |

      Examples: not recorded
        | value | problem                                |
        | 300   | missing unit in duration "300"         |
        | 5 m   | unknown unit " m" in duration "5 m"    |

    Scenario Outline: Durations that are read, 0 for no limit
      Given the setting DRAIN_TIMEOUT_SECONDS is <value>
      And the setting ENABLE_AUTO_DRAIN is false
      And the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | 60          |
      When driver-manager runs
      Then the exit code is <code>
      And it takes between <low> and <high> seconds

      Examples:
        | value | code | low | high |
        | 0     | 0    | 62  | 66   |
        | 0s    | 0    | 62  | 66   |
        | ""    | 0    | 62  | 66   |
        | 1.5s  | 1    | 4   | 6.5  |
        | 1m30s | 0    | 62  | 66   |
        | 1h30m | 0    | 62  | 66   |

  Rule: A flag wins over a variable

    @verified
    Scenario: Eviction
      Recorded: cli-flag-over-env.
      Given the setting ENABLE_GPU_POD_EVICTION is true
      When driver-manager runs with the arguments --enable-gpu-pod-eviction=false uninstall_driver
      Then the exit code is 0
      And the log says nothing of "Cordoning node"
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario: A time-out
      Recorded: cli-drain-timeout-flag.
      Given the setting ENABLE_AUTO_DRAIN is false
      And the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
      When driver-manager runs with the arguments --drain-timeout-seconds 5s uninstall_driver
      Then the exit code is 1
      And it takes between 7 and 10 seconds

    Scenario: A variable that cannot be read is not excused by the flag
      Given the setting ENABLE_AUTO_DRAIN is maybe
      When driver-manager runs with the arguments --enable-auto-drain=false uninstall_driver
      Then the exit code is 1

  Rule: The node's name is required

    @verified
    Scenario: It is missing
      Recorded: cli-no-node-name.
      Given the setting NODE_NAME is not set
      When driver-manager runs
      Then the exit code is 1
      And the log is:
        """
        fatal: Required flag "node-name" not set
        """
      And the API server is never asked

    Scenario: As a flag
      Given the setting NODE_NAME is not set
      When driver-manager runs with the arguments --node-name gpu-1 uninstall_driver
      Then the exit code is 0
      And the log says "Cordoning node gpu-1" 1 times
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @quirk @verified
    Scenario: An empty one passes, and fails later
      Upstream: urfave/cli, flag.go, takes a variable that is set for given. Recorded: cli-empty-node-name.
      Given the setting NODE_NAME is ""
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to fetch current labels: failed to get label nvidia.com/gpu.deploy.operator-validator: failed to get node : resource name may not be empty
        """
      And the API server is never asked

    @verified
    Scenario: One that cannot be in a path
      Recorded: cli-odd-node-name.
      Given the setting NODE_NAME is a/b
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to fetch current labels: failed to get label nvidia.com/gpu.deploy.operator-validator: failed to get node a/b: invalid resource name "a/b": [may not contain '/']
        """
