//! Jobs as envelopes: work for agents of this protocol, and results of work they requested.
//!
//! The hub writes these for an agent of another protocol, and marks them with the member `bridge`.
//! That and other annotations are beside the envelope: clients read envelopes strictly.

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, Selection, State};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::number;
use rialto_core::world::World;

use super::codes::Code;
use super::event::Annotations;
use super::spoken::{as_string, json_as_text};
use super::{ID, VERSION, record, reply};
use crate::adapter::{bridge, fidelity};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::kit::raw_json;

/// The culture assumed for a party that names none.
pub const DEFAULT_CULTURE: &str = "en";
/// The minimum number of decimals of a price.
const DECIMALS: usize = 2;

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
        NoticeKind::ApprovalRequested { .. }
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
    !job.is_some_and(|job| {
        job.epoch == *epoch && matches!(job.state, State::Assigned | State::Running)
    })
}

fn assigned(world: &World, notice: &Notice, job: &Job, epoch: u32) -> Option<JobEnvelope> {
    let theirs = job.epoch == epoch && job.worker() == notice.to;
    theirs.then(|| {
        let said = json_as_text(&job.input);
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
    EnvelopeSender::of_requester(world, job).says(world, job, &said, &job.uuid.to_string(), 2)
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
    let asked = (job.origin == ID).then(|| ijson::read(job.meta.as_bytes()).ok()).flatten();
    let conversation = match asked.as_ref().and_then(|asked| asked.get("conversation_id")) {
        Some(id) => as_string(id).map(str::to_owned),
        None => None,
    };
    let conversation = conversation.unwrap_or_else(|| job.uuid.to_string());
    let turn = asked
        .as_ref()
        .and_then(|asked| number::parse_integer(asked.get("turn_number")?.raw()).ok());
    let turn = turn.unwrap_or(1).saturating_add(1);
    EnvelopeSender::of_worker(world, job).says(world, job, &said, &conversation, turn)
}

/// An error, in the form this protocol's receivers use.
pub fn error_text(detail: &str) -> String {
    String::from_utf8(reply::write_error_reply(Code::AdaptationFailed, detail)).unwrap_or_default()
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
            address: record::address(world, agent).into_owned(),
            culture: record::culture(agent).unwrap_or_else(|| DEFAULT_CULTURE.to_owned()),
            bridge: bridge::bridge_of_agent(agent),
        })
    }

    /// A party without an address: a guest, or the worker of a job that has none.
    fn of_nobody(job: &Job, name: &str) -> Self {
        Self {
            address: format!("{name}@bridge"),
            culture: DEFAULT_CULTURE.to_owned(),
            bridge: ObjectWriter::new().text("protocol", job.origin.as_str()).finish(),
        }
    }

    fn of_requester(world: &World, job: &Job) -> Self {
        let known = match job.requester {
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
        let annotations = Annotations { job, bridge, meta: None };
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
        .text("skill", skill.unwrap_or(&job.skill))
        .maybe_raw("price", price.as_deref().map(|price| price.get()))
        .finish()
}
