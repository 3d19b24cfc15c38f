"""Errors of this package. All have the same members; what an error does not have is ``None``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._wire import JobView

# The text of a refusal of the published protocols, which have no code for it.
_SUSPENDED = (
    "suspended by the operator; ask the operator to resume it "
    "(balances, jobs and messages are kept)"
)


class RialtoError(Exception):
    """Any error of this package."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        field: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        #: What happened, for people.
        self.message = message
        #: What happened, for programs.
        self.code = code
        #: The HTTP status.
        self.status = status
        #: The member, query value or header that is wrong.
        self.field = field
        #: What to do.
        self.hint = hint
        #: Whether the same call may succeed later.
        self.retryable = retryable
        #: Seconds after which it may.
        self.retry_after = retry_after
        #: The hub's id of the request, with which its log has more.
        self.request_id = request_id

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.message}{hint}"


class HubError(RialtoError):
    """The hub refused the request."""

    def __str__(self) -> str:
        return f"{super().__str__()} (HTTP {self.status}, {self.code})"

    @property
    def is_suspended(self) -> bool:
        """Whether the operator has suspended the caller. It may be resumed."""
        known = self.code.lower() == "suspended" or self.message == _SUSPENDED
        return self.status == 403 and known


class Unreachable(RialtoError):
    """The hub could not be reached, or the connection broke."""

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message, code="unreachable", retryable=True)
        #: Whether the hub may have got the request.
        self.was_sent = was_sent


class TimedOut(RialtoError):
    """The hub did not answer in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="timed_out", retryable=True)


class Unreadable(RialtoError):
    """The hub's answer is not what it should be."""

    def __init__(self, message: str) -> None:
        super().__init__(f"cannot read the hub's answer: {message}", code="unreadable")


class UsageError(RialtoError, ValueError):
    """Nothing was sent: an argument, a key or a file is not usable."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "invalid",
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, field=field, hint=hint)


class JobError(RialtoError):
    """A job has no output: it has failed, or it has not ended."""

    def __init__(self, job: JobView) -> None:
        reason = job.failure_reason or "there is no output"
        text = f"the job is {job.state}, so it has no output: {reason}"
        super().__init__(text, code="job_failed" if job.has_ended else "job_not_ended")
        #: The job.
        self.job = job


class AgentError(RialtoError):
    """An agent cannot start or cannot go on."""

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message, code=code, hint=hint)


class WebhookError(RialtoError):
    """A delivery does not verify."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, code=code)


def refusal(status: int, body: Any, retry_after: float | None, request_id: str | None) -> HubError:
    """Read a refusal in any of the hub's formats.

    ``body`` is the parsed body, or ``None`` if it is not JSON.
    """

    def pick(*paths: tuple[str, ...]) -> Any:
        for path in paths:
            value = body
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None:
                return value
        return None

    def text(*paths: tuple[str, ...]) -> str | None:
        value = pick(*paths)
        return value if isinstance(value, str) else None

    code = text(("error", "code"), ("code",), ("error_code",), ("title",))
    message = text(("error", "message"), ("detail",), ("error_message",), ("title",))
    hint = text(("error", "hint"), ("hint",))
    example = pick(("error", "example"), ("example",))
    if hint is None and example is not None:
        hint = f"for example {example}"
    return HubError(
        message or "the hub refused the request and gave no reason",
        code=code or "unknown",
        status=status,
        field=text(("error", "field"), ("field",)),
        hint=hint,
        retryable=pick(("error", "retryable"), ("retryable",)) is True,
        retry_after=retry_after,
        request_id=text(("request_id",)) or request_id,
    )
