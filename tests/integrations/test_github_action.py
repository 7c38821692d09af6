"""The GitHub Action: its script run on sample diffs, and against a stand-in of GitHub's API on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "integrations/github-action"
DIFFS = Path(__file__).parent / "diffs"
MARKER = "<!-- dmsim compare -->"
HOST = {"DMSIM_HOST": "container-driver-loaded"}


def script(*argv, env=None, stdin=b""):
    """Run the script as the action does."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "DMSIM_"))}
    return subprocess.run(
        [sys.executable, str(ACTION / "comment.py"), *argv],
        env={**clean, **(env or {})},
        input=stdin,
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )


HEADINGS = {
    "helm-values.diff": "### k8s-driver-manager v0.10.0 → v0.12.0",
    "chart-dependency.diff": "### k8s-driver-manager chart v26.3.1 (v0.10.0) → chart v26.7.0 (v0.12.0)",
    "image-with-digest.diff": "### k8s-driver-manager v0.10.0 → v0.11.0",
    "argo.diff": "### k8s-driver-manager chart v25.10.1 (v0.9.1) → chart v26.3.0 (v0.10.0)",
    "flux.diff": "### k8s-driver-manager chart v26.3.2 (v0.11.0) → chart v26.7.0 (v0.12.0)",
    "unmodelled-release.diff": "**Not compared:** helmfile.yaml:6: gpu-operator chart v24.3.0 -> v25.10.1",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADINGS)
def test_a_sample_diff_gets_its_comment(name):
    """The marker, then the comparison of the two versions."""
    done = script("--diff", str(DIFFS / name), env=HOST)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.startswith(f"{MARKER}\n{HEADINGS[name]}")
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_diff_that_bumps_nothing_gets_none():
    """From standard input too."""
    done = script("--diff", "-", stdin=(DIFFS / "nothing.diff").read_bytes())
    assert (done.returncode, done.stdout) == (0, b"nothing to comment on\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "env", "message"),
    [
        (("--diff", "/nowhere"), {}, "No such file"),
        (("--diff", str(DIFFS / "flux.diff")), {"DMSIM_HOST": "nothing"}, 'there is no host named "nothing"'),
        ((), {}, "runs in a workflow `on: pull_request` only"),
    ],
)
def test_bad_input_is_one_message(argv, env, message):
    """Exit code 2, never a traceback."""
    done = script(*argv, env=env)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


class GitHub:
    """A stand-in that keeps comments and the requests it got."""

    def __init__(self, diff, comments=(), refuses=(), too_large=0):
        self.diff, self.comments, self.refuses, self.too_large = diff, list(comments), refuses, too_large
        self.writes = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                assert self.headers["Authorization"] == "Bearer secret"
                path, _, query = self.path.partition("?")
                if path.endswith("/pulls/7"):
                    assert self.headers["Accept"] == "application/vnd.github.diff"
                    if outer.too_large:
                        return self.answer(outer.too_large, b"{}")
                    return self.answer(200, outer.diff)
                page = int(dict(part.split("=") for part in query.split("&"))["page"])
                if path.endswith("/pulls/7/files"):
                    head, _, patch = outer.diff.decode().partition("+++ b/")
                    del head
                    name, _, hunks = patch.partition("\n")
                    files = [{"filename": f"other{number}.txt"} for number in range(100)] + [{"filename": name, "patch": hunks}]
                    return self.answer(200, json.dumps(files[(page - 1) * 100 : page * 100]).encode())
                assert path.endswith("/issues/7/comments")
                return self.answer(200, json.dumps(outer.comments[(page - 1) * 100 : page * 100]).encode())

            def write(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
                if self.command in outer.refuses:
                    return self.answer(outer.refuses[self.command], b"{}")
                outer.writes.append((self.command, self.path, body))
                return self.answer(200, b"{}")

            do_POST = do_PATCH = write  # noqa: N815  # http.server looks for these names

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def job(tmp_path, github):
    """The script in a workflow's job; its environment files with it."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    files = {"GITHUB_OUTPUT": tmp_path / "output", "GITHUB_STEP_SUMMARY": tmp_path / "summary"}
    done = script(
        env={
            **HOST,
            **{key: str(path) for key, path in files.items()},
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "us/cluster",
            "GITHUB_API_URL": github.url,
            "GITHUB_TOKEN": "secret",
            "NO_PROXY": "*",
            "no_proxy": "*",
        }
    )
    return done, *(path.read_text() if path.exists() else "" for path in files.values())


def sample(name):
    return (DIFFS / name).read_bytes()


@pytest.mark.slow
def test_a_bump_gets_a_comment(tmp_path):
    """One, also in the job's summary; the output says so."""
    with GitHub(sample("flux.diff"), comments=[{"id": number, "body": "hello"} for number in range(120)]) as github:
        done, output, summary = job(tmp_path, github)
    assert done.returncode == 0, done.stderr
    ((method, path, body),) = github.writes
    assert (method, path) == ("POST", "/repos/us/cluster/issues/7/comments")
    assert body.startswith(f"{MARKER}\n### k8s-driver-manager chart v26.3.2")
    assert (output, summary) == ("bumped=true\n", body)


@pytest.mark.slow
def test_a_second_push_renews_the_comment(tmp_path):
    """The one that begins with the marker, on whichever page."""
    comments = [*({"id": number, "body": "hello"} for number in range(100)), {"id": 555, "body": f"{MARKER}\nold"}]
    with GitHub(sample("flux.diff"), comments=comments) as github:
        done, *_ = job(tmp_path, github)
    assert done.returncode == 0, done.stderr
    assert [write[:2] for write in github.writes] == [("PATCH", "/repos/us/cluster/issues/comments/555")]


@pytest.mark.slow
def test_nothing_bumped_is_no_comment(tmp_path):
    """Unless one is there, which then says that the bump is gone."""
    with GitHub(sample("nothing.diff")) as github:
        done, output, summary = job(tmp_path, github)
    assert (done.returncode, github.writes, output, summary) == (0, [], "bumped=false\n", "")
    with GitHub(sample("nothing.diff"), comments=[{"id": 5, "body": f"{MARKER}\nold"}]) as github:
        done, *_ = job(tmp_path, github)
    assert "no longer bumps" in github.writes[0][2]


@pytest.mark.slow
@pytest.mark.parametrize("status", [406, 422])
def test_a_large_pull_request_is_read_file_by_file(tmp_path, status):
    """Where GitHub refuses its diff."""
    with GitHub(sample("flux.diff"), too_large=status) as github:
        done, *_ = job(tmp_path, github)
    assert done.returncode == 0, done.stderr
    assert "chart v26.3.2" in github.writes[0][2]


@pytest.mark.slow
def test_a_token_that_may_not_comment_is_no_failure(tmp_path):
    """As in a pull request from a fork: the summary has the comparison."""
    with GitHub(sample("flux.diff"), refuses={"POST": 403}) as github:
        done, output, summary = job(tmp_path, github)
    assert (done.returncode, output) == (0, "bumped=true\n")
    assert done.stdout.startswith(b"::notice::")
    assert "chart v26.3.2" in summary


@pytest.mark.slow
def test_github_out_of_order_is_one_message(tmp_path):
    """With the status."""
    with GitHub(sample("flux.diff"), refuses={"POST": 500}) as github:
        done, *_ = job(tmp_path, github)
    assert done.returncode == 2
    assert done.stderr == b"comment.py: GitHub answered 500 to a comment\n"


def test_the_action_is_well_formed():
    """Composite; every input is used; nothing of the pull request is put into a shell line."""
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    text = (ACTION / "action.yml").read_text()
    for name, given in action["inputs"].items():
        assert given["description"].endswith(".")
        assert f"inputs.{name} }}}}" in text
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert ("run" in step) == ("shell" in step)
        if "GITHUB_ACTION_PATH" in step.get("run", "") and ".py" in step["run"]:
            assert (ACTION / step["run"].split("/")[-1].strip('"')).exists()
    assert (ACTION / "../..").resolve() == ROOT
