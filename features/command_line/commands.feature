Feature: Commands
  `uninstall_driver` does the work, `preflight_check` does nothing; flags stand before the command.
  Upstream: cmd/driver-manager/main.go, main.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: preflight_check asks nothing and changes nothing

    @verified
    Scenario: Two lines
      Recorded: cli-preflight.
      When driver-manager runs with the arguments preflight_check
      Then the exit code is 0
      And the log is:
        """
        info: Performing preflight checks
        info: Preflight checks completed
        """
      And the API server is never asked
      And nothing else on the node or host changed

    @verified
    Scenario: It needs a way to the API server all the same
      Recorded: cli-preflight-kubeconfig-missing.
      Given the setting KUBECONFIG is /nope
      When driver-manager runs with the arguments preflight_check
      Then the exit code is 1
      And the log is:
        """
        fatal: failed to create driver manager: failed to create kube client: failed to build kubeconfig: stat /nope: no such file or directory
        """

  Rule: Help and version do nothing

    @verified
    Scenario Outline: Which
      Recorded: cli-help-flag, cli-help-command, cli-no-command, cli-version.
      When driver-manager runs with the arguments <arguments>
      Then the exit code is 0
      And the API server is never asked
      And standard output has "<text>"
      And nothing else on the node or host changed

      Examples:
        | arguments | text                                                       |
        | none      | driver-manager [global options] command [command options]  |
        | --help    | uninstall_driver  Uninstall NVIDIA driver and manage GPU operator components |
        | help      | preflight_check   Perform preflight checks                 |
        | --version | driver-manager version unknown                             |

    @verified
    Scenario: Without a node's name even the help is an error
      Recorded: cli-no-command-no-node.
      Given the setting NODE_NAME is not set
      When driver-manager runs with the arguments none
      Then the exit code is 1
      And the log is:
        """
        fatal: Required flag "node-name" not set
        """

  Rule: What is not known is an error

    Scenario: A command
      When driver-manager runs with the arguments uninstall
      Then the exit code is 3
      And the API server is never asked
      And nothing else on the node or host changed

    @verified
    Scenario: A flag
      Recorded: cli-unknown-flag.
      When driver-manager runs with the arguments --no-such-flag uninstall_driver
      Then the exit code is 1
      And the log is:
        """
        fatal: flag provided but not defined: -no-such-flag
        """
      And standard output has "Incorrect Usage: flag provided but not defined: -no-such-flag"

    @verified
    Scenario: A flag after the command
      Recorded: cli-flag-after-command.
      When driver-manager runs with the arguments uninstall_driver --enable-auto-drain=false
      Then the exit code is 1
      And the log is:
        """
        fatal: flag provided but not defined: -enable-auto-drain
        """

    @verified
    Scenario: A further argument is ignored
      Recorded: cli-extra-arg.
      When driver-manager runs with the arguments uninstall_driver now
      Then the exit code is 0
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

  Rule: In a pod the service account is used

    @verified
    Scenario Outline: klog says so, naming its own source line
      Recorded: cli-uninstall-no-kubeconfig.
      When driver-manager runs
      Then standard error has "client_config.go:<line>] Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."

      @until-v0.10.0
      Examples: client-go v0.33
        | line |
        | 667  |

      @since-v0.11.0 @until-v0.11.0
      Examples: client-go v0.35
        | line |
        | 682  |

      @since-v0.12.0
      Examples: client-go v0.36
        | line |
        | 683  |

    @verified
    Scenario: Outside a pod there is no way
      Recorded: cli-uninstall-no-kubeconfig.
      Given the setting KUBERNETES_SERVICE_HOST is ""
      When driver-manager runs
      Then the exit code is 1
      And the log is:
        """
        fatal: failed to create driver manager: failed to create kube client: failed to build kubeconfig: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable
        """
      And the API server is never asked
