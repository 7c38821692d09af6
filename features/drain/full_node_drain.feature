Feature: The full node drain, the last resort
  With ENABLE_AUTO_DRAIN, on by default, a failed eviction or unloading is followed by a drain of the whole node. It hardly
  ever works: it does not ignore DaemonSets, and its helper has nowhere to write to.
  Upstream: internal/kubernetes/client.go, DrainNode (v0.9.0 to v0.12.0).

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: It comes after a failure only

    @verified
    Scenario: Nothing failed
      Recorded: gates-noauto-evt-drt-idle, gates-noauto-evt-drt-gpupod.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
        | default/web   | ReplicaSet/web |                |
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Attempting node drain"
      And the log says nothing of "attempting again with node drain"
      And the pod "default/web" is still there

    @verified
    Scenario: After GPU pods that cannot go
      Recorded: drain-unmanaged, drain-selector-none.
      Given the pods:
        | pod           | owner | resource       | app   |
        | default/train | none  | nvidia.com/gpu | train |
      And the setting DRAIN_POD_SELECTOR_LABEL is app=nothing
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        error: Cannot delete all GPU pods
        info: Failed to drain node of GPU pods
        info: Attempting node drain
        info: Draining node gpu-1
        info: Cleaning up NVIDIA driver
        info: Driver uninstallation completed successfully
        """
      And the pod "default/train" is still there
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario: After a module that is in use
      Recorded: drain-busy-then-ok.
      Given unloading "nvidia" fails with EBUSY the first time
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        warning: Failed to unload kernel module nvidia: device or resource busy
        info: Unable to cleanup driver modules, attempting again with node drain...
        info: Draining node gpu-1
        info: Cleaning up NVIDIA driver
        info: Successfully uninstalled nvidia driver components
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver

    @verified
    Scenario: After a root that cannot be unmounted
      Recorded: drain-umount-busy2.
      Given unmounting "/run/nvidia/driver" fails with EPERM
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Unable to cleanup driver modules, attempting again with node drain...
        info: Draining node gpu-1
        fatal: failed to cleanup NVIDIA driver: failed to unmount rootfs: failed to recursively unmount /run/nvidia/driver: umount /run/nvidia/driver, flags: 0x2: operation not permitted
        """

    @quirk @verified
    Scenario: With eviction off the node is drained without being cordoned
      Upstream: cmd/driver-manager/main.go, uninstallDriver cordons for eviction only. Recorded: drain-busy-evict-off.
      Given unloading "nvidia" fails with EBUSY the first time
      And the setting ENABLE_GPU_POD_EVICTION is false
      When driver-manager runs
      Then the exit code is 0
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia: EBUSY
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        patch labels
        """

    Scenario Outline: After the drain that follows a failed eviction the driver is unloaded once or twice
      Up to v0.11.0 it is unloaded at once and, if a module is left, again. Upstream: pull request #219.
      Given the pods:
        | pod           | owner | resource       | app   |
        | default/train | none  | nvidia.com/gpu | train |
      And the setting DRAIN_POD_SELECTOR_LABEL is app=nothing
      When driver-manager runs
      Then the log says "Successfully uninstalled nvidia driver components" <times> times
      And the log says "Cleaning up NVIDIA driver" 1 times

      @until-v0.11.0
      Examples: before the flow goes on
        | times |
        | 0     |

      @since-v0.12.0
      Examples: in the flow
        | times |
        | 1     |

  Rule: A DaemonSet's pod makes it fail, so on a real node it always does

    @quirk @verified
    Scenario: The driver's own DaemonSet is enough
      Upstream: internal/kubernetes/client.go, DrainNode leaves IgnoreAllDaemonSets unset. Recorded: drain-busy-ds-pod.
      Given the cluster "container-node"
      And the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Unable to cleanup driver modules, attempting again with node drain...
        info: Draining node gpu-1
        info: Performing cleanup on failure
        info: Uncordoning node gpu-1
        fatal: failed to drain node: cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): gpu-operator/nvidia-driver-daemonset-c6b9x
        """
      And no pod is evicted or deleted
      And the modules "nvidia_modeset" are unloaded
      And no label changes but those that are created empty
      And the node is schedulable
      And the paused operands' pods are gone
      And nothing else on the node or host changed

    @quirk
    Scenario Outline: Force does not help
      Upstream: kubectl drain/filters.go, daemonSetFilter.
      Given the cluster "container-node"
      And the module "nvidia_uvm" is in use
      And the setting <variable> is true
      When driver-manager runs
      Then the exit code is 1
      And no pod is evicted or deleted

      Examples:
        | variable                   |
        | DRAIN_USE_FORCE            |
        | DRAIN_DELETE_EMPTYDIR_DATA |

    @verified
    Scenario: A selector that leaves it out
      Recorded: drain-selector-none.
      Given the cluster "container-node"
      And unloading "nvidia" fails with EBUSY the first time
      And the setting DRAIN_POD_SELECTOR_LABEL is gpu=drain
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver

  Rule: Its helper has no writers, so the first thing it has to say is a panic
    Upstream: internal/kubernetes/client.go, DrainNode leaves Out and ErrOut nil; kubectl drain/drain.go writes to them.

    @quirk @verified
    Scenario: The first pod to be evicted
      Recorded: drain-list-fails-rspod.
      Given the pods:
        | pod         | owner          |
        | default/web | ReplicaSet/web |
      And the module "nvidia_uvm" is in use
      When driver-manager runs
      Then it panics
      And standard error has "panic: runtime error: invalid memory address or nil pointer dereference"
      And the log says nothing of "Performing cleanup on failure"
      And no pod is evicted or deleted
      And the pod "default/web" is still there
      And the node is cordoned
      And the operands stay paused
      And the modules "nvidia_modeset" are unloaded
      And only the host check is run as a child process
      And nothing else on the node or host changed

    @quirk
    Scenario Outline: A warning about what force makes go
      Recorded: drain-unmanaged-force, drain-ds-orphan-force.
      Given the pods:
        | pod         | owner   | emptyDir |
        | default/web | <owner> | <data>   |
      And the module "nvidia_uvm" is in use
      And the settings:
        | variable                   | value    |
        | DRAIN_USE_FORCE            | <force>  |
        | DRAIN_DELETE_EMPTYDIR_DATA | <delete> |
      When driver-manager runs
      Then it panics
      And the node is cordoned
      And the operands stay paused

      @verified
      Examples: recorded
        | owner                 | data | force | delete |
        | none                  |      | true  | false  |
        | DaemonSet/gone (gone) |      | true  | false  |

      Examples: not recorded
        | owner                 | data | force | delete |
        | ReplicaSet/web        | yes  | false | true   |

    @quirk @verified
    Scenario: A GPU pod whose eviction failed before
      Recorded: drain-evict-500-then-drain.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the API server answers 500 to POST "/eviction", 1 times
      When driver-manager runs
      Then it panics
      And 1 POST requests go to "/eviction"
      And no module is unloaded

    @quirk
    Scenario: A panic of the eviction itself: the list of pods fails the second time
      Upstream: internal/kubernetes/client.go, nvDrain uses a nil list; kubectl drain/drain.go, GetPodsForDeletion.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the API server answers 500 to GET "^/api/v1/pods$", 1 times, after the first 1
      When driver-manager runs
      Then it panics
      And no pod is evicted or deleted
      And the node is cordoned
      And the operands stay paused
      And nothing else on the node or host changed

    @quirk
    Scenario: The next run repairs what a panic left
      Upstream: internal/kubernetes/client.go, DrainNode.
      Given the pods:
        | pod         | owner          |
        | default/web | ReplicaSet/web |
      And unloading "nvidia" fails with EBUSY the first time
      And driver-manager has run
      When driver-manager runs
      Then it panics
      And the operands stay paused

  Rule: Without the eviction subresource it says nothing, and works

    @quirk @verified
    Scenario: Pods are deleted with no grace at all
      Upstream: internal/kubernetes/client.go, DrainNode leaves the grace period 0. Recorded: drain-delete-path-managed.
      Given the cluster "no-eviction"
      And the pods:
        | pod         | owner          | termination |
        | default/web | ReplicaSet/web | 30          |
        | apps/api    | ReplicaSet/api | never       |
      And unloading "nvidia" fails with EBUSY the first time
      When driver-manager runs
      Then the exit code is 0
      And it takes between 2 and 8 seconds
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia: EBUSY
        delete default/web with grace 0
        delete apps/api with grace 0
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """
      And the pod "default/web" is gone
      And the pod "apps/api" is gone

    @verified
    Scenario: A refused deletion
      Recorded: drain-delete-path-403.
      Given the cluster "no-eviction"
      And the pods:
        | pod         | owner          |
        | default/web | ReplicaSet/web |
      And unloading "nvidia" fails with EBUSY
      And the API server answers 403 to DELETE "/pods/"
      When driver-manager runs
      Then the exit code is 1
      And the log says "failed to drain node: injected fault 403" 1 times
      And the node is schedulable
      And no label changes but those that are created empty

  Rule: What keeps it from draining fails the run, after a clean-up

    Scenario Outline: Pods that cannot go
      Recorded: drain-unmanaged, rnd-020.
      Given the pods:
        | pod         | owner   | emptyDir |
        | default/web | <owner> | <data>   |
      And the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Performing cleanup on failure
        fatal: failed to drain node: cannot delete <reason>: default/web
        """
      And the node is schedulable

      @verified
      Examples: recorded
        | owner          | data | reason                                                           |
        | ReplicaSet/web | yes  | Pods with local storage (use --delete-emptydir-data to override) |

      @verified @until-v0.11.0
      Examples: recorded, worded twice
        | owner | data | reason                                                                  |
        | none  |      | cannot delete Pods that declare no controller (use --force to override) |

      @verified @since-v0.12.0
      Examples: recorded, worded once
        | owner | data | reason                                                    |
        | none  |      | Pods that declare no controller (use --force to override) |

      Examples: not recorded
        | owner                 | data | reason                           |
        | DaemonSet/gone (gone) |      | daemonsets.apps "gone" not found |

    @verified
    Scenario: A selector that cannot be read
      Recorded: drain-selector-bad.
      Given the setting DRAIN_POD_SELECTOR_LABEL is app in (a
      And the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to drain node: unable to parse requirement: found '', expected: ',' or ')'
        """

    @verified
    Scenario: The list of pods
      Recorded: drain-list-fails.
      Given the API server answers 500 to GET "^/api/v1/pods$"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Failed to drain node of GPU pods
        info: Attempting node drain
        fatal: failed to drain node: injected fault 500
        """

    @verified
    Scenario: Mirror pods and finished pods are no hindrance
      Recorded: drain-busy-then-ok.
      Given the pods:
        | pod            | owner      | annotation                  |
        | default/static | Node/gpu-1 | kubernetes.io/config.mirror |
      And unloading "nvidia" fails with EBUSY the first time
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/static" is still there

  Rule: A drained node whose module is still in use fails the run

    @verified
    Scenario: The second attempt fails too
      Recorded: drain-busy-empty, gates-noauto-evt-drt-busy.
      Given the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm: EAGAIN
        unload nvidia: EAGAIN
        unload nvidia_uvm: EAGAIN
        unload nvidia: EAGAIN
        uncordon
        patch labels
        """
      And the log says "Performing cleanup on failure" 1 times

  Rule: It may be switched off, and the upgrade policy switches it off

    @verified
    Scenario: ENABLE_AUTO_DRAIN=false
      Recorded: mod-busy-all.
      Given the module "nvidia_uvm" is in use
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And the log says nothing of "attempting again with node drain"

    @verified
    Scenario Outline: The upgrade annotation
      Recorded: rnd-002.
      Given the module "nvidia_uvm" is in use
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: <said>
        error: Failed to uninstall nvidia driver components
        """
      And the log says nothing of "attempting again with node drain"

      @until-v0.10.0
      Examples: until v0.10.0
        | said                                                        |
        | Auto drain of the node is disabled by the upgrade policy |

      @since-v0.11.0
      Examples: since v0.11.0
        | said |
        | Auto drain by driver-manager has been superseded by the GPU Operator's upgrade policy. The GPU Operator will perform the GPU node drain instead |
