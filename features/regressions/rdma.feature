Feature: Field reports about RDMA
  Reports B33, B35, B37 and B40. Each scenario answers the question that was asked.

  Background:
    Given the host "converged-gpu-rdma-cleaned"
    And the cluster "container-node"
    And the setting GPU_DIRECT_RDMA_ENABLED is true

  Rule: B33: MOFED is on the host, yet the run waits. Why, what state is my node in, and which version fixes it?
    NVIDIA/k8s-driver-manager#123. v0.9.0 looked for the MOFED container's sign instead of the host's module. Meanwhile
    operands are paused and the node is cordoned. v0.9.1 mends it.

    @issue-123 @until-v0.9.0
    Scenario: v0.9.0
      Given the setting USE_HOST_MOFED is true
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the node is cordoned
      And the operands stay paused

    @issue-123 @since-v0.9.1
    Scenario: v0.9.1 and later
      Given the setting USE_HOST_MOFED is true
      When driver-manager runs
      Then the exit code is 0
      And the node is schedulable
      And no label changes but those that are created empty

    @issue-123
    Scenario Outline: Will it end?
      Given the setting USE_HOST_MOFED is true
      When I ask what will happen
      Then the answer says:
        | field           | value   |
        | verdict.cause   | <cause> |
        | cordon.after    | <after> |
        | timing.finished | <ends>  |

      @until-v0.9.0
      Examples: v0.9.0
        | cause         | after | ends  |
        | still-running | true  | false |

      @since-v0.9.1
      Examples: mended
        | cause | after | ends |
        | none  | false | true |

    @issue-123
    Scenario Outline: Asked of the node that waits
      Given the setting USE_HOST_MOFED is true
      When I ask what is left over
      Then the answer says:
        | field         | value  |
        | findings.kind | <kind> |

      @until-v0.9.0
      Examples: the wrong sign
        | kind            |
        | waits-for-mofed |

      @since-v0.9.1
      Examples: nothing to wait for
        | kind |
        | none |

    @issue-123
    Scenario: Why it waits, from the end of a log
      When I ask for the meaning of these lines:
        """
        time=2026-01-01T00:10:00Z level=info msg=Waiting for MOFED to be installed...
        time=2026-01-01T00:10:05Z level=info msg=Waiting for MOFED to be installed...
        """
      Then the answer says:
        | field                | value                 |
        | fits                 | true                  |
        | from_beginning       | false                 |
        | candidates.exit_code | none                  |
        | candidates.doing     | wait_for_mofed_driver |

  Rule: B35: What is it waiting for, and does it end alone?
    NVIDIA/gpu-operator#448. For the file that the MOFED container writes when it is ready. It ends alone.

    @since-v0.9.1
    Scenario: The network operator is hours late
      Given after 7200 seconds the file "/run/mellanox/drivers/.driver-ready" appears
      When driver-manager runs
      Then the exit code is 0
      And it takes between 7200 and 7206 seconds
      And the node is schedulable
      And no label changes but those that are created empty

    @since-v0.9.1
    Scenario: Asked while it waits
      Given the setting USE_HOST_MOFED is false
      When I ask what is left over
      Then the answer says:
        | field         | value           |
        | findings.kind | waits-for-mofed |

    Scenario Outline: Will it end alone?
      Given the setting USE_HOST_MOFED is false
      When I ask what will happen
      Then the answer says:
        | field         | value         |
        | verdict.cause | still-running |
        | timing.worst  | none          |
        | cordon.after  | <cordoned>    |

      @since-v0.9.1 @until-v0.11.0
      Examples: cordoned meanwhile
        | cordoned |
        | true     |

      @since-v0.12.0
      Examples: left alone meanwhile, as no driver is loaded
        | cordoned |
        | false    |

  Rule: B37: The same message comes from two components: which of them cannot unload?
    NVIDIA/gpu-driver-container#869. Not driver-manager: gdrdrv and nvidia_peermem are in its list. The driver container's own
    script lacks them, and fails at a restart of its own, without the init container.

    Scenario: GDRCopy's module holds nvidia
      Given the host "container-driver-loaded"
      And the module "gdrdrv" is loaded and holds "nvidia"
      And the module "nvidia_peermem" is loaded and holds "nvidia"
      When I ask what will happen
      Then the answer says:
        | field                                  | value    |
        | verdict.succeeds                       | true     |
        | modules.modules[gdrdrv].result         | unloaded |
        | modules.modules[nvidia_peermem].result | unloaded |

  Rule: B40: Will this restart take the fast path, and who uncordons?
    NVIDIA/gpu-operator#2619. Yes, the digest is the same: nvidia_peermem stays loaded with the driver, MOFED is not waited
    for, and nobody uncordons: that is left to whoever cordoned.

    @since-v0.10.0
    Scenario: The driver pod restarts during the operator's own upgrade flow
      Given the host "container-driver-loaded"
      And the module "nvidia_peermem" is loaded and holds "nvidia"
      And a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 0
      And the log says "skipping the uninstallation of the driver" 1 times
      And no module is unloaded
      And the node is cordoned
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And the paused operands' pods are gone
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @since-v0.10.0
    Scenario: Will it take the fast path?
      Given the host "container-driver-loaded"
      And the module "nvidia_peermem" is loaded and holds "nvidia"
      And a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And somebody has cordoned the node
      When I ask what will happen
      Then the answer says:
        | field             | value       |
        | verdict.path      | kept-driver |
        | modules.tried     | false       |
        | cordon.uncordoned | false       |
        | cordon.after      | true        |

    @since-v0.10.0
    Scenario: Who uncordons?
      Given the host "container-driver-loaded"
      And the node has the label "nvidia.com/gpu-driver-upgrade-state" with the value "validation-required"
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And somebody has cordoned the node
      When I ask what is left over
      Then the answer says:
        | field         | value                        |
        | findings.kind | cordon-of-upgrade-controller |

    @since-v0.10.0
    Scenario: Read from its log
      Given the host "container-driver-loaded"
      And the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And driver-manager has run
      When I ask what its log means
      Then the answer says:
        | field                                              | value |
        | fits                                               | true  |
        | candidates.decisions[should_skip_uninstall].answer | yes   |
