//! Jobs as envelopes: work for agents of this protocol, and results of work they requested.
//!
//! The hub writes these for an agent of another protocol, and marks them with the member `bridge`.
//! That and other annotations are beside the envelope: clients read envelopes strictly.

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, Selection, State};
use rialto_core::notice::{News, Notice};
use rialto_core::number;
use rialto_core::world::World;

use super::codes::Code;
use super::event::Annotations;
use super::spoken::{text, text_of};
use super::{ID, VERSION, record, reply};
use crate::adapter::{fidelity, bridge};
use crate::kit::ijson;
use crate::kit::object::Object;
use crate::kit::raw_json;

/// The culture assumed for a party that names none.
pub const CULTURE: &str = "en";
/// The minimum number of decimals of a price.
const DECIMALS: usize = 2;

/// An envelope, its sender, and its annotations.
pub struct Worded {
    pub sender_id: String,
    pub envelope: String,
    pub annotations: Annotations,
}

/// What a reader is sent about a job; `None` for notices that have no form in this protocol.
pub fn of(world: &World, notice: &Notice, job: &Job) -> Option<Worded> {
    match notice.news {
        News::Assigned { epoch, .. } => assigned(world, notice, job, epoch),
        News::TakenBack { .. } => Some(taken_back(world, job)),
        News::Ended { .. } => Some(ended(world, job)),
        News::ApprovalWanted { .. }
        | News::Accepted { .. }
        | News::Queued { .. }
        | News::OffersWanted { .. }
        | News::Offered { .. }
        | News::PriceTaken { .. }
        | News::OfferClosed { .. }
        | News::Message { .. } => None,
    }
}

/// Whether it is work that is no longer wanted.
pub fn is_over(news: &News, job: Option<&Job>) -> bool {
    let News::Assigned { epoch, .. } = news else { return false };
    !job.is_some_and(|job| {
        job.epoch == *epoch && matches!(job.state, State::Assigned | State::Running)
    })
}

fn assigned(world: &World, notice: &Notice, job: &Job, epoch: u32) -> Option<Worded> {
    let theirs = job.epoch == epoch && job.worker() == notice.to;
    theirs.then(|| {
        let said = text_of(&job.input);
        let worded = Voice::of_requester(world, job);
        let mut worded = worded.says(world, job, &said, &job.uuid.to_string(), 1);
        worded.annotations.meta = fidelity::extras(job);
        worded
    })
}

fn taken_back(world: &World, job: &Job) -> Worded {
    let why = job.report.as_ref().and_then(|report| report.text.as_deref());
    let why = why.unwrap_or("it was assigned to another agent");
    let said = error(&format!("the job was reassigned or cancelled: {why}"));
    Voice::of_requester(world, job).says(world, job, &said, &job.uuid.to_string(), 2)
}

/// The answer to a message that was work.
fn ended(world: &World, job: &Job) -> Worded {
    let said = match &job.report {
        Some(report) if report.ok => text_of(report.output.as_deref().unwrap_or("{}")),
        report => {
            let why = report.as_ref().and_then(|report| report.text.as_deref());
            error(why.unwrap_or("the agent gave no error message"))
        }
    };
    let asked = (job.origin == ID).then(|| ijson::read(job.meta.as_bytes()).ok()).flatten();
    let conversation = match asked.as_ref().and_then(|asked| asked.get("conversation_id")) {
        Some(id) => text(id).map(str::to_owned),
        None => None,
    };
    let conversation = conversation.unwrap_or_else(|| job.uuid.to_string());
    let turn =
        asked.as_ref().and_then(|asked| number::integer(asked.get("turn_number")?.raw()).ok());
    let turn = turn.unwrap_or(1).saturating_add(1);
    Voice::of_worker(world, job).says(world, job, &said, &conversation, turn)
}

/// An error, in the form this protocol's receivers use.
pub fn error(detail: &str) -> String {
    String::from_utf8(reply::error(Code::AdaptationFailed, detail)).unwrap_or_default()
}

/// The addresses of a job's two parties.
pub struct Voices {
    pub requester: String,
    pub worker: String,
}

pub fn voices(world: &World, job: &Job) -> Voices {
    Voices {
        requester: Voice::of_requester(world, job).address,
        worker: Voice::of_worker(world, job).address,
    }
}

/// The party the hub writes for.
struct Voice {
    address: String,
    culture: String,
    bridge: String,
}

impl Voice {
    fn of_agent(world: &World, id: AgentId) -> Option<Self> {
        let agent = world.agent(id)?;
        Some(Self {
            address: record::address(world, agent).into_owned(),
            culture: record::culture(agent).unwrap_or_else(|| CULTURE.to_owned()),
            bridge: bridge::of_agent(agent),
        })
    }

    /// A party without an address: a guest, or the worker of a job that has none.
    fn of_nobody(job: &Job, name: &str) -> Self {
        Self {
            address: format!("{name}@bridge"),
            culture: CULTURE.to_owned(),
            bridge: Object::new().text("protocol", job.origin.as_str()).finish(),
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
        let worker = job.for_whom().or(named);
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
    ) -> Worded {
        let envelope = Object::new()
            .text("chorus_version", VERSION)
            .text("sender_id", &self.address)
            .text("original_text", said)
            .text("sender_culture", &self.culture)
            .text("conversation_id", conversation_id)
            .whole("turn_number", turn_number);
        let (job, bridge) = (Some(summary(world, job)), Some(self.bridge));
        let annotations = Annotations { job, bridge, meta: None };
        Worded { sender_id: self.address, envelope: envelope.finish(), annotations }
    }
}

/// A summary of the job, the same for both parties.
fn summary(world: &World, job: &Job) -> String {
    let worker = job.for_whom().and_then(|worker| world.agent(worker));
    let skill = worker.and_then(|worker| worker.skill_for(job)).map(|skill| skill.name.as_str());
    let price = job.assignment.map(|turn| raw_json::amount(turn.price, DECIMALS));
    Object::new()
        .id("id", job.uuid)
        .text("skill", skill.unwrap_or(&job.skill))
        .maybe_raw("price", price.as_deref().map(|price| price.get()))
        .finish()
}
