"""What this library raises: a class for each code of the service, and for the few failures that come about here."""

from __future__ import annotations

import json
import re
from typing import Any, Mapping, NamedTuple


class BerthError(Exception):
    """`code` is one of the service's, or of the library's own: the name of the class, in small letters."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        details: Any = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code or codes_of_classes.get(type(self), "internal")
        #: Of the answer; None where there was none.
        self.status = status
        #: What the service says beside the message, such as the list of refused fields.
        self.details = details
        #: What to give the operator of the service.
        self.request_id = request_id
        #: Seconds to wait before the same call may succeed; None where waiting does not help.
        self.retry_after = retry_after


class ValidationError(BerthError): ...
class UnauthorizedError(BerthError): ...
class ForbiddenError(BerthError): ...
class PolicyViolationError(BerthError): ...
class QuotaExceededError(BerthError): ...
class PaymentRequiredError(BerthError): ...
class NotFoundError(BerthError): ...
class InvalidStateError(BerthError): ...
class ConflictError(BerthError): ...
class MethodNotAllowedError(BerthError): ...
class RequestTimeoutError(BerthError): ...
class PayloadTooLargeError(BerthError): ...
class UnsupportedMediaTypeError(BerthError): ...
class MisdirectedRequestError(BerthError): ...
class UpgradeRequiredError(BerthError): ...
class HeadersTooLargeError(BerthError): ...
class ProviderError(BerthError): ...
class UnavailableError(BerthError): ...
class InternalError(BerthError): ...


class NotConfiguredError(BerthError):
    """Nothing says where the service is, or with which key."""


class ConnectionFailedError(BerthError, ConnectionError):
    """The service cannot be reached, or the connection ended before the answer did."""


class TimedOutError(BerthError, TimeoutError):
    """The service did not answer in time. A command that runs out of its own time is `result.timed_out`."""


class NotReadyError(TimedOutError):
    """The service answers, but the unit is still on its way to run."""


class ExecResult(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str
    #: The command ran out of its time, and was killed.
    timed_out: bool
    #: There was more output than 1 MB.
    truncated: bool


class CommandFailedError(BerthError):
    """A command that ended with another code than 0, of a call with `check=True`."""

    def __init__(self, command: str, result: ExecResult) -> None:
        said = result.stderr.strip().split("\n")[-1]
        ended = "ran out of time" if result.timed_out else f"ended with {result.exit_code}"
        super().__init__(f"{command} {ended}" + (f": {said}" if said else ""))
        self.result = result


#: The class of each code.
classes: dict[str, type[BerthError]] = {
    "validation": ValidationError,
    "unauthorized": UnauthorizedError,
    "forbidden": ForbiddenError,
    "policy_violation": PolicyViolationError,
    "quota_exceeded": QuotaExceededError,
    "payment_required": PaymentRequiredError,
    "not_found": NotFoundError,
    "invalid_state": InvalidStateError,
    "conflict": ConflictError,
    "method_not_allowed": MethodNotAllowedError,
    "request_timeout": RequestTimeoutError,
    "payload_too_large": PayloadTooLargeError,
    "unsupported_media_type": UnsupportedMediaTypeError,
    "misdirected_request": MisdirectedRequestError,
    "upgrade_required": UpgradeRequiredError,
    "headers_too_large": HeadersTooLargeError,
    "provider_error": ProviderError,
    "unavailable": UnavailableError,
    "internal": InternalError,
    "not_configured": NotConfiguredError,
    "connection_failed": ConnectionFailedError,
    "timed_out": TimedOutError,
    "command_failed": CommandFailedError,
}
codes_of_classes: dict[type[BerthError], str] = {kind: code for code, kind in classes.items()}
codes_of_classes[NotReadyError] = "timed_out"

_codes_of_statuses = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    413: "payload_too_large",
    429: "quota_exceeded",
    502: "provider_error",
    503: "unavailable",
}


def error_of(status: int, headers: Mapping[str, str], text: str) -> BerthError:
    """Of an answer that is no success. A proxy in between may answer with anything."""
    try:
        retry_after: float | None = max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        retry_after = None
    facts: dict[str, Any] = {
        "status": status,
        "request_id": headers.get("x-request-id"),
        "retry_after": retry_after,
    }
    try:
        told = error_of_envelope(json.loads(text), facts)
    except ValueError:
        told = None
    if told is not None:
        return told
    if 300 <= status < 400:
        # The service never redirects: a key must not be sent to another host.
        return ConnectionFailedError(f"HTTP {status}, and not by Berth.", **facts)
    code = _codes_of_statuses.get(status, "validation" if status < 500 else "internal")
    return classes[code](f"HTTP {status}, and not by Berth.", **facts)


def error_of_envelope(body: Any, facts: Mapping[str, Any]) -> BerthError | None:
    """Of an error envelope, as an answer or the last event of a stream; None for anything else."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return None
    message = _for_callers(message)
    told: dict[str, Any] = {**facts, "code": code, "details": error.get("details")}
    if isinstance(error.get("requestId"), str):
        told["request_id"] = error["requestId"]
    if code == "command_failed":
        # Its message is made of a result, which no answer has.
        return BerthError(message, **told)
    return classes.get(code, BerthError)(message, **told)


def _for_callers(message: str) -> str:
    """A message for who writes calls by hand, in the words of who calls this library: it writes bodies and headers itself."""
    if message.startswith("Send a valid API key"):
        return "The service does not know this API key. Make one under Agents in the dashboard, and set BERTH_API_KEY."
    named = re.fullmatch(r'There is no (unit|stack) "(?!(?:unit|stack)_)(.+)"\.', message)
    if named:
        return f'{message} An id is asked for here; {named[1]}s.find("{named[2]}") takes a name.'
    return message[len("spec.") :] if message.startswith("spec.") else message
