Feature: Is there a driver on the host?
  driver-manager runs `nvidia-smi` in the host's root, looked up along the container's PATH. Exit code 0 and any output
  at all mean yes.

  Background:
    Given the host "clean"
    And the cluster "container-node"

  Rule: The command is looked up along the container's PATH

    @verified
    Scenario Outline: A place that is looked at
      Given the program "<path>" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Host driver detected: 580.82.07
        """

      Examples:
        | path                       |
        | /usr/local/sbin/nvidia-smi |
        | /usr/local/bin/nvidia-smi  |
        | /usr/sbin/nvidia-smi       |
        | /usr/bin/nvidia-smi        |
        | /sbin/nvidia-smi           |
        | /bin/nvidia-smi            |

    @verified
    Scenario Outline: A place that is not looked at
      Given the program "<path>" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Host driver detected"

      Examples:
        | path                                |
        | /opt/bin/nvidia-smi                 |
        | /home/kubernetes/bin/nvidia/bin/nvidia-smi |
        | /run/current-system/sw/bin/nvidia-smi |
        | /usr/lib/wsl/lib/nvidia-smi         |

    @verified
    Scenario: The first one that can be run decides
      Given the program "/usr/local/bin/nvidia-smi" on the host prints "580.82.07\n" and exits 9
      And the program "/usr/bin/nvidia-smi" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 0

  Rule: Exit code 0 and any output mean yes

    @verified
    Scenario Outline: What it prints and how it exits
      Given the program "/usr/bin/nvidia-smi" on the host prints "<text>" and exits <code>
      When driver-manager runs
      Then the exit code is <result>

      Examples:
        | text                   | code | result |
        | 580.82.07\n            | 0    | 1      |
        | 580.82.07\n580.82.07\n | 0    | 1      |
        | not a version          | 0    | 1      |
        | 580.82.07\n            | 1    | 0      |
        | 580.82.07\n            | 9    | 0      |

    @quirk
    Scenario: An empty line is an answer
      Given the program "/usr/bin/nvidia-smi" on the host prints "\n" and exits 0
      When driver-manager runs
      Then the exit code is 1

    Scenario: No output is none
      Given the program "/usr/bin/nvidia-smi" on the host prints "" and exits 0
      When driver-manager runs
      Then the exit code is 0

  Rule: What keeps the check from running means no

    @verified
    Scenario: An image without chroot
      Given the host "runfile-580"
      And the container has no "chroot"
      And the settings:
        | variable          | value |
        | ENABLE_AUTO_DRAIN | false |
      When driver-manager runs
      Then the log says nothing of "Host driver detected"
      And the exit code is 0
      And no GPU has a driver

    @verified
    Scenario: A pod without /host
      Given there is no /host in the container
      When driver-manager runs
      Then the log says nothing of "Host driver detected"
      And the exit code is 0

  Rule: The node is labelled before the minute, and a failure is not waited for

    @verified @until-v0.9.1
    Scenario: The label cannot be set, one attempt
      Given the host "runfile-580"
      And the API server answers 403 to PATCH "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And 1 PATCH requests go to "/nodes/gpu-1"
      And the log has, in this order:
        """
        fatal: failed to disable containerized driver: failed to update the labels of node gpu-1: injected fault 403
        """
      And nothing else on the node or host changed

    @verified @since-v0.10.0
    Scenario: The label cannot be set
      Given the host "runfile-580"
      And the API server answers 403 to PATCH "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to disable containerized driver: injected fault 403
        """
      And no label changes
      And all GPUs are on "nvidia"
      And nothing else on the node or host changed

    @verified @since-v0.10.0 @until-v0.10.0
    Scenario: It is tried four times within half a second
      Given the host "runfile-580"
      And the API server answers 500 to PATCH "/nodes/" 3 times
      When driver-manager runs
      Then the exit code is 1
      And it takes between 60.2 and 60.5 seconds
      And 4 PATCH requests go to "/nodes/gpu-1"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
