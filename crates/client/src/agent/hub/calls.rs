//! Calls of a working agent to its hub, and their bodies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::schema::Schema;
use rialto_protocols::kit::{raw_json, rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::dialogue::{DialogueStart, KnownDialogue, parse_time};
use super::event::{AgentEvent, EventCallback};
use crate::agent::dialogue::{Dialogue, RequesterInput};
use crate::agent::handlers::Handlers;
use crate::agent::job::{Job, Outcome};
use crate::agent::record::{AssignmentRef, FinishedJob};
use crate::agent::skill::Skill;
use crate::call::{CallError, Hub};
use crate::clock;
use crate::retry::RetryPolicy;
use crate::worker::{lock_ignoring_poison, retry_until_answered};

/// Maximum number of decimals in an amount.
const DECIMALS: usize = 6;
/// Maximum number of assignments at a time; the hub keeps the rest and may assign it to others.
const KNOWN_MAX: usize = 150;
/// Maximum number of assignments in one response.
const LISTED_MAX: usize = 50;
/// JSON types that the registry protocol has names for.
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
/// The backoff when the hub cannot be reached. Retries never stop.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(200),
    max_delay: Duration::from_secs(5),
};
/// The longest wait a hub can ask for, so that a wrong value does not keep an agent away.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

/// Repeats a call until the hub answers it, with an event for each failure.
pub(super) async fn until_answered<T, F>(
    action: &'static str,
    on_event: &EventCallback,
    call: impl FnMut() -> F,
) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let on_retry = |error: &CallError| on_event(AgentEvent::from_error(action, error));
    retry_until_answered(retry_delay, on_retry, call).await
}

/// The delay before the next attempt: what the hub asks for, within limits, or a growing backoff.
/// `None` if a retry cannot succeed.
pub(in crate::agent) fn retry_delay(error: &CallError, failures: u32) -> Option<Duration> {
    let is_retryable = match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => true,
        CallError::Refused { status, retryable, .. } => {
            *retryable || *status == 429 || *status >= 500 || error.is_suspended()
        }
        CallError::Unreadable(_) => false,
    };
    is_retryable.then(|| match error {
        CallError::Refused { retry_after: Some(after), .. } => (*after).min(RETRY_DELAY_MAX),
        _ => RETRY.delay(failures),
    })
}

fn to_text(body: &impl Serialize) -> Result<String, CallError> {
    serde_json::to_string(body).map_err(|error| CallError::invalid(error.to_string(), None))
}

fn read<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, CallError> {
    serde_json::from_str(text).map_err(|error| CallError::Unreadable(error.to_string()))
}

/// Assignments the hub need not send again, and what is known of their dialogues.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownAssignments(Arc<Mutex<AssignmentSet>>);

#[derive(Debug, Default)]
struct AssignmentSet {
    assignments: BTreeMap<AssignmentRef, KnownDialogue>,
    /// Whether the next poll differs from the last one.
    is_changed: bool,
}

impl KnownAssignments {
    /// Adds an assignment, or what is known of its dialogue now.
    pub(super) fn add(&self, assignment: AssignmentRef, dialogue: KnownDialogue) {
        let mut known = lock_ignoring_poison(&self.0);
        known.assignments.insert(assignment, dialogue);
        known.is_changed = true;
    }

    /// Removes every assignment of these jobs.
    pub(super) fn remove(&self, jobs: &[String]) {
        let mut known = lock_ignoring_poison(&self.0);
        let before = known.assignments.len();
        known.assignments.retain(|assignment, _| !jobs.contains(&assignment.id));
        known.is_changed |= known.assignments.len() < before;
    }

    /// Whether assignments came or went since the last call.
    pub(super) fn take_changed(&self) -> bool {
        std::mem::take(&mut lock_ignoring_poison(&self.0).is_changed)
    }

    /// How many more assignments fit, and the known ones as a query value.
    fn query(&self) -> (usize, String) {
        let known = &lock_ignoring_poison(&self.0).assignments;
        let name = |(assignment, dialogue): (&AssignmentRef, &KnownDialogue)| {
            let AssignmentRef { id, epoch } = assignment;
            format!("{id}.{epoch}.{}.{}", dialogue.answer, dialogue.message)
        };
        let names: Vec<String> = known.iter().take(KNOWN_MAX).map(name).collect();
        (KNOWN_MAX.saturating_sub(known.len()).min(LISTED_MAX), names.join(","))
    }
}

/// The changes to the agent's assignments.
#[derive(Debug, Deserialize)]
pub(super) struct WorkResponse {
    pub(super) jobs: Vec<WorkItem>,
    /// Jobs that were taken away.
    #[serde(default)]
    pub(super) gone: Vec<String>,
    /// Answers to questions.
    #[serde(default)]
    pub(super) answers: Vec<DialogueItem>,
    /// Later messages of requesters.
    #[serde(default)]
    pub(super) messages: Vec<DialogueItem>,
    /// There are more jobs than were listed.
    #[serde(default)]
    pub(super) more: bool,
    /// The hub's clock.
    #[serde(default)]
    now: Option<String>,
}

/// One assigned job.
#[derive(Debug, Deserialize)]
pub(super) struct WorkItem {
    pub(super) id: String,
    pub(super) epoch: u32,
    skill: String,
    input: Box<RawValue>,
    requester: Option<String>,
    budget: Option<Box<RawValue>>,
    deadline: Option<String>,
    lease_until: Option<String>,
    meta: Option<Box<RawValue>>,
    #[serde(default)]
    questions: Vec<QuestionItem>,
    #[serde(default)]
    messages: Vec<DialogueItem>,
    #[serde(default)]
    followed: bool,
}

/// A question of this worker, as it is listed with the job.
#[derive(Debug, Deserialize)]
pub(super) struct QuestionItem {
    pub(super) number: u32,
    pub(super) text: String,
    pub(super) schema: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) auth: bool,
    pub(super) answer: Option<Box<RawValue>>,
    pub(super) answer_meta: Option<Box<RawValue>>,
}

/// An answer to a question, or a message of a requester that answers none.
#[derive(Debug, Deserialize)]
pub(super) struct DialogueItem {
    pub(super) job_id: String,
    pub(super) epoch: u32,
    /// The number of the question, or of the message.
    #[serde(alias = "question", alias = "message")]
    pub(super) number: u32,
    text: Option<String>,
    input: Option<Box<RawValue>>,
    meta: Option<Box<RawValue>>,
    /// After an answer, when the worker must report again.
    lease_until: Option<String>,
}

impl DialogueItem {
    /// The end of the lease, by the hub's clock.
    pub(super) fn lease_until(&self) -> Option<Timestamp> {
        self.lease_until.as_deref().and_then(parse_time)
    }

    /// What the requester sent.
    pub(super) fn into_input(self) -> RequesterInput {
        let Self { text, input, meta, .. } = self;
        let input = match input {
            Some(input) => input.get().to_owned(),
            None => json!({ "text": text.unwrap_or_default() }).to_string(),
        };
        RequesterInput { input, meta: meta.map(|meta| meta.get().to_owned()) }
    }
}

impl WorkResponse {
    /// The jobs, with their times converted to the local clock, and what starts their dialogues.
    pub(super) fn into_jobs(self) -> Vec<(Job, DialogueStart)> {
        let hub_now = self.now.as_deref().and_then(|now| rfc3339::parse(now).ok());
        let ahead = hub_now.map_or(Millis(0), |hub_now| clock::now().since(hub_now));
        self.jobs.into_iter().map(|item| item.read(ahead)).collect()
    }
}

impl WorkItem {
    fn read(self, ahead: Millis) -> (Job, DialogueStart) {
        let amount = |text: &RawValue| Credits::parse(text.get(), DECIMALS).ok();
        let deadline = self.deadline.as_deref().and_then(|text| rfc3339::parse(text).ok());
        let messages = self.messages.into_iter();
        let start = DialogueStart {
            questions: self.questions,
            messages: messages.map(|one| (one.number, one.into_input())).collect(),
            lease_until: self.lease_until.as_deref().and_then(parse_time),
            is_followed: self.followed,
        };
        let job = Job {
            id: self.id,
            epoch: self.epoch,
            skill: self.skill,
            input: self.input.get().to_owned(),
            requester: self.requester.unwrap_or_default(),
            budget: self.budget.as_deref().and_then(amount).unwrap_or(Credits::ZERO),
            deadline: deadline.map(|Timestamp(at)| Timestamp(at.saturating_add(ahead.0))),
            time_limit: Duration::MAX,
            meta: self.meta.map(|meta| meta.get().to_owned()),
            dialogue: Dialogue::default(),
        };
        (job, start)
    }
}

/// Polls for work; the hub waits until something changes.
pub(super) async fn fetch_work(
    hub: &Hub,
    instance: Option<&str>,
    known: &KnownAssignments,
    wait: u32,
) -> Result<WorkResponse, CallError> {
    let (limit, known) = known.query();
    let instance = instance.map(|name| format!("&instance={name}")).unwrap_or_default();
    let path = format!("/v1/work?wait={wait}&limit={limit}&known={known}{instance}");
    read(&hub.call_text(Method::GET, &path, None).await?.1)
}

/// Checks whether another program already works for the agent. Other errors are found later.
pub(in crate::agent) async fn check_instance(hub: &Hub, instance: &str) -> Result<(), CallError> {
    let path = format!("/v1/work?wait=0&limit=0&instance={instance}");
    match hub.call_text(Method::GET, &path, None).await {
        Err(error @ CallError::Refused { status: 409, .. }) => Err(error),
        _ => Ok(()),
    }
}

#[derive(Serialize)]
struct ResultRequest<'a> {
    epoch: u32,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    took_ms: u64,
}

#[derive(Serialize)]
struct DeclineRequest<'a> {
    epoch: u32,
    reason: &'a str,
}

/// The hub's response.
#[derive(Clone, Debug, Default, Deserialize)]
struct ResultResponse {
    paid: Option<Box<RawValue>>,
    #[serde(default)]
    repeated: bool,
}

/// The outcome that was reported, and the hub's response to it.
#[derive(Debug)]
pub(super) struct ReportReceipt {
    pub(super) outcome: Outcome,
    /// As decimal text.
    pub(super) paid: Option<String>,
    /// The hub already had this result.
    pub(super) repeated: bool,
}

/// Reports an outcome to the hub, with retries.
pub(super) async fn report_result(
    hub: &Hub,
    assignment: &AssignmentRef,
    finished: &FinishedJob,
    on_event: &EventCallback,
) -> Result<ReportReceipt, CallError> {
    let report = async |finished: &FinishedJob| {
        let call = || report_once(hub, assignment, finished);
        until_answered("cannot report a result", on_event, call).await
    };
    match (&finished.outcome, report(finished).await) {
        // The requester waits, so an unusable output is reported as a failure.
        (Outcome::Done(_), Err(CallError::Refused { status: 400 | 413 | 422, message, .. })) => {
            let outcome = Outcome::Failed(format!("the hub did not accept the output: {message}"));
            report(&FinishedJob { outcome, ..finished.clone() }).await
        }
        (_, receipt) => receipt,
    }
}

/// Reports an outcome to the hub, once.
pub(super) async fn report_once(
    hub: &Hub,
    assignment: &AssignmentRef,
    finished: &FinishedJob,
) -> Result<ReportReceipt, CallError> {
    let (epoch, took_ms) = (assignment.epoch, finished.took_ms);
    let failed = |message, cause| {
        let (message, cause) = (Some(message), Some(cause));
        to_text(&ResultRequest { epoch, ok: false, output: None, message, cause, took_ms })
    };
    let (verb, body) = match &finished.outcome {
        Outcome::Declined(reason) => ("decline", to_text(&DeclineRequest { epoch, reason })),
        Outcome::Done(output) => {
            let output = Some(raw_json::verbatim(output));
            let (message, cause) = (None, None);
            ("result", to_text(&ResultRequest { epoch, ok: true, output, message, cause, took_ms }))
        }
        Outcome::Failed(why) => ("result", failed(why, "execution")),
        Outcome::InvalidInput(why) => ("result", failed(why, "invalid_input")),
        Outcome::Refused(why) => ("result", failed(why, "refused")),
    };
    let path = format!("/v1/jobs/{}/{verb}", assignment.id);
    let (_, text) = hub.call_text(Method::POST, &path, Some(body?)).await?;
    let ResultResponse { paid, repeated } = serde_json::from_str(&text).unwrap_or_default();
    let paid = paid.map(|paid| paid.get().to_owned());
    Ok(ReportReceipt { outcome: finished.outcome.clone(), paid, repeated })
}

/// Sets the agent's availability.
pub(super) async fn set_status(hub: &Hub, status: &str) -> Result<(), CallError> {
    hub.post("/v1/me/status", &json!({ "status": status })).await.map(drop)
}

/// Unregisters the agent until it registers again with its key.
pub(super) async fn unregister(hub: &Hub) -> Result<(), CallError> {
    hub.call(Method::DELETE, "/v1/me", None).await.map(drop)
}

/// Sends an offer for a job if the agent has the skill and the input is valid, and returns its
/// price.
pub(super) async fn send_offer(
    hub: &Hub,
    handlers: &Handlers,
    job: &str,
) -> Result<Option<String>, CallError> {
    #[derive(Deserialize)]
    struct OfferedJob {
        skill: String,
        input: Box<RawValue>,
    }
    #[derive(Serialize)]
    struct OfferBody {
        price: raw_json::Number,
    }
    let path = format!("/v1/jobs/{job}");
    let job: OfferedJob = read(&hub.call_text(Method::GET, &path, None).await?.1)?;
    let input = job.input.get();
    let Ok(skill) = handlers.check_input(&job.skill, input) else { return Ok(None) };
    let price = skill.price_for(input);
    let body = to_text(&OfferBody { price: raw_json::amount(price, 2) })?;
    hub.call_text(Method::POST, &format!("{path}/offers"), Some(body)).await?;
    Ok(Some(price.to_text(2)))
}

/// The agent to register.
#[derive(Clone, Debug)]
pub struct AgentRegistration<'a> {
    /// Its name.
    pub name: &'a str,
    /// The owner that receives its earnings.
    pub owner: &'a str,
    /// Its previous id.
    pub id: Option<&'a str>,
    /// The media types that it takes as input; the usual ones if empty.
    pub accepts: &'a [String],
}

/// A registered agent.
#[derive(Clone, Debug, Deserialize)]
pub struct RegistrationResponse {
    /// Its id.
    pub agent_id: String,
    /// Its key.
    pub api_key: String,
}

#[derive(Serialize)]
struct RegisterBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    agent_name: &'a str,
    owner_id: &'a str,
    skills: Vec<SkillBody<'a>>,
    version: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    input_modes: &'a [String],
}

#[derive(Serialize)]
struct SkillBody<'a> {
    skill_name: &'a str,
    description: &'a str,
    cost_per_call: raw_json::Number,
    input_schema: Box<RawValue>,
    output_schema: Box<RawValue>,
}

/// Registers an agent or, with its key, updates its registration.
pub async fn register_agent(
    hub: &Hub,
    agent: &AgentRegistration<'_>,
    handlers: &Handlers,
) -> Result<RegistrationResponse, CallError> {
    let skills: Vec<Arc<Skill>> = handlers.skills().collect();
    let body = RegisterBody {
        agent_id: agent.id,
        agent_name: agent.name,
        owner_id: agent.owner,
        skills: skills.iter().map(|skill| skill_body(skill)).collect(),
        version: "0.1",
        input_modes: agent.accepts,
    };
    read(&hub.call_text(Method::POST, "/registry/register", Some(to_text(&body)?)).await?.1)
}

fn skill_body(skill: &Skill) -> SkillBody<'_> {
    let schema = |schema: Option<&Schema>| {
        let text = match schema {
            Some(schema) if skill.shows_schemas => exact_schema(schema),
            _ => {
                let members = schema.map(simple_schema).unwrap_or_default();
                serde_json::to_string(&members).unwrap_or_default()
            }
        };
        raw_json::verbatim(&text)
    };
    SkillBody {
        skill_name: &skill.name,
        description: &skill.description,
        cost_per_call: raw_json::amount(skill.price, 2),
        input_schema: schema(skill.input_schema.as_ref()),
        output_schema: schema(skill.output_schema.as_ref()),
    }
}

/// A whole schema. One whose members are all texts would be taken for the names of types, so it gets
/// one more that says nothing.
fn exact_schema(schema: &Schema) -> String {
    let text = schema.text();
    let members: Option<BTreeMap<String, Value>> = serde_json::from_str(text).ok();
    let is_ambiguous = members
        .is_some_and(|members| !members.is_empty() && members.values().all(Value::is_string));
    match text.trim_end().strip_suffix('}') {
        Some(members) if is_ambiguous => format!(r#"{members},"properties":{{}}}}"#),
        _ => text.to_owned(),
    }
}

/// The part of a schema that the protocol can express: required members and their types. The rest
/// is checked by the client.
fn simple_schema(schema: &Schema) -> BTreeMap<String, &'static str> {
    let schema: Value = serde_json::from_str(schema.text()).unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let kind = |name: &str| {
        let declared = schema.get("properties")?.get(name)?.get("type")?.as_str()?;
        TYPES.into_iter().find(|known| *known == declared)
    };
    names.map(|name| (name.to_owned(), kind(name).unwrap_or("any"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_shown_whole_and_is_never_taken_for_names_of_types() {
        let shown = |text| exact_schema(&Schema::compile(text).expect("a schema"));
        for text in [r#"{"type":"object","required":[]}"#, "{}", r#"{ "maximum": 1.50 }"#] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown(r#"{"type":"object"}"#), r#"{"type":"object","properties":{}}"#);
    }

    #[test]
    fn a_hub_may_ask_for_a_longer_wait_within_reason() {
        let refused = |seconds: u64| CallError::Refused {
            status: 429,
            code: "rate_limited".to_owned(),
            message: String::new(),
            retryable: true,
            hint: None,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(retry_delay(&refused(7), 1), Some(Duration::from_secs(7)));
        assert_eq!(retry_delay(&refused(u64::MAX), 1), Some(RETRY_DELAY_MAX));
        assert_eq!(retry_delay(&CallError::Unreadable(String::new()), 1), None);
    }
}
