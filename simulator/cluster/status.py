"""What an API server says when it refuses: `Status` documents, worded as by a real one.

Source: k8s.io/apimachinery/pkg/api/errors/errors.go, pkg/apis/meta/v1/types.go (StatusReason).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from simulator.cluster.kinds import Kind
from simulator.gocompat import quote
from simulator.ports import Response

REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""HTTP code -> the reason a Status carries."""

_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


class Problem(NamedTuple):
    """One thing that is wrong with an object (`field.Error`): where, its reason, and the rest of its text."""

    field: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class Refused(Exception):
    """A request is answered with an error."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.body["message"])
        self.response = response


def status_document(code: int, message: str, reason: str = "", **details: Any) -> dict[str, Any]:
    """A `Status` failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason or REASONS.get(code, ""),
        "details": details,
        "code": code,
    }


def failure(code: int, message: str, *, retry_after: int | None = None, reason: str = "", **details: Any) -> Response:
    """An error answer."""
    return Response(code, status_document(code, message, reason, **details), retry_after)


def success(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """The Status of a deletion that is done."""
    details = {"name": name, **_details(kind), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def bad_request(message: str) -> Refused:
    """400."""
    return Refused(failure(400, message))


def no_such_path() -> Refused:
    """404 for a path that nothing serves."""
    return Refused(failure(404, "the server could not find the requested resource"))


def not_found(kind: Kind, name: str) -> Refused:
    """404 for an object."""
    return Refused(failure(404, f"{kind.resource} {quote(name)} not found", name=name, **_details(kind)))


def not_allowed() -> Refused:
    """405."""
    return Refused(failure(405, "the server does not allow this method on the requested resource"))


def already_exists(kind: Kind, name: str) -> Refused:
    """409 for a name that is taken."""
    text = f"{kind.resource} {quote(name)} already exists"
    return Refused(failure(409, text, reason="AlreadyExists", name=name, **_details(kind)))


def conflict(kind: Kind, name: str, why: str = _MODIFIED) -> Refused:
    """409 for an object that is not as the request says it is."""
    text = f"Operation cannot be fulfilled on {kind.resource} {quote(name)}: {why}"
    return Refused(failure(409, text, name=name, **_details(kind)))


def unsupported_media_type(accepted: Sequence[str]) -> Refused:
    """415."""
    text = "the body of the request was in an unknown format - accepted media types include: "
    return Refused(failure(415, text + ", ".join(accepted)))


def expired(message: str) -> Refused:
    """410."""
    return Refused(failure(410, message))


def invalid(kind: Kind, name: str, problems: Sequence[Problem]) -> Refused:
    """422, every problem with its field."""
    texts = [str(problem) for problem in problems]
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    causes = [{"reason": problem.reason, "message": problem.text, "field": problem.field} for problem in problems]
    details: dict[str, Any] = {"group": kind.group} if kind.group else {}
    return Refused(
        failure(422, f"{qualified} {quote(name)} is invalid: {text}", name=name, kind=kind.kind, causes=causes, **details)
    )


def _details(kind: Kind) -> dict[str, Any]:
    return {"group": kind.group, "kind": kind.plural} if kind.group else {"kind": kind.plural}
