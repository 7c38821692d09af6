"""Package CRs: what they say, whose they are, and which one counts.

Cozystack's operator installs a Package's components with the values below `spec.components.NAME.values`; what stands
elsewhere in its spec is not looked at. A Package that its bundle renders and one that is made by hand are one object if
they share a name: what was written last stands, and nothing says so. Who wants to write it by hand puts its name into
`bundles.disabledPackages`.

Source: cozystack/cozystack v1.6.2 internal/operator/package_reconciler.go; guide "GPU passthrough", hand-made Packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulator.reading import Place

KUBEVIRT: Final = "cozystack.kubevirt"
GPU_OPERATOR: Final = "cozystack.gpu-operator"
_API: Final = "cozystack.io/v1alpha1"


@dataclass(frozen=True, slots=True)
class Package:
    """A Package's spec. `components` is component -> its part of the spec."""

    name: str
    variant: str = "default"
    components: Mapping[str, Any] = field(default_factory=dict)

    def values(self, component: str) -> Mapping[str, Any]:
        """The values that a component is installed with."""
        return (self.components.get(component) or {}).get("values") or {}

    def spec(self) -> dict[str, Any]:
        """The spec as a document."""
        return {"variant": self.variant, **({"components": dict(self.components)} if self.components else {})}


@dataclass(frozen=True, slots=True)
class InForce:
    """The Packages of a cluster, by name, and the names that both the bundle and a person write."""

    packages: Mapping[str, Package]
    contested: tuple[str, ...] = ()


def in_force(rendered: Iterable[Package], hand_made: Iterable[Package]) -> InForce:
    """What counts: the hand-made Package where there are both. It is whole: nothing of the rendered one is merged into it."""
    packages = {package.name: package for package in rendered}
    own = {package.name: package for package in hand_made}
    return InForce({**packages, **own}, tuple(sorted(packages.keys() & own.keys())))


def read_package(document: Place) -> Package:
    """A Package as somebody wrote it. Raises InputError."""
    document.mapping()
    api = document.need("apiVersion", f"write {_API}")
    if api.text() != _API:
        api.fail(f'is "{api.value}"', f"write {_API}")
    document.need("kind", "write Package").choice("Package")
    name = document.need("metadata", "write metadata.name").need("name", f"write {KUBEVIRT} or {GPU_OPERATOR}").text()
    spec = document.get("spec")
    if spec is None:
        return Package(name)
    spec.mapping()
    if spec.has("values"):
        spec.child("values").fail("is not looked at", "write it below spec.components.NAME.values")
    variant = spec.get("variant")
    components = {key: dict(part.mapping()) for key, part in spec.entries("components")}
    for key, part in spec.entries("components"):
        if (values := part.get("values")) is not None:
            components[key]["values"] = dict(values.mapping())
    return Package(name, variant.text() if variant is not None else "default", components)
