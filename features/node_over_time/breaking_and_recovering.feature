@simulated-only-node
Feature: A passthrough node breaks and recovers, as time passes
  vfio-manager's init container is driver-manager; the kubelet starts it again and again. The guide's symptom, its way out,
  and what each half of that way does alone.

  Background:
    Given the cluster "unlabelled-node"
    And the chart's passthrough variant

  Rule: A host with a driver is a crash loop
    S4, S8, S9: the first restart is at once, the five minutes come with the seventh; the device plugin's pod does not crash,
    it waits.

    @since-v0.4.2
    Scenario Outline: Restarts, statuses, the validator's message, nothing to allocate
      Given the host "<host>"
      When the node runs for 19 minutes
      Then driver-manager starts at 0, 60, 130, 210, 310, 450, 670, 1030 seconds
      And the exit code is 1
      And kubectl shows these pods:
        | pod                                    | status                | restarts |
        | nvidia-vfio-manager                    | Init:CrashLoopBackOff | 7        |
        | nvidia-sandbox-validator               | Init:CrashLoopBackOff | 8        |
        | nvidia-sandbox-device-plugin-daemonset | Init:0/2              | 0        |
      And the container "vfio-pci-validation" says Error: error validating vfio-pci driver installation: device not bound to 'vfio-pci'; device: <gpu> driver: 'nvidia'
      And all GPUs are on "nvidia"
      And no GPU can be allocated

      Examples:
        | host                         | gpu          |
        | ubuntu-24.04-driver-580-open | 0000:18:00.0 |
        | runfile-580                  | 0000:18:00.0 |
        | converged-gpu-rdma           | 0000:18:00.0 |

    Scenario: What kubectl shows as the minutes pass
      S4: while driver-manager sleeps its minute the pod is not failing yet; Init:Error stays until the kubelet looks again.
      Given the host "ubuntu-24.04-driver-580-open"
      When the node runs for 6 minutes
      Then over time "nvidia-vfio-manager" is:
        | from | to   | is                      |
        | 0:00 | 1:00 | Init:0/1                |
        | 1:00 | 2:00 | Init:0/1 1              |
        | 2:00 | 2:10 | Init:Error 1            |
        | 2:10 | 3:10 | Init:0/1 2              |
        | 3:10 | 3:20 | Init:Error 2            |
        | 3:20 | 3:30 | Init:CrashLoopBackOff 2 |
        | 3:30 | 4:30 | Init:0/1 3              |
        | 4:30 | 4:40 | Init:Error 3            |
        | 4:40 | 5:10 | Init:CrashLoopBackOff 3 |
        | 5:10 | 6:00 | Init:0/1 4              |

    Scenario: Deleting the pod begins the waits anew
      Given the host "ubuntu-24.04-driver-580-open"
      And after 14 minutes an administrator deletes the pods of "nvidia-vfio-manager"
      When the node runs for 17 minutes
      Then driver-manager starts at 0, 60, 130, 210, 310, 450, 670, 840, 900, 970 seconds

  Rule: A clean host binds at the first start

    @since-v0.4.2
    Scenario: Both GPUs and the resource
      Given the host "clean"
      When the node runs for 5 minutes
      Then driver-manager starts at 0 seconds
      And the exit code is 0
      And kubectl shows these pods:
        | pod                                    | status  | restarts |
        | nvidia-vfio-manager                    | Running | 0        |
        | nvidia-sandbox-validator               | Running | 0        |
        | nvidia-sandbox-device-plugin-daemonset | Running | 0        |
      And all GPUs are on "vfio-pci"
      And 2 of "nvidia.com/GA102GL_A10" can be allocated

  Rule: Purging, blacklisting and rebooting mend it

    @since-v0.4.2
    Scenario: The packaged driver
      Given the host "ubuntu-24.04-driver-580-open"
      And after 20 minutes an administrator purges "nvidia-* libnvidia-*"
      And after 20 minutes an administrator blacklists the driver
      And after 21 minutes an administrator reboots the machine
      When the node runs for 30 minutes
      Then the exit code is 0
      And all GPUs are on "vfio-pci"
      And 2 of "nvidia.com/GA102GL_A10" can be allocated

    Scenario: The .run installer's driver, without a reboot
      nvidia-uninstall unloads the modules too, nvidia_drm among them; what it leaves to do is to wait, or to delete the pods.
      Given the host "runfile-580"
      And after 20 minutes an administrator runs nvidia-uninstall
      And after 20 minutes an administrator deletes the pods of "nvidia-vfio-manager, nvidia-sandbox-validator"
      When the node runs for 25 minutes
      Then the exit code is 0
      And all GPUs are on "vfio-pci"
      And 2 of "nvidia.com/GA102GL_A10" can be allocated

    Scenario: Without deleting anything the longest wait is five minutes
      Given the host "runfile-580"
      And after 19 minutes an administrator runs nvidia-uninstall
      When the node runs for 30 minutes
      Then driver-manager starts at 0, 60, 130, 210, 310, 450, 670, 1030, 1390 seconds
      And the exit code is 0
      And 2 of "nvidia.com/GA102GL_A10" can be allocated

  Rule: Half of the way is not enough

    Scenario: Purged, not rebooted
      The module stays in memory. The host check now says no, and driver-manager fails to unload what nvidia_drm holds.
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator purges "nvidia-* libnvidia-*"
      When the node runs for 25 minutes
      Then the exit code is 1
      And the log says "failed to uninstall nvidia driver components" 1 times
      And all GPUs are on "nvidia"
      And no GPU can be allocated

    Scenario: Rebooted with the DKMS packages left
      H9, H11: nvidia-smi is gone, so nothing is found on the host; the module loads at boot and holds the GPUs.
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator purges "nvidia-driver-* nvidia-utils-* nvidia-compute-utils-* libnvidia-*"
      And after 10 minutes an administrator reboots the machine
      When the node runs for 25 minutes
      Then the exit code is 1
      And the log says nothing of "Host driver detected"
      And all GPUs are on "nvidia"
      And no GPU can be allocated

    Scenario Outline: Blacklisted, not purged
      H10: the host check itself loads the module, which a blacklist does not stop; an install line does.
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator <how> the driver
      And after 10 minutes an administrator reboots the machine
      When the node runs for 25 minutes
      Then the exit code is <code>
      And all GPUs are on "<driver>"

      Examples:
        | how        | code | driver   |
        | blacklists | 1    | nvidia   |
        | forbids    | 0    | vfio-pci |

    Scenario Outline: Bound by hand, with the driver still installed
      Everything is as it should be until the next boot, which gives the GPUs to nvidia.
      Given the host "vfio-bound-driver-installed"
      And after 10 minutes an administrator <how> the driver
      And after 10 minutes an administrator reboots the machine
      When the node runs for 20 minutes
      Then the exit code is <code>
      And all GPUs are on "<driver>"

      Examples:
        | how        | code | driver   |
        | blacklists | 1    | nvidia   |
        | forbids    | 0    | vfio-pci |

    Scenario: Bound by hand, with the driver still installed, and rebooted as it is
      Given the host "vfio-bound-driver-installed"
      And after 10 minutes an administrator reboots the machine
      When the node runs for 20 minutes
      Then all GPUs are on "nvidia"
      And no GPU can be allocated

  Rule: A vfio-manager that runs proves nothing
    S10: failures of single devices are warnings from v0.10.0 on. Only the validator tells.

    @since-v0.10.0 @until-v0.11.0
    Scenario: A root without modprobe
      With v0.12.0 nothing pauses the validator first: it may look before the GPUs are taken from vfio-pci, and is content.
      Given the host "talos-vfio-pci"
      When the node runs for 5 minutes
      Then all GPUs are on no driver
      And no GPU can be allocated
      And the container "vfio-pci-validation" says Error: error validating vfio-pci driver installation: device not bound to 'vfio-pci'; device: 0000:18:00.0 driver: ''
