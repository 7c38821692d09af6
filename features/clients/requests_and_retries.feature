Feature: How the API server is asked
  client-go limits itself to five requests a second after a burst of ten, repeats what got lost, and waits where the server
  says so. Label patches have retries of their own. Upstream: client-go rest/request.go and rest/with_retry.go.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: Five requests a second after a burst of ten

    @verified @until-v0.11.0
    Scenario: An ordinary run takes three seconds, nothing else to wait for
      Recorded: gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the exit code is 0
      And it takes between 2.8 and 3.4 seconds

    @verified @since-v0.12.0
    Scenario: Seven more requests take longer
      Recorded: gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the exit code is 0
      And it takes between 4.4 and 5 seconds

  Rule: What the server asks to wait for is waited for, unseen

    Scenario Outline: Retry-After
      Recorded: api-get-429.
      Given the API server answers <status> to <method> "<path>" with Retry-After <seconds>, 2 times
      And the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And it takes between <low> and <high> seconds
      And the log says nothing of "retrying"

      @verified
      Examples: recorded
        | status | method | path      | seconds | low | high |
        | 429    | GET    | /nodes/   | 30      | 60  | 67   |

      Examples: not recorded
        | status | method | path      | seconds | low | high |
        | 503    | GET    | /nodes/   | 30      | 60  | 67   |
        | 429    | PATCH  | /nodes/   | 30      | 60  | 67   |
        | 503    | POST   | /eviction | 30      | 60  | 67   |

    Scenario Outline: Without it an error is an error
      Given the API server answers <status> to GET "/nodes/", 1 times
      When driver-manager runs
      Then the exit code is 1

      Examples:
        | status |
        | 429    |
        | 503    |

    Scenario: Ten times at most
      Given the API server answers 503 to GET "/nodes/" with Retry-After 1
      When driver-manager runs
      Then the exit code is 1
      And 11 GET requests go to "/nodes/gpu-1"

  Rule: A GET that gets lost is repeated, nothing else

    @verified
    Scenario: Once, on a new connection
      Recorded: api-get-drop.
      Given the API server answers nothing to GET "/nodes/", 1 times
      When driver-manager runs
      Then the exit code is 0
      And it takes between 3.8 and 7 seconds

    @verified
    Scenario: For ever
      Recorded: api-get-drop-ever.
      Given the API server answers nothing to GET "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And it takes 10 seconds
      And 11 GET requests go to "/nodes/gpu-1"

    @verified
    Scenario: On a kept connection it is repeated at once
      Recorded: wait-list-drop.
      Given the API server answers nothing to GET "/namespaces/gpu-operator/pods", 1 times
      When driver-manager runs
      Then the exit code is 0
      And it takes between 2.8 and 5 seconds

    Scenario: A cordon that gets lost
      Given the API server answers nothing to PATCH "/nodes/" with "unschedulable" in it
      When driver-manager runs
      Then the exit code is 1
      And the log says "failed to cordon node: cordon error: Patch " 1 times
      And the operands stay paused

    Scenario: Nothing listens
      Given the cluster "unreachable"
      When driver-manager runs
      Then the exit code is 1
      And it takes 0 seconds
      And the log says "failed to get node gpu-1: Get "https://10.96.0.1:443/api/v1/nodes/gpu-1": dial tcp 10.96.0.1:443: connect: connection refused" 1 times

  Rule: A label patch has retries of its own, whatever the error

    @verified
    Scenario Outline: It succeeds after some failures
      Recorded: hostdrv-patch-500x1, hostdrv-patch-500x3, hostdrv-patch-500x4, hostdrv-patch-500x5, hostdrv-patch-500x6, hostdrv-patch-dropx2, hostdrv-patch-403.
      Given the host "runfile-580"
      And the API server answers <status> to PATCH "/nodes/", <failures> times
      When driver-manager runs
      Then it takes between <low> and <high> seconds
      And <requests> PATCH requests go to "/nodes/gpu-1"
      And the log says "<fatal>" 1 times

      @until-v0.9.1
      Examples: one attempt
        | status  | failures | requests | low | high | fatal                                                                                 |
        | 500     | 1        | 1        | 0   | 0.1  | failed to disable containerized driver: failed to update the labels of node gpu-1: injected fault 500 |

      @since-v0.10.0 @until-v0.10.0
      Examples: four attempts within a third of a second
        | status  | failures | requests | low  | high | fatal                                                      |
        | 500     | 1        | 2        | 60   | 60.1 | driver is pre-installed on host                            |
        | 500     | 3        | 4        | 60.3 | 60.4 | driver is pre-installed on host                            |
        | nothing | 2        | 3        | 60   | 60.1 | driver is pre-installed on host                            |
        | 500     | 4        | 4        | 0.3  | 0.4  | failed to disable containerized driver: injected fault 500 |

      @since-v0.11.0
      Examples: seven attempts over a minute
        | status  | failures | requests | low | high | fatal                                                      |
        | 500     | 1        | 2        | 61  | 61.3 | driver is pre-installed on host                            |
        | 500     | 3        | 4        | 67  | 68.5 | driver is pre-installed on host                            |
        | nothing | 2        | 3        | 63  | 63.7 | driver is pre-installed on host                            |
        | 500     | 6        | 7        | 123 | 136  | driver is pre-installed on host                            |
        | 403     | 7        | 7        | 63  | 76   | failed to disable containerized driver: injected fault 403 |

    @verified @since-v0.10.0
    Scenario: Each failure is warned about
      Recorded: api-pause-500x2.
      Given the API server answers 500 to PATCH "/nodes/" with "labels" in it, 2 times
      When driver-manager runs
      Then the exit code is 0
      And the log says "Failed to update labels on node gpu-1, retrying: injected fault 500" 2 times

    @verified
    Scenario: A cordon has none
      Recorded: api-cordon-patch-500.
      Given the API server answers 500 to PATCH "/nodes/" with "unschedulable" in it, 1 times
      When driver-manager runs
      Then the exit code is 1
      And 2 PATCH requests go to "/nodes/gpu-1"

  Rule: Operands that cannot be restored

    @verified
    Scenario Outline: A warning up to v0.10.0, an error from v0.11.0 on
      Recorded: api-resched-403, skip-resched-403.
      Given the API server answers 403 to PATCH "/nodes/" with "labels" in it, after the first 1
      When driver-manager runs
      Then the exit code is <code>
      And the log says "<text>" 1 times
      And the operands stay paused
      And the node is schedulable
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

      @until-v0.9.1
      Examples: one attempt
        | code | text                                                                                                  |
        | 0    | Failed to reschedule GPU operator components: failed to update the labels of node gpu-1: injected fault 403 |

      @since-v0.10.0 @until-v0.10.0
      Examples: a warning
        | code | text                                                             |
        | 0    | Failed to reschedule GPU operator components: injected fault 403 |

      @since-v0.11.0
      Examples: an error
        | code | text                                                             |
        | 1    | failed to reschedule GPU operator components: injected fault 403 |

    @verified @since-v0.11.0
    Scenario: A minute without an API server is bridged
      Recorded: skip-resched-500x1, hostdrv-patch-500x6.
      Given the API server answers 500 to PATCH "/nodes/" with "labels" in it, 6 times, after the first 1
      When driver-manager runs
      Then the exit code is 0
      And it takes between 66 and 85 seconds
      And no label changes but those that are created empty

  Rule: Long lists come in pages

    @verified
    Scenario: GPU pods of several pages
      Recorded: pods-paged.
      Given the cluster "paged"
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/a" is gone
      And the pod "ml/e" is gone
      And 5 POST requests go to "/eviction"

  Rule: Any API version of eviction will do

    @verified
    Scenario: policy/v1beta1
      Recorded: pods-v1beta1.
      Given the cluster "old-eviction"
      And the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone
      And 1 POST requests go to "/pods/train/eviction"
