"""What v0.10.0 changed (2026-03-16)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Final

from simulator import messages as m
from simulator.config import FORCE_REINSTALL
from simulator.gocompat import GoError, PathError, trim_space, wrapping
from simulator.kube.rest import Waiting, drive
from simulator.kube.waiting import DEFAULT_BACKOFF, Backoff, retry_on_error
from simulator.manager.change import Change
from simulator.manager.kubernetes import KubeClient, labels_patch
from simulator.manager.steps import DRIVER_PID_FILE, DriverManager

DRIVER_CONFIG_STATE_FILE: Final = "/run/nvidia/nvidia-driver.state"
DRIVER_CONFIG_DIGEST: Final = "DRIVER_CONFIG_DIGEST"


class _KeepsDesiredDriver(DriverManager):
    def done_with_desired_driver(self) -> bool:
        if not self.should_skip_uninstall():
            return False
        self.log.info(m.ALREADY_LOADED)
        self.before_keeping_driver()
        self.log.info(m.CLEANING_STALE)
        with wrapping(m.FAILED_TO_UNMOUNT_STALE):
            self.unmount_rootfs()
        self.remove_pid_file()
        self.reschedule_or_go_on()
        return True

    def should_skip_uninstall(self) -> bool:
        """`shouldSkipUninstall`."""
        if self.config.force_reinstall:
            self.log.info(m.FORCE_REINSTALL)
            return False
        return not self.should_update_driver_config()

    def should_update_driver_config(self) -> bool:
        """`shouldUpdateDriverConfig`: is the loaded driver another than the desired one, or is that unknown?"""
        if not self.is_driver_loaded():
            return True
        self.log.info(m.CHECKING_LOADED_DRIVER)
        current = self.env.get(DRIVER_CONFIG_DIGEST)
        if not current:
            self.log.warning(m.DIGEST_NOT_SET)
            return True
        try:
            stored = self.read_stored_digest()
        except PathError as failure:
            if failure.number == errno.ENOENT:
                self.log.info(m.NO_PREVIOUS_CONFIG)
            else:
                self.log.warning(m.STATE_FILE_UNREADABLE % failure)
            return True
        return current != stored

    def read_stored_digest(self) -> str:
        """`readStoredDigest`."""
        return trim_space(self.read_file(DRIVER_CONFIG_STATE_FILE))


class _RemovesPidFileUnseen(DriverManager):
    def remove_pid_file(self) -> None:
        self.remove_or_warn(DRIVER_PID_FILE, may_be_missing=True)


class _TableGoesToLog(DriverManager):
    def module_table_row(self) -> Callable[[str], None]:
        return self.log.info


class _RetriesLabelPatch(KubeClient):
    label_backoff: Backoff = DEFAULT_BACKOFF

    def update_node_labels(self, node_name: str, labels: Mapping[str, str]) -> None:
        def attempt() -> Waiting[None]:
            try:
                yield from self.clientset.patch_node(node_name, labels_patch(labels))
            except GoError as failure:
                self.log.warning(m.LABEL_UPDATE_FAILED % (node_name, failure))
                raise

        drive(self.clock, retry_on_error(self.chance, self.label_backoff, attempt))


CHANGES: Final = (
    Change(
        name="label-patch-retried",
        upstream="commit ec84a929, pull request #139",
        summary="A label patch that fails is tried four times within about 0.3 seconds, whatever the error.",
        notice="A short hiccup of the API server no longer fails the run; a refused patch is logged four times, its error in fewer words.",
        client=_RetriesLabelPatch,
    ),
    Change(
        name="module-table-in-log",
        upstream="commit ac1c5c8e, pull request #140",
        summary="The rows of the module table go to the log instead of standard output.",
        notice="The table of modules that are in use has a time stamp on each row.",
        steps=_TableGoesToLog,
    ),
    Change(
        name="desired-driver-kept",
        upstream="commit 68a399d4, pull request #148",
        summary="A loaded driver whose DRIVER_CONFIG_DIGEST equals the stored one stays.",
        notice="A restart of the driver pod no longer evicts GPU pods or unloads the modules if nothing changed.",
        action="Set FORCE_REINSTALL=true where a restart is meant to reinstall the driver.",
        steps=_KeepsDesiredDriver,
    ),
    Change(
        name="force-reinstall",
        upstream="commit 68a399d4, pull request #148",
        summary="There is a flag --force-reinstall, with the variable FORCE_REINSTALL: a desired driver goes nevertheless.",
        notice="One more flag in the help; FORCE_REINSTALL=true brings back what a restart of the driver pod did before.",
        flags=(FORCE_REINSTALL,),
    ),
    Change(
        name="pid-file-removed-unseen",
        upstream="commit 68a399d4, pull request #148",
        summary="The PID file is removed without looking first whether it is there.",
        notice="Nothing but one more system call where there is no PID file.",
        steps=_RemovesPidFileUnseen,
    ),
)
