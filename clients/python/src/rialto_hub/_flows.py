"""The calls of a hub, written once for ``Hub`` and ``AsyncHub``.

A flow is a generator: it yields requests, pauses and calls of the user's functions, and gets their
results. It does no I/O itself.
"""

from __future__ import annotations

import os
import re
import secrets
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from ._context import Caller
from ._errors import HubError, Unreadable, UsageError
from ._keys import KeyFile
from ._money import DECIMALS, Amount, parse_amount
from ._time import parse_deadline, utc_now
from ._transport import ANY_JSON, Request, path_of, with_query
from ._wire import (
    ASKING,
    AcceptBody,
    Account,
    AgentPage,
    AgentView,
    AnswerBody,
    AskBody,
    Asked,
    Availability,
    BriefOffer,
    CancelBody,
    DeclineBody,
    Declined,
    Delivery,
    DeliveryPage,
    DeliveryState,
    FailureCause,
    InboxPage,
    InboxPositions,
    JobPage,
    JobView,
    LedgerPage,
    Me,
    MessageBody,
    NewKey,
    NewWebhookSecret,
    Offer,
    OfferBody,
    OfferList,
    OpenJobBody,
    OpenQuestion,
    PartBody,
    ProgressBody,
    RegisterBody,
    Registration,
    Reported,
    Reputation,
    ResultBody,
    ResultReceipt,
    Revoked,
    Select,
    Sent,
    Side,
    SkillBody,
    Stage,
    Status,
    TestCall,
    Trace,
    TransferBody,
    TransferReceipt,
    Work,
)

T = TypeVar("T")

#: A job: its id, or anything that has one.
JobRef: TypeAlias = str | JobView
#: The answer to a question: text, or an object.
AnswerInput: TypeAlias = str | Mapping[str, Any]
#: A deadline: a time, or a duration from now, in seconds or as ``timedelta``.
Deadline: TypeAlias = datetime | timedelta | float

#: The longest wait of one request, in seconds.
WAIT_MAX = 30
#: The largest page.
PAGE_MAX = 200
# The least time between two requests, for a hub that answers at once although it is asked to wait.
_POLL_INTERVAL_MIN = 0.25
_LOGIN_NAME_MAX = 32


@dataclass(frozen=True)
class Pause:
    """Wait for this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Invoke:
    """Call a function of the user, which may be asynchronous."""

    function: Callable[..., Any]
    argument: Any


Step: TypeAlias = Request[Any] | Pause | Invoke
Flow: TypeAlias = Generator[Step, Any, T]


def send(request: Request[T]) -> Flow[T]:
    """Send a request and return its answer."""
    answer: T = yield request
    return answer


def job_id(job: JobRef) -> str:
    """Return the id of a job."""
    return job if isinstance(job, str) else job.id


def new_key() -> str:
    """Return a new idempotency key."""
    return secrets.token_hex(16)


def _get(path: str, answer: type[T], *, is_public: bool = False) -> Request[T]:
    return Request("GET", path, answer, is_public=is_public)


def _post(path: str, body: Any, answer: type[T], *, key: str | None = None) -> Request[T]:
    return Request("POST", path, answer, {} if body is None else body, idempotency_key=key)


def _given(**members: Any) -> Any:
    """Return the members that are not ``None``. Names end with ``_`` where Python reserves them."""
    return {name.rstrip("_"): value for name, value in members.items() if value is not None}


# Jobs, as their requester.


@dataclass(frozen=True)
class NewJob:
    """A job to open. It has an id, so that sending it again is no second job."""

    body: OpenJobBody

    @staticmethod
    def make(
        skill: str,
        input: Mapping[str, Any] | None,  # noqa: A002
        *,
        budget: Amount,
        to: str | int | AgentView | None,
        select: Select | None,
        deadline: Deadline | None,
        callback: str | None,
        id: str | uuid.UUID | None,  # noqa: A002
    ) -> NewJob:
        """Check the arguments."""
        until = None if deadline is None else parse_deadline(deadline, utc_now())
        body: OpenJobBody = _given(
            id=_uuid(id, "id") if id is not None else str(uuid.uuid4()),
            skill=skill,
            input={} if input is None else dict(input),
            budget=parse_amount(budget, "budget"),
            to=to.id if isinstance(to, AgentView) else to,
            select=select,
            callback=callback,
            deadline=until,
        )
        return NewJob(body)


def _uuid(value: str | uuid.UUID, name: str) -> str:
    try:
        return str(uuid.UUID(str(value)))
    except ValueError:
        raise UsageError(f"{name} must be a UUID", field=name) from None


def open_job(caller: Caller, job: NewJob, wait: int = 0) -> Flow[JobView]:
    """Open a job. A caller without a key is registered first."""
    if caller.keys is None:
        yield from register_requester(caller)
    path = with_query(path_of("jobs"), wait=wait or None)
    try:
        opened: JobView = yield from send(_post(path, job.body, JobView))
    except HubError as error:
        if error.status != 401 or not (yield from _replace_unknown_key(caller)):
            raise
        opened = yield from send(_post(path, job.body, JobView))
    return opened


def hire(
    caller: Caller,
    job: NewJob,
    timeout: float,
    on_question: Callable[[OpenQuestion], Any] | None,
) -> Flow[JobView]:
    """Open a job and wait for its end."""
    until = time.monotonic() + timeout
    opened = yield from open_job(caller, job, _seconds_to_wait(until))
    waited = yield from _wait_until(opened, until, on_question)
    if waited is opened and waited.progress is not None:
        # The answer to an opened job has no parts.
        waited = yield from send(_get(path_of("jobs", waited.id), JobView))
    return waited


def wait(
    job: JobRef, timeout: float, on_question: Callable[[OpenQuestion], Any] | None
) -> Flow[JobView]:
    """Wait until a job ends or asks."""
    until = time.monotonic() + timeout
    path = with_query(path_of("jobs", job_id(job)), wait=_seconds_to_wait(until) or None)
    found: JobView = yield from send(_get(path, JobView))
    return (yield from _wait_until(found, until, on_question))


def _seconds_to_wait(until: float) -> int:
    """Return how long the hub is to wait: whole seconds, so that no request comes back early."""
    left = until - time.monotonic()
    return min(int(left) + 1, WAIT_MAX) if left > 0 else 0


def _wait_until(
    job: JobView, until: float, on_question: Callable[[OpenQuestion], Any] | None
) -> Flow[JobView]:
    while not job.has_ended:
        if job.state == ASKING and job.question is not None:
            if on_question is None:
                return job
            given = yield Invoke(on_question, job.question)
            job = yield from answer(job, given, job.question.number)
        wait_for = _seconds_to_wait(until)
        if wait_for == 0:
            return job
        began = time.monotonic()
        job = yield from send(_get(with_query(path_of("jobs", job.id), wait=wait_for), JobView))
        took = time.monotonic() - began
        if not job.has_ended and job.state != ASKING and took < _POLL_INTERVAL_MIN:
            yield Pause(_POLL_INTERVAL_MIN - took)
    return job


def job(job: JobRef) -> Flow[JobView]:
    """Read a job."""
    return send(_get(path_of("jobs", job_id(job)), JobView))


def answer(job: JobRef, given: AnswerInput, question: int | None) -> Flow[JobView]:
    """Answer a question. Its number is always sent, so that a repeat never answers the next one."""
    if question is None:
        found: JobView = yield from send(_get(path_of("jobs", job_id(job)), JobView))
        question = found.question.number if found.question is not None else None
    body: AnswerBody
    if isinstance(given, str):
        body = _given(question=question, text=given)
    elif isinstance(given, Mapping):
        body = _given(question=question, input=dict(given))
    else:
        raise UsageError("an answer must be text or an object", field="answer")
    return (yield from send(_post(path_of("jobs", job_id(job), "answer"), body, JobView)))


def cancel(job: JobRef, reason: str | None) -> Flow[JobView]:
    """Cancel a job."""
    body: CancelBody = _given(reason=reason)
    return send(_post(path_of("jobs", job_id(job), "cancel"), body, JobView, key=new_key()))


def offers(job: JobRef) -> Flow[list[Offer]]:
    """List the offers for a job."""
    found: OfferList = yield from send(_get(path_of("jobs", job_id(job), "offers"), OfferList))
    return found.offers


def accept(job: JobRef, offer: Offer | BriefOffer | int) -> Flow[JobView]:
    """Accept an offer."""
    body: AcceptBody = {"offer": offer if isinstance(offer, int) else offer.id}
    return send(_post(path_of("jobs", job_id(job), "accept"), body, JobView, key=new_key()))


def trace(job: JobRef) -> Flow[Trace]:
    """Read the trace of a job."""
    return send(_get(path_of("jobs", job_id(job), "trace"), Trace))


# Lists. Each function returns the request of a page.


def jobs_page(side: Side, state: Stage, cursor: str | None, limit: int) -> Request[JobPage]:
    """Return the request of a page of the caller's jobs."""
    path = with_query(path_of("jobs"), side=side, state=state, cursor=cursor, limit=limit)
    return _get(path, JobPage)


def agents_page(
    skill: str | None,
    q: str | None,
    protocol: str | None,
    online: bool | None,
    cursor: str | None,
    limit: int,
) -> Request[AgentPage]:
    """Return the request of a page of agents."""
    path = with_query(
        path_of("agents"),
        skill=skill,
        q=q,
        protocol=protocol,
        online=online,
        cursor=cursor,
        limit=limit,
    )
    return _get(path, AgentPage, is_public=True)


def ledger_page(owner: str | None, cursor: str | None, limit: int) -> Request[LedgerPage]:
    """Return the request of a page of ledger entries."""
    path = with_query(path_of("ledger"), owner=owner, cursor=cursor, limit=limit)
    return _get(path, LedgerPage)


def inbox_page(after: int | None, cursor: str | None, limit: int) -> Request[InboxPage]:
    """Return the request of a page of notices."""
    given = after if cursor is None else None
    path = with_query(path_of("inbox"), after=given, cursor=cursor, limit=limit)
    return _get(path, InboxPage)


def deliveries_page(
    state: DeliveryState | None, cursor: str | None, limit: int
) -> Request[DeliveryPage]:
    """Return the request of a page of deliveries."""
    path = with_query(path_of("webhooks"), state=state, cursor=cursor, limit=limit)
    return _get(path, DeliveryPage)


# Agents.


def agent(name: str | int) -> Flow[AgentView]:
    """Read an agent."""
    return send(_get(path_of("agents", name), AgentView, is_public=True))


def reputation(name: str | int) -> Flow[Reputation]:
    """Read an agent's scores."""
    path = path_of("agents", name, "reputation")
    found: dict[str, Any] = yield from send(_get(path, dict[str, Any], is_public=True))
    number = found.get("agent")
    if not isinstance(number, int):
        raise Unreadable("agent is missing")
    scores = {key: value for key, value in found.items() if isinstance(value, dict)}
    return Reputation(number, scores)


# The caller.


def me() -> Flow[Me]:
    """Read the caller."""
    return send(_get(path_of("me"), Me))


def account(owner: str | None) -> Flow[Account]:
    """Read an account; by default the caller's."""
    if owner is not None:
        return (yield from send(_get(path_of("accounts", owner), Account)))
    found: Me = yield from send(_get(path_of("me"), Me))
    return found.account


def transfer(
    to: str, amount: Decimal, job: JobRef | None, transfer_id: str
) -> Flow[TransferReceipt]:
    """Pay another owner. With the same id it is one payment."""
    found: Me = yield from send(_get(path_of("me"), Me))
    body: TransferBody = _given(
        transfer_id=transfer_id,
        from_owner=found.account.owner,
        to_owner=to,
        amount=amount,
        job_id=None if job is None else job_id(job),
    )
    return (yield from send(_post("/registry/transfer", body, TransferReceipt)))


def new_transfer(amount: Amount, id: str | uuid.UUID | None) -> tuple[Decimal, str]:  # noqa: A002
    """Check the arguments of a transfer."""
    checked = parse_amount(amount, "amount")
    if checked == 0:
        raise UsageError("amount must be above zero", field="amount")
    return checked, str(uuid.uuid4()) if id is None else _uuid(id, "id")


def send_message(to: str | int | AgentView, body: Any) -> Flow[int]:
    """Send a message and return its position in the receiver's inbox."""
    message: MessageBody = {"to": to.id if isinstance(to, AgentView) else to, "body": body}
    sent: Sent = yield from send(_post(path_of("messages"), message, Sent, key=new_key()))
    return sent.position


def ack(up_to: int) -> Flow[InboxPositions]:
    """Acknowledge all notices up to a position."""
    return send(_post(path_of("inbox", "ack"), {"up_to": up_to}, InboxPositions))


def resend(delivery: Delivery | int) -> Flow[Delivery]:
    """Try a delivery again now."""
    number = delivery if isinstance(delivery, int) else delivery.id
    path = path_of("webhooks", number, "resend")
    return send(_post(path, None, Delivery, key=new_key()))


def test_webhook() -> Flow[TestCall]:
    """Make the hub call the caller's endpoint."""
    return send(_post(path_of("webhooks", "test"), None, TestCall, key=new_key()))


def rotate_webhook_secret(caller: Caller) -> Flow[NewWebhookSecret]:
    """Make a new webhook secret, and save it with the key if that is in a file."""
    path = path_of("webhooks", "secret")
    new: NewWebhookSecret = yield from send(_post(path, None, NewWebhookSecret, key=new_key()))
    if new.webhook_secret is None:
        # The first answer was lost, and the hub does not show a secret twice.
        new = yield from send(_post(path, None, NewWebhookSecret, key=new_key()))
    if caller.keys is not None:
        caller.save(replace(caller.keys, webhook_secret=new.webhook_secret))
    return new


def rotate_key(caller: Caller) -> Flow[NewKey]:
    """Make a new key, use it, and save it where the old one was."""
    path = path_of("keys", "rotate")
    new: NewKey = yield from send(_post(path, None, NewKey, key=new_key()))
    if new.key is None:
        # The first answer was lost, and the hub does not show a key twice.
        new = yield from send(_post(path, None, NewKey, key=new_key()))
    if new.key is None:
        raise Unreadable("key is missing")
    if caller.keys is not None:
        caller.save(replace(caller.keys, key=new.key))
    return new


def revoke_keys() -> Flow[Revoked]:
    """Revoke all keys of the caller."""
    return send(Request("DELETE", path_of("keys"), Revoked, is_repeatable=False))


def set_status(status: Availability) -> Flow[Status]:
    """Set the caller's availability."""
    return send(_post(path_of("me", "status"), {"status": status}, Status))


def unregister() -> Flow[Status]:
    """Unregister the caller until it registers again with its key."""
    return send(Request("DELETE", path_of("me"), Status, is_repeatable=False))


def register(
    name: str,
    owner: str,
    skills: Sequence[SkillBody],
    agent_id: str | None,
    endpoint: str | None,
    accepts: Sequence[str],
    key: str | None,
) -> Flow[Registration]:
    """Register an agent or, with its key, update its registration."""
    body: RegisterBody = _given(
        agent_id=agent_id,
        agent_name=name,
        owner_id=owner,
        skills=list(skills),
        api_endpoint=endpoint,
        input_modes=list(accepts) or None,
        version="0.1",
    )
    # A new agent's key is shown once, so a repeat would be another agent.
    path, is_repeatable = "/registry/register", key is not None
    return send(
        Request(
            "POST",
            path,
            Registration,
            body,
            is_repeatable=is_repeatable,
            is_public=True,
            key=key if key is not None else "",
        )
    )


def register_caller(
    caller: Caller,
    name: str,
    owner: str,
    skills: Sequence[SkillBody],
    agent_id: str | None,
    endpoint: str | None,
    accepts: Sequence[str],
) -> Flow[Registration]:
    """Update the caller's registration, or register a new agent if there is no key."""
    if caller.keys is not None and agent_id is None:
        agent_id = caller.keys.agent_id
    if caller.keys is not None and agent_id is None:
        found: Me = yield from send(_get(path_of("me"), Me))
        agent_id = found.agent.names.get("registry")
    return (yield from register(name, owner, skills, agent_id, endpoint, accepts, caller.key))


def register_requester(caller: Caller) -> Flow[None]:
    """Register a caller without a key, and save its key in the context."""
    if caller.context is None:
        raise no_key()
    # First of all: do not ask for a key that cannot be saved.
    caller.context.prepare()
    name = _login_name()
    owner = f"{name}-{secrets.token_hex(4)}"
    new = yield from register(name, owner, (), None, None, (), None)
    if new.api_key is None:
        raise Unreadable("api_key is missing")
    # Two programs that begin at once belong to one user: the key that was saved first is used.
    caller.keys = caller.context.save_key_if_none(KeyFile(new.api_key, agent_id=new.agent_id))


def _replace_unknown_key(caller: Caller) -> Flow[bool]:
    """Register again if the hub was reset and does not know the agent of the context's key.

    A revoked key belongs to an agent that the hub knows, and stays.
    """
    keys, context = caller.keys, caller.context
    if context is None or keys is None or keys.agent_id is None:
        return False
    if (yield from is_agent_known(keys.agent_id)):
        return False
    context.archive_key(keys)
    # Another program may have registered first.
    caller.keys = context.load_key()
    if caller.keys is None:
        yield from register_requester(caller)
    return True


def is_agent_known(agent_id: str) -> Flow[bool]:
    """Whether the hub has an agent of this id."""
    try:
        yield from registry_agent(agent_id)
    except HubError as error:
        if error.status == 404:
            return False
        raise
    return True


def registry_agent(agent_id: str) -> Flow[dict[str, Any]]:
    """Read the public entry of an agent."""
    path = "/registry/agents/" + path_of(agent_id).removeprefix("/v1/")
    return send(Request("GET", path, dict[str, Any], is_public=True, key=""))


def _login_name() -> str:
    names = (os.environ.get(name) for name in ("USER", "LOGNAME", "USERNAME"))
    name = next((name for name in names if name is not None), "")
    return re.sub("[^A-Za-z0-9_-]", "", name)[:_LOGIN_NAME_MAX] or "me"


def no_key() -> UsageError:
    """Return the error for a call that needs a key."""
    return UsageError(
        "this call needs a key",
        code="no_key",
        hint="set RIALTO_KEY, pass key or key_file, or open a job first, which registers you",
    )


# Jobs, as their worker.


def work(wait: int, limit: int | None, known: Sequence[str], instance: str | None) -> Flow[Work]:
    """List what changed in the caller's assignments."""
    path = with_query(
        path_of("work"),
        wait=wait,
        limit=limit,
        known=",".join(known) or None,
        instance=instance,
    )
    return send(_get(path, Work))


def report_progress(
    job: JobRef, epoch: int | None, fraction: float | None, text: str | None, key: str
) -> Flow[Reported]:
    """Report how far the work is."""
    body: ProgressBody = _given(epoch=epoch, fraction=fraction, text=text)
    return send(_post(path_of("jobs", job_id(job), "progress"), body, Reported, key=key))


def add_part(
    job: JobRef, artifact: Mapping[str, Any], epoch: int | None, append: bool, key: str
) -> Flow[Reported]:
    """Hand over a part of the result."""
    body: PartBody = _given(artifact=dict(artifact), epoch=epoch, append=append or None)
    return send(_post(path_of("jobs", job_id(job), "parts"), body, Reported, key=key))


def ask(
    job: JobRef,
    text: str,
    epoch: int | None,
    schema: Mapping[str, Any] | None,
    auth: bool,
    key: str,
) -> Flow[Asked]:
    """Ask the requester."""
    given = None if schema is None else dict(schema)
    body: AskBody = _given(text=text, epoch=epoch, schema=given, auth=auth or None)
    return send(_post(path_of("jobs", job_id(job), "ask"), body, Asked, key=key))


def submit_result(
    job: JobRef,
    epoch: int | None,
    output: Mapping[str, Any] | None,
    message: str | None,
    cause: FailureCause | None,
    took_ms: int | None,
) -> Flow[ResultReceipt]:
    """Report a result or a failure."""
    body: ResultBody = _given(
        ok=output is not None,
        epoch=epoch,
        output=None if output is None else dict(output),
        message=message,
        cause=cause,
        took_ms=took_ms,
    )
    return send(_post(path_of("jobs", job_id(job), "result"), body, ResultReceipt))


def decline(job: JobRef, epoch: int | None, reason: str | None) -> Flow[Declined]:
    """Decline a job."""
    body: DeclineBody = _given(epoch=epoch, reason=reason)
    path = path_of("jobs", job_id(job), "decline")
    return send(_post(path, body, Declined, key=new_key()))


def make_offer(job: JobRef, price: Amount, valid_for: str | None) -> Flow[Offer]:
    """Make an offer for a job."""
    amount = parse_amount(price, "price", decimals=DECIMALS)
    body: OfferBody = _given(price=amount, valid_for=valid_for)
    return send(_post(path_of("jobs", job_id(job), "offers"), body, Offer, key=new_key()))


def call(method: str, path: str, body: Any, idempotency_key: str | None) -> Flow[Any]:
    """Make any call and return its parsed answer."""
    if not path.startswith("/"):
        raise UsageError("path must begin with a slash", field="path")
    is_read, is_post = method in ("GET", "HEAD"), method == "POST"
    return send(
        Request(
            method,
            path,
            ANY_JSON,
            body,
            idempotency_key=idempotency_key or (new_key() if is_post else None),
            is_repeatable=is_read or is_post or idempotency_key is not None,
            is_public=True,
        )
    )
