"""Finding what a pull request bumps in its diff."""

from __future__ import annotations

import difflib
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading import InputError
from simulator.report.bumps import CHART, IMAGE, Bump, find_bumps

DIGEST = "@sha256:" + "0123456789abcdef" * 4


def diff_of(before, after, file="deploy/values.yaml", context=3):
    lines = difflib.unified_diff(
        textwrap.dedent(before).splitlines(keepends=True),
        textwrap.dedent(after).splitlines(keepends=True),
        f"a/{file}",
        f"b/{file}",
        n=context,
    )
    return "".join(lines)


def bumped(text, old, new, **kwargs):
    """The bumps of a text in which the word VERSION changes."""
    return [bump[:3] for bump in find_bumps(diff_of(text.replace("VERSION", old), text.replace("VERSION", new), **kwargs))]


IMAGES = {
    "image reference": "image: nvcr.io/nvidia/cloud-native/k8s-driver-manager:VERSION\n",
    "image reference with digest": f"image: nvcr.io/nvidia/cloud-native/k8s-driver-manager:VERSION{DIGEST}\n",
    "mirror with port": "image: 'registry.local:5000/mirror/k8s-driver-manager:VERSION'  # ours\n",
    "environment": "- name: DRIVER_MANAGER_IMAGE\n  value: nvcr.io/nvidia/cloud-native/k8s-driver-manager:VERSION\n",
    "JSON": '{\n  "image": "nvcr.io/nvidia/cloud-native/k8s-driver-manager:VERSION"\n}\n',
    "Dockerfile": "FROM nvcr.io/nvidia/cloud-native/k8s-driver-manager:VERSION\nUSER 0\n",
    "values": """
        driver:
          manager:
            repository: nvcr.io/nvidia/cloud-native
            image: k8s-driver-manager
            version: VERSION
            env: []
        """,
    "values, other order": """
        vfioManager:
          driverManager:
            version: "VERSION"
            image: k8s-driver-manager
        """,
    "values, nothing but the version": """
        driver:
          manager:
            version: VERSION
        toolkit:
          version: v1.17.8
        """,
    "values, one of the other two": """
        vgpuManager:
          driverManager:
            version: VERSION
        """,
    "comment above": """
        versions:
          # renovate: depName=nvcr.io/nvidia/cloud-native/k8s-driver-manager
          manager: x
          other: y
          # renovate: depName=nvcr.io/nvidia/cloud-native/k8s-driver-manager
          version: VERSION
        """,
    "variable": 'driver_manager_version = "VERSION"\n',
    "shell": "DRIVER_MANAGER_VERSION=VERSION\n",
    "helm --set": "helm upgrade gpu nvidia/gpu-operator --set driver.manager.version=VERSION --wait\n",
    "Terraform": 'set {\n  name  = "driver.manager.version"\n  value = "VERSION"\n}\n',
    "kustomize": "images:\n- name: nvcr.io/nvidia/cloud-native/k8s-driver-manager\n  newTag: VERSION\n",
    "tag beside repository": "image:\n  repository: nvcr.io/nvidia/cloud-native/k8s-driver-manager\n  tag: VERSION\n",
}
CHARTS = {
    "Chart.yaml": """
        dependencies:
        - name: gpu-operator
          version: VERSION
          repository: https://helm.ngc.nvidia.com/nvidia
        - name: other
          version: v1.2.3
        """,
    "Chart.yaml, version first": """
        dependencies:
          - version: VERSION
            name: gpu-operator
        """,
    "Argo": """
        source:
          repoURL: https://helm.ngc.nvidia.com/nvidia
          chart: gpu-operator
          targetRevision: VERSION
        """,
    "Argo, several sources": """
        sources:
          - repoURL: https://example.com/values.git
            targetRevision: main
          - chart: gpu-operator
            repoURL: https://helm.ngc.nvidia.com/nvidia
            targetRevision: VERSION
        """,
    "Flux": """
        chart:
          spec:
            chart: gpu-operator
            version: 'VERSION'
        """,
    "Flux, OCI": """
        spec:
          url: oci://ghcr.io/mirror/charts/gpu-operator
          ref:
            tag: VERSION
        """,
    "helmfile": "releases:\n- name: gpu\n  chart: nvidia/gpu-operator\n  version: VERSION\n",
    "kustomize": "helmCharts:\n- name: gpu-operator\n  repo: https://helm.ngc.nvidia.com/nvidia\n  version: VERSION\n",
    "Terraform": 'resource "helm_release" "gpu" {\n  chart   = "gpu-operator"\n  version = "VERSION"\n}\n',
    "helm": "helm upgrade --install gpu nvidia/gpu-operator --version VERSION -n gpu\n",
    "helm, equals": "helm install gpu nvidia/gpu-operator --version=VERSION\n",
    "variable": "gpuOperatorVersion: VERSION\n",
    "comment above": "# renovate: datasource=helm depName=gpu-operator\nversion: VERSION\n",
}


@pytest.mark.parametrize("text", IMAGES.values(), ids=IMAGES)
def test_a_bump_of_the_image_is_found(text):
    """In whatever file it stands."""
    assert bumped(text, "v0.10.0", "v0.12.0") == [(IMAGE, "v0.10.0", "v0.12.0")]


@pytest.mark.parametrize("text", CHARTS.values(), ids=CHARTS)
def test_a_bump_of_the_chart_is_found(text):
    """In whatever file it stands, with or without the v."""
    assert bumped(text, "v26.3.1", "v26.7.0") == [(CHART, "v26.3.1", "v26.7.0")]
    assert bumped(text, "26.3.1", "26.7.0") == [(CHART, "v26.3.1", "v26.7.0")]


def test_the_path_says_whose_version_it_is():
    """A chart's version in a folder of the GPU Operator, its name out of sight."""
    assert bumped("version: VERSION\n", "v26.3.1", "v26.7.0", file="apps/gpu-operator/release.yaml") == [
        (CHART, "v26.3.1", "v26.7.0")
    ]


def test_the_section_says_whose_version_it_is():
    """The top-level key that git shows after the second @@ is read."""
    text = "@@ -90,3 +90,3 @@ driver:\n   manager:\n-    version: v0.10.0\n+    version: v0.11.0\n     env: []\n"
    assert [bump[:3] for bump in find_bumps(f"--- a/x.yaml\n+++ b/x.yaml\n{text}")] == [(IMAGE, "v0.10.0", "v0.11.0")]


OTHERS = {
    "driver": "driver:\n  image: driver\n  version: VERSION\n",
    "another image": "image: nvcr.io/nvidia/k8s/container-toolkit:VERSION\n",
    "a longer name": "image: example.com/k8s-driver-manager-exporter:VERSION\n",
    "another item": "dependencies:\n- name: network-operator\n  version: VERSION\n- name: gpu-operator\n  version: v26.3.1\n",
    "another block": "driverManager:\n  env: []\nother:\n  version: VERSION\n",
    "two other blocks": "driver:\n  env: []\nmanager:\n  version: VERSION\n",
    "a comment": "# once it was VERSION\nname: gpu-operator\n",
    "a range": "dependencies:\n- name: gpu-operator\n  version: ~VERSION\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize(("old", "new"), [("v0.10.0", "v0.12.0"), ("v26.3.1", "v26.7.0")])
def test_other_versions_are_left_alone(text, old, new):
    """Whatever is not ours is no bump."""
    assert bumped(text, old, new) == []


def test_a_version_that_is_only_added_is_no_bump():
    """A new file names no version before."""
    assert find_bumps(diff_of("a: b\n", "a: b\nimage: x/k8s-driver-manager:v0.12.0\n")) == []


def test_another_digest_of_the_same_tag_is_no_bump():
    """The release is the same."""
    text = "image: x/k8s-driver-manager:v0.12.0VERSION\n"
    assert bumped(text, "@sha256:" + "a" * 64, "@sha256:" + "b" * 64) == []


def test_a_digest_alone_is_a_bump_that_nobody_can_read():
    """It is reported as such."""
    (bump,) = find_bumps(diff_of(f"image: x/k8s-driver-manager{DIGEST}\n", "image: x/k8s-driver-manager:v0.12.0\n"))
    assert bump.is_digest
    assert bump.new == "v0.12.0"


def test_both_are_found_in_one_diff():
    """The image and the chart, each with its place in the new file."""
    before = "a: 1\nimage: x/k8s-driver-manager:v0.10.0\nchart: gpu-operator\nversion: v26.3.1\n"
    after = "a: 1\nb: 2\nimage: x/k8s-driver-manager:v0.12.0\nchart: gpu-operator\nversion: v26.7.0\n"
    assert find_bumps(diff_of(before, after)) == [
        Bump(IMAGE, "v0.10.0", "v0.12.0", "deploy/values.yaml", 3),
        Bump(CHART, "v26.3.1", "v26.7.0", "deploy/values.yaml", 5),
    ]


def test_a_block_that_moved_is_a_bump():
    """Its two halves stand in two hunks of one file."""
    filler = "".join(f"key{number}: {number}\n" for number in range(20))
    before = "image: x/k8s-driver-manager:v0.10.0\n" + filler
    after = filler + "image: x/k8s-driver-manager:v0.12.0\n"
    assert [bump[:3] for bump in find_bumps(diff_of(before, after))] == [(IMAGE, "v0.10.0", "v0.12.0")]


def test_a_downgrade_is_a_bump():
    """The versions are in the diff's order."""
    assert bumped(IMAGES["values"], "v0.12.0", "v0.10.0") == [(IMAGE, "v0.12.0", "v0.10.0")]


def test_a_removed_line_of_dashes_is_no_file_header():
    """Counts say where a hunk ends."""
    text = "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,3 +1,2 @@\n--- old\n-image: x/k8s-driver-manager:v0.10.0\n+image: x/k8s-driver-manager:v0.12.0\n b: 1\n"
    assert find_bumps(text) == [Bump(IMAGE, "v0.10.0", "v0.12.0", "x.yaml", 1)]


def test_windows_line_ends_are_read():
    """As any other."""
    text = diff_of("image: x/k8s-driver-manager:v0.10.0\n", "image: x/k8s-driver-manager:v0.12.0\n")
    assert [bump[:3] for bump in find_bumps(text.replace("\n", "\r\n"))] == [(IMAGE, "v0.10.0", "v0.12.0")]


def test_hunks_without_a_file_are_read():
    """As GitHub's API gives them for each file."""
    text = "@@ -1 +1 @@\n-image: x/k8s-driver-manager:v0.10.0\n+image: x/k8s-driver-manager:v0.12.0\n\\ No newline at end of file\n"
    assert [bump[:3] for bump in find_bumps(text)] == [(IMAGE, "v0.10.0", "v0.12.0")]


def test_what_is_no_diff_is_refused():
    """With the mend; an empty diff bumps nothing."""
    with pytest.raises(InputError, match="is no unified diff; make one with git diff"):
        find_bumps("version: v0.12.0\n")
    assert find_bumps("") == []
    assert find_bumps("\n") == []


@given(st.text(st.sampled_from("-+ @\\0123,.vk8s\n:#\"'x"), max_size=200))
def test_no_text_makes_it_fail(text):
    """Whatever follows a hunk's header."""
    find_bumps(f"@@ -1,3 +1,3 @@ {text}")
    find_bumps(f"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n {text}")
