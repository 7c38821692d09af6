"""Comment on a pull request that bumps k8s-driver-manager or the GPU Operator's chart: what changes on GPU nodes.

Reads the pull request's diff, lets `dmsim compare --diff` find the bump and say what it changes, and writes that as one
comment, which later runs renew. In a pull request from a fork the token may not write; then the job's summary has to do.

    python comment.py --diff FILE    prints the comment instead, without asking GitHub anything
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

MARKER: Final = "<!-- dmsim compare -->"
GONE: Final = f"{MARKER}\nThis pull request no longer bumps k8s-driver-manager or the GPU Operator's chart.\n"
_DIFF: Final = "application/vnd.github.diff"
_JSON: Final = "application/vnd.github+json"
_PAGE: Final = 100
_TOO_LARGE: Final = frozenset({406, 422})
_MAY_NOT: Final = frozenset({401, 403, 404})


class Failure(Exception):
    """One message for a person."""


def main(argv: list[str]) -> int:
    """Run; returns the exit code: 0, or 2 with one message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diff", metavar="FILE", help="print the comment for this unified diff (- for standard input)")
    options = parser.parse_args(argv)
    try:
        if options.diff is not None:
            text = sys.stdin.buffer.read() if options.diff == "-" else Path(options.diff).read_bytes()
            sys.stdout.write(compared(text) or "nothing to comment on\n")
            return 0
        comment(Repository.of_this_job())
    except (Failure, OSError) as failure:
        sys.stderr.write(f"comment.py: {failure}\n")
        return 2
    return 0


def compared(diff: bytes) -> str:
    """The comment for a diff, "" if it bumps nothing. Raises Failure with dmsim's message."""
    command = [sys.executable, "-P", "-m", "simulator", "compare", "--diff", "-", "-o", "markdown"]
    for option in ("host", "cluster"):
        value = os.environ.get(f"DMSIM_{option.upper()}")
        if value:
            command += [f"--{option}", value]
    done = subprocess.run(command, input=diff, capture_output=True, check=False)  # noqa: S603  # ourselves, no shell; -P: not the caller's folder
    if done.returncode not in {0, 1}:  # 1: a difference without a name, which the comment says
        raise Failure(done.stderr.decode("utf-8", "replace").strip() or f"dmsim ended with {done.returncode}")
    text = done.stdout.decode("utf-8", "replace")
    return f"{MARKER}\n{text}" if text.strip() else ""


def comment(repository: Repository) -> None:
    """Renew the comment of this pull request, or make it."""
    text = compared(repository.diff())
    _note("GITHUB_OUTPUT", f"bumped={'true' if text else 'false'}\n")
    if text:
        _note("GITHUB_STEP_SUMMARY", text)
    try:
        mine = repository.comment_with(MARKER)
        if text or mine is not None:
            repository.write_comment(text or GONE, mine)
    except urllib.error.HTTPError as error:
        if error.code not in _MAY_NOT:
            raise Failure(f"GitHub answered {error.code} to a comment") from None
        print("::notice::The token may not comment here; the comparison is in the job's summary.")  # noqa: T201  # a workflow command


def _note(variable: str, text: str) -> None:
    path = os.environ.get(variable)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


class Repository:
    """A pull request of a repository, over GitHub's REST API."""

    def __init__(self, api: str, name: str, number: int, token: str) -> None:
        self.base = f"{api}/repos/{name}"
        self.number = number
        self.token = token

    @classmethod
    def of_this_job(cls) -> Repository:
        """The one that the workflow runs for. Raises Failure."""
        try:
            event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
            number = int(event["pull_request"]["number"])
            api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
            return cls(api, os.environ["GITHUB_REPOSITORY"], number, os.environ["GITHUB_TOKEN"])
        except (KeyError, TypeError, ValueError) as error:
            raise Failure(f"runs in a workflow `on: pull_request` only ({error!r} is missing); or use --diff FILE") from None

    def diff(self) -> bytes:
        """The pull request's diff; GitHub gives large ones file by file only. Raises Failure."""
        try:
            return self._ask("GET", f"/pulls/{self.number}", accept=_DIFF)
        except urllib.error.HTTPError as error:
            if error.code not in _TOO_LARGE:
                raise Failure(f"GitHub answered {error.code} to the question for the diff") from None
        parts = []
        for file in self._pages(f"/pulls/{self.number}/files"):
            if file.get("patch"):
                old = file.get("previous_filename", file["filename"])
                parts.append(f"--- a/{old}\n+++ b/{file['filename']}\n{file['patch']}\n")
        return "".join(parts).encode()

    def comment_with(self, marker: str) -> int | None:
        """The number of the comment that begins with a marker."""
        for found in self._pages(f"/issues/{self.number}/comments"):
            if str(found.get("body", "")).startswith(marker):
                return int(found["id"])
        return None

    def write_comment(self, text: str, number: int | None) -> None:
        """Renew a comment, or make one."""
        body = json.dumps({"body": text}).encode()
        if number is None:
            self._ask("POST", f"/issues/{self.number}/comments", body)
        else:
            self._ask("PATCH", f"/issues/comments/{number}", body)

    def _pages(self, path: str) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        page = 1
        while True:
            found = json.loads(self._ask("GET", f"{path}?per_page={_PAGE}&page={page}"))
            out += found
            if len(found) < _PAGE:
                return out
            page += 1

    def _ask(self, method: str, path: str, body: bytes | None = None, accept: str = _JSON) -> bytes:
        headers = {"Accept": accept, "Authorization": f"Bearer {self.token}", "User-Agent": "dmsim"}
        request = urllib.request.Request(self.base + path, body, headers, method=method)  # noqa: S310  # GitHub's own API
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return bytes(answer.read())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
