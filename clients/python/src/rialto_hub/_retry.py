"""Which calls are repeated, how often, and after how long."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from ._errors import HubError, RialtoError, TimedOut, Unreachable

# Statuses that may pass, if the hub says so.
_TEMPORARY = frozenset({429, 502, 503, 504})
_DOUBLINGS_MAX = 16


class Retry(Protocol):
    """Decides whether a call is repeated, and when."""

    def delay_after(
        self, error: RialtoError, attempts: int, *, is_repeatable: bool = True
    ) -> float | None:
        """Return the delay before the next attempt; ``None`` if there is none."""
        ...


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is repeated, and after how long."""

    #: Attempts in total; 1 means no retries, ``None`` no limit.
    max_attempts: int | None = 4
    #: The approximate first delay in seconds. Each further one is twice as long.
    initial_delay: float = 0.5
    #: The longest delay in seconds.
    max_delay: float = 30.0

    def delay(self, failures: int) -> float:
        """Return the delay after this many failures in a row.

        A random part of it is left out, so that clients that failed together do not retry together.
        """
        doublings = min(max(failures - 1, 0), _DOUBLINGS_MAX)
        half = min(self.initial_delay * float(1 << doublings), self.max_delay) / 2
        return half + half * random.random()  # noqa: S311

    def delay_after(
        self, error: RialtoError, attempts: int, *, is_repeatable: bool = True
    ) -> float | None:
        """Return the delay before the next attempt; ``None`` if there is none."""
        if not is_repeatable and may_have_taken_effect(error):
            return None
        at_least = min_retry_delay(error)
        if at_least is None or at_least > self.max_delay:
            return None
        if self.max_attempts is not None and attempts >= self.max_attempts:
            return None
        return max(self.delay(attempts), at_least)


#: The delays of streams and acknowledgements, which are repeated without limit.
ENDLESS = RetryPolicy(max_attempts=None)
#: The delays of a worker, which are shorter.
WORKER = RetryPolicy(max_attempts=None, initial_delay=0.2, max_delay=5.0)
# The longest wait that a hub can ask a worker for, so that a wrong value does not keep it away.
_WORKER_DELAY_MAX = 60.0


def min_retry_delay(error: RialtoError) -> float | None:
    """Return the least wait before the same call can succeed; ``None`` if it cannot.

    The call may have taken effect before its answer was lost, so only calls that have one effect
    however often they arrive may be repeated.
    """
    if isinstance(error, Unreachable | TimedOut):
        return 0.0
    if not isinstance(error, HubError):
        return None
    # A proxy before the hub does not have the hub's codes.
    may_pass = error.retryable or error.retry_after is not None or error.code == "unknown"
    is_temporary = error.status in _TEMPORARY and may_pass
    # The first attempt is still running.
    if is_temporary or error.code == "still_running":
        return error.retry_after or 0.0
    return None


def may_have_taken_effect(error: RialtoError) -> bool:
    """Whether the call may have taken effect although it failed."""
    return isinstance(error, TimedOut) or (isinstance(error, Unreachable) and error.was_sent)


def worker_delay(error: RialtoError, failures: int) -> float | None:
    """Return the delay of a worker, which never gives up; ``None`` if no retry can succeed."""
    if isinstance(error, HubError):
        status = error.status or 0
        may_pass = error.retryable or status == 429 or status >= 500 or error.is_suspended
        if not may_pass and error.code != "still_running":
            return None
        if error.retry_after is not None:
            return min(error.retry_after, _WORKER_DELAY_MAX)
        return WORKER.delay(failures)
    return WORKER.delay(failures) if isinstance(error, Unreachable | TimedOut) else None


def ends_stream(error: RialtoError) -> bool:
    """Tell whether the hub will never serve this stream to this reader."""
    if isinstance(error, Unreachable | TimedOut):
        return False
    if not isinstance(error, HubError):
        return True
    status = error.status or 0
    return (
        not error.is_suspended
        and not error.retryable
        and 300 <= status < 500
        and status not in (408, 429)
    )
