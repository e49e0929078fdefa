"""What went wrong below ClickHouse, as exceptions.

Each has an attribute `phase`: "connect" (nothing of the request was sent), "sent" (some or all of it was, and there is no whole
answer), or "timeout".
"""

from __future__ import annotations

from windrow._core import Body, BodyError
from windrow._shared import errors


def network_error(cause: BaseException, phase: str, show: bool | str = True, server: str = "") -> errors.OperationalError:
    """The exception for a request that failed on its way; `server` is host and port."""
    return _with_phase(errors.of_network(cause, show, server), cause, phase)


def _with_phase(error: errors.OperationalError, cause: BaseException, phase: str) -> errors.OperationalError:
    error.phase = phase  # type: ignore[attr-defined]
    error.__cause__ = cause
    return error


def timed_out(
    what: str, timeout_s: float | None, phase: str = "timeout", show: bool | str = True, server: str = ""
) -> errors.OperationalError:
    """The exception for a request that took too long."""
    return network_error(TimeoutError(f"{what} within {timeout_s:g} seconds" if timeout_s else what), phase, show, server)


def broken_body(cause: Exception, body: Body, show: bool | str = True) -> Exception:
    """The exception for a body that broke off: ClickHouse's own if the body ends with it, else of a lost stream.

    `cause` is what the reader of the body met. Takes what is left of the body.
    """
    text = body.exception_text()
    if text:
        error = errors.of_stream(text, show)
        error.__cause__ = cause
        return error
    if isinstance(cause, errors.OperationalError):
        return _with_phase(errors.StreamFailureError(*cause.args), cause, getattr(cause, "phase", "sent"))
    if not isinstance(cause, BodyError):
        return cause
    return _with_phase(errors.of_lost_stream(cause, show), cause, "sent")
