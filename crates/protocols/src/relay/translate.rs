//! Core to wire: jobs as envelopes, and agents as registration records.
//!
//! Envelopes about jobs are work for agents of this protocol, and results of work they requested.
//! The hub writes these for an agent of another protocol, and marks them with the member `bridge`.
//! That and other annotations are beside the envelope: clients read envelopes strictly.

use std::borrow::Cow;

use rialto_core::agent::{Agent, Liveness};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Question, Requester, Selection};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::number;
use rialto_core::world::World;
use rialto_engine::Engine;

use super::message::read_stored_message;
use super::wire::inbox::Annotations;
use super::wire::reply::write_error_reply;
use super::wire::response::write_json_string;
use super::wire::work::{MESSAGE_SKILL, as_string, json_as_text, message_skill};
use super::{Code, EnvelopeFormat, ID, VERSION};
use crate::adapter::profile::{ChangedProfile, ProfileChange};
use crate::adapter::{bridge, fidelity};
use crate::kit::fields::Malformed;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::{raw_json, rfc3339};

/// The culture assumed for a party that names none.
pub const DEFAULT_CULTURE: &str = "en";
/// The minimum number of decimals of a price.
const DECIMALS: usize = 2;
/// The most decimals of a skill's price.
const PRICE_DECIMALS: usize = 6;

/// An envelope, its sender, and its annotations.
pub struct JobEnvelope {
    pub sender_id: String,
    pub envelope: String,
    pub annotations: Annotations,
}

/// What a reader is sent about a job; `None` for notices that have no form in this protocol.
pub fn job_envelope(world: &World, notice: &Notice, job: &Job) -> Option<JobEnvelope> {
    match notice.news {
        NoticeKind::Assigned { epoch, .. } => assigned(world, notice, job, epoch),
        NoticeKind::Unassigned { .. } => Some(taken_back(world, job)),
        NoticeKind::Ended { .. } => Some(ended(world, job)),
        NoticeKind::InputRequested { question, .. } => asked(world, job, question),
        NoticeKind::InputProvided { question, .. } => answered(world, job, question),
        NoticeKind::RequesterMessage { number, .. } => message_to_worker(world, job, number),
        NoticeKind::ApprovalRequested { .. }
        | NoticeKind::Progress { .. }
        | NoticeKind::OriginalProgress { .. }
        | NoticeKind::Step { .. }
        | NoticeKind::LogEntry { .. }
        | NoticeKind::Accepted { .. }
        | NoticeKind::Queued { .. }
        | NoticeKind::OfferRequested { .. }
        | NoticeKind::OfferReceived { .. }
        | NoticeKind::PriceAgreed { .. }
        | NoticeKind::OfferLost { .. }
        | NoticeKind::Message { .. } => None,
    }
}

/// Whether it is work that is no longer wanted.
pub fn is_obsolete(news: &NoticeKind, job: Option<&Job>) -> bool {
    let NoticeKind::Assigned { epoch, .. } = news else { return false };
    !job.is_some_and(|job| job.epoch == *epoch && job.state.is_assigned())
}

fn assigned(world: &World, notice: &Notice, job: &Job, epoch: u32) -> Option<JobEnvelope> {
    let theirs = job.epoch == epoch && job.worker() == notice.to;
    theirs.then(|| {
        let said = json_as_text(&job.request.input);
        let worded = EnvelopeSender::of_requester(world, job);
        let mut worded = worded.says(world, job, &said, &job.uuid.to_string(), 1);
        worded.annotations.meta = fidelity::extras(job);
        worded
    })
}

fn taken_back(world: &World, job: &Job) -> JobEnvelope {
    let why = job.result.as_ref().and_then(|report| report.text.as_deref());
    let why = why.unwrap_or("it was assigned to another agent");
    let said = error_text(&format!("the job was reassigned or cancelled: {why}"));
    let asked = exchanged_turns(job.current_questions().map(|(_, question)| question));
    let turn = 2 + asked + 2 * job.plain_messages().count() as i64;
    EnvelopeSender::of_requester(world, job).says(world, job, &said, &job.uuid.to_string(), turn)
}

/// The messages of these questions and their answers.
fn exchanged_turns<'a>(questions: impl Iterator<Item = &'a Question>) -> i64 {
    questions.map(|question| 1 + i64::from(question.answer.is_some())).sum()
}

/// The conversation in which a job was requested; a job from elsewhere has one under its own id.
pub struct Conversation {
    pub id: String,
    /// The turn of the request.
    pub turn: i64,
}

pub fn conversation(job: &Job) -> Conversation {
    let is_own = job.request.origin == ID;
    let asked = is_own.then(|| ijson::read(job.request.meta.as_bytes()).ok()).flatten();
    let id = asked.as_ref().and_then(|asked| as_string(asked.get("conversation_id")?));
    let turn = asked
        .as_ref()
        .and_then(|asked| number::parse_integer(asked.get("turn_number")?.raw()).ok());
    Conversation {
        id: id.map_or_else(|| job.uuid.to_string(), str::to_owned),
        turn: turn.unwrap_or(1),
    }
}

/// The number of the question that a message of this turn answers: the newest one asked in an earlier
/// turn, so that a message which arrives again does not answer the next question. `None` without a
/// turn after the request.
pub fn answered_question(job: &Job, turn: Option<u64>) -> Option<u32> {
    let turn = i64::try_from(turn?).ok()?;
    let asked = turn.saturating_sub(conversation(job).turn) / 2;
    let newest = i64::try_from(job.questions.len()).ok()?;
    u32::try_from(asked.min(newest)).ok().filter(|number| *number > 0)
}

/// A question of the worker: the requester answers it with its next message.
fn asked(world: &World, job: &Job, number: u32) -> Option<JobEnvelope> {
    let (_, question) = (1..).zip(&job.questions).find(|(asked, _)| *asked == number)?;
    let Conversation { id, turn } = conversation(job);
    let turn = turn.saturating_add(2 * i64::from(number) - 1);
    let mut envelope =
        EnvelopeSender::of_worker(world, job).says(world, job, &question.text, &id, turn);
    envelope.annotations.question = true;
    Some(envelope)
}

/// The requester's answer, for the worker.
fn answered(world: &World, job: &Job, number: u32) -> Option<JobEnvelope> {
    let (_, question) = job.current_questions().find(|(asked, _)| *asked == number)?;
    let text = json_as_text(question.answer.as_deref()?);
    let answered_at = question.answered_at?;
    let answers = job.current_questions().filter(|(asked, _)| *asked < number).count();
    let messages = job.plain_messages().filter(|(_, sent)| sent.at < answered_at).count();
    let turn = turn_to_worker(answers + messages);
    let id = job.uuid.to_string();
    Some(EnvelopeSender::of_requester(world, job).says(world, job, &text, &id, turn))
}

/// The turn of a message to the worker after this many answers and messages to it. The request is
/// the first turn, and a turn of the worker is between two.
fn turn_to_worker(before: usize) -> i64 {
    3 + 2 * before as i64
}

/// A message of the requester that answers no question, for the worker.
fn message_to_worker(world: &World, job: &Job, number: u32) -> Option<JobEnvelope> {
    let (_, message) = job.plain_messages().find(|(sent, _)| *sent == number)?;
    let text = json_as_text(&message.input);
    let is_earlier = |question: &Question| question.answered_at.is_some_and(|at| at <= message.at);
    let answers = job.current_questions().filter(|(_, question)| is_earlier(question)).count();
    let messages = job.plain_messages().filter(|(sent, _)| *sent < number).count();
    let (id, turn) = (job.uuid.to_string(), turn_to_worker(answers + messages));
    Some(EnvelopeSender::of_requester(world, job).says(world, job, &text, &id, turn))
}

/// The answer to a message that was work.
fn ended(world: &World, job: &Job) -> JobEnvelope {
    let said = match &job.result {
        Some(report) if report.ok => json_as_text(report.output.as_deref().unwrap_or("{}")),
        report => {
            let why = report.as_ref().and_then(|report| report.text.as_deref());
            error_text(why.unwrap_or("the agent gave no error message"))
        }
    };
    let Conversation { id, turn } = conversation(job);
    let turn = turn.saturating_add(1 + exchanged_turns(job.questions.iter()));
    EnvelopeSender::of_worker(world, job).says(world, job, &said, &id, turn)
}

/// An error, in the form this protocol's receivers use.
pub fn error_text(detail: &str) -> String {
    String::from_utf8(write_error_reply(Code::AdaptationFailed, detail)).unwrap_or_default()
}

/// The addresses of a job's two parties.
pub struct PartyAddresses {
    pub requester: String,
    pub worker: String,
}

pub fn party_addresses(world: &World, job: &Job) -> PartyAddresses {
    PartyAddresses {
        requester: EnvelopeSender::of_requester(world, job).address,
        worker: EnvelopeSender::of_worker(world, job).address,
    }
}

/// The party the hub writes for.
struct EnvelopeSender {
    address: String,
    culture: String,
    bridge: String,
}

impl EnvelopeSender {
    fn of_agent(world: &World, id: AgentId) -> Option<Self> {
        let agent = world.agent(id)?;
        Some(Self {
            address: address(world, agent).into_owned(),
            culture: culture(agent).unwrap_or_else(|| DEFAULT_CULTURE.to_owned()),
            bridge: bridge::bridge_of_agent(agent),
        })
    }

    /// A party without an address: a guest, or the worker of a job that has none.
    fn of_nobody(job: &Job, name: &str) -> Self {
        Self {
            address: format!("{name}@bridge"),
            culture: DEFAULT_CULTURE.to_owned(),
            bridge: ObjectWriter::new().text("protocol", job.request.origin.as_str()).finish(),
        }
    }

    fn of_requester(world: &World, job: &Job) -> Self {
        let known = match job.request.requester {
            Requester::Agent(agent) => Self::of_agent(world, agent),
            Requester::Guest(_) => None,
        };
        let digits = || format!("{:08x}", job.uuid.as_u128() >> 96);
        known.unwrap_or_else(|| Self::of_nobody(job, &format!("guest-{}", digits())))
    }

    fn of_worker(world: &World, job: &Job) -> Self {
        let named = match job.selection {
            Selection::Direct(agent) => Some(agent),
            _ => None,
        };
        let worker = job.intended_worker().or(named);
        let known = worker.and_then(|worker| Self::of_agent(world, worker));
        known.unwrap_or_else(|| Self::of_nobody(job, "hub"))
    }

    fn says(
        self,
        world: &World,
        job: &Job,
        said: &str,
        conversation_id: &str,
        turn_number: i64,
    ) -> JobEnvelope {
        let envelope = ObjectWriter::new()
            .text("chorus_version", VERSION)
            .text("sender_id", &self.address)
            .text("original_text", said)
            .text("sender_culture", &self.culture)
            .text("conversation_id", conversation_id)
            .integer("turn_number", turn_number);
        let (job, bridge) = (Some(summary(world, job)), Some(self.bridge));
        let annotations = Annotations { job, bridge, ..Annotations::default() };
        JobEnvelope { sender_id: self.address, envelope: envelope.finish(), annotations }
    }
}

/// A summary of the job, the same for both parties.
fn summary(world: &World, job: &Job) -> String {
    let worker = job.intended_worker().and_then(|worker| world.agent(worker));
    let skill = worker.and_then(|worker| worker.skill_for(job)).map(|skill| skill.name.as_str());
    let price = job.assignment.map(|turn| raw_json::amount(turn.price, DECIMALS));
    ObjectWriter::new()
        .uuid("id", job.uuid)
        .text("skill", skill.unwrap_or(&job.request.skill))
        .maybe_raw("price", price.as_ref().map(|price| price.get()))
        .finish()
}

/// What the relay stores with an agent, as JSON: its address as registered, its card, its format.
pub fn write_stored_card(
    address: &str,
    card: Option<&str>,
    format: Option<EnvelopeFormat>,
) -> String {
    let mut out = Vec::with_capacity(address.len() + card.map_or(4, str::len) + 64);
    out.extend_from_slice(b"{\"agent_id\":");
    write_json_string(&mut out, address);
    out.extend_from_slice(b",\"agent_card\":");
    out.extend_from_slice(card.unwrap_or("null").as_bytes());
    if let Some(format) = format {
        out.extend_from_slice(b",\"envelope_format\":");
        write_json_string(&mut out, format.as_str());
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The text of a message, as it was stored.
pub fn message_text(body: &str) -> Option<String> {
    let (envelope, _) = read_stored_message(body);
    let envelope = ijson::read(envelope.as_bytes()).ok()?;
    as_string(envelope.get("original_text")?).map(str::to_owned)
}

/// What a change makes of an agent. Its name is part of its address, and it always takes messages.
pub fn change_profile(agent: &Agent, change: &ProfileChange) -> Result<ChangedProfile, Malformed> {
    if change.name.as_ref().is_some_and(|name| *name != agent.name) {
        let message = "name is part of the agent's address and cannot be changed".to_owned();
        return Err(Malformed { field: "/name".to_owned(), message });
    }
    let mut changed = change.plainly(PRICE_DECIMALS)?;
    if let Some(skills) = &mut changed.skills
        && skills.iter().all(|skill| skill.name != MESSAGE_SKILL)
    {
        skills.insert(0, message_skill());
    }
    Ok(changed)
}

/// How an agent wants its envelopes wrapped.
pub fn envelope_format(agent: &Agent) -> Option<EnvelopeFormat> {
    if agent.home != ID || !agent.card.contains("\"envelope_format\"") {
        return None;
    }
    let kept = ijson::read(agent.card.as_bytes()).ok()?;
    EnvelopeFormat::read(as_string(kept.get("envelope_format")?)?)
}

/// An agent's address: as registered, or the alias of an agent of another protocol.
pub fn address<'w>(world: &'w World, agent: &'w Agent) -> Cow<'w, str> {
    if agent.home != ID {
        return world.alias_of(agent.id, ID).unwrap_or_default().into();
    }
    // Addresses need no escapes, so the text can be used as it is.
    let shown = agent.card.strip_prefix("{\"agent_id\":\"").and_then(|rest| rest.split('"').next());
    // The card of an agent that has left is not in memory; it adds only how the host was spelled.
    let host = || agent.native_id.split_once('@').map_or("", |(_, host)| host);
    shown.map_or_else(|| format!("{}@{}", agent.name, host()).into(), Cow::Borrowed)
}

/// The address of an agent that may have left.
pub fn address_of(world: &World, agent: Option<AgentId>) -> Cow<'_, str> {
    agent.and_then(|id| world.agent(id)).map_or("".into(), |agent| address(world, agent))
}

/// Whether messages reach the agent now.
pub fn is_online(engine: &Engine, world: &World, agent: &Agent) -> bool {
    if engine.has_inbox_reader(agent.id) {
        return true;
    }
    if agent.home != ID {
        return world.is_online(agent.id, engine.now());
    }
    agent.liveness == Liveness::ByEndpoint
        && world.agent_state(agent.id).is_some_and(|state| !state.presence.unreachable)
}

/// The agent's endpoint, if the relay may post to it.
pub fn callable_endpoint(agent: &Agent) -> Option<&str> {
    let called = agent.home == ID && agent.liveness == Liveness::ByEndpoint;
    agent.endpoint.as_deref().filter(|_| called)
}

/// The card of agents without one: those of other protocols, and those that registered without one.
/// Clients read every listed card, so there must always be one.
const DEFAULT_CARD: &str =
    r#"{"card_version":"0.3","user_culture":"en","supported_languages":["en"]}"#;

/// The card's JSON text.
pub fn public_card(agent: &Agent) -> String {
    if agent.home != ID {
        return DEFAULT_CARD.to_owned();
    }
    let kept = ijson::read(agent.card.as_bytes());
    let card = kept.as_ref().ok().and_then(|kept| kept.get("agent_card"));
    let card = card.filter(|card| *card.value() != JsonValue::Null);
    card.map_or(DEFAULT_CARD, Json::raw).to_owned()
}

/// The culture in an agent's card.
pub fn culture(agent: &Agent) -> Option<String> {
    let card = public_card(agent);
    let card = ijson::read(card.as_bytes()).ok()?;
    as_string(card.get("user_culture")?).map(str::to_owned)
}

/// Writes a record. The endpoint is included for callers that may see it.
pub fn write_record(
    out: &mut Vec<u8>,
    engine: &Engine,
    world: &World,
    agent: &Agent,
    endpoints: bool,
) {
    out.extend_from_slice(b"{\"agent_id\":");
    write_json_string(out, &address(world, agent));
    out.extend_from_slice(b",\"agent_card\":");
    out.extend_from_slice(public_card(agent).as_bytes());
    out.extend_from_slice(b",\"registered_at\":");
    write_json_string(out, &rfc3339::format_millis(agent.registered_at));
    out.extend_from_slice(b",\"online\":");
    let online = is_online(engine, world, agent);
    out.extend_from_slice(if online { b"true" } else { b"false" });
    out.extend_from_slice(b",\"protocol\":");
    write_json_string(out, agent.home.as_str());
    if agent.home != ID {
        out.extend_from_slice(b",\"native_id\":");
        write_json_string(out, &agent.native_id);
    }
    if let Some(format) = envelope_format(agent) {
        out.extend_from_slice(b",\"envelope_format\":");
        write_json_string(out, format.as_str());
    }
    if let Some(url) = agent.endpoint.as_deref().filter(|_| endpoints && agent.home == ID) {
        out.extend_from_slice(b",\"endpoint\":");
        write_json_string(out, url);
    }
    out.push(b'}');
}
