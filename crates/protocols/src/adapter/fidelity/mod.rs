//! Fidelity: how a job looked to each of its two parties, and what became of every field between
//! them.
//!
//! Here too, no protocol knows another. Each lists in the file `fields.rs` of its folder which of
//! its fields belongs to which [`Part`], and the notes follow from two such lists. Notes are a pure
//! function of the job, so they are computed on request and never stored.

mod convert;
mod find_job;
mod hop;
mod members;
mod message_view;
mod note;
mod part;
mod trace;

use std::pin::Pin;
use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Question, RequesterMessage};
use rialto_core::money::Credits;
use rialto_core::notice::Notice;
use rialto_core::time::Timestamp;
use rialto_engine::Failure;
use rialto_engine::run::{LogEntry, LoggedReport};

use super::HubContext;
pub use convert::{Conversion, convert};
pub use find_job::find_job;
pub use hop::{Hop, HopKind, fraction_text, hops, question_member};
pub use members::Members;
pub use message_view::{Field, FieldParts, MessageView, read_fields, unquote};
pub use note::{Fate, FateName, Note, compare_fields};
pub use part::Part;
pub use trace::{StateName, Trace, Viewer, state_name, trace};

/// A job, and what is needed to rebuild the messages its parties saw.
#[derive(Clone, Copy)]
pub struct TracedJob<'v> {
    pub job: &'v Job,
    /// The notices that told the worker to start and the requester of the end, if they are recent
    /// enough.
    pub start: Option<&'v Notice>,
    pub end: Option<&'v Notice>,
    /// The worker's newest report before the result.
    pub report: Option<&'v LoggedReport>,
    /// The whole log, if the requester follows it or the worker is called by its protocol.
    pub log: &'v [LogEntry],
}

/// The future of a job lookup.
pub type FindJobFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Arc<Job>>, Failure>> + Send + 'a>>;

/// The messages about a job that agents of one protocol saw at this hub.
pub trait JobMessages: Send + Sync {
    /// The request as its requester wrote it; only for jobs of this protocol.
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView;

    /// The request as its worker, an agent of this protocol, receives it.
    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView>;

    /// The result as its worker, an agent of this protocol, wrote it; `None` if it wrote nothing.
    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView>;

    /// The result as its requester receives it; only for jobs of this protocol.
    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView>;

    /// The worker's newest report as its requester receives it; `None` where this protocol has no
    /// message for it. Every party sees reports in `GET /v1/jobs/{id}`.
    fn progress_received(&self, _: TracedJob<'_>, _: &LoggedReport) -> Option<MessageView> {
        None
    }

    /// The worker's newest question as its requester receives it; `None` where this protocol has no message
    /// for it.
    fn question_received(&self, _: TracedJob<'_>, _: &Question) -> Option<MessageView> {
        None
    }

    /// The job that has this id for one of its parties. The caller checks that `by` is a party.
    fn find_job<'a>(&'a self, by: AgentId, id: &'a str) -> FindJobFuture<'a>;
}

/// What the fields of a protocol's messages are about. It needs no hub.
pub trait FieldMap: Sync {
    /// Members of the request that this protocol does not define: a JSON object (B11).
    fn extras(&self, job: &Job) -> Option<String>;

    /// The same for a later message of the requester, as it is kept.
    fn extras_of_message(&self, _: &str) -> Option<String> {
        None
    }

    /// The exact text the requester signed, in protocols where requesters sign.
    fn evidence(&self, _: &Job) -> Option<String> {
        None
    }

    /// Reads a request as a requester would send it, or says what is wrong with it.
    fn read_request(
        &self,
        bytes: &[u8],
        at: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String>;

    /// The request an agent of this protocol would receive, with placeholders for what only a hub
    /// can produce.
    fn write_request(&self, wanted: &NeutralRequest, at: Timestamp) -> MessageView;
}

/// A request in a form that is independent of any protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeutralRequest {
    /// The skill's name, the same in all protocols.
    pub skill: String,
    /// JSON text.
    pub input: String,
    pub budget: Option<Credits>,
    pub deadline: Option<Timestamp>,
    /// Members its protocol does not define: a JSON object.
    pub extras: Option<String>,
}

/// Members of a request that its own protocol does not define, for a worker of another protocol.
pub fn extras(job: &Job) -> Option<String> {
    hop::field_map_of(job.request.origin).and_then(|map| map.extras(job))
}

/// The conversation that a job belongs to, as its requester names it.
pub fn conversation(context: &HubContext, job: &Job) -> Option<String> {
    let requester = context.protocol(job.request.origin)?.clone().job_messages(context);
    let shown = TracedJob { job, start: None, end: None, report: None, log: &[] };
    requester.request_sent(shown).text(Part::Conversation).filter(|name| !name.is_empty())
}

/// The same for a later message of its requester.
pub fn extras_of_message(job: &Job, message: &RequesterMessage) -> Option<String> {
    let map = hop::field_map_of(job.request.origin)?;
    map.extras_of_message(&message.body)
}
