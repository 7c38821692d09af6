"""The files in which a cluster's GPU settings stand: the platform's values, and hand-made Packages.

A file of values is either the values themselves, or Package CRs: that of the platform, which has them below
`spec.components.platform.values`, and any that are made by hand.

Source: cozystack/cozystack v1.6.2 packages/core/platform/values.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator.kubevirt.configuration import Configuration, read_configuration
from simulator.kubevirt.cozystack import Cozystack
from simulator.kubevirt.custom_resource import kubevirt_configuration
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT, InForce, Package, in_force, read_package
from simulator.kubevirt.platform import render
from simulator.kubevirt.template import nil_safe, truth
from simulator.reading import InputError, Place, parse_documents, read_text

PLATFORM: Final = "cozystack.cozystack-platform"
_PATH: Final = ("spec", "components", "platform", "values")


@dataclass(frozen=True, slots=True)
class PlatformValues:
    """The values, where they stand, and the Packages that are made by hand beside them."""

    place: Place
    hand_made: tuple[Package, ...] = ()

    def packages(self, release: Cozystack) -> InForce:
        """The Packages that count. Raises RenderError where Helm refuses the values."""
        return in_force(render(self.place.value, release).values(), self.hand_made)

    def configuration(self, release: Cozystack) -> Configuration | None:
        """The KubeVirt CR's configuration; None if there is no KubeVirt. Raises RenderError, InputError."""
        package = self.packages(release).packages.get(KUBEVIRT)
        if package is None:
            return None
        document = kubevirt_configuration(package, release)
        return read_configuration(Place(document, self.place.file, "the KubeVirt CR that these values make: spec.configuration"))

    @property
    def variant(self) -> str:
        """`bundles.iaas.gpuOperatorVariant`, of values that Helm does not refuse."""
        found = nil_safe(self.place.value, "bundles", "iaas", "gpuOperatorVariant")
        return found if truth(found) else "default"

    def is_hand_made(self, name: str) -> bool:
        """Is there a Package of this name beside the values?"""
        return any(package.name == name for package in self.hand_made)


def read_values(path: Path) -> PlatformValues:
    """Values as somebody wrote them. Raises InputError."""
    name = str(path)
    documents = parse_documents(read_text(path), name)
    if not documents:
        raise InputError(name, "", "is empty", "write `bundles:` and `gpu:`")
    packages = [document for document in documents if "kind" in document.value]
    values = [document for document in documents if "kind" not in document.value]
    for document in packages:
        document.need("kind", "write Package").choice("Package")
    platform = [document for document in packages if _name(document) == PLATFORM]
    found = [*values, *(_values_of(document) for document in platform)]
    if len(found) > 1:
        raise InputError(name, "", "holds the platform's values twice", "write them once")
    if not found:
        found = [Place({}, name)]
    found[0].mapping()
    hand_made = tuple(read_package(document) for document in packages if _name(document) in {KUBEVIRT, GPU_OPERATOR})
    return PlatformValues(found[0], hand_made)


def _name(document: Place) -> str:
    metadata = document.need("metadata", "write metadata.name")
    metadata.mapping()
    return metadata.need("name", f"write {PLATFORM}").text()


def _values_of(document: Place) -> Place:
    """The values within the platform's Package."""
    place = document
    for key in _PATH:
        place = place.need(key, f"write {'.'.join(_PATH)}")
        place.mapping()
    return place
