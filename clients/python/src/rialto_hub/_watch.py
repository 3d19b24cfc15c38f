"""What happens to a job, from its snapshots and the notices of its requester's inbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ._wire import ASKING, AskedQuestion, BriefOffer, JobView, Notice, OpenQuestion

JobEventKind: TypeAlias = Literal[
    "assigned", "progress", "part", "question", "answered", "offered", "ended"
]

#: How often a job is read again although no notice says that it has changed, in seconds.
CHECK_INTERVAL = 30.0


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job. What it is says which members it has."""

    kind: JobEventKind
    #: The job's id.
    job_id: str
    #: The job as it is after the event; ``None`` for progress and parts.
    job: JobView | None = None
    #: The number of a report or of a part.
    number: int | None = None
    #: How much of the work is done, from 0 to 1.
    fraction: float | None = None
    #: What the worker does now.
    text: str | None = None
    #: A part of the result.
    artifact: Any = None
    #: Whether it continues the part before it.
    append: bool = False
    #: The question that waits for an answer.
    question: OpenQuestion | None = None
    #: The question that was answered.
    answered: AskedQuestion | None = None
    #: An offer for the job.
    offer: BriefOffer | None = None


class JobWatcher:
    """Turns snapshots and notices into events, each once."""

    def __init__(self, job: JobView) -> None:
        self.job_id = job.id
        self.has_ended = False
        # The newest entry of the job's log that was told.
        self._number = 0
        # The progress of the first snapshot, which the stream may bring again.
        self._shown: tuple[float | None, str | None] | None = None
        self._epoch = 0
        self._question = 0
        self._answered: set[int] = set()
        self._offers: set[int] = set()

    def notice(self, notice: Notice) -> list[JobEvent] | None:
        """Return the events of a notice; ``None`` if the job must be read."""
        if notice.job != self.job_id:
            return []
        if notice.kind != "progress":
            return None
        number = notice.number or 0
        if number <= self._number:
            return []
        self._number = number
        shown, self._shown = self._shown, None
        events = []
        progress = (notice.fraction, notice.text)
        if progress not in ((None, None), shown):
            events.append(self._progress(*progress, number))
        if notice.artifact is not None:
            events.append(self._part(number, notice.artifact, append=notice.append))
        return events

    def snapshot(self, job: JobView, *, catch_up: bool) -> list[JobEvent]:
        """Return what a snapshot adds. ``catch_up`` also takes its reports, which no notice brings."""
        events: list[JobEvent] = []
        if job.worker is not None and job.assigned_at is not None and job.epoch > self._epoch:
            self._epoch = job.epoch
            events.append(JobEvent("assigned", job.id, job))
        for offer in job.offers:
            if offer.id not in self._offers:
                self._offers.add(offer.id)
                events.append(JobEvent("offered", job.id, job, offer=offer))
        for part in job.parts if catch_up or job.has_ended else ():
            if part.number > self._number:
                self._number = part.number
                events.append(self._part(part.number, part.artifact, append=part.append))
        progress = job.progress if catch_up else None
        if progress is not None and (progress.fraction, progress.text) != (None, None):
            self._shown = (progress.fraction, progress.text)
            events.append(self._progress(progress.fraction, progress.text, None))
        for asked in job.questions:
            if asked.answer is not None and asked.number not in self._answered:
                self._answered.add(asked.number)
                events.append(JobEvent("answered", job.id, job, answered=asked))
        asks = job.question if job.state == ASKING else None
        if asks is not None and asks.number > self._question:
            self._question = asks.number
            events.append(JobEvent("question", job.id, job, question=asks))
        if job.has_ended and not self.has_ended:
            self.has_ended = True
            events.append(JobEvent("ended", job.id, job))
        return events

    def _progress(self, fraction: float | None, text: str | None, number: int | None) -> JobEvent:
        return JobEvent("progress", self.job_id, number=number, fraction=fraction, text=text)

    def _part(self, number: int, artifact: Any, *, append: bool) -> JobEvent:
        return JobEvent("part", self.job_id, number=number, artifact=artifact, append=append)
