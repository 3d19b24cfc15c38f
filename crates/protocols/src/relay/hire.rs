//! Messages that request work: a message to an agent of another protocol becomes a job for it.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::response::Response;
use rialto_core::agent::Agent;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, OpenJob, Unfit};
use rialto_core::price_step::Grain;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, PRIORITY, Policy, Requester, Selection, State};
use rialto_core::money::Credits;
use rialto_core::refusal::Refusal;
use rialto_core::time::Millis;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::codes::Code;
use super::delivery::{Delivery, Outcome};
use super::envelope::Envelope;
use super::proof::AsEither;
use super::routes::{Answered, refuse};
use super::send::Send;
use super::wish::Wish;
use super::{Bad, Failure, ID, refusals, reply, shape, wording};
use crate::adapter::Floor;
use crate::adapter::input_check::{self, Wanted};
use crate::kit::ijson;

/// The header with the id of the job that an answer is about (B18).
const JOB_HEADER: &str = "rialto-job";
/// The minimum number of decimals of an amount in a sentence.
const DECIMALS: usize = 2;

/// Opens a job for a message to an agent of another protocol; `None` if it is only a message.
pub async fn hire(
    floor: &Floor,
    by: AsEither,
    from: AgentId,
    worker: &Arc<Agent>,
    send: &Send<'_>,
    delay: Option<Millis>,
) -> Result<Option<Response>, refusals::Refused> {
    let rejected = |failure: Failure| refuse(floor, failure).rejected();
    let json = ijson::read(send.envelope.raw().as_bytes());
    let json = json.map_err(|unreadable| rejected(Bad::from(unreadable).into()))?;
    let wish = Wish::read(&json).map_err(|bad| rejected(bad.into()))?;
    if by.agent.is_none() {
        // Only the agent itself may spend its credits; the operator may write for it.
        return match wish.skill {
            None => Ok(None),
            Some(_) => Err(rejected(operator_hires_nobody())),
        };
    }
    let Some(skill) = wish.skill_of(worker) else { return Ok(None) };
    let order = Order { floor, from, worker, skill, wish: &wish, send, delay };
    order.run(by).await.map(Some)
}

fn operator_hires_nobody() -> Failure {
    let text = "the operator may send messages as an agent but not open jobs for it; remove skill";
    Failure { field: Some("/envelope/skill".into()), ..Failure::new(Code::Forbidden, text) }
}

/// A job to be opened for a worker.
struct Order<'o> {
    floor: &'o Floor,
    from: AgentId,
    worker: &'o Arc<Agent>,
    skill: &'o str,
    wish: &'o Wish<'o>,
    send: &'o Send<'o>,
    /// How long the loop guard holds it back.
    delay: Option<Millis>,
}

impl Order<'_> {
    async fn run(&self, by: AsEither) -> Answered {
        let floor = self.floor;
        let input = self.wish.input(&self.send.envelope, self.worker.skill(self.skill));
        let wanted =
            Wanted { by: ID, names: &[self.skill], of: Some(self.worker.id), input: &input };
        let unfit = input_check::unfit(floor, &wanted).await;
        let flaw = self.flaw();
        // An input that is unfit now is unfit later too.
        let may_wait = flaw.is_none() && unfit.is_empty();
        let order = self.open(input, unfit, may_wait);
        match floor.engine.run_once(order, by.once).await {
            Ok(ran) => {
                let Answer::Job { job, repeated } = ran.answer else {
                    return Err(refuse(floor, refusals::failed(EngineFailure::Fault)).rejected());
                };
                let held = self.delay.is_some() && !repeated;
                Ok(told(floor, job.uuid, outcome(&job), repeated || ran.replayed, held))
            }
            Err(EngineFailure::Refused(refusal)) if is_the_agents(&refusal) => {
                let detail = flaw.unwrap_or_else(|| words(&refusal, self.wish.budget));
                Ok(answered_no(floor, &detail))
            }
            Err(failure) => {
                Err(refuse(floor, super::routes::messages::conflict(refusals::failed(failure)))
                    .rejected())
            }
        }
    }

    /// A problem that waiting for the worker would not solve.
    fn flaw(&self) -> Option<String> {
        let Some(skill) = self.worker.skill(self.skill) else {
            return Some(no_such_skill(self.worker, self.skill));
        };
        let budget = self.wish.budget.unwrap_or(Credits::ZERO);
        (skill.price > budget).then(|| costs(skill.price))
    }

    fn open(&self, input: String, unfit: Vec<Unfit>, may_wait: bool) -> Command {
        let (floor, envelope) = (self.floor, &self.send.envelope);
        let (now, lease) = (floor.engine.now(), floor.relay.settings.lease);
        let uuid = floor.engine.ids().uuid();
        let away = floor.engine.look(|world| !world.is_online(self.worker.id, now));
        Command::OpenJob(Box::new(OpenJob {
            uuid,
            origin: ID,
            foreign: name(self.send).unwrap_or_else(|| uuid.to_string()),
            content: Digest::of(&[envelope.raw().as_bytes()]),
            requester: Requester::Agent(self.from),
            skill: self.skill.to_owned(),
            also: Vec::new(),
            input,
            budget: self.wish.budget.unwrap_or(Credits::ZERO),
            grain: Grain::FINE,
            selection: Selection::Direct(self.worker.id),
            unfit,
            // The sender is notified of the end in any case, so it can be answered at once.
            policy: Policy {
                presence_first: true,
                queue_unmatched: away && may_wait,
                // A refusal is sent at once, without the delay.
                not_before: self.delay.filter(|_| may_wait).map(|delay| now.plus(delay)),
                ..Policy::default()
            },
            deadline: now.plus(lease),
            lease,
            promised: None,
            priority: PRIORITY,
            callback: None,
            flaw: None,
            meta: envelope.raw().to_owned(),
            hops: 0,
            request_id: None,
        }))
    }
}

/// What identifies a repeat: the same turn of the same conversation between the same two agents
/// (R47).
fn name(send: &Send<'_>) -> Option<String> {
    let Envelope { sender, conversation_id, turn_number, .. } = &send.envelope;
    let (conversation, turn) = conversation_id.zip(*turn_number)?;
    let (sender, receiver) = (sender.canonical(), send.receiver.canonical());
    Some(format!("{sender}/{receiver}/{conversation}/{turn}"))
}

/// How far the work got, as the outcome of a message.
fn outcome(job: &Job) -> Outcome<'static> {
    match job.state {
        State::Open | State::Queued | State::Negotiating | State::Deferred { .. } => {
            Outcome::Queued
        }
        _ => Outcome::Delivered { reply: reply::OK },
    }
}

/// Whether the refusal is the agent's, and not the hub's.
fn is_the_agents(refusal: &Refusal) -> bool {
    use Refusal::*;
    matches!(
        refusal,
        NoSuchSkill
            | SkillNotOffered
            | BudgetTooLow { .. }
            | TooFewCredits
            | Offline
            | AtCapacity
            | TooFast
            | OutOfOrder
            | GuestCannotPay
            | Unfit { .. }
            | DeadlineTooSoon
            | BridgeLoop { .. }
    )
}

fn words(refusal: &Refusal, budget: Option<Credits>) -> String {
    match refusal {
        Refusal::BudgetTooLow { price } => costs(*price),
        Refusal::TooFewCredits => {
            let budget = budget.unwrap_or(Credits::ZERO).text(DECIMALS);
            format!("not enough credits: {budget} must be held for this job")
        }
        other => other.to_string(),
    }
}

/// How a priced skill is paid for.
fn costs(price: Credits) -> String {
    let price = price.text(DECIMALS);
    format!("the skill costs {price} credits; add \"budget\": {price} to the envelope")
}

fn no_such_skill(worker: &Agent, skill: &str) -> String {
    let known: Vec<&str> = worker.skills_for_others().map(|one| one.name.as_str()).collect();
    match known.is_empty() {
        true => format!("the agent has no skill {skill:?} and offers no other"),
        false => format!("the agent has no skill {skill:?}; it offers {}", known.join(", ")),
    }
}

/// The response to the sender of a message that is work; its trace id is the job's id.
pub fn told(
    floor: &Floor,
    job: Uuid,
    outcome: Outcome<'_>,
    repeated: bool,
    loop_guard: bool,
) -> Response {
    floor.relay.tally.count(&outcome);
    let trace_id = job.to_string();
    let delivery = Delivery { outcome, trace_id: &trace_id, loop_guard };
    let body = shape::answered(floor.engine.now(), delivery.size(), |out| delivery.write(out));
    let mut answer = refusals::json(delivery.status(), body);
    let headers = answer.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&trace_id) {
        headers.insert(JOB_HEADER, id);
    }
    if repeated {
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    answer
}

/// The agent's refusal, written for it: nothing was stored (docs/requirements.md, section 6).
fn answered_no(floor: &Floor, detail: &str) -> Response {
    let reply = wording::error(detail);
    // Clients read a trace id from every 200; this one cannot be looked up.
    let trace = floor.engine.ids().uuid();
    let data =
        format!(r#"{{"delivery":"rejected","receiver_response":{reply},"trace_id":"{trace}"}}"#);
    let now = floor.engine.now();
    if !floor.relay.settings.failed_is_error {
        return refusals::json(200, shape::success(&data, now));
    }
    let failure = Failure::new(Code::AdaptationFailed, detail.to_owned());
    // As in every answer whose cause is on the receiver's side.
    let failure = Failure { status: 502, data: Some(data.into()), ..failure };
    refusals::json(failure.status, failure.write(now))
}
