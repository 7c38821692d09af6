Feature: Field reports about a driver on the host
  Reports B01, B02, B03, B04, B06, B08, B10, B15, B76, B78 and B90. Each scenario answers the question that was asked.

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

    @issue-191
    Scenario Outline: Asked before it is tried
      Given the host "ubuntu-24.04-driver-580-open"
      And the cluster "vm-passthrough-node"
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | false   |
        | ENABLE_AUTO_DRAIN       | false   |
        | FORCE_REINSTALL         | <force> |
      When I ask what will happen
      Then the answer says:
        | field                                             | value         |
        | verdict.succeeds                                  | false         |
        | verdict.cause                                     | host-driver   |
        | driver.kind                                       | host          |
        | gpus.gpus.final                                   | nvidia        |
        | labels.labels[nvidia.com/gpu.deploy.driver].after | pre-installed |

      Examples:
        | force |
        | false |
        | true  |

    @issue-191
    Scenario: What has to go for it to work
      Given the host "ubuntu-24.04-driver-580-open"
      And the cluster "vm-passthrough-node"
      When I ask what is left over
      Then the answer says:
        | field         | value                   |
        | findings.kind | host-driver-blocks-vfio |

    @issue-191
    Scenario: Read from its log
      Given the host "ubuntu-24.04-driver-580-open"
      And the cluster "vm-passthrough-node"
      And driver-manager has run
      When I ask what its log means
      Then the answer says:
        | field                                       | value |
        | fits                                        | true  |
        | candidates.exit_code                        | 1     |
        | candidates.decisions[is_host_driver].answer | yes   |

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

    Scenario: What mends the label
      Given the host "talos-vfio-pci"
      And the cluster "vm-passthrough-node"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                  |
        | findings.kind          | pre-installed-without-driver                           |
        | findings.commands.text | kubectl label node gpu-1 nvidia.com/gpu.deploy.driver- |

    Scenario: If the node is moved to containers, will a driver pod come?
      Given the host "clean"
      And the cluster "vm-passthrough-node"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      When I ask what will happen after a mode-switch to container
      Then the answer says:
        | field            | value         |
        | verdict.cause    | no-pod        |
        | driver.label     | pre-installed |
        | driver.scheduled | false         |

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

    Scenario: Will it converge?
      Given the host "vgpu-host"
      And the cluster "vm-vgpu-node"
      When I ask what will happen
      Then the answer says:
        | field                                             | value         |
        | verdict.cause                                     | host-driver   |
        | driver.scheduled                                  | true          |
        | labels.labels[nvidia.com/gpu.deploy.driver].after | pre-installed |

    Scenario: What ends the loop
      Given the host "vgpu-host"
      And the cluster "vm-vgpu-node"
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                                         |
        | findings.kind          | host-driver-blocks-vgpu-manager                                               |
        | findings.commands.text | kubectl label node gpu-1 nvidia.com/gpu.deploy.vgpu-manager=false --overwrite |

  Rule: B04: Is the label pre-installed still true for the host, and what resets it?
    NVIDIA/gpu-operator#398. It is not: nothing on the host answers. Nobody resets it, a person must.

    Scenario: A fresh node that is labelled so
      Given the host "clean"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                                  |
        | findings.kind          | pre-installed-without-driver                                           |
        | findings.commands.text | kubectl label node gpu-1 nvidia.com/gpu.deploy.driver=true --overwrite |

    Scenario: Will a driver pod come by itself?
      Given the host "clean"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      When I ask what will happen
      Then the answer says:
        | field         | value     |
        | verdict.cause | no-pod    |
        | driver.kind   | container |

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

    Scenario Outline: Will the new version come?
      Given the host "<host>"
      When I ask what will happen after an image-bump
      Then the answer says:
        | field              | value       |
        | verdict.cause      | host-driver |
        | driver.kind        | host        |
        | gpus.gpus.after    | nvidia      |
        | modules.tried      | false       |
        | labels.left_paused | none        |

      Examples:
        | host               |
        | sles-15-g06        |
        | rhel-9-nvidia-open |

    Scenario: Once it is labelled there is nothing to mend
      Given the host "sles-15-g06"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      When I ask what is left over
      Then the answer says:
        | field    | value |
        | findings | none  |

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

    @since-v0.10.0
    Scenario Outline: Asked beforehand, by label and by variable
      Given the host "runfile-580"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "<label>"
      And the setting FORCE_REINSTALL is <force>
      When I ask what will happen
      Then the answer says:
        | field         | value   |
        | driver.kind   | host    |
        | modules.tried | false   |
        | verdict.cause | <cause> |

      Examples:
        | label         | force | cause       |
        | true          | false | host-driver |
        | true          | true  | host-driver |
        | pre-installed | true  | no-pod      |

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

    Scenario Outline: The table, asked for instead of tried
      Given the host "<host>"
      When I ask what will happen
      Then the answer says:
        | field            | value      |
        | driver.kind      | <driver>   |
        | verdict.succeeds | <succeeds> |

      Examples:
        | host                         | driver    | succeeds |
        | ubuntu-24.04-driver-580-open | host      | false    |
        | debian-12-driver-535         | host      | false    |
        | clean                        | container | true     |

  Rule: B76: Where does each component look for nvidia-smi?
    harvester/harvester#10599. driver-manager looks in the host's root along the image's PATH, and there alone: what lies in
    the driver container's root is no driver of the host's. Harvester wished for the opposite.

    Scenario: It is in the driver container's root
      Given the host "container-driver-loaded"
      And the program "/run/nvidia/driver/usr/bin/nvidia-smi" on the host prints "580.82.07" and exits 0
      When I ask what will happen
      Then the answer says:
        | field            | value                                 |
        | driver.kind      | container                             |
        | driver.found     | none                                  |
        | driver.elsewhere | /run/nvidia/driver/usr/bin/nvidia-smi |

  Rule: B78: What is waited for where the driver was baked into the image and its module is not loaded?
    cozystack/cozystack#863. For a container's driver: nvidia-smi is found, exits 9, and that is no driver.

    Scenario: nvidia-smi is there, the module is not
      Given the host "kernel-upgraded-without-headers"
      When I ask what will happen
      Then the answer says:
        | field            | value               |
        | driver.kind      | container           |
        | driver.found     | /usr/bin/nvidia-smi |
        | driver.exit_code | 9                   |
        | verdict.succeeds | true                |

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

    Scenario: Could the unload ever succeed?
      Given the host "ubuntu-24.04-driver-580-open"
      And the module "nvidia_drm" is in use
      When I ask what will happen
      Then the answer says:
        | field                              | value       |
        | verdict.cause                      | host-driver |
        | modules.modules[nvidia_drm].listed | false       |
        | modules.modules[nvidia_drm].can_go | false       |
        | modules.can_unload                 | false       |
