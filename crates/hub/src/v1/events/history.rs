//! Lines of the hub's history for the operator. They contain ids and names, but no content.

use rialto_core::event::{Event as Fact, HistoryLine};
use rialto_core::id::{AgentId, EventId, JobId, NoticeId, OwnerId};
use rialto_core::world::World;
use rialto_engine::store::{PageQuery, Row};
use rialto_engine::{Engine, Failure};
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;

use super::source::StreamEvent;
use crate::v1::jobs::view;
use crate::v1::json_object::{JsonObject, to_line};
use crate::v1::public_ids::PublicIds;
use crate::v1::response::{format_amount, format_time};

/// Each line is one event, because the facts of a line happened together.
const KIND: &str = "line";

/// Lines after a given one, oldest first.
pub async fn load_after(
    engine: &Engine,
    line: EventId,
    limit: usize,
) -> Result<Vec<StreamEvent>, Failure> {
    let rows = engine.load_page(PageQuery::Lines { after: line, limit }).await?;
    let lines: Vec<HistoryLine> = rows
        .into_iter()
        .filter_map(|row| match row {
            Row::Line(line) => Some(line),
            _ => None,
        })
        .collect();
    let jobs = lines.iter().flat_map(|line| &line.events).filter_map(job);
    let refs = PublicIds::load(engine, jobs, []).await?;
    Ok(engine
        .with_world(|world| lines.iter().map(|line| encode_line(world, &refs, line)).collect()))
}

fn encode_line(world: &World, refs: &PublicIds, line: &HistoryLine) -> StreamEvent {
    let facts: Vec<JsonObject> =
        line.events.iter().map(|fact| EventEncoder { world, refs }.encode(fact)).collect();
    let (at, by_operator) = (format_time(line.at), line.by_operator);
    let view = LineView { line: line.id.0, at, by_operator, events: facts };
    StreamEvent { id: line.id.0, kind: KIND, data: to_line(&view) }
}

/// One line of the history: what one command changed.
#[derive(Serialize, JsonSchema)]
pub struct LineView {
    line: u64,
    at: Time,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_operator: bool,
    #[schemars(with = "Vec<HistoryEvent>")]
    events: Vec<JsonObject>,
}

/// One event of a line.
enum HistoryEvent {}
rialto_protocols::value_schema!(HistoryEvent, {
    "type": "object",
    "required": ["event"],
    "properties": {"event": {"type": "string", "description": "Its name, such as `job_ended`"}},
    "description": "An event, with the ids and amounts it is about"
});

/// Encodes facts and looks up the names in them.
struct EventEncoder<'a> {
    world: &'a World,
    refs: &'a PublicIds,
}

impl EventEncoder<'_> {
    fn encode(&self, fact: &Fact) -> JsonObject {
        match fact {
            Fact::AgentRegistered { agent, owner } => {
                self.owner(self.agent("agent_enrolled", *agent), "owner", *owner)
            }
            Fact::AgentUpdated { agent } => self.agent("agent_updated", *agent),
            Fact::AgentRemoved { agent, by_operator } => {
                self.agent("agent_removed", *agent).with("by_operator", by_operator)
            }
            Fact::AgentStatusReported { agent } => self.agent("agent_stood", *agent),
            Fact::AgentAtWork { agent } => self.agent("agent_at_work", *agent),
            Fact::AgentFree { agent } => self.agent("agent_free", *agent),
            Fact::AgentOutcomeRecorded { agent, job, ok } => {
                self.job_of_event("agent_judged", *job).with("agent", agent.0).with("ok", ok)
            }
            Fact::KeyIssued { agent } => self.agent("key_issued", *agent),
            Fact::OperatorKeyIssued => event_object("operator_key_issued"),
            Fact::KeyRevoked { agent } => self.agent("key_revoked", *agent),
            Fact::SecretRenewed { agent } => self.agent("secret_renewed", *agent),
            Fact::AgentSuspended { agent } => self.agent("agent_suspended", *agent),
            Fact::AgentResumed { agent } => self.agent("agent_resumed", *agent),
            Fact::OwnerSuspended { owner } => {
                self.owner(event_object("owner_suspended"), "owner", *owner)
            }
            Fact::OwnerResumed { owner } => {
                self.owner(event_object("owner_resumed"), "owner", *owner)
            }
            Fact::HubRestored { epoch } => event_object("hub_restored").with("epoch", epoch),
            Fact::AccountOpened { owner } => {
                self.owner(event_object("account_opened"), "owner", *owner)
            }
            Fact::Granted { owner, amount, welcome } => self
                .owner(event_object("granted"), "owner", *owner)
                .with("amount", format_amount(*amount))
                .with("welcome", welcome),
            Fact::Burned { owner, amount } => self
                .owner(event_object("burned"), "owner", *owner)
                .with("amount", format_amount(*amount)),
            Fact::Transferred { from, to, amount } => {
                let members = self.owner(event_object("transferred"), "from", *from);
                self.owner(members, "to", *to).with("amount", format_amount(*amount))
            }
            Fact::SettlementConfirmed { job } => self.job_of_event("settlement_confirmed", *job),
            Fact::JobOpened { job } => self.job_of_event("job_opened", *job),
            Fact::JobAssigned { job, worker, epoch } => self
                .job_of_event("job_assigned", *job)
                .with("worker", worker.0)
                .with("epoch", epoch),
            Fact::JobQueued { job } => self.job_of_event("job_queued", *job),
            Fact::JobDeferred { job, until } => {
                self.job_of_event("job_deferred", *job).with("until", format_time(*until))
            }
            Fact::JobStarted { job } => self.job_of_event("job_started", *job),
            Fact::JobDeclined { job, worker } => {
                self.job_of_event("job_declined", *job).with("worker", worker.0)
            }
            Fact::JobOffered { job, by } => self.job_of_event("job_offered", *job).with("by", by.0),
            Fact::JobProgressed { job } => self.job_of_event("job_progressed", *job),
            Fact::JobInputRequested { job } => self.job_of_event("job_input_requested", *job),
            Fact::JobInputProvided { job } => self.job_of_event("job_input_provided", *job),
            Fact::JobEnded { job, state, cause, paid } => self
                .job_of_event("job_ended", *job)
                .with("state", view::state_name(*state))
                .with("cause", cause.map(view::cause_name))
                .with("paid", format_amount(*paid)),
            Fact::JobRequeued { job } => self.job_of_event("job_requeued", *job),
            Fact::ReportedAbovePrice { job, reported, paid } => self
                .job_of_event("reported_above_price", *job)
                .with("reported", format_amount(*reported))
                .with("paid", format_amount(*paid)),
            Fact::SentByOperator { from, to } => {
                event_object("sent_by_operator").with("from", from.0).with("to", to.0)
            }
            Fact::DeliverySucceeded { notice } => delivery_event("push_delivered", *notice),
            Fact::DeliveryFailed { notice, attempts } => {
                delivery_event("push_failed", *notice).with("attempts", attempts)
            }
            Fact::DeliveryAbandoned { notice } => delivery_event("push_given_up", *notice),
            Fact::EndpointDisabled { agent } => self.agent("endpoint_switched_off", *agent),
        }
    }

    fn agent(&self, fact: &str, agent: AgentId) -> JsonObject {
        event_object(fact).with("agent", agent.0)
    }

    fn job_of_event(&self, fact: &str, job: JobId) -> JsonObject {
        event_object(fact).with("job", self.refs.job(job))
    }

    fn owner(&self, members: JsonObject, name: &'static str, owner: OwnerId) -> JsonObject {
        members.with(name, self.world.owner(owner).map(|owner| owner.name.as_str()))
    }
}

fn event_object(fact: &str) -> JsonObject {
    JsonObject::default().with("event", fact)
}

fn delivery_event(fact: &str, notice: NoticeId) -> JsonObject {
    event_object(fact).with("push", notice.0)
}

/// The job of a fact, if it has one.
fn job(fact: &Fact) -> Option<JobId> {
    match fact {
        Fact::SettlementConfirmed { job }
        | Fact::AgentOutcomeRecorded { job, .. }
        | Fact::JobOpened { job }
        | Fact::JobAssigned { job, .. }
        | Fact::JobQueued { job }
        | Fact::JobDeferred { job, .. }
        | Fact::JobStarted { job }
        | Fact::JobDeclined { job, .. }
        | Fact::JobOffered { job, .. }
        | Fact::JobProgressed { job }
        | Fact::JobInputRequested { job }
        | Fact::JobInputProvided { job }
        | Fact::JobEnded { job, .. }
        | Fact::JobRequeued { job }
        | Fact::ReportedAbovePrice { job, .. } => Some(*job),
        Fact::AgentRegistered { .. }
        | Fact::AgentUpdated { .. }
        | Fact::AgentRemoved { .. }
        | Fact::AgentStatusReported { .. }
        | Fact::AgentAtWork { .. }
        | Fact::AgentFree { .. }
        | Fact::KeyIssued { .. }
        | Fact::OperatorKeyIssued
        | Fact::KeyRevoked { .. }
        | Fact::SecretRenewed { .. }
        | Fact::AgentSuspended { .. }
        | Fact::AgentResumed { .. }
        | Fact::OwnerSuspended { .. }
        | Fact::OwnerResumed { .. }
        | Fact::HubRestored { .. }
        | Fact::AccountOpened { .. }
        | Fact::Granted { .. }
        | Fact::Burned { .. }
        | Fact::Transferred { .. }
        | Fact::SentByOperator { .. }
        | Fact::DeliverySucceeded { .. }
        | Fact::DeliveryFailed { .. }
        | Fact::DeliveryAbandoned { .. }
        | Fact::EndpointDisabled { .. } => None,
    }
}
