"""Where the API server is: kubeconfig file, in-cluster configuration, or neither.

Source: k8s.io/client-go/tools/clientcmd client_config.go `BuildConfigFromFlags`, loader.go, validation.go; client-go/rest
config.go `InClusterConfig`. Of a kubeconfig what decides where requests go and whether it is usable is read: the current
context, its cluster's server, the files that are named, and what client and server prove themselves with; a port
makes use of that. Plugins, impersonation, proxies and what certificates hold are not modelled. YAML's syntax errors are go-yaml's
as far as PyYAML finds the same ones.
"""

from __future__ import annotations

import errno
import math
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import unquote

import yaml

from simulator.gocompat import GoError, PathError, decode_base64, errno_of, quote, trim_space
from simulator.kube.profile import Libraries
from simulator.ports import ConnectionRefused, Credentials, Host, Output, Request, Response, Server

_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_ROOT_CA: Final = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
_NO_CONFIGURATION: Final = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)
_NOT_IN_CLUSTER: Final = (
    "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
)


class RestConfig(NamedTuple):
    """`rest.Config`: the API server as the configuration names it, how to log in, and why the token is of no use."""

    host: str
    credentials: Credentials = Credentials()
    token_problem: str = ""


def build_config_from_flags(
    kubeconfig: str, env: Mapping[str, str], host: Host, output: Output, libraries: Libraries, stamp: str
) -> RestConfig:
    """`clientcmd.BuildConfigFromFlags("", kubeconfig)`.

    `stamp` is klog's header up to the file name. Raises GoError.
    """
    if kubeconfig:
        return _from_file(kubeconfig, host)
    output.stderr(
        f"W{stamp} client_config.go:{libraries.in_cluster_line}] Neither --kubeconfig nor --master was specified."
        "  Using the inClusterConfig.  This might not work.\n"
    )
    try:
        return _in_cluster(env, host, output.stderr, libraries, stamp)
    except GoError as error:
        output.stderr(
            f"W{stamp} client_config.go:{libraries.fallback_line}] error creating inClusterConfig,"
            f" falling back to default config: {error}\n"
        )
    raise GoError(_NO_CONFIGURATION)


NO_CONFIG: Final = RestConfig("http://localhost:8080")
"""Where kubectl turns to if nothing tells it where the server is."""


class Nowhere:
    """This machine, where no API server listens."""

    def request(self, request: Request) -> Response:
        """Refused."""
        raise ConnectionRefused(request.path)


def kubectl_config(env: Mapping[str, str], host: Host) -> RestConfig:
    """Where kubectl looks: the files of KUBECONFIG, else the home's, else the pod it is in, else this machine.

    Of several files the first that exists counts. Raises GoError.
    """
    home = env.get("HOME", "")
    for path in env.get("KUBECONFIG", "").split(":") if env.get("KUBECONFIG") else [f"{home.rstrip('/')}/.kube/config"]:
        try:
            host.stat(path)
        except OSError:
            continue
        return _from_file(path, host)
    try:
        return _in_cluster(env, host, lambda _: None, Libraries(), "")  # without a word
    except GoError:
        return NO_CONFIG


def _in_cluster(env: Mapping[str, str], host: Host, stderr: Callable[[str], None], libraries: Libraries, stamp: str) -> RestConfig:
    name, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
    if not name or not port:
        raise GoError(_NOT_IN_CLUSTER)
    token = _read(_TOKEN, host)
    failure = _root_ca_failure(host)
    if failure is not None:
        stderr(
            f"E{stamp} config.go:{libraries.root_ca_line}] Expected to load root CA config from {_ROOT_CA}, but got err: {failure}\n"
        )
    address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    credentials = Credentials(token=trim_space(token), ca_file="" if failure else _ROOT_CA)
    return RestConfig(f"https://{address}", credentials, "" if token else f"read empty token from file {quote(_TOKEN)}")


def _read(path: str, host: Host) -> str:
    try:
        return host.read_file(path)
    except OSError as error:
        operation = "read" if error.errno == errno.EISDIR else "open"
        raise PathError(operation, path, errno_of(error)) from None


def _root_ca_failure(host: Host) -> GoError | None:
    try:
        text = _read(_ROOT_CA, host)
    except GoError as error:
        return error
    if "-----BEGIN CERTIFICATE-----" in text:
        return None
    return GoError(f"error creating pool from {_ROOT_CA}: data does not contain any valid RSA or ECDSA certificates")


def _from_file(path: str, host: Host) -> RestConfig:
    try:
        host.stat(path)
    except FileNotFoundError:
        raise PathError("stat", path, errno.ENOENT) from None
    except OSError:  # upstream asks for "does not exist" only
        pass
    try:
        document = _document(_read(path, host))
    except GoError as error:
        raise _unloaded(path, error) from None
    clusters, contexts, users = (_named(document, word) for word in ("cluster", "context", "user"))
    current = str(document.get("current-context") or "")
    context = contexts.get(current, {})
    problems = [] if not current or current in contexts else [f"context was not found for specified context: {current}"]
    user_name, cluster_name = str(context.get("user") or ""), str(context.get("cluster") or "")
    problems += _user_problems(user_name, users.get(user_name, {}), path, host)
    if cluster_name in clusters:
        problems += _cluster_problems(cluster_name, clusters[cluster_name], path, host)
    elif problems:
        problems.append("cluster has no server defined")
    else:
        raise GoError(_NO_CONFIGURATION)
    if problems:
        text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise GoError(f"invalid configuration: {text}")
    cluster = clusters[cluster_name]
    server = str(cluster["server"])
    if not server.lower().startswith("https://"):  # "only try to read the auth information if we are secure"
        return RestConfig(server)
    return RestConfig(server, _credentials(cluster, users.get(user_name, {}), path, host))


def _credentials(cluster: Mapping[str, Any], user: Mapping[str, Any], path: str, host: Host) -> Credentials:
    """`getServerIdentificationPartialConfig`, `getUserIdentificationPartialConfig`. Raises GoError for an unreadable token."""
    ca_file, cert_file, key_file, token_file = (
        _local(entry, key, path)
        for entry, key in (
            (cluster, "certificate-authority"),
            (user, "client-certificate"),
            (user, "client-key"),
            (user, "tokenFile"),
        )
    )
    token = str(user.get("token") or "")
    if not token and token_file:
        token = trim_space(_read(token_file, host))
    return Credentials(
        token=token,
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        ca_file=ca_file,
        ca_data=str(cluster.get("certificate-authority-data") or ""),
        cert_file=cert_file,
        cert_data=str(user.get("client-certificate-data") or ""),
        key_file=key_file,
        key_data=str(user.get("client-key-data") or ""),
        server_name=str(cluster.get("tls-server-name") or ""),
        insecure=cluster.get("insecure-skip-tls-verify") is True,
    )


def _local(entry: Mapping[str, Any], key: str, path: str) -> str:
    """`ResolveLocalPaths`: a file that a kubeconfig names, as seen from the kubeconfig; "" if it names none."""
    file = str(entry.get(key) or "")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else ""


def _unloaded(path: str, cause: GoError) -> GoError:
    return GoError(f'error loading config file "{path}": {cause}')


# --- the document ---------------------------------------------------------------------------------------------------

_TYPE: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SCHEME: Final = "k8s.io/client-go/tools/clientcmd/api/latest/latest.go:50"


_TAG: Final = "tag:yaml.org,2002:"


class _Loader(yaml.SafeLoader):
    """YAML as go-yaml v2 makes JSON's values of it.

    Lists and mappings are what they are, whatever their tag says; a date is text; `y` and `n` are booleans; a tag that is not
    known is none. Raises GoError for a value that is not what its tag says, and for a key that is no scalar.
    """

    bool_values: ClassVar = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
    yaml_implicit_resolvers = {  # noqa: RUF012  # the base's own form
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in {f"{_TAG}timestamp", f"{_TAG}int"}]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._open: set[str | None] = set()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        anchor = getattr(self.peek_event(), "anchor", None)  # type: ignore[no-untyped-call]  # PyYAML's
        if self.check_event(yaml.AliasEvent):
            if anchor in self._open:
                raise GoError(f"yaml: anchor '{anchor}' value contains itself")
            return super().compose_node(parent, index)
        self.anchors.pop(anchor, None)  # an anchor may be set anew
        self._open.add(anchor)
        node = super().compose_node(parent, index)
        self._open.discard(anchor)
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        try:
            super().flatten_mapping(node)
        except yaml.constructor.ConstructorError:
            raise GoError("yaml: map merge requires map or sequence of maps as the value") from None

    def construct_any(self, node: yaml.Node) -> Any:
        match node:
            case yaml.MappingNode():
                return self.construct_mapping(node)
            case yaml.SequenceNode():
                return self.construct_sequence(node)
            case _:
                return self._scalar(node)  # type: ignore[arg-type]  # there is no fourth kind of node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  # PyYAML's
        self.flatten_mapping(node)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise GoError(f"yaml: invalid map key: {_go_syntax(self.construct_object(key, deep=True))}")
        return super().construct_mapping(node, deep)

    def _float(self, node: yaml.ScalarNode) -> float:
        number = self.construct_yaml_float(node)
        if not math.isfinite(number):
            raise GoError(f"json: unsupported value: { {math.inf: '+Inf', -math.inf: '-Inf'}.get(number, 'NaN') }")
        return number

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text, kind = str(node.value), node.tag.removeprefix(_TAG)
        if kind == "binary":
            try:
                return decode_base64(text).decode("utf-8", "surrogateescape")
            except GoError:
                raise GoError("yaml: !!binary value contains invalid base64 data") from None
        read = {
            "bool": self.construct_yaml_bool,
            "int": _int,
            "float": self._float,
            "null": self.construct_yaml_null,
            "timestamp": self.construct_scalar,
        }.get(kind)
        if read is None:
            return text
        plain = str(self.resolve(yaml.ScalarNode, text, (True, False))).removeprefix(_TAG)  # type: ignore[no-untyped-call]  # PyYAML's
        if kind not in {plain, "timestamp"} and (kind, plain) != ("float", "int"):
            raise GoError(f"yaml: cannot decode !!{plain} `{text}` as a !!{kind}")
        if kind == "timestamp" and not self.timestamp_regexp.match(text):
            raise GoError(f"yaml: cannot decode !!{plain} `{text}` as a !!timestamp")
        return read(node)


def _int(node: yaml.ScalarNode) -> int:
    """Base 0 of strconv.ParseInt."""
    text = node.value.replace("_", "")
    return int(text, 8) if re.fullmatch(r"[-+]?0[0-7]+", text) else int(text, 0)


_Loader.add_constructor(None, _Loader.construct_any)
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
_INTEGER: Final = r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z"
_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(_INTEGER), list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", re.compile(r"[-+]?[0-9]+([eE][-+]?[0-9]+)?\Z"), list("-+0123456789"))


def _go_syntax(value: Any) -> str:
    """`%#v` of a value that go-yaml made."""
    match value:
        case dict():
            pairs = (f"{_go_syntax(key)}:{_go_syntax(item)}" for key, item in value.items())
            return f"map[interface {{}}]interface {{}}{{{', '.join(pairs)}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
        case str():
            return quote(value)
        case bool():
            return "true" if value else "false"
        case None:
            return "interface {}(nil)"
        case float() if abs(value) >= 1e6:
            mantissa, exponent = f"{Decimal(repr(value)).normalize():e}".split("e")
            return f"{mantissa}e{int(exponent):+03}"
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


@lru_cache(maxsize=32)
def _document(text: str) -> Mapping[str, Any]:
    """A kubeconfig, read only: the first document of the text. Raises GoError.

    Runs read the same few texts over and over, and YAML in pure Python is slow.
    """
    try:
        document = next(iter(yaml.load_all(text, _Loader)), None)  # a SafeLoader
    except yaml.YAMLError as error:
        raise GoError(_yaml_error(error, text)) from None
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise GoError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {_json_kind(document)} into Go value of type {_TYPE}"
        )
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        if value is not None and not isinstance(value, str):
            raise GoError(
                "couldn't get version/kind; json parse error:"
                f" json: cannot unmarshal {_json_kind(value)} into Go struct field .{key} of type string"
            )
    version, kind = document.get("apiVersion") or "v1", document.get("kind") or "Config"
    if (version, kind) != ("v1", "Config"):
        raise GoError(f'no kind {quote(kind)} is registered for version {quote(version)} in scheme "{_SCHEME}"')
    for problem in _wrong_types(document):
        raise GoError(problem)
    for problem in _duplicates(document):
        raise GoError(problem)
    return document


_FIELDS: Final = {
    "cluster": (
        "Cluster",
        (
            "server tls-server-name insecure-skip-tls-verify:bool certificate-authority certificate-authority-data:bytes proxy-url"
            " disable-compression:bool extensions:[]"
        ),
    ),
    "context": ("Context", "cluster user namespace extensions:[]"),
    "user": (
        "AuthInfo",
        (
            "client-certificate client-certificate-data:bytes client-key client-key-data:bytes token tokenFile as as-uid"
            " as-groups:list as-user-extra:map[] username password auth-provider:<nil> exec:<nil> extensions:[]"
        ),
    ),
}
"""A kubeconfig's structures: the Go type, and its fields in their order with their kind if they are no text."""
_GO_TYPES: Final = {
    "": ("string", "string"),
    "bool": ("bool", "bool"),
    "bytes": ("string", "[]uint8"),
    "list": ("array", "[]string"),
    "map[]": ("object", "map[string][]string"),
    "[]": ("array", "[]v1.NamedExtension"),
    "auth-provider": ("object", "v1.AuthProviderConfig"),
    "exec": ("object", "v1.ExecConfig"),
}
"""Of a field's kind, or of the field that has a type of its own: JSON's kind and Go's type."""


def _wrong_types(document: Mapping[str, Any]) -> Iterator[str]:
    """Values that Go's structures do not take, in the order of a decoder that is given sorted keys."""
    for word, (kind, fields) in _FIELDS.items():
        if word == "user":
            yield from _wrong_fields(document, ("current-context",), "Config")
        entries = document.get(f"{word}s")
        if entries is not None and not isinstance(entries, list):
            yield _wrong(entries, f"Config.{word}s", f"[]v1.Named{kind}")
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, Mapping):
                if entry is not None:
                    yield _wrong(entry, f"Config.{word}s", f"v1.Named{kind}")
                continue
            value = entry.get(word)
            if word == "user":
                yield from _wrong_fields(entry, ("name",), f"Named{kind}.{word}s")
            if isinstance(value, Mapping):
                yield from _wrong_fields(value, sorted(fields.split()), f"{kind}.{word}s.{word}")
            elif value is not None:
                yield _wrong(value, f"Named{kind}.{word}s.{word}", f"v1.{kind}")
            if word != "user":
                yield from _wrong_fields(entry, ("name",), f"Named{kind}.{word}s")


def _wrong_fields(values: Mapping[str, Any], fields: Iterable[str], place: str) -> Iterator[str]:
    for field in fields:
        key, _, kind = field.partition(":")
        value = values.get(key)
        expected, go_type = _GO_TYPES.get(key) or _GO_TYPES[kind]
        if value is None:
            continue
        if _json_kind(value) != expected:
            yield _wrong(value, f"{place}.{key}", go_type)
        elif kind == "bytes":
            try:
                decode_base64(value)
            except GoError as error:
                yield str(error)
        elif kind == "list":
            yield from (
                _wrong(item, f"{place}.{key}", "string") for item in value if item is not None and not isinstance(item, str)
            )


def _wrong(value: Any, place: str, go_type: str) -> str:
    return f"json: cannot unmarshal {_json_kind(value)} into Go struct field {place} of type {go_type}"


def _duplicates(document: Mapping[str, Any]) -> Iterator[str]:
    """Names that stand twice in a list. Source: client-go tools/clientcmd/api/v1 (Convert_Slice_v1_Named..._To_Map)."""
    for word in ("cluster", "user", "context"):
        kind, fields = _FIELDS[word]
        entries = [entry or {} for entry in document.get(f"{word}s") or ()]
        names = [str(entry.get("name") or "") for entry in entries]
        for twice in (name for index, name in enumerate(names) if name in names[:index]):
            listed = " ".join(
                f"{{{entry.get('name') or ''} {{{' '.join(_printed(entry.get(word) or {}, field) for field in fields.split())}}}}}"
                for entry in entries
            )
            yield (
                f"error converting *[]Named{kind} into *map[string]*api.{kind}: duplicate name {quote(twice)} in list: [{listed}]"
            )


def _printed(entry: Mapping[str, Any], field: str) -> str:
    """Go's %v of a field. What points somewhere (an address) or is a structure of its own is printed as if it were not there."""
    key, _, kind = field.partition(":")
    value = entry.get(key)
    match kind:
        case "":
            return str(value or "")
        case "bool":
            return "true" if value else "false"
        case "bytes":
            return f"[{' '.join(map(str, decode_base64(value or '')))}]"
        case "list":
            return f"[{' '.join(item or '' for item in value or ())}]"
        case _:
            return kind


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object" if isinstance(value, Mapping) else "string"


_YAML_WORDS: Final = (
    ("while parsing a block mapping", "expected <block end>", "did not find expected key"),
    ("while parsing a block collection", "expected <block end>", "did not find expected '-' indicator"),
    ("", "expected ',' or ']'", "did not find expected ',' or ']'"),
    ("", "expected ',' or '}'", "did not find expected ',' or '}'"),
    ("", "expected the node content", "did not find expected node content"),
    ("", "expected '<document start>'", "did not find expected <document start>"),
    ("", "mapping values are not allowed here", "mapping values are not allowed in this context"),
    ("", "mapping keys are not allowed here", "mapping keys are not allowed in this context"),
    ("", "sequence entries are not allowed here", "block sequence entries are not allowed in this context"),
    ("", "that cannot start any token", "found character that cannot start any token"),
    ("while scanning a directive", "expected alphabetic or numeric character", "could not find expected directive name"),
    ("", "expected alphabetic or numeric character", "did not find expected alphabetic or numeric character"),
    ("", "expected a comment or a line break", "did not find expected comment or line break"),
    ("", "expected chomping or indentation indicators", "did not find expected comment or line break"),
    ("while scanning a directive", "expected a digit or '.'", "did not find expected digit or '.' character"),
    ("while scanning a directive", "expected a digit", "did not find expected version number"),
    ("while scanning a directive", "expected '!'", "did not find expected '!'"),
    ("while parsing a tag", "expected '>'", "did not find the expected '>'"),
    ("while scanning a tag", "expected", "did not find expected whitespace or line break"),
    ("", "hexadecimal numbers", "did not find expected hexdecimal number"),
    ("", "found unknown escape character", "found unknown escape character"),
    ("", "found undefined tag handle", "found undefined tag handle"),
)
"""PyYAML's context and problem -> go-yaml's words. Others are the same, or as good as can be had."""


def _yaml_error(error: yaml.YAMLError, text: str) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return "yaml: control characters are not allowed"
    problem, context, mark = str(error.problem), str(error.context), error.problem_mark
    assert mark is not None  # PyYAML always gives one
    if problem.startswith("found undefined alias"):
        return f"yaml: unknown anchor {problem.removeprefix('found undefined alias ')} referenced"
    for its_context, its_problem, words in _YAML_WORDS:
        if its_problem in problem and its_context in context:
            problem = words
            break
    scanning = isinstance(error, yaml.scanner.ScannerError)
    at_end = mark.index >= len(text) and mark.column > 0 and (not scanning or problem == "could not find expected ':'")
    line = mark.line + at_end  # the end of the text is on a line of its own
    line += bool(line) and scanning
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


def _named(document: Mapping[str, Any], word: str) -> dict[str, Mapping[str, Any]]:
    entries = document.get(word + "s") or []
    return {str((entry or {}).get("name") or ""): (entry or {}).get(word) or {} for entry in entries}


# --- is it usable? --------------------------------------------------------------------------------------------------


def _cluster_problems(name: str, cluster: Mapping[str, Any], path: str, host: Host) -> list[str]:
    """`validateClusterInfo`."""
    problems = []
    if not cluster.get("server"):
        problems.append(f"no server found for cluster {quote(name)}" if name else "default cluster has no server defined")
    if cluster.get("certificate-authority") and cluster.get("certificate-authority-data"):
        problems.append(
            f"certificate-authority-data and certificate-authority are both specified for {name}."
            " certificate-authority-data will override."
        )
    return problems + _unreadable("certificate-authority", "certificate-authority", name, cluster, path, host)


def _user_problems(name: str, user: Mapping[str, Any], path: str, host: Host) -> list[str]:
    """`validateAuthInfo`, but for plugins and impersonation."""
    problems = []
    if user.get("client-certificate") or user.get("client-certificate-data"):
        if user.get("client-certificate") and user.get("client-certificate-data"):
            problems.append(f"client-cert-data and client-cert are both specified for {name}. client-cert-data will override.")
        if user.get("client-key") and user.get("client-key-data"):
            problems.append(f"client-key-data and client-key are both specified for {name}; client-key-data will override")
        if not user.get("client-key") and not user.get("client-key-data"):
            problems.append(
                f"client-key-data or client-key must be specified for {name} to use the clientCert authentication method."
            )
        problems += _unreadable("client-certificate", "client-cert", name, user, path, host)
        problems += _unreadable("client-key", "client-key", name, user, path, host)
    if user.get("token") and (user.get("username") or user.get("password")):
        problems.append(f"more than one authentication method found for {name}; found [token basicAuth], only one is allowed")
    return problems


def _unreadable(key: str, word: str, name: str, entry: Mapping[str, Any], path: str, host: Host) -> list[str]:
    file = _local(entry, key, path)
    if not file:
        return []
    try:
        host.stat(file)
    except OSError as error:
        return [f"unable to read {word} {file} for {name} due to {PathError('open', file, errno_of(error))}"]
    return []


_URL: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#:@%\[\]]*)(:[0-9]*)?(/[^?#]*)?(?:[?#].*)?\Z"
)


def new_for_config(config: RestConfig) -> Server:
    """`kubernetes.NewForConfig`, `DefaultServerURL`: without a scheme it is plain HTTP.

    Raises GoError for what is no URL and no host:port, and for a token that is missing.
    """
    if config.token_problem:
        raise GoError(config.token_problem)
    found = _URL.match(config.host)
    if found is None or not (found[3] or found[4]) or (not found[1] and (found[5] or "/") != "/"):
        raise GoError(f"host must be a URL or a host:port pair: {quote(config.host)}")
    scheme, user, name, port, path = (part or "" for part in found.groups())
    scheme = scheme.lower() or "http"
    credentials = config.credentials
    if user and not (credentials.token or credentials.username or credentials.password):
        username, _, password = user.removesuffix("@").partition(":")
        credentials = credentials._replace(username=unquote(username), password=unquote(password))
    user = re.sub(":.*@", ":***@", user)
    address = name + (port if len(port) > 1 else ":443" if scheme == "https" else ":80")
    return Server(f"{scheme}://{user}{name}{port}{path.rstrip('/')}", address, credentials)
