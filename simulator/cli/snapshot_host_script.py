"""The script that shows dmsim a node: read-only, POSIX sh, nothing to install. Its output is one text file.

Run it as root on the node, or in a debug pod that has the node's root at /host. Without root it runs, too, and says what it
could not see.

Example:
  dmsim snapshot host-script > host.sh
  sh host.sh > node.txt
  kubectl debug node/gpu-1 -i --image=busybox --profile=sysadmin -- sh -s -- --root /host < host.sh > node.txt
  dmsim snapshot node.yaml pods.yaml node.txt -o world.yaml
"""

from __future__ import annotations

import argparse
import sys

from simulator.snapshot.text_root import host_script


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Print it."""
    del options
    sys.stdout.write(host_script())
    return 0
