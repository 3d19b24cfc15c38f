//! What a message means as the input of a job, and an output as artifacts (section 2.5 of the
//! requirements).

use super::message::{JSON_TYPE, Message, Part, PartContent, write_array, write_parts};
use super::reader::Violations;
use super::task::Artifact;
use super::{Version, message};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;

/// The id of an artifact that an output of another protocol becomes.
const RESULT: &str = "result";

/// The most artifacts of one result (R29).
const ARTIFACTS_MAX: usize = 256;

/// The input of a job that a message opens: JSON text.
pub fn input_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let text = (!texts.is_empty()).then(|| texts.join("\n"));
    let others: Vec<&Part> =
        parts.iter().filter(|part| !matches!(part.content, PartContent::Text(_))).collect();
    match (&others[..], &text) {
        ([], Some(text)) => ObjectWriter::new().text("text", text).finish(),
        ([Part { content: PartContent::Data(json), .. }], _) if json.starts_with('{') => {
            match (ijson::read(json.as_bytes()), text) {
                (Ok(object), Some(text)) if object.get("text").is_none() => {
                    ObjectWriter::copy_without(&object, &[]).text("text", &text).finish()
                }
                _ => json.clone(),
            }
        }
        _ => ObjectWriter::new()
            .maybe_text("text", text.as_deref())
            .raw("parts", &write_parts(parts, Version::V1))
            .finish(),
    }
}

/// What an output becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// A task with these artifacts, and maybe a message in its last status.
    Task { artifacts: Vec<Artifact>, message: Option<Vec<Part>> },
    /// A message instead of a task.
    Message(Vec<Part>),
}

/// The form of an output: JSON text.
pub fn form_of_output(output: &str) -> OutputForm {
    let single = |part: Part| {
        let artifacts = vec![Artifact::new(RESULT, vec![part])];
        OutputForm::Task { artifacts, message: None }
    };
    let Ok(json) = ijson::read(output.as_bytes()) else { return single(Part::data(output)) };
    let JsonValue::Object(members) = json.value() else { return single(Part::data(output)) };
    let form = match &members[..] {
        [(name, value)] if name == "text" => match value.value() {
            JsonValue::String(text) => Some(single(Part::text(text.clone()))),
            _ => None,
        },
        [(name, value)] if name == "message" => read_message_parts(value).map(OutputForm::Message),
        [(name, value)] if name == "artifacts" => {
            read_artifacts(value).map(|artifacts| OutputForm::Task { artifacts, message: None })
        }
        [_, _] => read_task(&json),
        _ => None,
    };
    form.unwrap_or_else(|| single(Part::data(output)))
}

/// Artifacts together with a message, and nothing else.
fn read_task(json: &Json<'_>) -> Option<OutputForm> {
    let artifacts = read_artifacts(json.get("artifacts")?)?;
    let message = Some(read_message_parts(json.get("message")?)?);
    Some(OutputForm::Task { artifacts, message })
}

fn read_artifacts(list: &Json<'_>) -> Option<Vec<Artifact>> {
    let JsonValue::Array(items) = list.value() else { return None };
    if items.len() > ARTIFACTS_MAX {
        return None;
    }
    let mut wrong = Violations::new();
    let read = |item: &Json<'_>| Artifact::read(item, "artifact", Version::V1, &mut wrong);
    let artifacts: Vec<Artifact> = items.iter().map(read).collect();
    let is_whole = |artifact: &Artifact| !artifact.parts.is_empty();
    (wrong.is_empty() && artifacts.iter().all(is_whole)).then_some(artifacts)
}

fn read_message_parts(object: &Json<'_>) -> Option<Vec<Part>> {
    let JsonValue::Object(members) = object.value() else { return None };
    let [(name, list)] = &members[..] else { return None };
    let (true, JsonValue::Array(items)) = (name == "parts", list.value()) else { return None };
    let items = items.iter().map(|item| (item, "part".to_owned())).collect();
    let mut wrong = Violations::new();
    let parts = message::read_parts(items, Version::V1, &mut wrong);
    (wrong.is_empty() && !parts.is_empty()).then_some(parts)
}

/// One artifact that a worker of another protocol reported as a part of its result.
pub fn artifact_of_part(content: &str, number: u32) -> Artifact {
    if let Ok(json) = ijson::read(content.as_bytes())
        && json.get("artifactId").is_some()
    {
        let mut wrong = Violations::new();
        let artifact = Artifact::read(&json, "artifact", Version::V1, &mut wrong);
        if wrong.is_empty() && !artifact.parts.is_empty() {
            return artifact;
        }
    }
    let first = match form_of_output(content) {
        OutputForm::Task { artifacts, .. } => artifacts.into_iter().next(),
        OutputForm::Message(parts) => Some(Artifact::new(RESULT, parts)),
    };
    let mut artifact = first.unwrap_or_else(|| Artifact::new(RESULT, vec![Part::data(content)]));
    if artifact.artifact_id == RESULT {
        artifact.artifact_id = format!("part-{number}");
    }
    artifact
}

/// Whether a part of a result says that its artifact is complete.
pub fn is_last_chunk(content: &str) -> bool {
    let json = ijson::read(content.as_bytes()).ok();
    let last = json.as_ref().and_then(|json| json.get("lastChunk"));
    last.is_some_and(|last| *last.value() == JsonValue::Bool(true))
}

/// Adds a chunk to an artifact that is read as a whole. Text continues the text before it; only the
/// texts of one chunk are apart.
pub fn add_chunk(known: &mut Vec<Part>, chunk: Vec<Part>) {
    let mut chunk = chunk.into_iter().peekable();
    if let Some(Part { content: PartContent::Text(text), .. }) = known.last_mut()
        && let Some(Part { content: PartContent::Text(more), .. }) = chunk.peek()
    {
        text.push_str(more);
        chunk.next();
    }
    known.extend(chunk);
}

/// The output of a job whose worker made these artifacts, or only a final message: JSON text.
pub fn output_of_artifacts(artifacts: &[Artifact], final_message: Option<&Message>) -> String {
    let parts: Vec<Part> = artifacts.iter().flat_map(|one| one.parts.clone()).collect();
    if artifacts.is_empty() {
        let parts = final_message.map(|message| message.parts.as_slice()).unwrap_or_default();
        return input_of(parts);
    }
    let simple = input_of(&parts);
    let is_simple = ijson::read(simple.as_bytes()).is_ok_and(|json| json.get("parts").is_none());
    if is_simple {
        return simple;
    }
    let text = ijson::read(simple.as_bytes())
        .ok()
        .and_then(|json| json.get("text").map(|text| text.raw().to_owned()));
    let artifacts = write_array(artifacts.iter().map(|artifact| artifact.write(Version::V1)));
    ObjectWriter::new().maybe_raw("text", text.as_deref()).raw("artifacts", &artifacts).finish()
}

/// Whether one of the modes allows a media type. A bare word stands for all its subtypes.
pub fn is_type_allowed(modes: &[String], media_type: &str) -> bool {
    let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_lowercase();
    let wanted = essence(media_type);
    let kind = wanted.split('/').next().unwrap_or_default().to_owned();
    modes.iter().any(|mode| {
        let mode = essence(mode);
        mode == "*/*" || mode == "*" || mode == wanted || {
            let (group, rest) = mode.split_once('/').unwrap_or((mode.as_str(), "*"));
            group == kind && rest == "*"
        }
    })
}

/// Parts in the modes that a client accepts: text instead of JSON, or JSON instead of text.
pub fn adapt_parts(parts: Vec<Part>, accepted: &[String]) -> Vec<Part> {
    if accepted.is_empty() {
        return parts;
    }
    let takes_json = is_type_allowed(accepted, JSON_TYPE);
    let takes_text = is_type_allowed(accepted, "text/plain");
    let adapt = |part: Part| match part.content {
        PartContent::Data(json) if !takes_json && takes_text => {
            Part { content: PartContent::Text(json), media_type: None, ..part }
        }
        PartContent::Text(text) if !takes_text && takes_json => {
            let json = ObjectWriter::new().text("text", &text).finish();
            let media_type = Some(JSON_TYPE.to_owned());
            Part { content: PartContent::Data(json), media_type, ..part }
        }
        content => Part { content, ..part },
    };
    parts.into_iter().map(adapt).collect()
}
