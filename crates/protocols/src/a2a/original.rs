//! What a worker of this protocol said, kept for a requester of this protocol, which gets it
//! unchanged but for the ids (2.5).

use rialto_core::job::{Job, JobResult, Original};

use super::ID;
use super::translate::TaskMeta;
use super::wire::Version;
use super::wire::message::Message;
use super::wire::reader::Reader;
use super::wire::task::{Artifact, ArtifactUpdate, StatusUpdate, StreamEvent, TaskState};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;

/// What is kept of an artifact update besides the artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactExtras {
    pub last_chunk: bool,
    /// A JSON object as text.
    pub metadata: Option<String>,
}

impl ArtifactExtras {
    /// What an update says besides its artifact.
    pub fn of(update: &ArtifactUpdate) -> Self {
        Self { last_chunk: update.last_chunk, metadata: update.metadata.clone() }
    }

    /// As it is kept.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .maybe_raw("lastChunk", self.last_chunk.then_some("true"))
            .maybe_raw("metadata", self.metadata.as_deref())
            .finish()
    }

    /// What was kept with an artifact.
    pub fn read(original: &Original) -> Self {
        let mut wrong = Vec::new();
        let json = ijson::read(original.text.as_bytes()).ok();
        let reader = json.as_ref().and_then(|json| Reader::new(json, "", &mut wrong));
        let Some(r) = reader else { return Self::default() };
        Self {
            last_chunk: r.flag("lastChunk", &mut wrong).unwrap_or(false),
            metadata: r.object_text("metadata", &mut wrong),
        }
    }
}

/// A status of a worker, or its bare message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginalStatus {
    Status {
        message: Option<Message>,
        /// A JSON object as text.
        metadata: Option<String>,
    },
    BareMessage(Message),
}

/// A status as it is kept.
pub fn write_status(update: &StatusUpdate) -> String {
    StreamEvent::Status(Box::new(update.clone())).write(Version::V1, false)
}

/// The last status of a worker as it came: JSON text. A bare message is the end of its work.
pub fn kept_status(result: &JobResult) -> Option<String> {
    let original = result.original.as_ref().filter(|original| original.protocol == ID)?;
    let json = ijson::read(original.text.as_bytes()).ok()?;
    match (json.get("statusUpdate"), json.get("message")) {
        (Some(update), _) => Some(update.get("status")?.raw().to_owned()),
        (None, message) => {
            let state = TaskState::Completed.name(Version::V1);
            Some(ObjectWriter::new().text("state", state).raw("message", message?.raw()).finish())
        }
    }
}

/// A bare message as it is kept.
pub fn write_message(message: &Message) -> String {
    StreamEvent::Message(Box::new(message.clone())).write(Version::V1, false)
}

impl OriginalStatus {
    /// What a worker said, with the ids of the requester's task.
    pub fn read(original: &Original, job: &Job, meta: &TaskMeta) -> Option<Self> {
        if original.protocol != ID {
            return None;
        }
        let mut wrong = Vec::new();
        let json = ijson::read(original.text.as_bytes()).ok()?;
        let own = |message: Message| Message {
            context_id: Some(meta.context_id.clone()),
            task_id: Some(job.uuid.to_string()),
            ..message
        };
        // What was left out by the worker is left out here as well.
        match StreamEvent::read(&json, Version::V1, &mut wrong)? {
            StreamEvent::Status(update) => {
                let StatusUpdate { status, metadata, .. } = *update;
                Some(Self::Status { message: status.message.map(own), metadata })
            }
            StreamEvent::Message(message) => {
                Some(Self::BareMessage(Message { task_id: None, ..own(*message) }))
            }
            StreamEvent::Task(_) | StreamEvent::Artifact(_) => None,
        }
    }

    /// What the worker said at the end of a job whose requester also uses this protocol.
    pub fn of_end(job: &Job, meta: &TaskMeta) -> Option<Self> {
        Self::read(job.result.as_ref()?.original.as_ref()?, job, meta)
    }

    /// The message of the status.
    pub fn message(self) -> Option<Message> {
        match self {
            Self::Status { message, .. } => message,
            Self::BareMessage(message) => Some(message),
        }
    }

    /// The metadata of the status.
    pub fn metadata(&self) -> Option<&str> {
        match self {
            Self::Status { metadata, .. } => metadata.as_deref(),
            Self::BareMessage(_) => None,
        }
    }
}

/// One object with the members of both; those of the second count.
pub fn merge_metadata(one: Option<&str>, other: String) -> String {
    let first = one.and_then(|text| ijson::read(text.as_bytes()).ok());
    let (Some(first), Ok(second)) = (first, ijson::read(other.as_bytes())) else { return other };
    let ijson::JsonValue::Object(members) = second.value() else { return other };
    let names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
    let merged = ObjectWriter::copy_without(&first, &names);
    members.iter().fold(merged, |merged, (name, member)| merged.raw(name, member.raw())).finish()
}

/// The artifact that a worker reported.
pub fn read_artifact(content: &str) -> Option<Artifact> {
    let mut wrong = Vec::new();
    let json = ijson::read(content.as_bytes()).ok()?;
    let artifact = Artifact::read(&json, "artifact", Version::V1, &mut wrong);
    wrong.is_empty().then_some(artifact)
}
