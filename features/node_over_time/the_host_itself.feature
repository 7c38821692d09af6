@simulated-only-node
Feature: What a host's administrator does to it, and what comes back
  Packages, modules, modprobe's configuration and initramfs outlive a reboot each in its own way. All of it is seen on a
  passthrough node, where the GPUs must end on vfio-pci.

  Background:
    Given the cluster "unlabelled-node"
    And the chart's passthrough variant

  Rule: Converged hosts: the list is reviewed, not a pattern
    H7, H8: RDMA, platform and driver share a prefix, and hang together by dependencies and marks.

    Scenario: Purging by prefix and cleaning up after it takes RDMA away
      The site's meta package needs the driver, so it goes too; with it goes the only reason for RDMA to be there.
      Given the host "converged-gpu-rdma"
      And after 10 minutes an administrator purges "nvidia-* libnvidia-*"
      And after 10 minutes an administrator runs autoremove
      And after 11 minutes an administrator reboots the machine
      When the node runs for 30 minutes
      Then all GPUs are on "vfio-pci"
      And the packages "doca-ofed rdma-core libibverbs1 mlnx-ofed-kernel-dkms ucx nvidia-mlnx-config nvidia-mlnx-ofed-misc site-gpu-rdma-stack" are not installed

    Scenario: It is marks that protect it, not names
      Given the host "converged-gpu-rdma"
      And after 10 minutes an administrator marks "doca-ofed" as asked for
      And after 10 minutes an administrator purges "nvidia-* libnvidia-*"
      And after 10 minutes an administrator runs autoremove
      When the node runs for 15 minutes
      Then the packages "doca-ofed rdma-core libibverbs1 mlnx-ofed-kernel-dkms ucx" are installed
      And the packages "nvidia-mlnx-config nvidia-mlnx-ofed-misc" are not installed

    Scenario: The reviewed list frees the GPUs and keeps RDMA
      Given the host "converged-gpu-rdma"
      And after 10 minutes an administrator carries out the plan of dmsim
      And after 15 minutes an administrator runs autoremove
      When the node runs for 30 minutes
      Then the exit code is 0
      And all GPUs are on "vfio-pci"
      And the packages "doca-ofed rdma-core libibverbs1 mlnx-ofed-kernel-dkms ucx nvidia-mlnx-config nvidia-mlnx-ofed-misc gdrdrv-dkms nvidia-fs" are installed
      And the packages "nvidia-driver-580-open nvidia-dkms-580-open nvidia-dkms-580 nvidia-utils-580 libnvidia-compute-580" are not installed

    Scenario: A purge of the guide's two names installs a driver
      H6: nvidia-peermem-loader needs one flavour of the module or the other, and apt gives it the other.
      Given the host "converged-gpu-rdma"
      And after 10 minutes an administrator purges "nvidia-driver-580-open nvidia-dkms-580-open"
      And after 11 minutes an administrator reboots the machine
      When the node runs for 30 minutes
      Then the packages "nvidia-dkms-580 nvidia-kernel-source-580 nvidia-peermem-loader" are installed
      And the packages "nvidia-dkms-580-open site-gpu-rdma-stack" are not installed
      And all GPUs are on "nvidia"

  Rule: The guide's two names are not the driver
    H5: nvidia-utils stays, and with it what the host check asks.

    Scenario: The host check still finds it; the GPUs are free, and nobody takes them
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator purges "nvidia-driver-580-open nvidia-dkms-580-open"
      And after 10 minutes an administrator blacklists the driver
      And after 11 minutes an administrator reboots the machine
      When the node runs for 30 minutes
      Then the exit code is 0
      And the packages "nvidia-utils-580 nvidia-kernel-common-580" are installed
      And all GPUs are on "vfio-pci"

  Rule: A module that DKMS builds comes back with the next kernel
    H9: not with the next reboot; the module that is on the disk already is what that loads.

    Scenario Outline: A tree that is left over, with no package left
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator purges "nvidia-* libnvidia-*"
      And after 10 minutes an administrator writes "PACKAGE_NAME=nvidia" into /var/lib/dkms/nvidia/580.82.07/source/dkms.conf
      And after 11 minutes an administrator reboots the machine into kernel <kernel>
      When the node runs for 25 minutes
      Then the exit code is <code>
      And the log says nothing of "Host driver detected"
      And all GPUs are on "<driver>"

      Examples:
        | kernel            | code | driver   |
        | 6.8.0-79-generic  | 0    | vfio-pci |
        | 6.8.0-100-generic | 1    | nvidia   |

    Scenario: Without DKMS the new kernel has no driver, though everything else of it is still installed
      Given the host "runfile-580"
      And after 10 minutes an administrator reboots the machine into kernel 6.8.0-100-generic
      When the node runs for 25 minutes
      Then the exit code is 0
      And all GPUs are on "vfio-pci"

    Scenario: The old kernel still has it
      Given the host "runfile-580"
      And after 10 minutes an administrator reboots the machine into kernel 6.8.0-100-generic
      And after 20 minutes an administrator reboots the machine into kernel 6.8.0-79-generic
      When the node runs for 40 minutes
      Then the exit code is 1
      And all GPUs are on "nvidia"

  Rule: Each kernel's initramfs is as old as it is
    H12: -u renews the newest kernel's.

    Scenario: A blacklist that is not in the initramfs
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator forbids the driver but not in the initramfs
      And after 11 minutes an administrator reboots the machine
      When the node runs for 25 minutes
      Then the exit code is 1
      And all GPUs are on "nvidia"

    Scenario: Purged, but for the package whose removal renews it
      Nothing of the driver is on the disk any more, and it is loaded all the same.
      Given the host "ubuntu-24.04-driver-580-open"
      And after 10 minutes an administrator purges "nvidia-driver-* nvidia-dkms-* nvidia-utils-* nvidia-compute-utils-* libnvidia-*"
      And after 10 minutes an administrator blacklists the driver but not in the initramfs
      And after 11 minutes an administrator reboots the machine
      When the node runs for 25 minutes
      Then the exit code is 1
      And the log says nothing of "Host driver detected"
      And all GPUs are on "nvidia"

    Scenario: A module that the initramfs was told to hold is loaded past every blacklist
      nvidia-uninstall does not renew it. Without nvidia_drm driver-manager gets rid of it, as of a container's driver.
      Given the host "runfile-580"
      And the file "/etc/initramfs-tools/modules" holds "nvidia"
      And after 10 minutes an administrator runs nvidia-uninstall
      And after 10 minutes an administrator blacklists the driver but not in the initramfs
      And after 11 minutes an administrator reboots the machine
      When the node runs for 30 minutes
      Then the exit code is 0
      And the log says "Successfully uninstalled nvidia driver components" 1 times
      And all GPUs are on "vfio-pci"

    Scenario Outline: Another kernel than the newest is booted
      The package's own removal renews the newest kernel's only, as -u without -k does.
      Given the host "ubuntu-24.04-driver-580-open"
      And the file "/boot/initrd.img-6.8.0-100-generic" holds "x"
      And after 10 minutes an administrator purges "nvidia-* libnvidia-*"
      And after 10 minutes an administrator renews <which> initramfs
      And after 11 minutes an administrator reboots the machine
      When the node runs for 25 minutes
      Then the exit code is <code>
      And all GPUs are on "<driver>"

      Examples:
        | which      | code | driver   |
        | the newest | 1    | nvidia   |
        | every      | 0    | vfio-pci |

  Rule: What the blacklist does not stop
    H10: a module that something else loads by name.

    Scenario Outline: The host check, with nvidia-smi and the module left
      Given the host "half-purged-blacklisted"
      And after 10 minutes an administrator <how> the driver
      And after 11 minutes an administrator reboots the machine
      When the node runs for 30 minutes
      Then all GPUs are on "<driver>"

      Examples:
        | how        | driver   |
        | blacklists | nvidia   |
        | forbids    | vfio-pci |

  Rule: Talos is not affected as long as its image has no driver in it
    H18, S20: the extensions bring nvidia-smi, and the host check finds it.

    Scenario Outline: With and without NVIDIA's extensions
      Given the host "<host>"
      When the node runs for 5 minutes
      Then the log says "<said>" 1 times
      And no GPU can be allocated

      Examples:
        | host                          | said                                              |
        | talos-nvidia-extensions       | Host driver detected                              |
        | talos-modules-extension-only  | failed to uninstall nvidia driver components      |
