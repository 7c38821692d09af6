"""`dmsim serve`: what it prints and writes, how it ends, what it refuses."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simulator.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def serving(*arguments):
    """A running `dmsim serve`: the process, and the first line it printed."""
    command = [sys.executable, "-m", "simulator", "serve", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def ended(process, number=signal.SIGINT):
    """Exit code, the rest of standard output, standard error."""
    process.send_signal(number)
    out, err = process.stdout.read(), process.stderr.read()
    return process.wait(20), out, err


def get(connection, path, **headers):
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(number, tmp_path):
    """The URL comes first; the kubeconfig is there by then; it ends with exit code 0 and without a word."""
    config = tmp_path / "kubeconfig"
    with serving("--kubeconfig-out", str(config), "--node", "gpu-7") as (process, first):
        url = first.split()[-1]
        assert first == f"cluster container-node at {url}\n"
        assert yaml.safe_load(config.read_text())["clusters"][0]["cluster"] == {"server": url}
        status, node = get(http.client.HTTPConnection(url.removeprefix("http://"), timeout=10), "/api/v1/nodes/gpu-7")
        assert (status, node["metadata"]["name"]) == (200, "gpu-7")
        assert ended(process, number) == (0, f"  kubectl --kubeconfig {config} get nodes,pods -A -o wide\nCtrl-C ends it\n", "")


@pytest.mark.slow
def test_a_token_and_a_certificate(tmp_path):
    """Both are in the kubeconfig, which only its owner can read."""
    config = tmp_path / "kubeconfig"
    with serving("--token", "t0p", "--tls", "--kubeconfig-out", str(config)) as (process, first):
        document = yaml.safe_load(config.read_text())
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        trusting = ssl.create_default_context(
            cadata=base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        )
        address = first.split()[-1].removeprefix("https://")
        token = document["users"][0]["user"]["token"]
        for authorization, status in ((f"Bearer {token}", 200), ("", 401)):
            connection = http.client.HTTPSConnection(address, timeout=10, context=trusting)
            assert get(connection, "/version", Authorization=authorization)[0] == status
        assert ended(process)[0] == 0


@pytest.mark.slow
def test_a_token_without_a_certificate():
    """Is served, and the page says what kubectl makes of it."""
    with serving("--token", "a b".replace(" ", "'")) as (process, first):
        code, out, err = ended(process)
        url = first.split()[-1]
        assert (code, err) == (0, "")
        assert out.splitlines()[:2] == [
            f"""  kubectl --server {url} --token 'a'"'"'b' get nodes,pods -A -o wide""",
            "kubectl sends a token over https only: add --tls",
        ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--cluster", "bogus"], 'there is no cluster named "bogus"'),
        (["--port", "70000"], "--port 70000 is no port; write a number from 0 to 65535"),
        (["--port", "x"], "invalid int value"),
        (["--host", "256.0.0.1"], "cannot listen on 256.0.0.1 port 0: "),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1 port 0: Cannot assign requested address; choose others"),
        (["--host", "a..b"], "cannot listen on a..b"),
        (["--token", "a\nb"], "--token holds what no header can carry"),
        (["--token", "ä"], "--token holds what no header can carry"),
        (["--kubeconfig-out", "/no/where"], "/no/where: cannot be written: No such file or directory; name another file"),
    ],
)
def test_what_is_refused(arguments, text, capsys):
    """One message, exit code 2."""
    try:
        code = main(["serve", *arguments])
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_a_port_that_is_taken(capsys):
    """Is said so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "Address already in use; choose others with --host and --port" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("module", "arguments"), [("aiohttp", []), ("trustme", ["--tls"])])
def test_what_is_not_installed(module, arguments):
    """Is named, with the extra that brings it."""
    program = (
        f"import sys; sys.modules[{module!r}] = None; from simulator.cli.main import main; sys.exit(main({['serve', *arguments]}))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"needs {module}; install the extra: pip install 'driver-manager-simulator[container]'\n")
