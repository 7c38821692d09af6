"""Cozystack's platform chart: which Packages it renders from its values, and what the two GPU ones say.

Each function is one template, its parts in the template's order, each expression that can fail at its place in the file:
whatever goes wrong there is printed with it. Values outside `bundles`, `gpu`, `resources`, `authentication` and
`publishing` are taken to be the chart's own; nothing is looked up in a cluster.

Source: cozystack/cozystack v1.6.2 packages/core/platform/templates/_helpers.tpl, bundles/*.yaml; Helm renders the longest
paths first, and of those the last names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from simulator.gocompat import quote
from simulator.kubevirt.cozystack import Cozystack, cozystack
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT, Package
from simulator.kubevirt.template import (
    Template,
    as_bool,
    as_map,
    coalesced,
    concat,
    default,
    equal,
    field,
    has,
    nil_safe,
    to_int,
    truth,
)

_CHART: Final = "cozy-platform"
_HELPERS: Final = Template(_CHART, "_helpers.tpl")
_SYSTEM: Final = Template(_CHART, "bundles/system.yaml")
_PAAS: Final = Template(_CHART, "bundles/paas.yaml")
_NAAS: Final = Template(_CHART, "bundles/naas.yaml")
_APPS: Final = Template(_CHART, "apps.yaml")
_IAAS: Final = Template(_CHART, "bundles/iaas.yaml")

_PACKAGE: Final = "cozystack.platform.package"
_FULL: Final = ("isp-full", "isp-full-generic")
_HOSTED: Final = "isp-hosted"
_VGPU: Final = "vgpu"

_COMMON: Final = [
    "kubeovn-webhook",
    "kubeovn-plunger",
    "cozy-proxy",
    "multus",
    "metallb",
    "reloader",
    "linstor-scheduler",
    "snapshot-controller",
    "securitygroup-controller",
    "linstor",
]
_EVERYWHERE: Final = [
    "gateway-api-crds",
    "cert-manager",
    "flux-plunger",
    "flux-shard-operator",
    "victoria-metrics-operator",
    "tenant-application",
    "ingress-application",
    "gateway-application",
    "seaweedfs-application",
    "info-application",
]
_EVERYWHERE_TOO: Final = [
    "etcd-application",
    "cozystack-basics",
    "backupstrategy-controller",
    "backup-controller",
    "velero",
    "vertical-pod-autoscaler",
    "metrics-server",
    "monitoring-agents",
    "goldpinger",
    "prometheus-operator-crds",
    "grafana-operator",
    "etcd-operator",
    "postgres-operator",
    "objectstorage-controller",
]
_OPTIONAL: Final = [
    "nfs-driver",
    "telepresence",
    "external-dns",
    "external-dns-application",
    "kuberture",
    "external-secrets-operator",
    "linstor-gui",
    "hetzner-robotlb",
]
_PAAS_PACKAGES: Final = [
    "mariadb-operator",
    "kafka-operator",
    "clickhouse-operator",
    "foundationdb-operator",
    "rabbitmq-operator",
    "redis-operator",
    "mongodb-operator",
    "opensearch-operator",
    "clickhouse-application",
    "foundationdb-application",
    "harbor-application",
    "kafka-application",
    "mariadb-application",
    "mongodb-application",
    "nats-application",
    "openbao-application",
    "opensearch-application",
    "postgres-application",
    "qdrant-application",
    "rabbitmq-application",
    "redis-application",
]
_NAAS_PACKAGES: Final = ["http-cache-application", "tcp-balancer-application", "vpn-application"]
_VM_PACKAGES: Final = [
    "kamaji",
    "capi-operator",
    "capi-provider-bootstrap-kubeadm",
    "capi-provider-core",
    "capi-provider-cp-kamaji",
    "capi-provider-infra-kubevirt",
    "bucket-application",
]
_VM_APPLICATIONS: Final = [
    "kubernetes-application",
    "virtualprivatecloud-application",
    "vm-disk-application",
    "vm-instance-application",
]


def render(values: Mapping[str, Any], release: Cozystack | None = None) -> dict[str, Package]:
    """The Packages by name. Raises RenderError."""
    platform = _Platform(values, release or cozystack())
    return {package.name: package for package in platform.templates()}


class _Platform:
    """The chart with its values."""

    def __init__(self, values: Mapping[str, Any], release: Cozystack) -> None:
        self.release = release
        self.values = coalesced(values, release.values)

    def templates(self) -> Iterator[Package]:
        """The templates in Helm's order."""
        yield from self.system()
        yield from self.paas()
        yield from self.naas()
        yield from self.iaas()
        self.apps()

    # --- _helpers.tpl -------------------------------------------------------------------------------------------

    def package(self, name: str, variant: str = "default", components: Mapping[str, Any] | None = None) -> Iterator[Package]:
        """`cozystack.platform.package`: unless it is disabled. Raises RenderError."""
        with _HELPERS.at(10, 12, "has $name $disabled", _PACKAGE):
            disabled = has(name, default([], field(self.values, "bundles", "disabledPackages")))
        if not disabled:
            yield Package(name, variant, components or {})

    def default_package(self, name: str) -> Iterator[Package]:
        """`cozystack.platform.package.default`."""
        expression = f'include "{_PACKAGE}" (list $name "default" $root)'
        with _HELPERS.including(30, 4, expression, f"{_PACKAGE}.default"):
            yield from self.package(name)

    def optional_package(self, name: str) -> Iterator[Package]:
        """`cozystack.platform.package.optional.default`: if it is enabled and not disabled; disabled wins."""
        expression = f'include "{_PACKAGE}.optional" (list $name "default" $root)'
        with _HELPERS.including(55, 4, expression, f"{_PACKAGE}.optional.default"):
            with _HELPERS.at(39, 12, "has $name $enabled", f"{_PACKAGE}.optional"):
                enabled = has(name, default([], field(self.values, "bundles", "enabledPackages")))
            if enabled:
                yield from self.package(name)

    # --- bundles ------------------------------------------------------------------------------------------------

    def variant_is(self, *names: str) -> bool:
        """Is the system's variant one of these? Raises Problem."""
        variant = field(self.values, "bundles", "system", "variant")
        return any(equal(variant, name) for name in names)

    def system(self) -> Iterator[Package]:
        """bundles/system.yaml."""
        with _SYSTEM.at(1, 14, ".Values.bundles.system.enabled"):
            if not truth(field(self.values, "bundles", "system", "enabled")):
                return
        with _SYSTEM.at(4, 7, 'eq .Values.bundles.system.variant "isp-full"'):
            is_full, is_hosted, is_generic = (self.variant_is(name) for name in (_FULL[0], _HOSTED, _FULL[1]))
        networks = ((is_full, 25, "kubeovn-cilium", " $networkingComponents"), (is_hosted, 32, "noop", ""))
        for chosen, line, network, components in (*networks, (is_generic, 92, "kubeovn-cilium-generic", " $networkingComponents")):
            if chosen:
                expression = f'include "{_PACKAGE}" (list "cozystack.networking" "{network}" ${components})'
                with _SYSTEM.including(line, 2, expression):
                    yield from self.package("cozystack.networking", network)
        if is_full or is_generic:
            for name in _COMMON:
                yield from self.default_package(f"cozystack.{name}")
        if is_full or is_generic or is_hosted:
            yield from self.package("cozystack.cozystack-scheduler", "default" if is_hosted else "linstor")
        with _SYSTEM.at(109, 14, ".Values.authentication.oidc.enabled"):
            oidc = truth(field(self.values, "authentication", "oidc", "enabled"))
        engine = "oidc" if oidc else "default"
        expression = f'include "{_PACKAGE}" (list "cozystack.cozystack-engine" "{engine}" $ $cozystackEngineComponents)'
        with _SYSTEM.including(110 if oidc else 114, 2, expression):
            yield from self.package("cozystack.cozystack-engine", engine)
        for name in (*(("keycloak", "keycloak-operator") if oidc else ()), *_EVERYWHERE):
            yield from self.default_package(f"cozystack.{name}")
        with _SYSTEM.at(145, 23, ".Values.publishing.proxyProtocol"):
            proxied = truth(field(self.values, "publishing", "proxyProtocol"))
        if proxied:
            yield from self.package("cozystack.ouroboros")
        with _SYSTEM.at(181, 96, ".Values.authentication.oidc.enabled"):
            as_bool(field(self.values, "authentication", "oidc", "enabled"))
        yield from self.package("cozystack.monitoring-application", engine)
        for name in _EVERYWHERE_TOO:
            yield from self.default_package(f"cozystack.{name}")
        for name in _OPTIONAL:
            expression = f'include "{_PACKAGE}.optional.default" (list "cozystack.{name}" $)'
            with _SYSTEM.including(252, 2, expression):  # the first of them fails if any does
                yield from self.optional_package(f"cozystack.{name}")
        if has("cozystack.bootbox", default([], field(self.values, "bundles", "enabledPackages"))):
            yield from self.default_package("cozystack.bootbox-application")
            yield from self.default_package("cozystack.bootbox")

    def paas(self) -> Iterator[Package]:
        """bundles/paas.yaml."""
        yield from self.simple_bundle(_PAAS, "paas", _PAAS_PACKAGES)

    def naas(self) -> Iterator[Package]:
        """bundles/naas.yaml."""
        yield from self.simple_bundle(_NAAS, "naas", _NAAS_PACKAGES)

    def simple_bundle(self, template: Template, bundle: str, names: list[str]) -> Iterator[Package]:
        """A bundle without conditions of its own."""
        with template.at(1, 18, f".Values.bundles.{bundle}.enabled"):
            if not truth(field(self.values, "bundles", bundle, "enabled")):
                return
        with template.at(1, 50, 'eq .Values.bundles.system.variant "isp-full"'):
            fits = self.variant_is(*_FULL, _HOSTED)
        if not fits:
            variants = "'isp-full', 'isp-full-generic', or 'isp-hosted'"
            raise template.fail(2, 4, f"bundles.{bundle}.enabled can only be true when bundles.system.variant is {variants}")
        for index, name in enumerate(names):
            expression = f'include "{_PACKAGE}.default" (list "cozystack.{name}" $)'
            with template.including(5 + index, 2, expression):
                yield from self.default_package(f"cozystack.{name}")

    def iaas(self) -> Iterator[Package]:
        """bundles/iaas.yaml: virtual machines, and the GPUs' part in them."""
        with _IAAS.at(1, 18, ".Values.bundles.iaas.enabled"):
            enabled = truth(field(self.values, "bundles", "iaas", "enabled"))
        if not enabled:
            return
        with _IAAS.at(1, 50, 'eq .Values.bundles.system.variant "isp-full"'):
            fits = self.variant_is(*_FULL)
        if not fits:
            message = "bundles.iaas.enabled can only be true when bundles.system.variant is 'isp-full' or 'isp-full-generic'"
            raise _IAAS.fail(2, 4, message)
        kubevirt: dict[str, Any] = {}
        with _IAAS.at(6, 14, ".Values.resources.cpuAllocationRatio"):
            ratio = field(self.values, "resources", "cpuAllocationRatio")
        if truth(ratio):
            kubevirt["cpuAllocationRatio"] = to_int(ratio)
        has_gpus = self.has_gpus()
        variant = self.gpu_variant()
        if has_gpus:
            kubevirt |= self.gpu_values(variant)
        components = {"kubevirt": {"values": kubevirt}} if kubevirt else {}
        with _IAAS.including(120, 2, f'include "{_PACKAGE}" (list "{KUBEVIRT}" "default" $ $kubevirtComponents)'):
            yield from self.package(KUBEVIRT, "default", components)
        yield from self.default_package("cozystack.kubevirt-cdi")
        yield from self.optional_package("cozystack.vm-default-images")
        if has_gpus:
            yield from self.package(GPU_OPERATOR, variant, self.gpu_operator_components(variant))
        yield from self.optional_package("cozystack.hami")
        for name in _VM_PACKAGES:
            yield from self.default_package(f"cozystack.{name}")
        for name in _VM_APPLICATIONS:
            yield from self.package(f"cozystack.{name}", "kubevirt")

    def apps(self) -> None:
        """apps.yaml: no Packages, but values that it cannot do without. Raises RenderError."""
        for line, column, names in (
            (6, 24, ("publishing", "host")),
            (89, 30, ("authentication", "oidc", "enabled")),
            (146, 38, ("resources", "cpuAllocationRatio")),
        ):
            with _APPS.at(line, column, f".Values.{'.'.join(names)}"):
                field(self.values, *names)

    # --- what iaas.yaml says of GPUs ----------------------------------------------------------------------------

    def has_gpus(self) -> bool:
        """Is the GPU Operator's Package enabled, and not disabled?"""
        bundles = self.values["bundles"]
        for column, key in ((24, "enabledPackages"), (93, "disabledPackages")):
            expression = f"has $gpuName (default (list) .Values.bundles.{key})"
            with _IAAS.at(24, column, expression):
                listed = has(GPU_OPERATOR, default([], bundles.get(key)))
            if listed is (key == "disabledPackages"):
                return False
        return True

    def gpu_variant(self) -> str:
        """The variant, checked whether or not there are GPUs. Raises RenderError."""
        variant = default("default", field(self.values, "bundles", "iaas", "gpuOperatorVariant"))
        with _IAAS.at(33, 16, 'eq $gpuVariant "default"'):
            fits = equal(variant, "default") or equal(variant, _VGPU)
        if not fits:
            message = f'bundles.iaas.gpuOperatorVariant must be "default" or "vgpu", got {quote(variant)}'
            raise _IAAS.fail(34, 4, message)
        assert isinstance(variant, str)
        return variant

    def gpu_values(self, variant: str) -> dict[str, Any]:
        """What KubeVirt's Package says of GPUs: the gate, and the tables."""
        gpu = self.values.get("gpu")
        with _IAAS.at(50, 41, ".Values.gpu"):
            user_pci = default([], nil_safe(gpu, "permittedHostDevices", "pciHostDevices"))
            user_mdev = default([], nil_safe(gpu, "permittedHostDevices", "mediatedDevices"))
        user_config = default({}, nil_safe(gpu, "mediatedDevicesConfiguration"))
        replace = truth(nil_safe(gpu, "replaceDefaults"))
        pci: list[Any] = []
        mdev: list[Any] = []
        config: Mapping[str, Any] = {}
        if variant == "default":
            if not replace:
                pci = concat(pci, list(self.release.pci_host_devices))
            with _IAAS.at(82, 11, "concat $pci $userPci"):
                pci = concat(pci, user_pci)
        else:
            with _IAAS.at(93, 48, ".Values.gpu"):
                makes_mdevs = truth(nil_safe(gpu, "vgpuDeviceManager", "enabled"))
            if not replace and makes_mdevs:
                mdev = concat(mdev, list(self.release.mediated_devices))
            with _IAAS.at(98, 11, "concat $pci $userPci"):
                pci = concat(pci, user_pci)
            with _IAAS.at(99, 12, "concat $mdev $userMdev"):
                mdev = concat(mdev, user_mdev)
            with _IAAS.at(100, 45, "$userMdevConfig"):
                config = as_map(user_config)
        permitted = {key: value for key, value in (("pciHostDevices", pci), ("mediatedDevices", mdev)) if value}
        return {
            "extraFeatureGates": ["HostDevices"],
            **({"permittedHostDevices": permitted} if permitted else {}),
            **({"mediatedDevicesConfiguration": dict(config)} if config else {}),
        }

    def gpu_operator_components(self, variant: str) -> dict[str, Any]:
        """What the GPU Operator's Package says beside its variant: in the vGPU variant only."""
        if variant != _VGPU:
            return {}
        gpu = self.values.get("gpu")
        overrides: dict[str, Any] = {}
        manager = default({}, nil_safe(gpu, "vgpuManager"))
        with _IAAS.at(137, 36, "$vgpuMgr"):
            manager = as_map(manager)
        with _IAAS.at(137, 55, 'ne (default "" $vgpuMgr.image) "vgpu-manager"'):
            is_custom = "image" in manager and not equal(default("", manager["image"]), "vgpu-manager", "ne")
        if is_custom or any(truth(manager.get(key)) for key in ("repository", "version", "imagePullSecrets")):
            overrides["vgpuManager"] = dict(manager)
        if truth(nil_safe(gpu, "vgpuDeviceManager", "enabled")):
            overrides["vgpuDeviceManager"] = {"enabled": True}
        return {"gpu-operator": {"values": {"gpu-operator": overrides}}} if overrides else {}
