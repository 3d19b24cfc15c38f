//! Lines of the hub's history for the operator. They contain ids and names, but no content.

use rialto_core::event::{Event as Fact, Line};
use rialto_core::id::{AgentId, EventId, JobId, NoticeId, OwnerId};
use rialto_core::world::World;
use rialto_engine::store::{Page, Row};
use rialto_engine::{Engine, Failure};

use super::source::Event;
use crate::v1::response::{money, time};
use crate::v1::jobs::view;
use crate::v1::json_object::Members;
use crate::v1::public_ids::Refs;

/// Each line is one event, because the facts of a line happened together.
const KIND: &str = "line";

/// Lines after a given one, oldest first.
pub async fn after(engine: &Engine, line: EventId, limit: usize) -> Result<Vec<Event>, Failure> {
    let rows = engine.page(Page::Lines { after: line, limit }).await?;
    let lines: Vec<Line> = rows
        .into_iter()
        .filter_map(|row| match row {
            Row::Line(line) => Some(line),
            _ => None,
        })
        .collect();
    let jobs = lines.iter().flat_map(|line| &line.events).filter_map(job);
    let refs = Refs::look_up(engine, jobs, []).await?;
    Ok(engine.look(|world| lines.iter().map(|line| told(world, &refs, line)).collect()))
}

fn told(world: &World, refs: &Refs, line: &Line) -> Event {
    let facts: Vec<Members> =
        line.events.iter().map(|fact| Said { world, refs }.fact(fact)).collect();
    let members = Members::default().with("line", line.id.0).with("at", time(line.at));
    let members = match line.by_operator {
        true => members.with("by_operator", true),
        false => members,
    };
    let members = members.with("events", facts);
    Event { id: line.id.0, kind: KIND, data: members.line() }
}

/// Encodes facts and looks up the names in them.
struct Said<'a> {
    world: &'a World,
    refs: &'a Refs,
}

impl Said<'_> {
    fn fact(&self, fact: &Fact) -> Members {
        match fact {
            Fact::AgentEnrolled { agent, owner } => {
                self.owner(self.agent("agent_enrolled", *agent), "owner", *owner)
            }
            Fact::AgentUpdated { agent } => self.agent("agent_updated", *agent),
            Fact::AgentRemoved { agent, by_operator } => {
                self.agent("agent_removed", *agent).with("by_operator", by_operator)
            }
            Fact::AgentStood { agent } => self.agent("agent_stood", *agent),
            Fact::AgentAtWork { agent } => self.agent("agent_at_work", *agent),
            Fact::AgentFree { agent } => self.agent("agent_free", *agent),
            Fact::AgentJudged { agent, job, ok } => {
                self.job("agent_judged", *job).with("agent", agent.0).with("ok", ok)
            }
            Fact::KeyIssued { agent } => self.agent("key_issued", *agent),
            Fact::OperatorKeyIssued => named("operator_key_issued"),
            Fact::KeyRevoked { agent } => self.agent("key_revoked", *agent),
            Fact::SecretRenewed { agent } => self.agent("secret_renewed", *agent),
            Fact::AgentSuspended { agent } => self.agent("agent_suspended", *agent),
            Fact::AgentResumed { agent } => self.agent("agent_resumed", *agent),
            Fact::OwnerSuspended { owner } => self.owner(named("owner_suspended"), "owner", *owner),
            Fact::OwnerResumed { owner } => self.owner(named("owner_resumed"), "owner", *owner),
            Fact::HubRestored { epoch } => named("hub_restored").with("epoch", epoch),
            Fact::AccountOpened { owner } => self.owner(named("account_opened"), "owner", *owner),
            Fact::Granted { owner, amount, welcome } => self
                .owner(named("granted"), "owner", *owner)
                .with("amount", money(*amount))
                .with("welcome", welcome),
            Fact::Burned { owner, amount } => {
                self.owner(named("burned"), "owner", *owner).with("amount", money(*amount))
            }
            Fact::Transferred { from, to, amount } => {
                let members = self.owner(named("transferred"), "from", *from);
                self.owner(members, "to", *to).with("amount", money(*amount))
            }
            Fact::SettlementConfirmed { job } => self.job("settlement_confirmed", *job),
            Fact::JobOpened { job } => self.job("job_opened", *job),
            Fact::JobAssigned { job, worker, epoch } => {
                self.job("job_assigned", *job).with("worker", worker.0).with("epoch", epoch)
            }
            Fact::JobQueued { job } => self.job("job_queued", *job),
            Fact::JobDeferred { job, until } => {
                self.job("job_deferred", *job).with("until", time(*until))
            }
            Fact::JobStarted { job } => self.job("job_started", *job),
            Fact::JobDeclined { job, worker } => {
                self.job("job_declined", *job).with("worker", worker.0)
            }
            Fact::JobOffered { job, by } => self.job("job_offered", *job).with("by", by.0),
            Fact::JobProgressed { job } => self.job("job_progressed", *job),
            Fact::JobEnded { job, state, cause, paid } => self
                .job("job_ended", *job)
                .with("state", view::state(*state))
                .with("cause", cause.map(view::cause))
                .with("paid", money(*paid)),
            Fact::JobRequeued { job } => self.job("job_requeued", *job),
            Fact::ReportedAbovePrice { job, reported, paid } => self
                .job("reported_above_price", *job)
                .with("reported", money(*reported))
                .with("paid", money(*paid)),
            Fact::SentByOperator { from, to } => {
                named("sent_by_operator").with("from", from.0).with("to", to.0)
            }
            Fact::PushDelivered { notice } => push("push_delivered", *notice),
            Fact::PushFailed { notice, attempts } => {
                push("push_failed", *notice).with("attempts", attempts)
            }
            Fact::PushGivenUp { notice } => push("push_given_up", *notice),
            Fact::EndpointSwitchedOff { agent } => self.agent("endpoint_switched_off", *agent),
        }
    }

    fn agent(&self, fact: &str, agent: AgentId) -> Members {
        named(fact).with("agent", agent.0)
    }

    fn job(&self, fact: &str, job: JobId) -> Members {
        named(fact).with("job", self.refs.job(job))
    }

    fn owner(&self, members: Members, name: &'static str, owner: OwnerId) -> Members {
        members.with(name, self.world.owner(owner).map(|owner| owner.name.as_str()))
    }
}

fn named(fact: &str) -> Members {
    Members::default().with("event", fact)
}

fn push(fact: &str, notice: NoticeId) -> Members {
    named(fact).with("push", notice.0)
}

/// The job of a fact, if it has one.
fn job(fact: &Fact) -> Option<JobId> {
    match fact {
        Fact::SettlementConfirmed { job }
        | Fact::AgentJudged { job, .. }
        | Fact::JobOpened { job }
        | Fact::JobAssigned { job, .. }
        | Fact::JobQueued { job }
        | Fact::JobDeferred { job, .. }
        | Fact::JobStarted { job }
        | Fact::JobDeclined { job, .. }
        | Fact::JobOffered { job, .. }
        | Fact::JobProgressed { job }
        | Fact::JobEnded { job, .. }
        | Fact::JobRequeued { job }
        | Fact::ReportedAbovePrice { job, .. } => Some(*job),
        Fact::AgentEnrolled { .. }
        | Fact::AgentUpdated { .. }
        | Fact::AgentRemoved { .. }
        | Fact::AgentStood { .. }
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
        | Fact::PushDelivered { .. }
        | Fact::PushFailed { .. }
        | Fact::PushGivenUp { .. }
        | Fact::EndpointSwitchedOff { .. } => None,
    }
}
