"""What a working agent tells: events for the program, and the same for its log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .._errors import HubError, RialtoError
from ._outcome import Outcome

log = logging.getLogger("rialto_hub")

EventKind: TypeAlias = Literal[
    "started",
    "waiting_for_hub",
    "reregistering",
    "job_started",
    "question_asked",
    "job_ended",
    "result_refused",
    "offer_sent",
    "job_cancelled",
    "retrying",
    "job_error",
    "suspended",
    "recovered",
]
_LEVELS: dict[str, int] = {
    "waiting_for_hub": logging.WARNING,
    "result_refused": logging.WARNING,
    "retrying": logging.WARNING,
    "job_error": logging.ERROR,
    "suspended": logging.WARNING,
    "job_started": logging.DEBUG,
}


@dataclass(frozen=True)
class AgentEvent:
    """An event of a working agent. Its kind says which members it has."""

    kind: EventKind
    agent: str | None = None
    agent_id: str | None = None
    owner: str | None = None
    hub: str | None = None
    #: The job's id.
    job: str | None = None
    skill: str | None = None
    #: The question that the requester was asked.
    question: str | None = None
    outcome: Outcome | None = None
    #: What the job earned, or the price of an offer, as decimal text.
    amount: str | None = None
    #: The hub already had this result.
    repeated: bool = False
    #: What failed, and why.
    action: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        words: list[str] = [self.kind.replace("_", " ")]
        members = (
            ("agent", self.agent),
            ("agent_id", self.agent_id),
            ("owner", self.owner),
            ("hub", self.hub),
            ("job", self.job),
            ("skill", self.skill),
            # The reason is content of the job, and not for the log.
            ("outcome", self.outcome.kind if self.outcome is not None else None),
            ("amount", self.amount),
            ("action", self.action),
            ("reason", self.reason),
        )
        words += [f"{name}={value}" for name, value in members if value is not None]
        return "  ".join(words)


class Reporter:
    """Hands events to the program and to the log."""

    def __init__(self, callback: Callable[[AgentEvent], None] | None) -> None:
        self._callback = callback
        # Problems that go on are logged once.
        self._logged: set[str] = set()

    def emit(self, event: AgentEvent) -> None:
        """Report an event."""
        self._log(event)
        if self._callback is not None:
            try:
                self._callback(event)
            except Exception:
                log.exception("on_event failed")

    def retrying(self, action: str, error: RialtoError) -> None:
        """Report that something failed and is tried again."""
        if isinstance(error, HubError) and error.is_suspended:
            self.emit(AgentEvent("suspended"))
        else:
            self.emit(AgentEvent("retrying", action=action, reason=str(error)))

    def _log(self, event: AgentEvent) -> None:
        if event.kind in ("started", "recovered"):
            self._logged.clear()
        problem = f"{event.kind} {event.action}"
        if event.kind in ("waiting_for_hub", "retrying", "suspended"):
            if problem in self._logged:
                return
            self._logged.add(problem)
        log.log(_LEVELS.get(event.kind, logging.INFO), "%s", event)
