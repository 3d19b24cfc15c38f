"""What the hub sends and takes, each type declared once.

A test compares every class here with the schema of its name in the hub's ``/openapi.json``: members,
which of them are required, types and enumerations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, TypeVar

from ._errors import JobError

T = TypeVar("T")

#: The classes of this module by the name of their schema in the API document.
SCHEMAS: dict[str, type[Any]] = {}

JobState: TypeAlias = Literal[
    "open",
    "queued",
    "negotiating",
    "deferred",
    "assigned",
    "running",
    "asking",
    "completed",
    "failed",
    "expired",
    "cancelled",
    "withdrawn",
]
ENDED_STATES = frozenset({"completed", "failed", "expired", "cancelled", "withdrawn"})
#: The state of a job that waits for an answer of its requester.
ASKING = "asking"

Cause: TypeAlias = Literal[
    "no_such_skill",
    "budget_too_low",
    "offline",
    "execution",
    "payment",
    "unusable",
    "timed_out",
    "worker_left",
    "cancelled",
    "policy",
    "nobody_left",
    "no_fair_time",
    "no_answer",
    "input_misfit",
    "unknown_fate",
]
NoticeKind: TypeAlias = Literal[
    "assigned",
    "approval_wanted",
    "accepted",
    "ended",
    "taken_back",
    "queued",
    "offers_wanted",
    "offered",
    "price_taken",
    "offer_closed",
    "progress",
    "input_requested",
    "input_provided",
    "message",
    "step",
    "log_entry",
    "requester_message",
]
EntryKind: TypeAlias = Literal["grant", "burn", "transfer", "hold", "capture", "release"]
Availability: TypeAlias = Literal["online", "busy", "offline"]
StatusResult: TypeAlias = Literal["online", "busy", "offline", "unregistered"]
DeliveryState: TypeAlias = Literal["waiting", "given_up", "delivered"]
Liveness: TypeAlias = Literal["reached", "polls", "always"]
Fate: TypeAlias = Literal["kept", "renamed", "defaulted", "dropped"]
Select: TypeAlias = Literal["best", "cheapest", "offers"]
Side: TypeAlias = Literal["asked", "worked"]
Signature: TypeAlias = Literal["verified", "unsigned"]
Stage: TypeAlias = Literal["live", "ended", "all"]
FailureCause: TypeAlias = Literal["execution", "invalid_input", "refused"]
#: A time as text, in bodies.
TimeText: TypeAlias = Annotated[str, "date-time"]


def schema(name: str) -> Callable[[type[T]], type[T]]:
    """Name the schema of a class in the API document."""

    def add(kind: type[T]) -> type[T]:
        SCHEMAS[name] = kind
        return kind

    return add


@schema("HubSkillView")
@dataclass(frozen=True)
class SkillView:
    """A skill of an agent."""

    name: str
    price: Decimal
    description: str
    by_offer: bool = False
    input_schema: Any = None
    output_schema: Any = None


@schema("HubInterfaceView")
@dataclass(frozen=True)
class Interface:
    """Where the hub calls an agent, and how."""

    url: str
    binding: str
    version: str


@schema("HubFetchProblemView")
@dataclass(frozen=True)
class FetchProblem:
    """A failed attempt to fetch the description of an agent."""

    at: datetime
    text: str


@schema("HubOwnServerView")
@dataclass(frozen=True)
class OwnServer:
    """The server of an agent that the hub calls by itself."""

    card_url: str
    interface: Interface
    signature: Signature
    proven: bool
    fetched_at: datetime
    problem: FetchProblem | None = None


@schema("HubAgentView")
@dataclass(frozen=True)
class AgentView:
    """An agent, with the numbers that the hub's ranking uses."""

    id: int
    name: str
    owner: str
    protocol: str
    names: dict[str, str]
    skills: list[SkillView]
    score: float
    rank_score: float
    jobs_settled: int
    counterparties: int
    credits_paid: Decimal
    owner_failures: int
    age_seconds: int
    online: bool
    registered_at: datetime
    liveness: Liveness | None = None
    endpoint: str | None = None
    server: OwnServer | None = None


@schema("HubAccountView")
@dataclass(frozen=True)
class Account:
    """An owner's credits."""

    owner: str
    available: Decimal
    held: Decimal
    opened_at: datetime


@schema("HubInboxView")
@dataclass(frozen=True)
class InboxPositions:
    """Positions of an inbox: the newest notice, and the last that was acknowledged."""

    head: int
    acked: int


@schema("HubMeView")
@dataclass(frozen=True)
class Me:
    """The caller."""

    agent: AgentView
    account: Account
    inbox: InboxPositions
    jobs_in_hand: int


@schema("HubProgressView")
@dataclass(frozen=True)
class ProgressView:
    """The progress of a job."""

    reports: int
    fraction: float | None = None
    text: str | None = None


@schema("HubPartView")
@dataclass(frozen=True)
class PartView:
    """A part of a result."""

    number: int
    at: datetime
    artifact: Any
    append: bool = False


@schema("HubQuestionView")
@dataclass(frozen=True)
class OpenQuestion:
    """A question that waits for an answer."""

    number: int
    text: str
    until: datetime
    schema: Any = None
    #: Whether the requester signs in elsewhere, as the text says, and no answer is awaited.
    auth: bool = False


@schema("HubAskedQuestion")
@dataclass(frozen=True)
class AskedQuestion:
    """A question and its answer."""

    number: int
    text: str
    asked_at: datetime
    schema: Any = None
    #: Whether the requester signs in elsewhere, and no answer is awaited.
    auth: bool = False
    answer: Any = None
    #: Members of the answer that the requester's protocol does not define.
    answer_meta: Any = None
    answered_at: datetime | None = None


@schema("HubResultView")
@dataclass(frozen=True)
class ResultView:
    """How a job ended."""

    ok: bool
    output: Any
    text: str | None
    took_ms: int


@schema("HubBriefOffer")
@dataclass(frozen=True)
class BriefOffer:
    """An offer, as it is shown with its job."""

    id: int
    agent: int
    price: Decimal
    valid_until: datetime


@schema("HubOfferView")
@dataclass(frozen=True)
class Offer:
    """An offer for a job."""

    id: int
    agent: int
    name: str
    price: Decimal
    valid_until: datetime
    accepted: bool


@schema("HubOfferList")
@dataclass(frozen=True)
class OfferList:
    """The offers for a job."""

    offers: list[Offer]


@schema("HubJobView")
@dataclass(frozen=True)
class JobView:
    """A job, as its party sees it."""

    id: str
    protocol: str
    foreign_id: str
    skill: str
    state: JobState
    requester: int | None
    worker: int | None
    epoch: int
    price: Decimal | None
    paid: Decimal | None
    cause: Cause | None
    opened_at: datetime
    assigned_at: datetime | None
    lease_until: datetime | None
    deadline: datetime
    ended_at: datetime | None
    guest: str | None = None
    waits_for: int | None = None
    by_offer: bool = False
    budget: Decimal | None = None
    held: Decimal | None = None
    input: Any = None
    progress: ProgressView | None = None
    parts: list[PartView] = field(default_factory=list)
    question: OpenQuestion | None = None
    questions: list[AskedQuestion] = field(default_factory=list)
    result: ResultView | None = None
    callback: str | None = None
    offers: list[BriefOffer] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether the job is over."""
        return self.state in ENDED_STATES

    @property
    def output(self) -> dict[str, Any]:
        """The output of a completed job; a ``JobError`` for any other."""
        if self.state != "completed" or self.result is None or self.result.output is None:
            raise JobError(self)
        output: dict[str, Any] = self.result.output
        return output

    @property
    def failure_reason(self) -> str | None:
        """Why the job failed, in the words of the worker or the hub."""
        return self.result.text if self.result else None


@schema("HubJobViewPage")
@dataclass(frozen=True)
class JobPage:
    """A page of jobs."""

    items: list[JobView]
    next_cursor: str | None


@schema("HubAgentViewPage")
@dataclass(frozen=True)
class AgentPage:
    """A page of agents."""

    items: list[AgentView]
    next_cursor: str | None


@schema("HubPocketView")
@dataclass(frozen=True)
class LedgerAccount:
    """One side of a ledger entry."""

    owner: str
    held: bool


@schema("HubEntryView")
@dataclass(frozen=True)
class LedgerEntry:
    """A movement of credits."""

    id: int
    at: datetime
    kind: EntryKind
    from_: LedgerAccount
    to: LedgerAccount
    amount: Decimal
    job: str | None
    transfer: str | None


@schema("HubEntryViewPage")
@dataclass(frozen=True)
class LedgerPage:
    """A page of ledger entries."""

    items: list[LedgerEntry]
    next_cursor: str | None


@schema("HubNoticeView")
@dataclass(frozen=True)
class Notice:
    """An entry of an inbox. What it is about says which members it has."""

    position: int
    kind: NoticeKind
    at: datetime
    job: str | None = None
    epoch: int | None = None
    until: datetime | None = None
    closes: datetime | None = None
    from_: int | None = None
    body: Any = None
    offer: int | None = None
    question: int | None = None
    message: int | None = None
    number: int | None = None
    fraction: float | None = None
    text: str | None = None
    artifact: Any = None
    append: bool = False


@schema("HubInboxPage")
@dataclass(frozen=True)
class InboxPage:
    """A page of an inbox."""

    items: list[Notice]
    next_cursor: str | None
    head: int
    acked: int


@schema("HubSendResponse")
@dataclass(frozen=True)
class Sent:
    """A message was put into an inbox."""

    position: int


@schema("HubWebhookView")
@dataclass(frozen=True)
class Delivery:
    """A webhook delivery to the caller."""

    id: int
    state: DeliveryState
    kind: NoticeKind
    job: str | None
    url: str
    tries: int
    next_try: datetime | None
    error: str | None
    delivered_at: datetime | None = None


@schema("HubWebhookViewPage")
@dataclass(frozen=True)
class DeliveryPage:
    """A page of deliveries."""

    items: list[Delivery]
    next_cursor: str | None


@schema("HubTestResult")
@dataclass(frozen=True)
class TestCall:
    """What the caller's endpoint answered to a test call."""

    __test__ = False

    delivered: bool
    status: int | None = None
    why: str | None = None


@schema("HubSecretResponse")
@dataclass(frozen=True)
class NewWebhookSecret:
    """A new webhook secret. The previous one is valid until ``others_until``."""

    others_until: datetime | None
    webhook_secret: str | None = field(default=None, repr=False)


@schema("HubRotateKeyResponse")
@dataclass(frozen=True)
class NewKey:
    """A new key. The previous ones are valid until ``others_until``."""

    others_until: datetime | None
    key: str | None = field(default=None, repr=False)


@schema("HubRevokeKeysResponse")
@dataclass(frozen=True)
class Revoked:
    """All keys of the caller were revoked."""

    revoked: bool


@schema("HubStatusResponse")
@dataclass(frozen=True)
class Status:
    """The caller's new status."""

    status: StatusResult


@schema("HubPartyView")
@dataclass(frozen=True)
class Party:
    """A party of a job: its name in its home protocol, and its names elsewhere."""

    protocol: str
    id: str
    aliases: dict[str, str] = field(default_factory=dict)


@schema("HubMoneyView")
@dataclass(frozen=True)
class TraceMoney:
    """The amounts of a traced job."""

    price: Decimal | None
    paid: Decimal | None
    budget: Decimal | None = None


@schema("HubNoteView")
@dataclass(frozen=True)
class TraceNote:
    """What became of one field between two protocols."""

    field: str
    part: str
    fate: Fate
    to: str | None = None
    value: Any = None
    becomes: Any = None
    why: str | None = None


@schema("HubHopView")
@dataclass(frozen=True)
class TraceHop:
    """One translation of a job."""

    what: str
    from_: str
    to: str
    at: datetime
    notes: list[TraceNote]
    asked: str | None = None
    given: str | None = None


@schema("HubEvidenceView")
@dataclass(frozen=True)
class Evidence:
    """What a party signed."""

    protocol: str
    of: str
    text: str


@schema("HubTrace")
@dataclass(frozen=True)
class Trace:
    """A job from its request to its settlement."""

    job: str
    state: JobState
    skill: str
    requester: Party
    worker: Party | None
    money: TraceMoney
    opened_at: datetime
    deadline: datetime
    ended_at: datetime | None
    hops: list[TraceHop]
    evidence: list[Evidence]


@schema("HubMessageView")
@dataclass(frozen=True)
class WorkMessage:
    """What the requester of a job sent after its request."""

    kind: str
    job_id: str
    epoch: int
    message: int
    input: Any = None
    text: str | None = None
    meta: Any = None


@schema("HubWorkView")
@dataclass(frozen=True)
class WorkItem:
    """A job that is assigned to the caller."""

    id: str
    epoch: int
    skill: str
    input: Any
    requester: str
    protocol: str
    budget: Decimal
    price: Decimal
    deadline: datetime
    lease_until: datetime
    opened_at: datetime
    questions: list[AskedQuestion] = field(default_factory=list)
    messages: list[WorkMessage] = field(default_factory=list)
    #: Members of the request that the requester's protocol does not define.
    meta: Any = None
    #: Whether the requester wants to be told that the work has started.
    followed: bool = False


@schema("HubAnswerView")
@dataclass(frozen=True)
class WorkAnswer:
    """The answer to a question of the caller."""

    kind: str
    job_id: str
    epoch: int
    question: int
    lease_until: datetime | None
    input: Any = None
    text: str | None = None
    meta: Any = None


@schema("HubWorkResponse")
@dataclass(frozen=True)
class Work:
    """What changed in the caller's assignments."""

    jobs: list[WorkItem]
    gone: list[str]
    more: bool
    now: datetime
    answers: list[WorkAnswer] = field(default_factory=list)
    messages: list[WorkMessage] = field(default_factory=list)


@schema("HubReportResponse")
@dataclass(frozen=True)
class Reported:
    """A progress report was recorded."""

    id: str
    state: JobState
    lease_until: datetime | None
    #: Its number among the reports of the job; a sign of life has none.
    number: int | None = None


@schema("HubAskResponse")
@dataclass(frozen=True)
class Asked:
    """A question was recorded."""

    id: str
    state: JobState
    question: OpenQuestion | None


@schema("HubResultResponse")
@dataclass(frozen=True)
class ResultReceipt:
    """A result was recorded."""

    id: str
    state: JobState
    paid: Decimal
    repeated: bool
    warnings: list[str] = field(default_factory=list)


@schema("HubDeclineResponse")
@dataclass(frozen=True)
class Declined:
    """A job was declined."""

    id: str
    state: JobState


@dataclass(frozen=True)
class Reputation:
    """An agent's score in every protocol that publishes one, with what it is computed from."""

    agent: int
    scores: dict[str, dict[str, Any]]


@schema("RegistryTransferBody")
@dataclass(frozen=True)
class TransferView:
    """A payment from one owner to another."""

    transfer_id: str
    from_owner: str
    to_owner: str
    amount: Decimal
    job_id: str | None
    timestamp_utc: str


@schema("RegistryTransferAnswer")
@dataclass(frozen=True)
class TransferReceipt:
    """A payment, and what is left. ``settlement`` is ``escrow`` if the job's hold has paid."""

    status: str
    transfer: TransferView
    sender_balance: Decimal
    settlement: str
    receiver_balance: Decimal | None = None


@schema("RegistryRegistrationAnswer")
@dataclass(frozen=True)
class Registration:
    """A registered agent."""

    status: str
    agent_id: str
    reputation_score: float
    api_key: str | None = field(default=None, repr=False)
    webhook_secret: str | None = field(default=None, repr=False)


class _OpenJob(TypedDict):
    skill: str
    budget: Decimal


@schema("HubOpenJobBody")
class OpenJobBody(_OpenJob, total=False):
    """The body of ``POST /v1/jobs``."""

    id: str | None
    input: dict[str, Any] | None
    to: str | int | None
    select: Select | None
    callback: str | None
    deadline: TimeText | None


@schema("HubCancelBody")
class CancelBody(TypedDict, total=False):
    """The body of ``POST /v1/jobs/{id}/cancel``."""

    reason: str | None


class _MakeOffer(TypedDict):
    price: Decimal


@schema("HubOfferBody")
class OfferBody(_MakeOffer, total=False):
    """The body of ``POST /v1/jobs/{id}/offers``."""

    valid_for: str | None


@schema("HubAcceptBody")
class AcceptBody(TypedDict, total=False):
    """The body of ``POST /v1/jobs/{id}/accept``."""

    offer: str | int | None
    agent: str | int | None
    price: Decimal | None


@schema("HubAnswerBody")
class AnswerBody(TypedDict, total=False):
    """The body of ``POST /v1/jobs/{id}/answer``."""

    question: int | None
    text: str | None
    input: dict[str, Any] | None


class _Ask(TypedDict):
    text: str


@schema("HubAskBody")
class AskBody(_Ask, total=False):
    """The body of ``POST /v1/jobs/{id}/ask``."""

    epoch: int | None
    schema: dict[str, Any] | None
    auth: bool | None


@schema("HubProgressBody")
class ProgressBody(TypedDict, total=False):
    """The body of ``POST /v1/jobs/{id}/progress``."""

    epoch: int | None
    fraction: float | None
    text: str | None


class _Part(TypedDict):
    artifact: dict[str, Any]


@schema("HubPartBody")
class PartBody(_Part, total=False):
    """The body of ``POST /v1/jobs/{id}/parts``."""

    epoch: int | None
    append: bool | None


class _Result(TypedDict):
    ok: bool


@schema("HubResultBody")
class ResultBody(_Result, total=False):
    """The body of ``POST /v1/jobs/{id}/result``."""

    epoch: int | None
    output: dict[str, Any] | None
    cost: Any
    took_ms: Any
    code: str | None
    message: str | None
    cause: FailureCause | None


@schema("HubDeclineBody")
class DeclineBody(TypedDict, total=False):
    """The body of ``POST /v1/jobs/{id}/decline``."""

    epoch: int | None
    reason: str | None


@schema("HubStatusBody")
class StatusBody(TypedDict):
    """The body of ``POST /v1/me/status``."""

    status: Availability


@schema("HubAckBody")
class AckBody(TypedDict):
    """The body of ``POST /v1/inbox/ack``."""

    up_to: int


@schema("HubMessageBody")
class MessageBody(TypedDict):
    """The body of ``POST /v1/messages``."""

    to: str | int
    body: Any


class _Skill(TypedDict):
    skill_name: str
    cost_per_call: Decimal


@schema("RegistrySkillMembers")
class SkillBody(_Skill, total=False):
    """A skill in the body of ``POST /registry/register``."""

    description: str | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None


class _Register(TypedDict):
    agent_name: str
    owner_id: str


@schema("RegistryRegisterMembers")
class RegisterBody(_Register, total=False):
    """The body of ``POST /registry/register``."""

    agent_id: str | None
    api_endpoint: str | None
    input_modes: list[str] | None
    rotate_key: bool | None
    skills: list[SkillBody] | None
    timestamp_utc: TimeText | None
    version: str | None


class _Transfer(TypedDict):
    from_owner: str
    to_owner: str
    amount: Decimal


@schema("RegistryTransferMembers")
class TransferBody(_Transfer, total=False):
    """The body of ``POST /registry/transfer``."""

    transfer_id: str | None
    job_id: str | None
    timestamp_utc: TimeText | None
