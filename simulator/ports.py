"""What the model asks of its world: a host, a cluster, a clock, and somewhere to write.

Each method is one question or one act, as small as a system call or an HTTP request, so that a recorder, a fault or an
explorer can stand between the model and any world. The model imports nothing else of the world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote as percent_encode
from urllib.parse import urlencode

from simulator.gocompat import Duration, GoError, quote


class ProcessResult(NamedTuple):
    """What a child process left: its output and its exit code; of one that a signal ended, the signal's number below zero."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


class CommandNotFound(GoError):
    """`exec.Error`: a command is not on the container's PATH, or what is there is not executable."""

    def __init__(self, name: str, reason: str = "executable file not found in $PATH") -> None:
        super().__init__(f"exec: {quote(name)}: {reason}")


class IoFailure(OSError):
    """A read or a write failed on a file that could be opened; any other OSError is that of the opening itself."""


class Host(Protocol):
    """The node as the container sees it: its own files, `/host`, `/sys`, `/run`, and the kernel behind them.

    Paths are absolute. What fails raises `OSError` with the errno the kernel would give.
    """

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program of the container. Raises CommandNotFound; another GoError if it could not be started."""

    def stat(self, path: str) -> None:
        """Does the path exist, links followed? Raises OSError if not."""

    def read_file(self, path: str) -> str:
        """The whole text of a file."""

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory; the errno is that of Go's `os.Remove`."""

    def mount_points(self) -> list[str]:
        """The mount points of the container's namespace, in mount order."""

    def unmount(self, path: str) -> None:
        """`umount2(path, MNT_DETACH)`."""

    def delete_module(self, name: str) -> None:
        """`delete_module(name, 0)`."""


class ShellHost(Host, Protocol):
    """The node as the shell releases see it: what `[ -f ]`, `[ -L ]` and a started program ask beside."""

    def is_file(self, path: str) -> bool:
        """Is it a regular file, links followed?"""

    def read_link(self, path: str) -> str:
        """Where a link points. Raises OSError for what is no link."""

    def spawn(self, argv: Sequence[str], work: Callable[[], ProcessResult]) -> ProcessResult:
        """Start a program of the container whose work the model does itself. Raises CommandNotFound."""


class VfioHost(Protocol):
    """The node as vfio-manage sees it: sysfs, the container's files, and `chroot`.

    Paths are absolute. What fails raises `OSError` with the errno the kernel would give, `IoFailure` if the file was open.
    """

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Run a program of the container. Raises CommandNotFound; another GoError if it could not be started."""

    def stat(self, path: str) -> None:
        """Does the path exist, links followed? Raises OSError if not."""

    def is_directory(self, path: str) -> bool:
        """Is it a directory, a link to one not counting?"""

    def read_file(self, path: str) -> str:
        """The whole text of a file."""

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def read_link(self, path: str) -> str:
        """Where a link points."""

    def resolve(self, path: str) -> str:
        """The path without links (`realpath(3)`)."""

    def write_file(self, path: str, text: str) -> None:
        """Open a file for writing and write the text at once."""

    def kernel_release(self) -> str:
        """`uname -r`."""


class Credentials(NamedTuple):
    """How client and server prove to one another who they are: the fields of `rest.Config` and its `TLSClientConfig`.

    Files are the container's paths; data is base64, as a kubeconfig holds it, and goes before its file.
    """

    token: str = ""
    username: str = ""
    password: str = ""
    ca_file: str = ""
    ca_data: str = ""
    cert_file: str = ""
    cert_data: str = ""
    key_file: str = ""
    key_data: str = ""
    server_name: str = ""
    """The name the server's certificate has to be for, if it is not the address'."""
    insecure: bool = False
    """The server's certificate is not looked at."""


class Server(NamedTuple):
    """The API server, as the program's configuration names it."""

    url: str
    """Base URL as Go prints it: no trailing slash, a password hidden."""
    address: str
    """host:port"""
    credentials: Credentials = Credentials()


AS_PROTOBUF: Final = {"_encoding": "protobuf"}
"""What a body holds beside the document that travels as protobuf, so that a trace tells. No part of the document."""


class Request(NamedTuple):
    """One HTTP request to the API server. `body` is the JSON document, in the order it is sent.

    `raw_query` is the query as it travelled; empty: as Go's `url.Values.Encode` writes `query`.
    """

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Mapping[str, Any] | None = None
    content_type: str = ""
    raw_query: str = ""
    server: Server | None = None
    """Whom it is sent to; None: whoever is asked."""

    @property
    def query_text(self) -> str:
        """The query as it travels."""
        return self.raw_query or urlencode(sorted(self.query.items()))

    @property
    def target(self) -> str:
        """Path and query as Go writes them into a URL."""
        text = percent_encode(self.path, safe="/:@!$&'()*+,;=~")
        return f"{text}?{self.query_text}" if self.query else text


class Response(NamedTuple):
    """The answer: status, JSON document, and the `Retry-After` header in seconds if there was one."""

    status: int
    body: Mapping[str, Any]
    retry_after: int | None = None


class ConnectionDropped(Exception):
    """The server closed the connection without an answer."""


class ConnectionRefused(Exception):
    """Nothing listens there."""


class ConnectionTimedOut(Exception):
    """Nothing answers there: whoever dials gives up in the end."""


class ConnectionFailed(Exception):
    """There was no answer for another reason; the text is Go's."""


class Cluster(Protocol):
    """The API server, one request at a time. The answer's document must not be changed by the caller."""

    def request(self, request: Request) -> Response:
        """Send a request. Raises ConnectionDropped, ConnectionRefused, ConnectionTimedOut or ConnectionFailed."""


class WatchedCluster(Cluster, Protocol):
    """The API server as a client that also watches meets it."""

    def deleted(self, request: Request, span: Duration) -> bool:
        """Follow a watch that was opened with this request: is an object that it lists deleted within the span?"""


class Clock(Protocol):
    """Virtual time, in nanoseconds since the program's start."""

    @property
    def now(self) -> Duration:
        """The time that has passed."""

    def sleep(self, span: Duration) -> None:
        """Let time pass. What is due on the way happens; a signal may end the program here."""


class Output(Protocol):
    """Where the program writes: its log (standard error), and the raw streams beside it."""

    def log(self, level: str, message: str) -> None:
        """One log call: `info`, `warning`, `error` or `fatal`."""

    def stdout(self, text: str) -> None:
        """Raw text on standard output."""

    def stderr(self, text: str) -> None:
        """Raw text on standard error that is no log line."""


class Chance(Protocol):
    """Upstream's jitter. A scenario's seed decides."""

    def random(self) -> float:
        """A number from 0 up to 1."""


class Terminated(Exception):
    """A signal ended the program. `signal` is its name without SIG."""

    def __init__(self, signal: str) -> None:
        super().__init__(signal)
        self.signal = signal


class Stopped(Exception):
    """The runner stopped watching a program that was still running."""
