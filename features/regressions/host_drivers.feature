Feature: Field reports about a driver on the host
  Reports B01, B02, B03, B06, B08, B10, B15 and B90. Each scenario answers the question that was asked.

  Background:
    Given the cluster "container-node"

  Rule: B01: Will my GPUs end on vfio-pci?
    NVIDIA/k8s-driver-manager#191, cozystack/cozystack#2763. No. The vfio-manager pod fails before it touches them, and
    tries again for ever. FORCE_REINSTALL changes nothing.

    @issue-191
    Scenario Outline: A vm-passthrough node with the distribution's driver
      Given the host "ubuntu-24.04-driver-580-open"
      And the cluster "vm-passthrough-node"
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | false   |
        | ENABLE_AUTO_DRAIN       | false   |
        | FORCE_REINSTALL         | <force> |
      When driver-manager runs
      Then the exit code is 1
      And it takes 60 seconds
      And the log says "driver is pre-installed on host" 1 times
      And all GPUs are on "nvidia"
      And only these labels change:
        | label                        | before | after         |
        | nvidia.com/gpu.deploy.driver | absent | pre-installed |
      And nothing else on the node or host changed

      Examples:
        | force |
        | false |
        | true  |

  Rule: B02: Which labels will still be wrong after I fixed the host?
    cozystack/cozystack#2767. The driver's own: no release takes `pre-installed` back, so a later move to container mode
    gets no driver pod.

    Scenario: The host was cleaned
      Given the host "clean"
      And the cluster "vm-passthrough-node"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And no label changes but those that are created empty

  Rule: B03: Does the pre-installed label stop the pod that runs this container, and will it converge?
    NVIDIA/gpu-operator#1018. No and no: only the driver DaemonSet selects on that label. The vgpu-manager pod stays, and
    each try writes the label again.

    Scenario: A vm-vgpu node whose host has the vGPU driver
      Given the host "vgpu-host"
      And the cluster "vm-vgpu-node"
      And driver-manager has run
      When driver-manager runs
      Then the exit code is 1
      And 1 PATCH requests go to "/nodes/gpu-1"
      And the pod "nvidia-vgpu-manager-daemonset-b6t4n" is still there
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And nothing else on the node or host changed

  Rule: B06, B08: Is a driver DaemonSet without pods a success or a failure, and will a new driver version do anything here?
    NVIDIA/gpu-operator#2150 and #542. It is meant so: the host's driver stays as it is, whatever version is wanted.

    Scenario Outline: A host with a packaged driver
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And the pod "nvidia-driver-daemonset-c6b9x" is gone
      And the pod "nvidia-device-plugin-daemonset-kq5tz" is still there
      And all GPUs are on "nvidia"
      And nothing else on the node or host changed

      Examples:
        | host               |
        | sles-15-g06        |
        | rhel-9-nvidia-open |

  Rule: B10: Does resetting the node label let the container's driver in, or any variable?
    NVIDIA/gpu-operator#476. Neither: nvidia-smi is asked again at every start.

    @since-v0.10.0
    Scenario Outline: By label and by variable
      Given the host "runfile-580"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "<label>"
      And the setting FORCE_REINSTALL is <force>
      When driver-manager runs
      Then the exit code is 1
      And no module is unloaded
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"

      Examples:
        | label         | force |
        | true          | false |
        | true          | true  |
        | pre-installed | true  |

  Rule: B15: Given my node's image, what will happen?
    canonical/data-science-stack#199. A driver of any version is left alone; without one the way is free.

    Scenario Outline: A current driver, an old one, none
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is <code>
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "<label>"

      Examples:
        | host                         | code | label         |
        | ubuntu-24.04-driver-580-open | 1    | pre-installed |
        | debian-12-driver-535         | 1    | pre-installed |
        | clean                        | 0    | true          |

  Rule: B90: On a laptop whose desktop holds the card, could the unload ever succeed?
    NVIDIA/gpu-operator#258, canonical/microk8s#2290. The first release tried. The Go releases give way to the host's
    driver; and if they did not, nvidia_drm would keep it.

    Scenario: It gives way
      Given the host "ubuntu-24.04-driver-580-open"
      And the module "nvidia_drm" is in use
      When driver-manager runs
      Then the exit code is 1
      And no module is unloaded

    @simulated-only-what-if
    Scenario: What if it did not
      Given the host "ubuntu-24.04-driver-580-open"
      And the module "nvidia_drm" is in use
      And the what-if "force-host-driver-unbind"
      And the setting FORCE_HOST_DRIVER_UNBIND is true
      When driver-manager runs
      Then the exit code is 1
      And the modules "nvidia_uvm" are unloaded
      And all GPUs are on "nvidia"
