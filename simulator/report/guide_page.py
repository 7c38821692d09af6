"""`docs/guide-versus-sources.md`: what the guide on passthrough with a preinstalled driver says, and what is true.

A row for each statement that a source or an experiment corrects or narrows, with the scenario or test that holds the truth.
`python -m simulator.report.guide_page` prints the page. S and H number the traps found in the guides: S by reading the
programs' sources, H by experiments on hosts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from simulator.node.guide import listed

ALL: Final = "all"
GO: Final = "v0.9.0 on"
HOSTS: Final = "any"
"""The release does not matter: it is about the host."""

BREAKING: Final = "features/node_over_time/breaking_and_recovering.feature"
ITSELF: Final = "features/node_over_time/the_host_itself.feature"
LABEL: Final = "features/node_over_time/the_left_over_label.feature"
ALONE: Final = "features/node_over_time/what_is_left_alone.feature"
KINDS: Final = "features/host_detection/host_kinds.feature"
WHERE: Final = "features/host_detection/where_nvidia_smi_is.feature"
MAIN: Final = "driver-manager cmd/driver-manager/main.go"


@dataclass(frozen=True, slots=True)
class Row:
    """One statement. `proof`: file, and the name of a scenario or test in it."""

    traps: tuple[str, ...]
    says: str
    truth: str
    evidence: str
    releases: str
    proof: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the guide, by a name of ours."""

    name: str
    rows: tuple[Row, ...]


SECTIONS: Final = (
    Section(
        "Symptom",
        (
            Row(
                ("S8",),
                "vfio-manager and sandbox-validator are in Init:Error or Init:CrashLoopBackOff",
                "so they are; vfio-manager shows Init:0/1 for the minute that driver-manager sleeps in each round, and the device plugin's pod waits in Init:0/2",
                f"{MAIN}, uninstallDriver (60 s); kubelet's printPod",
                ALL,
                ((BREAKING, "Restarts, statuses, the validator's message, nothing to allocate"), (BREAKING, "What kubectl shows as the minutes pass")),
            ),
            Row(
                ("S3",),
                "three lines of log, the second one wrapped",
                "before them comes `Starting driver uninstallation process`, after them 60 s of silence and `driver is pre-installed on host` at level fatal; no line is wrapped, and the version stands once for each GPU",
                f"{MAIN}, isHostDriver, uninstallDriver",
                GO,
                (("features/issue_191/host_driver_blocks_vfio.feature", "The label, the minute, the failure"), (WHERE, "Everything it prints is in the log, a line for each GPU")),
            ),
            Row(
                ("S9", "H20"),
                "the validator fails with `device not bound to 'vfio-pci'` for a GPU on nvidia",
                "it prints that at level info behind `Error: `, for the first such GPU by address only; the same failure without the label is a host whose driver the check does not find",
                "gpu-operator cmd/nvidia-validator; experiment on hosts without nvidia-smi on the PATH",
                ALL,
                ((BREAKING, "Restarts, statuses, the validator's message, nothing to allocate"), (BREAKING, "Rebooted with the DKMS packages left")),
            ),
            Row(
                ("S1",),
                "the label pre-installed hangs on the node meanwhile",
                "with an operator up to v26.3 it is there for five seconds after each start only; from v26.7.0 on it stays",
                "gpu-operator controllers: removeGPUStateLabels, requeue after 5 s while an operand is not ready",
                "charts up to v26.3.3; v26.7.0",
                ((LABEL, "The old operator removes it five seconds after each start"), (LABEL, "The new operator leaves it, also when the host is mended")),
            ),
        ),
    ),
    Section(
        "Why",
        (
            Row(
                ("H1", "S5"),
                "any output of nvidia-smi counts as a driver",
                "only with exit code 0; nvidia-smi prints its errors on standard output too, so a broken, unloaded or mismatched driver counts as none, and the node goes on to unload it",
                f"{MAIN}, isHostDriver; real nvidia-smi 535 and 550 with each state of NVML",
                GO,
                ((WHERE, "What it prints and how it exits"), (KINDS, "It is missing or fails, and the host's driver is half unloaded at each try")),
            ),
            Row(
                ("S6",),
                "nvidia-smi is looked for in the host's PATH",
                "in the container's, inside the chroot: nothing in /opt/bin, /run/current-system or /home/kubernetes is seen; v0.12.0 adds /busybox",
                f"{MAIN}, isHostDriver; the images' ENV PATH",
                GO,
                ((WHERE, "A place that is looked at"), (WHERE, "A place that is not looked at"), (WHERE, "The folder that v0.12.0's image adds to the PATH")),
            ),
            Row(
                ("S4",),
                "it labels the node and exits",
                "it sleeps 60 s and exits with 1. The first restart is at once; the wait of five minutes comes with the seventh, after 17 minutes",
                f"{MAIN}, uninstallDriver; kubelet's back-off",
                ALL,
                ((BREAKING, "Restarts, statuses, the validator's message, nothing to allocate"),),
            ),
            Row(
                ("S7",),
                "FORCE_REINSTALL does not bypass the check",
                "true; in vfio-manager's pod it could not matter anyway, since no digest of a configuration is set there",
                f"{MAIN}, shouldSkipUninstall",
                "v0.10.0 on",
                (("features/issue_191/host_driver_blocks_vfio.feature", "As a variable"), ("features/force_reinstall/desired_driver_is_kept.feature", "The digest is not even looked at")),
            ),
            Row(
                ("S10", "S24"),
                "on a clean host the operator goes on, and vfio-manager binds the GPUs",
                "first every NVIDIA GPU is taken from whatever driver it has; a vfio-manager that runs does not prove that one was bound, since failures of single devices are warnings: only the validator tells",
                "driver-manager cmd/vfio-manage: bind, unbind",
                "v0.10.0 on",
                ((BREAKING, "A root without modprobe"), ("features/vfio/unbinding.feature", "GPUs of any driver lose it")),
            ),
        ),
    ),
    Section(
        "Cleaning the host",
        (
            Row(
                ("H7", "H8"),
                "autoremove is dangerous because RDMA's packages share the prefix nvidia-; leave out the libnvidia-* of DOCA",
                "it goes by marks and dependencies: RDMA goes when the package that asked for it goes. `apt-mark manual` keeps it. No DOCA package found is named libnvidia-*; what must be left out are nvidia-mlnx-*, loaders, platform packages, kernels of the flavour nvidia",
                "apt 2.6.1 and 3.0.4 on packages with DOCA's relations; DOCA's and DGX OS 7's lists of packages",
                HOSTS,
                (
                    (ITSELF, "Purging by prefix and cleaning up after it takes RDMA away"),
                    (ITSELF, "It is marks that protect it, not names"),
                    (ITSELF, "The reviewed list frees the GPUs and keeps RDMA"),
                    ("tests/test_images.py", "test_autoremove_takes_rdma_unless_it_is_marked_as_asked_for"),
                    ("tests/node/test_plan.py", "test_a_dgx_keeps_platform_fabric_and_kernel"),
                ),
            ),
            Row(
                ("H4",),
                "apt takes * as a regular expression and aborts if nothing matches",
                "`apt` takes it as a glob, over every name it knows, and aborts with 100; `apt-get` then tries it as a regular expression inside names, usually does not abort, and may remove strangers",
                "apt 2.6.1 and 3.0.4",
                HOSTS,
                (("tests/test_images.py", "test_apt_and_apt_get_take_patterns_differently"),),
            ),
            Row(
                ("H2",),
                "dpkg-query's patterns are globs over installed packages; no match is no error",
                "over every name in dpkg's database, also those removed or merely mentioned; exit code 1 if one pattern matches nothing; `${Package}` prints a second architecture as the same name. Ask for `${db:Status-Abbrev} ${binary:Package}`",
                "dpkg 1.21.23 and 1.22.22",
                HOSTS,
                (("tests/test_images.py", "test_dpkg_query_lists_names_that_are_merely_known"), ("tests/node/test_guide.py", "test_packages_in_a_container")),
            ),
            Row(
                ("H5",),
                "the three patterns list the driver",
                "they miss linux-modules-nvidia-* (the module itself), xserver-xorg-video-nvidia-*, libcuda1 and others",
                "Ubuntu's and Debian's lists of packages",
                HOSTS,
                (("tests/node/test_plan.py", "test_roles"), ("tests/node/test_guide.py", "test_packages_in_a_container")),
            ),
            Row(
                ("H3",),
                "an empty list means that the driver came from a .run file",
                "a .run host with the container toolkit lists four packages, a clean one with dkms may list names too; ask for /usr/bin/nvidia-uninstall or /var/lib/nvidia/log",
                "experiment; nvidia-installer's source",
                HOSTS,
                (("tests/node/test_plan.py", "test_a_run_install_is_uninstalled_and_looked_at"),),
            ),
            Row(
                ("H21",),
                "then run nvidia-uninstall",
                "it exits with 0 also where it failed or found nothing; it leaves files that were changed, and no initramfs is renewed. It unloads nvidia_drm too, so that no reboot may be needed",
                "nvidia-installer's source, uninstall.c",
                HOSTS,
                (
                    (BREAKING, "The .run installer's driver, without a reboot"),
                    ("tests/test_images.py", "test_nvidia_uninstall_removes_what_it_installed"),
                    (ITSELF, "A module that the initramfs was told to hold is loaded past every blacklist"),
                ),
            ),
            Row(
                ("H6",),
                "purge the driver's package and its DKMS package",
                "nvidia-smi stays with nvidia-utils; and where an installed package needs one flavour or the other, apt installs the other flavour. Ask `apt-get -s` first, stop at any `Inst`",
                "apt 2.6.1 and 3.0.4 on Ubuntu's relations",
                HOSTS,
                (
                    (ITSELF, "A purge of the guide's two names installs a driver"),
                    (ITSELF, "The host check still finds it; the GPUs are free, and nobody takes them"),
                    ("tests/test_images.py", "test_a_purge_may_install_the_other_flavour"),
                ),
            ),
            Row(
                ("H9",),
                "DKMS rebuilds the module at the next reboot",
                "with the next kernel; what the next reboot loads is the module that is on the disk already",
                "dkms; general knowledge, not proved here beyond the model",
                HOSTS,
                ((BREAKING, "Rebooted with the DKMS packages left"), (ITSELF, "A tree that is left over, with no package left"), (ITSELF, "Without DKMS the new kernel has no driver, though everything else of it is still installed")),
            ),
            Row(
                ("H10",),
                "a blacklist keeps the host from taking the GPUs ever again",
                "it stops loading for a device that is found, nothing else: driver-manager's own question loads the module, as do dependencies and udev's rule. `install NAME /bin/false` or module_blacklist= stop them",
                "kmod 30 and a real nvidia-smi in a virtual machine, end to end",
                HOSTS,
                ((BREAKING, "Blacklisted, not purged"), (ITSELF, "The host check, with nvidia-smi and the module left"), (KINDS, "A blacklisted module comes back, and is taken for the host's driver")),
            ),
            Row(
                ("H11",),
                "the blacklist names nouveau",
                "rightly: Ubuntu's own goes with nvidia-kernel-common. Newer kernels have nova_core beside it",
                "debian/ of nvidia-graphics-drivers-580",
                HOSTS,
                (("tests/node/test_plan.py", "test_what_comes_back"),),
            ),
            Row(
                ("H12",),
                "`update-initramfs -u` renews the running kernel's",
                "the newest kernel's; -k all is right. One that is not renewed loads what it holds, past the blacklist and with nothing on the disk",
                "initramfs-tools with three kernels",
                HOSTS,
                ((ITSELF, "Another kernel than the newest is booted"), (ITSELF, "A blacklist that is not in the initramfs"), (ITSELF, "Purged, but for the package whose removal renews it")),
            ),
        ),
    ),
    Section(
        "Making sure",
        (
            Row(
                ("H15",),
                "`lsmod | grep` of nvidia and nouveau prints nothing on a clean host",
                "it prints nvidia_wmi_ec_backlight or nvidia_cspmu where those are, and misses gdrdrv, nv_peer_mem and nova_core; it says nothing of which driver a GPU has",
                "kmod 30",
                HOSTS,
                (("tests/node/test_guide.py", "test_lsmod_in_a_root_of_its_own"),),
            ),
            Row(
                ("H13", "S5"),
                "`command -v nvidia-smi` repeats isHostDriver",
                "it does not run it, and goes by another PATH: wrong both ways on half-purged hosts",
                "a table of states, each in dash and in a chroot",
                GO,
                ((KINDS, "It is missing or fails, and the host's driver is half unloaded at each try"), ("tests/node/test_guide.py", "test_packages_in_a_container")),
            ),
            Row(
                ("H14",),
                "a .run file or the CUDA toolkit leaves /usr/local/bin/nvidia-smi",
                "by default the installer puts it into /usr/bin; the toolkit has none",
                "nvidia-installer's source",
                HOSTS,
                ((KINDS, "A host without one"),),
            ),
            Row(
                ("H16",),
                "`dkms status` prints nothing once the module is gone",
                "also where its source link is broken (up to 3.0 the text is on standard error), and for modules that DKMS never built",
                "dkms 2.8.8, 3.0.11, 3.2.2",
                HOSTS,
            ),
            Row(
                ("S4",),
                "deleting the pods only skips a wait of up to five minutes",
                "true; deleting begins the waits anew",
                "kubelet's back-off, keyed by the pod's uid",
                ALL,
                ((BREAKING, "Deleting the pod begins the waits anew"), (BREAKING, "Without deleting anything the longest wait is five minutes")),
            ),
            Row(
                ("S11", "S26"),
                "the stuck pods can be deleted",
                "stuck ones can. Deleting a vfio-manager that works takes every GPU away first, from running virtual machines too, whose pods driver-manager does not see; the pre-stop hook of v26.3 does not unbind",
                f"{MAIN}, vfio-manage unbind --all; internal/kubernetes/client.go, prefix nvidia.com/gpu",
                GO,
                (
                    (ALONE, "A virtual machine has them"),
                    ("features/regressions/dra_and_vfio.feature", "A node whose GPUs are all on vfio-pci"),
                    ("tests/node/test_node.py", "test_the_pre_stop_hook_of_the_v26_3_charts_does_not_unbind"),
                ),
            ),
            Row(
                ("H17", "S10"),
                "`lspci | grep 'in use'` shows vfio-pci for each GPU",
                "NVSwitches, audio and USB functions show others; a GPU that nobody drives shows no line",
                "lspci 3.13 on a made-up sysfs",
                HOSTS,
                (("tests/node/test_guide.py", "test_lspci_on_a_made_up_bus"),),
            ),
        ),
    ),
    Section(
        "The label that is left over",
        (
            Row(
                ("S1",),
                "the label stays for ever and must be removed",
                "on a passthrough node the operator up to v26.3 removes it by itself; from v26.7.0 on it stays, and after removing it the operator has to look again",
                "gpu-operator controllers/state_manager.go; reading, no cluster",
                "charts up to v26.3.3; v26.7.0",
                (
                    (LABEL, "With the old operator it is long gone, and the driver's pod comes"),
                    (LABEL, "With the new operator it stays, and the driver's pod never comes"),
                    (LABEL, "Removing it is not enough; the operator must look again"),
                ),
            ),
            Row(
                ("S2",),
                "the end of a run touches the labels of validator, toolkit and device plugin",
                "ten labels, both sandbox ones among them, mig-manager if it has a value; those that were not there are created empty, and nvsm stays so",
                f"{MAIN}, rescheduleGPUOperatorComponents",
                GO,
                (("features/labels/pausing_and_restoring.feature", "These and no others"), ("tests/node/test_operator.py", "test_nobody_removes_nvsm")),
            ),
        ),
    ),
    Section(
        "Known limitation",
        (
            Row(
                ("S21",),
                "the check is in v0.10.0",
                "and in every release: a shell script's up to v0.8.1, the same Go code from v0.9.0 to v0.12.0",
                f"{MAIN}, isHostDriver, at each tag",
                ALL,
                (("features/issue_191/host_driver_blocks_vfio.feature", "The label, the minute, the failure"), (BREAKING, "Restarts, statuses, the validator's message, nothing to allocate")),
            ),
            Row(
                ("S13",),
                "use the variant container, which gives the host's GPUs to pods",
                "true of a node that runs it; but setting the variant by the chart's value makes Helm fail in Cozystack, a Package is written by hand, and a left-over workload label is ignored there",
                "cozystack's gpu-operator templates, rendered",
                "cozystack v1.6.2",
                ((ALONE, "A host with a packaged driver"), ("tests/kubevirt/test_platform.py", "test_a_hand_made_package_of_the_gpu_operator")),
            ),
            Row(
                (),
                "an override by variable is the only structural way out (issue #191)",
                "with the proposal as it stands a packaged driver's GPUs are still not freed: no release unloads nvidia_drm",
                f"{MAIN}, unloadDriver",
                GO,
                (("features/issue_191/what_if_force_unbind.feature", "nvidia_drm, which is in no release's list, keeps the packaged driver's GPUs"),),
            ),
            Row(
                ("S20", "H18"),
                "Talos is not affected",
                "as long as its image has no NVIDIA extensions; with them nvidia-smi is on the PATH, and the check finds it",
                "siderolabs/extensions: nvidia-pkgs",
                GO,
                ((ITSELF, "With and without NVIDIA's extensions"), (KINDS, "A host with a driver")),
            ),
        ),
    ),
    Section(
        "GPUs in virtual machines: the other guide",
        (
            Row(
                ("S12",),
                "label the node vm-passthrough first",
                "needless in the variant default, whose defaultWorkload is vm-passthrough; without sandboxWorkloads the label is not looked at",
                "cozystack's gpu-operator templates, rendered",
                "cozystack v1.6.2",
                (("tests/kubevirt/test_cozystack_replay.py", "test_every_recording_replays"),),
            ),
            Row(
                ("S14",),
                "without the gate HostDevices the webhook refuses GPU VMs",
                "only those with `hostDevices`; Cozystack's have `gpus`, which need no gate",
                "kubevirt pkg/virt-api vmi-create-admitter.go, validateHostDevicesWithPassthroughEnabled",
                "kubevirt v1.8.4",
                (("features/passthrough/from_card_to_vm.feature", "A VM of Cozystack's needs no gate"),),
            ),
            Row(
                ("S15",),
                "the webhook refuses a resource that is not permitted",
                "virt-controller does, with FailedCreate on the VMI; the VM object is made",
                "kubevirt pkg/virt-controller/services/renderresources.go, validatePermittedHostDevices",
                "kubevirt v1.8.4",
                (("features/passthrough/from_card_to_vm.feature", "A name in other letters"),),
            ),
            Row(
                ("S16",),
                "replaceDefaults with an empty list: the webhook refuses every GPU VM",
                "the opposite: there is no block, and KubeVirt permits everything",
                "cozystack's kubevirt-cr.yaml, rendered; kubevirt pkg/virt-config",
                "cozystack v1.6.2",
                (("features/passthrough/from_card_to_vm.feature", "No block at all permits everything"),),
            ),
            Row(
                ("S17",),
                "one selector twice is resolved at random",
                "external: both names are permitted, selectors are not looked at; internal: the last entry wins. Chance is in two ids with one name, at the kubelet",
                "kubevirt pkg/virt-handler/device-manager, device_controller.go",
                "kubevirt v1.8.4",
                (("tests/kubevirt/test_starting.py", "test_one_selector_twice_under_the_internal_provider"), ("features/passthrough/from_card_to_vm.feature", "Two ids of one name")),
            ),
            Row(
                ("S18",),
                "the plugin replaces / . and blanks by _ and takes the brackets away",
                "it drops every other character too, hyphens among them: A100-SXM-64GB becomes A100SXM64GB",
                "kubevirt-gpu-device-plugin's names, recorded",
                "v1.4.0 on",
                (("tests/node/test_names.py", "test_a_name_becomes_part_of_a_resource"),),
            ),
            Row(
                ("S19",),
                "lspci in the guest shows the A10 as 10de:26b9",
                "that is an L40S; an A10 is 10de:2236",
                "the PCI ID Project's pci.ids",
                "any",
                (("features/passthrough/from_card_to_vm.feature", "One planted fault"),),
            ),
            Row(
                (),
                "Flux reverts a hand edit at its next reconciliation",
                "when the release has something new to apply; until then nobody looks",
                "cozystack internal/operator/package_reconciler.go: no drift detection",
                "cozystack v1.6.2",
                (("features/passthrough/over_time.feature", "Flux comes by, and nothing has changed"),),
            ),
            Row(
                (),
                "a mismatch is silent until the VM restarts or migrates",
                "it cannot migrate: it has a host device",
                "kubevirt pkg/virt-handler/vm.go, calculateLiveMigrationCondition",
                "kubevirt v1.8.4",
                (("tests/kubevirt/test_reconciling.py", "test_a_mismatch_is_silent_until_the_vm_restarts"),),
            ),
            Row(
                (),
                "a VM is kind VirtualMachine of apps.cozystack.io",
                "in v1.6.2 it is VMInstance, and kubectl finds no such kind; both are read here",
                "cozystack: the VirtualMachine application is gone",
                "cozystack v1.6.2",
                (("tests/node/test_guide.py", "test_the_other_guides_kubectl_against_a_served_cluster"),),
            ),
            Row(
                (),
                "the vGPU variant's table (its values, not this guide)",
                "names the device plugin announces for none of its eight types",
                "kubevirt-gpu-device-plugin, names of mediated types; cozystack's values",
                "cozystack v1.6.2",
                (("features/passthrough/sharing_a_gpu.feature", "The platform's table of vGPUs names none of them so"),),
            ),
        ),
    ),
)  # fmt: skip

ELSEWHERE: Final = {
    "S22": "of no statement here: charts v23.6.2 to v23.9.2 brought an older driver-manager for vfio-manager (`docs/releases.md`)",
    "S23": "of no statement here: the flag is `--device-id`, in every release of vfio-manage",
    "S25": "of no statement here: vfio-manager runs with eviction and drain off",
    "H19": "there is none of that number",
}
"""Traps without a row, and why."""


_HEAD: Final = """\
# The guide versus the sources

What Cozystack's guides on passthrough with a preinstalled driver and, in the last table, on GPUs in virtual machines tell their
readers, and what the programs' sources and experiments say. Generated by `make pages`; do not edit. The statements are in short words of ours. S and H number the traps:
S was found by reading sources, H on hosts. Where a row names a scenario or test, it holds the truth; a row that names none
rests on its evidence alone.

Of the guide's {blocks} command blocks {ran} are run as printed (`tests/node/test_guide.py`): kubectl and jq against
`dmsim serve`, lspci on a made-up bus, the others in containers. The rest cannot be:

"""


def _cell(text: str) -> str:
    """For a table: bars escaped, and stars that stand in no code."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("*", "\\*") for index, part in enumerate(parts))


def _proof(file: str, name: str) -> str:
    return f"`{file}`: {name}"


def page() -> str:
    """The page's text."""
    blocks = listed()
    out = [_HEAD.format(blocks=len(blocks), ran=sum(bool(item.run_by) for item in blocks))]
    out += [f"* `{item.block.commands.strip().splitlines()[0]}`: {item.not_executable}\n" for item in blocks if item.not_executable]
    for section in SECTIONS:
        out.append(
            f"\n## {section.name}\n\n| trap | the guide | the truth | evidence | releases | held by |\n|---|---|---|---|---|---|\n"
        )
        for row in section.rows:
            held = "<br>".join(_proof(file, name) for file, name in row.proof)
            cells = (", ".join(row.traps), row.says, row.truth, row.evidence, row.releases, held)
            out.append(f"| {' | '.join(map(_cell, cells))} |\n")
    out.append("\n## Traps without a row\n\n")
    out += [f"* {traps}: {why}.\n" for traps, why in ELSEWHERE.items()]
    return "".join(out)


if __name__ == "__main__":
    sys.stdout.write(page())
