Feature: How GPU pods are made to go
  By eviction where the API server offers it, all at the same time; each is asked for every second until it is gone.
  DRAIN_TIMEOUT_SECONDS limits that, 0s means no limit. Upstream: kubectl drain/drain.go.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: They are evicted and waited for

    @verified
    Scenario: Several pods
      Recorded: pods-job-sts, pods-slow.
      Given the pods:
        | pod          | owner          | resource       | termination |
        | ml/quick     | Job/quick      | nvidia.com/gpu | 1           |
        | ml/slow      | StatefulSet/db | nvidia.com/gpu | 60          |
      When driver-manager runs
      Then the exit code is 0
      And it takes between 60 and 70 seconds
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        evict ml/quick
        evict ml/slow
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """
      And standard output has "evicting pod ml/slow"
      And the pod "ml/quick" is gone
      And the pod "ml/slow" is gone
      And the node is schedulable

    @quirk @verified
    Scenario: Without a limit a pod that never goes is waited for without end
      Upstream: internal/kubernetes/client.go, the drain's time-out is 0s by default. Recorded: pods-pdb-forever.
      Given the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the node is cordoned
      And the operands stay paused
      And no module is unloaded

    Scenario Outline: A limit
      Recorded: pods-never-timeout, cli-drain-timeout-flag.
      Given the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
      And the setting DRAIN_TIMEOUT_SECONDS is <limit>
      When driver-manager runs
      Then the exit code is 1
      And it takes between <low> and <high> seconds
      And the log says "cannot proceed until all GPU pods are drained from the node" 1 times
      And the node is schedulable
      And no label changes but those that are created empty
      And the pod "default/train" is still there

      @verified
      Examples: recorded
        | limit | low  | high |
        | 6s    | 8    | 11   |

      Examples: not recorded
        | limit | low  | high |
        | 5m    | 302  | 305  |
        | 0.2h  | 722  | 725  |

    @verified
    Scenario: A limit below nothing
      Recorded: pods-negative-timeout.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the setting DRAIN_TIMEOUT_SECONDS is -1s
      When driver-manager runs
      Then the exit code is 1
      And no pod is evicted or deleted

  Rule: A disruption budget is waited for

    @verified
    Scenario Outline: It blocks the first attempts
      Up to v0.10.0 five seconds apart, from v0.11.0 on without a pause. Recorded: pods-pdb-1-two-pods.
      Given the pods:
        | pod           | owner          | resource       | budget |
        | default/train | ReplicaSet/app | nvidia.com/gpu | 3      |
      When driver-manager runs
      Then the exit code is 0
      And 4 POST requests go to "/pods/train/eviction"
      And it takes between <low> and <high> seconds
      And standard error has "error when evicting pods/"train" -n "default" (will retry after <pause>): Cannot evict pod as it would violate the pod's disruption budget."

      @until-v0.10.0
      Examples: every five seconds
        | low | high | pause |
        | 18  | 20   | 5s    |

      @since-v0.11.0
      Examples: at once
        | low | high | pause |
        | 4   | 8    | 0s    |

    @verified
    Scenario: It blocks for ever
      Recorded: pods-pdb-forever.
      Given the pods:
        | pod           | owner          | resource       | budget |
        | default/train | ReplicaSet/app | nvidia.com/gpu | all    |
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the node is cordoned

    @verified
    Scenario: It blocks for ever, with a limit
      Recorded: pods-pdb-forever-8s.
      Given the pods:
        | pod           | owner          | resource       | budget |
        | default/train | ReplicaSet/app | nvidia.com/gpu | all    |
      And the setting DRAIN_TIMEOUT_SECONDS is 8s
      When driver-manager runs
      Then the exit code is 1
      And it takes between 11 and 15 seconds
      And the pod "default/train" is still there

    @verified @since-v0.11.0
    Scenario: From v0.11.0 on the API server is asked as often as the client may
      Five evictions and five reads a second, each from its own bucket. Upstream: pull request #183.
      Recorded: pods-pdb-forever-8s.
      Given the pods:
        | pod           | owner          | resource       | budget |
        | default/train | ReplicaSet/app | nvidia.com/gpu | 100    |
      When driver-manager runs
      Then the exit code is 0
      And 101 POST requests go to "/pods/train/eviction"
      And it takes between 20 and 25 seconds

    Scenario: The other pods go meanwhile
      Given the pods:
        | pod       | owner          | resource       | budget |
        | default/a | ReplicaSet/app | nvidia.com/gpu | all    |
        | default/b | ReplicaSet/app | nvidia.com/gpu |        |
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And the pod "default/b" is gone
      And the pod "default/a" is still there

  Rule: An eviction that is refused ends it, one that came too late does not

    Scenario Outline: The answer to an eviction
      Recorded: pods-evict-403, pods-evict-404, drain-evict-500-then-drain.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the API server answers <status> to POST "/eviction"
      When driver-manager runs
      Then the exit code is <code>
      And 1 POST requests go to "/eviction"

      @verified
      Examples: recorded
        | status  | code |
        | 403     | 1    |
        | 404     | 0    |
        | 500     | 1    |

      Examples: not recorded
        | status  | code |
        | nothing | 1    |

    @verified
    Scenario Outline: The namespace is being deleted
      Recorded: pods-evict-ns-terminating.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the API server answers 403 to POST "/eviction" because of NamespaceTerminating, 2 times
      When driver-manager runs
      Then the exit code is 0
      And 3 POST requests go to "/eviction"
      And it takes between <low> and <high> seconds

      @until-v0.10.0
      Examples: every five seconds
        | low | high |
        | 13  | 15   |

      @since-v0.11.0
      Examples: at once
        | low | high |
        | 3   | 7    |

    @verified
    Scenario: A pod that cannot be asked for any more
      Recorded: pods-get-500.
      Given the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | 5           |
      And the API server answers 500 to GET "/pods/train$"
      When driver-manager runs
      Then the exit code is 1
      And the pod "default/train" is still there

  Rule: Without eviction the pods are deleted, one after the other

    @verified
    Scenario: Their own grace period is kept
      Recorded: pods-no-eviction.
      Given the cluster "no-eviction"
      And the pods:
        | pod       | owner          | resource       | termination |
        | default/a | ReplicaSet/app | nvidia.com/gpu | 20          |
        | default/b | ReplicaSet/app | nvidia.com/gpu | 2           |
      When driver-manager runs
      Then the exit code is 0
      And it takes between 22 and 26 seconds
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        delete default/a
        delete default/b
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """

    @verified
    Scenario: A limit holds here too
      Recorded: pods-no-eviction-never.
      Given the cluster "no-eviction"
      And the pods:
        | pod       | owner          | resource       | termination |
        | default/a | ReplicaSet/app | nvidia.com/gpu | never       |
      And the setting DRAIN_TIMEOUT_SECONDS is 4s
      When driver-manager runs
      Then the exit code is 1
      And it takes between 6 and 10 seconds

    @verified
    Scenario: A refused deletion
      Recorded: pods-no-eviction-403.
      Given the cluster "no-eviction"
      And the pods:
        | pod       | owner          | resource       |
        | default/a | ReplicaSet/app | nvidia.com/gpu |
        | default/b | ReplicaSet/app | nvidia.com/gpu |
      And the API server answers 403 to DELETE "/pods/a"
      When driver-manager runs
      Then the exit code is 1
      And the pod "default/b" is still there
      And 1 DELETE requests go to "/pods/"

  Rule: DRAIN_POD_SELECTOR_LABEL does not matter here

    @quirk @verified
    Scenario: GPU pods go although the selector does not match them
      Upstream: internal/kubernetes/client.go, DeleteOrEvictPods leaves the selector out. Recorded: drain-selector-none.
      Given the pods:
        | pod           | owner          | resource       | app   |
        | default/train | ReplicaSet/app | nvidia.com/gpu | train |
      And the setting DRAIN_POD_SELECTOR_LABEL is app=nothing
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone
