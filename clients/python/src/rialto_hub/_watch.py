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
        self._reports = 0
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
        if number <= self._reports:
            return []
        self._reports = number
        return self._report(
            number, notice.fraction, notice.text, notice.artifact, append=notice.append
        )

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
        if catch_up or job.has_ended:
            events += self._missed_reports(job)
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

    def _missed_reports(self, job: JobView) -> list[JobEvent]:
        if job.progress is None or job.progress.reports <= self._reports:
            return []
        events = [
            JobEvent("part", job.id, number=part.number, artifact=part.artifact, append=part.append)
            for part in job.parts
            if part.number > self._reports
        ]
        self._reports = job.progress.reports
        fraction, text = job.progress.fraction, job.progress.text
        if fraction is not None or text is not None:
            number = self._reports
            report = JobEvent("progress", job.id, number=number, fraction=fraction, text=text)
            events.append(report)
        return events

    def _report(
        self, number: int, fraction: float | None, text: str | None, artifact: Any, *, append: bool
    ) -> list[JobEvent]:
        events = []
        if fraction is not None or text is not None:
            report = JobEvent("progress", self.job_id, number=number, fraction=fraction, text=text)
            events.append(report)
        if artifact is not None:
            part = JobEvent("part", self.job_id, number=number, artifact=artifact, append=append)
            events.append(part)
        return events
