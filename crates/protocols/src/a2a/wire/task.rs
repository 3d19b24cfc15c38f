//! Tasks: their states, their artifacts, and the events of a stream.

use rialto_core::time::Timestamp;

use super::Version;
use super::message::{Message, Part, read_parts, write_array, write_parts};
use super::reader::{Reader, Violations};
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::object::{ObjectWriter, string_array};
use crate::kit::rfc3339;

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
    Rejected,
    AuthRequired,
}

impl TaskState {
    /// In the order of their numbers, which start with 1.
    const ALL: [(Self, &str, &str); 8] = [
        (Self::Submitted, "TASK_STATE_SUBMITTED", "submitted"),
        (Self::Working, "TASK_STATE_WORKING", "working"),
        (Self::Completed, "TASK_STATE_COMPLETED", "completed"),
        (Self::Failed, "TASK_STATE_FAILED", "failed"),
        (Self::Canceled, "TASK_STATE_CANCELED", "canceled"),
        (Self::InputRequired, "TASK_STATE_INPUT_REQUIRED", "input-required"),
        (Self::Rejected, "TASK_STATE_REJECTED", "rejected"),
        (Self::AuthRequired, "TASK_STATE_AUTH_REQUIRED", "auth-required"),
    ];

    /// Whether a task in this state has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Its name in a version.
    pub fn name(self, version: Version) -> &'static str {
        let (_, new, old) = Self::ALL[self as usize];
        match version {
            Version::V1 => new,
            Version::V03 => old,
        }
    }

    /// The state with this name.
    pub fn parse(text: &str, version: Version) -> Option<Self> {
        let all = Self::ALL.into_iter().map(|(state, _, _)| state);
        all.into_iter().find(|state| state.name(version) == text)
    }

    /// The state with this number in ProtoJSON.
    pub fn from_number(number: i32) -> Option<Self> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(at).map(|(state, _, _)| *state)
    }

    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether the agent waits for the client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// The state of a task at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    pub state: TaskState,
    pub message: Option<Message>,
    pub timestamp: Option<Timestamp>,
}

/// A result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub artifact_id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    /// A JSON object as text.
    pub metadata: Option<String>,
    pub extensions: Vec<String>,
}

/// A task as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    pub context_id: String,
    pub status: TaskStatus,
    pub artifacts: Vec<Artifact>,
    pub history: Vec<Message>,
    /// A JSON object as text.
    pub metadata: Option<String>,
}

/// A new status of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    pub task_id: String,
    pub context_id: String,
    pub status: TaskStatus,
    /// A JSON object as text.
    pub metadata: Option<String>,
}

/// A new artifact of a task, or the next piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactUpdate {
    pub task_id: String,
    pub context_id: String,
    pub artifact: Artifact,
    pub append: bool,
    pub last_chunk: bool,
    /// A JSON object as text.
    pub metadata: Option<String>,
}

/// One event of a stream, and the result of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    Task(Box<Task>),
    Message(Box<Message>),
    Status(Box<StatusUpdate>),
    Artifact(Box<ArtifactUpdate>),
}

impl TaskStatus {
    /// Reads a status.
    pub fn read(r: &Reader<'_, '_>, version: Version, wrong: &mut Violations) -> Self {
        let state = match r.get("state").map(|state| state.value().clone()) {
            Some(JsonValue::String(text)) => TaskState::parse(&text, version),
            Some(JsonValue::Number(digits)) => digits.parse().ok().and_then(TaskState::from_number),
            _ => None,
        };
        if state.is_none() {
            r.reject("state", "must be the name of a state", wrong);
        }
        let message = r
            .get("message")
            .map(|message| Message::read(message, &r.place("message"), version, wrong));
        let timestamp = r.get("timestamp").and_then(|_| r.time("timestamp", wrong));
        Self { state: state.unwrap_or(TaskState::Submitted), message, timestamp }
    }

    /// Writes the status.
    pub fn write(&self, version: Version) -> String {
        let time = self.timestamp.map(rfc3339::format_millis);
        ObjectWriter::new()
            .text("state", self.state.name(version))
            .maybe_raw("message", self.message.as_ref().map(|m| m.write(version)).as_deref())
            .maybe_text("timestamp", time.as_deref())
            .finish()
    }
}

impl Artifact {
    /// An artifact with an id and parts alone.
    pub fn new(artifact_id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: None,
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
        }
    }

    /// Reads an artifact.
    pub fn read(json: &Json<'_>, at: &str, version: Version, wrong: &mut Violations) -> Self {
        let Some(r) = Reader::new(json, at, wrong) else { return Self::new("", Vec::new()) };
        let given = |text: &String| !text.is_empty();
        let parts = r.list("parts", wrong);
        Self {
            artifact_id: r.required_text("artifactId", wrong),
            name: r.text("name", wrong).filter(given),
            description: r.text("description", wrong).filter(given),
            parts: read_parts(parts, version, wrong),
            metadata: r.object_text("metadata", wrong),
            extensions: r.texts("extensions", wrong),
        }
    }

    /// Writes the artifact.
    pub fn write(&self, version: Version) -> String {
        let extensions = (!self.extensions.is_empty())
            .then(|| string_array(self.extensions.iter().map(String::as_str)));
        ObjectWriter::new()
            .text("artifactId", &self.artifact_id)
            .maybe_text("name", self.name.as_deref())
            .maybe_text("description", self.description.as_deref())
            .raw("parts", &write_parts(&self.parts, version))
            .maybe_raw("metadata", self.metadata.as_deref())
            .maybe_raw("extensions", extensions.as_deref())
            .finish()
    }
}

impl Task {
    /// Reads a task.
    pub fn read(
        json: &Json<'_>,
        at: &str,
        version: Version,
        wrong: &mut Violations,
    ) -> Option<Self> {
        let r = Reader::new(json, at, wrong)?;
        let status = r.object("status", wrong);
        if status.is_none() {
            r.reject("status", "is required", wrong);
        }
        let read_artifact = |(json, place): (&Json<'_>, String), wrong: &mut Violations| {
            Artifact::read(json, &place, version, wrong)
        };
        let artifacts = r.list("artifacts", wrong);
        let history = r.list("history", wrong);
        Some(Self {
            id: r.required_text("id", wrong),
            context_id: r.text("contextId", wrong).unwrap_or_default(),
            status: TaskStatus::read(&status?, version, wrong),
            artifacts: artifacts.into_iter().map(|one| read_artifact(one, wrong)).collect(),
            history: history
                .into_iter()
                .map(|(json, place)| Message::read(json, &place, version, wrong))
                .collect(),
            metadata: r.object_text("metadata", wrong),
        })
    }

    /// Writes the task. In 0.3 it says that it is one.
    pub fn write(&self, version: Version) -> String {
        let artifacts = self.artifacts.iter().map(|artifact| artifact.write(version));
        let history = self.history.iter().map(|message| message.write(version));
        let list = |empty: bool, items: String| (!empty).then_some(items);
        let artifacts = list(self.artifacts.is_empty(), write_array(artifacts));
        let history = list(self.history.is_empty(), write_array(history));
        of_kind(version, "task")
            .text("id", &self.id)
            .text("contextId", &self.context_id)
            .raw("status", &self.status.write(version))
            .maybe_raw("artifacts", artifacts.as_deref())
            .maybe_raw("history", history.as_deref())
            .maybe_raw("metadata", self.metadata.as_deref())
            .finish()
    }
}

fn of_kind(version: Version, kind: &str) -> ObjectWriter {
    match version {
        Version::V1 => ObjectWriter::new(),
        Version::V03 => ObjectWriter::new().text("kind", kind),
    }
}

impl StreamEvent {
    /// Writes the event. In 0.3 a status update says whether it is the last event (R69).
    pub fn write(&self, version: Version, is_last: bool) -> String {
        let (name, body) = match self {
            Self::Task(task) => ("task", task.write(version)),
            Self::Message(message) => ("message", message.write(version)),
            Self::Status(update) => {
                let object = of_kind(version, "status-update")
                    .text("taskId", &update.task_id)
                    .text("contextId", &update.context_id)
                    .raw("status", &update.status.write(version));
                let object = match version {
                    Version::V1 => object,
                    Version::V03 => object.flag("final", is_last),
                };
                let object = object.maybe_raw("metadata", update.metadata.as_deref());
                ("statusUpdate", object.finish())
            }
            Self::Artifact(update) => {
                let object = of_kind(version, "artifact-update")
                    .text("taskId", &update.task_id)
                    .text("contextId", &update.context_id)
                    .raw("artifact", &update.artifact.write(version))
                    .maybe_raw("append", update.append.then_some("true"))
                    .maybe_raw("lastChunk", update.last_chunk.then_some("true"))
                    .maybe_raw("metadata", update.metadata.as_deref());
                ("artifactUpdate", object.finish())
            }
        };
        match version {
            Version::V1 => ObjectWriter::new().raw(name, &body).finish(),
            Version::V03 => body,
        }
    }

    /// Reads an event, or the result of a send.
    pub fn read(json: &Json<'_>, version: Version, wrong: &mut Violations) -> Option<Self> {
        let r = Reader::new(json, "", wrong)?;
        let (name, body) = match version {
            Version::V1 => {
                let names = ["task", "message", "statusUpdate", "artifactUpdate"];
                let found = names.into_iter().find_map(|name| Some((name, r.get(name)?)));
                let Some(found) = found else {
                    r.reject("task", "or another event is required", wrong);
                    return None;
                };
                found
            }
            Version::V03 => {
                let name = match r.text("kind", wrong).as_deref() {
                    Some("task") => "task",
                    Some("message") => "message",
                    Some("status-update") => "statusUpdate",
                    Some("artifact-update") => "artifactUpdate",
                    _ => {
                        r.reject("kind", "must be the kind of an event", wrong);
                        return None;
                    }
                };
                (name, json)
            }
        };
        Some(match name {
            "task" => Self::Task(Box::new(Task::read(body, name, version, wrong)?)),
            "message" => Self::Message(Box::new(Message::read(body, name, version, wrong))),
            _ => {
                let r = Reader::new(body, name, wrong)?;
                let task_id = r.required_text("taskId", wrong);
                let context_id = r.text("contextId", wrong).unwrap_or_default();
                let metadata = r.object_text("metadata", wrong);
                if name == "statusUpdate" {
                    let status = TaskStatus::read(&r.object("status", wrong)?, version, wrong);
                    Self::Status(Box::new(StatusUpdate { task_id, context_id, status, metadata }))
                } else {
                    let place = r.place("artifact");
                    let artifact = Artifact::read(r.get("artifact")?, &place, version, wrong);
                    let append = r.flag("append", wrong).unwrap_or(false);
                    let last_chunk = r.flag("lastChunk", wrong).unwrap_or(false);
                    Self::Artifact(Box::new(ArtifactUpdate {
                        task_id,
                        context_id,
                        artifact,
                        append,
                        last_chunk,
                        metadata,
                    }))
                }
            }
        })
    }
}
