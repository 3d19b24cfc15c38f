//! What of a worker's task was reported already, so that a snapshot of the task adds exactly what
//! is missing (R98, R99).

use std::collections::HashMap;

use rialto_core::alias::Digest;
use rialto_core::job::Job;
use rialto_core::job::log::LogContent;
use rialto_core::job::progress::ProgressUpdate;
use rialto_engine::run::LogEntry;

use crate::a2a::wire::Version;
use crate::a2a::wire::message::{Message, Part, PartContent, Role};
use crate::a2a::wire::task::{Artifact, StreamEvent, Task};
use crate::kit::ijson;

/// What was reported of a task in one assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The digests of the parts of each artifact.
    artifacts: HashMap<String, Vec<Digest>>,
    /// How often each status message was reported.
    messages: HashMap<MessageKey, u32>,
    /// Whether the log has messages with their ids.
    keeps_ids: bool,
}

/// What tells messages apart: the text, and the id where the log keeps ids.
type MessageKey = Digest;

/// What an artifact needs to be complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Nothing,
    /// It was not reported, or is another one now.
    Whole,
    /// The parts after those that were reported.
    Rest(Vec<Part>),
}

fn digest_of_part(part: &Part) -> Digest {
    Digest::of(&[part.write(Version::V1).as_bytes()])
}

/// The text of a message, as requesters of other protocols get it.
pub fn text_of(message: &Message) -> String {
    let text = |part: &Part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(json) => json.clone(),
        PartContent::Url(url) => url.clone(),
        PartContent::Raw(_) => part.filename.clone().unwrap_or_else(|| "(a file)".to_owned()),
    };
    let texts: Vec<String> = message.parts.iter().map(text).collect();
    texts.join("\n")
}

impl Reported {
    /// What the log of a job says of its current assignment.
    pub fn of(job: &Job, entries: &[LogEntry]) -> Self {
        let keeps_ids = job.request.origin == crate::a2a::ID;
        let mut reported = Self { keeps_ids, ..Self::default() };
        for entry in entries.iter().filter(|entry| entry.epoch == job.epoch) {
            let Some(update) = entry.content.update() else { continue };
            if let Some(part) = &update.part {
                if let Some(artifact) = crate::a2a::original::read_artifact(&part.content) {
                    reported.add_artifact(&artifact, part.append);
                }
            } else {
                let key = match &entry.content {
                    LogContent::Original { original, .. } => reported.key_of_event(&original.text),
                    _ => None,
                };
                let text = || text_key(update);
                *reported.messages.entry(key.unwrap_or_else(text)).or_default() += 1;
            }
        }
        for (_, question) in job.current_questions() {
            let original = question.original.as_ref();
            let key = original.and_then(|original| reported.key_of_event(&original.text));
            let text = || Digest::of(&[b"text", question.text.as_bytes()]);
            *reported.messages.entry(key.unwrap_or_else(text)).or_default() += 1;
        }
        reported
    }

    fn key_of_event(&self, text: &str) -> Option<MessageKey> {
        let json = ijson::read(text.as_bytes()).ok()?;
        match StreamEvent::read(&json, Version::V1, &mut Vec::new())? {
            StreamEvent::Status(update) => Some(self.key_of(&update.status.message?)),
            _ => None,
        }
    }

    fn key_of(&self, message: &Message) -> MessageKey {
        let text = text_of(message);
        if self.keeps_ids && !message.message_id.is_empty() {
            // Some servers give several messages one id.
            return Digest::of(&[b"id", message.message_id.as_bytes(), text.as_bytes()]);
        }
        Digest::of(&[b"text", text.as_bytes()])
    }

    /// Whether any artifact was reported.
    pub fn has_artifacts(&self) -> bool {
        !self.artifacts.is_empty()
    }

    /// Whether an artifact was reported.
    pub fn has_artifact(&self, id: &str) -> bool {
        self.artifacts.contains_key(id)
    }

    /// Whether the current message of a snapshot was not reported.
    pub fn is_new_status(&self, task: &Task) -> bool {
        let Some(message) = &task.status.message else { return true };
        let key = self.key_of(message);
        let is_same = |other: &&Message| self.key_of(other) == key;
        let earlier = self.past_messages(task).filter(is_same).count();
        let reported = self.messages.get(&key).copied().unwrap_or_default();
        usize::try_from(reported).is_ok_and(|reported| reported <= earlier)
    }

    /// What is missing of an artifact of a snapshot.
    pub fn missing(&self, artifact: &Artifact) -> Missing {
        let Some(known) = self.artifacts.get(&artifact.artifact_id) else { return Missing::Whole };
        let now: Vec<Digest> = artifact.parts.iter().map(digest_of_part).collect();
        match now.strip_prefix(known.as_slice()) {
            Some([]) => Missing::Nothing,
            Some(_) => Missing::Rest(artifact.parts[known.len()..].to_vec()),
            None => Missing::Whole,
        }
    }

    /// An artifact, or the next piece of one, was reported.
    pub fn add_artifact(&mut self, artifact: &Artifact, append: bool) {
        let parts = self.artifacts.entry(artifact.artifact_id.clone()).or_default();
        if !append {
            parts.clear();
        }
        parts.extend(artifact.parts.iter().map(digest_of_part));
    }

    /// Whether a message that comes now is one that was reported. Without ids that is unknown, and
    /// then it counts as new.
    pub fn has_message(&self, message: &Message) -> bool {
        let is_known = |key| self.messages.contains_key(key);
        self.keeps_ids && !message.message_id.is_empty() && is_known(&self.key_of(message))
    }

    /// A status message was reported.
    pub fn add_message(&mut self, message: &Message) {
        *self.messages.entry(self.key_of(message)).or_default() += 1;
    }

    /// The worker's messages in the history of a snapshot that were not reported, oldest first.
    pub fn missing_messages<'t>(&self, task: &'t Task) -> Vec<&'t Message> {
        let mut seen: HashMap<MessageKey, u32> = HashMap::new();
        let is_missing = |message: &&'t Message| {
            let key = self.key_of(message);
            let count = seen.entry(key).or_default();
            *count += 1;
            *count > self.messages.get(&key).copied().unwrap_or_default()
        };
        self.past_messages(task).filter(is_missing).collect()
    }

    /// The worker's messages in the history of a snapshot. Some servers also have the current one
    /// there.
    fn past_messages<'t>(&self, task: &'t Task) -> impl Iterator<Item = &'t Message> + use<'t> {
        let current = task.status.message.as_ref();
        task.history.iter().filter(move |message| {
            let is_same = |current: &Message| {
                current.message_id == message.message_id && current.parts == message.parts
            };
            let is_current = current.is_some_and(is_same);
            message.role == Role::Agent && (message.message_id.is_empty() || !is_current)
        })
    }
}

fn text_key(update: &ProgressUpdate) -> MessageKey {
    Digest::of(&[b"text", update.text.as_deref().unwrap_or_default().as_bytes()])
}
