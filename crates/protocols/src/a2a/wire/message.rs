//! Messages and their parts.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig as Config};

use super::Version;
use super::reader::{Reader, Violation, Violations};
use crate::a2a::{CONTEXT_ID_MAX, MESSAGE_ID_MAX, PARTS_MAX};
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::name::{self, BadName};
use crate::kit::object::{ObjectWriter, string_array};

/// Which side a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
}

impl Role {
    fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::User, Version::V1) => "ROLE_USER",
            (Self::Agent, Version::V1) => "ROLE_AGENT",
            (Self::User, Version::V03) => "user",
            (Self::Agent, Version::V03) => "agent",
        }
    }

    fn read(json: &Json<'_>, version: Version) -> Option<Self> {
        let all = [(Self::User, "1"), (Self::Agent, "2")];
        let is = |(role, number): &(Self, &str)| match json.value() {
            JsonValue::String(text) => text == role.name(version),
            JsonValue::Number(digits) => version == Version::V1 && digits == number,
            _ => false,
        };
        all.iter().find(|one| is(one)).map(|(role, _)| *role)
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub message_id: String,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
    pub role: Role,
    pub parts: Vec<Part>,
    /// A JSON object as text.
    pub metadata: Option<String>,
    pub extensions: Vec<String>,
    pub reference_task_ids: Vec<String>,
}

/// A part of a message or artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub content: PartContent,
    pub filename: Option<String>,
    pub media_type: Option<String>,
    /// A JSON object as text.
    pub metadata: Option<String>,
}

/// What a part holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartContent {
    Text(String),
    /// JSON text, with its digits kept.
    Data(String),
    /// Bytes in standard base64 with padding.
    Raw(String),
    Url(String),
}

/// The media type of JSON.
pub const JSON_TYPE: &str = "application/json";
/// In 0.3 the data of a part is an object. Other values are wrapped, and this member of the metadata
/// marks the wrapping.
const WRAPPED_DATA: &str = "data_part_compat";

impl Part {
    /// A part with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: PartContent::Text(text.into()),
            filename: None,
            media_type: None,
            metadata: None,
        }
    }

    /// A part with JSON.
    pub fn data(json: impl Into<String>) -> Self {
        Self {
            content: PartContent::Data(json.into()),
            filename: None,
            media_type: Some(JSON_TYPE.to_owned()),
            metadata: None,
        }
    }

    /// Reads a part.
    pub fn read(json: &Json<'_>, at: &str, version: Version, wrong: &mut Violations) -> Self {
        let empty = Self::text("");
        let Some(r) = Reader::new(json, at, wrong) else { return empty };
        match version {
            Version::V1 => Self::read_v1(&r, at, wrong),
            Version::V03 => Self::read_v03(&r, wrong),
        }
        .unwrap_or(empty)
    }

    fn read_v1(r: &Reader<'_, '_>, at: &str, wrong: &mut Violations) -> Option<Self> {
        let given: Vec<&str> = ["text", "raw", "url", "data"]
            .into_iter()
            .filter(|name| r.get(name).is_some())
            .collect();
        let content = match given[..] {
            ["text"] => PartContent::Text(r.text("text", wrong)?),
            ["url"] => PartContent::Url(r.text("url", wrong)?),
            ["raw"] => PartContent::Raw(read_bytes(r, "raw", wrong)?),
            ["data"] => PartContent::Data(r.get("data")?.raw().to_owned()),
            _ => {
                let description = "must have exactly one of text, raw, url and data".to_owned();
                wrong.push(Violation { field: at.to_owned(), description });
                return None;
            }
        };
        Some(Self {
            content,
            filename: r.text("filename", wrong).filter(|text| !text.is_empty()),
            media_type: r.text("mediaType", wrong).filter(|text| !text.is_empty()),
            metadata: r.object_text("metadata", wrong),
        })
    }

    fn read_v03(r: &Reader<'_, '_>, wrong: &mut Violations) -> Option<Self> {
        let (mut filename, mut media_type) = (None, None);
        let mut metadata = r.object_text("metadata", wrong);
        let content = match r.required_text("kind", wrong).as_str() {
            "text" => {
                if r.get("text").is_none() {
                    r.reject("text", "is required", wrong);
                }
                PartContent::Text(r.text("text", wrong)?)
            }
            "data" => {
                let Some(data) = r.get("data") else {
                    r.reject("data", "is required", wrong);
                    return None;
                };
                media_type = Some(JSON_TYPE.to_owned());
                let wrapped = metadata.as_deref().and_then(unwrap_metadata);
                match (data.get("value"), wrapped) {
                    (Some(value), Some(rest)) => {
                        metadata = rest;
                        PartContent::Data(value.raw().to_owned())
                    }
                    _ => PartContent::Data(data.raw().to_owned()),
                }
            }
            "file" => {
                let Some(file) = r.object("file", wrong) else {
                    r.reject("file", "is required", wrong);
                    return None;
                };
                filename = file.text("name", wrong);
                media_type = file.text("mimeType", wrong);
                match (file.get("bytes").is_some(), file.get("uri").is_some()) {
                    (true, false) => PartContent::Raw(read_bytes(&file, "bytes", wrong)?),
                    (false, true) => PartContent::Url(file.text("uri", wrong)?),
                    _ => {
                        r.reject("file", "must have exactly one of bytes and uri", wrong);
                        return None;
                    }
                }
            }
            "" => return None,
            _ => {
                r.reject("kind", "must be text, file or data", wrong);
                return None;
            }
        };
        Some(Self { content, filename, media_type, metadata })
    }

    /// Writes the part.
    pub fn write(&self, version: Version) -> String {
        match version {
            Version::V1 => {
                let object = ObjectWriter::new();
                let object = match &self.content {
                    PartContent::Text(text) => object.text("text", text),
                    PartContent::Data(json) => object.raw("data", json),
                    PartContent::Raw(bytes) => object.text("raw", bytes),
                    PartContent::Url(url) => object.text("url", url),
                };
                object
                    .maybe_text("filename", self.filename.as_deref())
                    .maybe_text("mediaType", self.media_type.as_deref())
                    .maybe_raw("metadata", self.metadata.as_deref())
                    .finish()
            }
            Version::V03 => self.write_v03(),
        }
    }

    fn write_v03(&self) -> String {
        let file = |name: &str, value: &str| {
            let file = ObjectWriter::new()
                .text(name, value)
                .maybe_text("name", self.filename.as_deref())
                .maybe_text("mimeType", self.media_type.as_deref());
            ObjectWriter::new().text("kind", "file").raw("file", &file.finish())
        };
        let mut metadata = self.metadata.clone();
        let object = match &self.content {
            PartContent::Text(text) => ObjectWriter::new().text("kind", "text").text("text", text),
            PartContent::Data(json) if json.starts_with('{') => {
                ObjectWriter::new().text("kind", "data").raw("data", json)
            }
            PartContent::Data(json) => {
                metadata = Some(wrap_metadata(metadata.as_deref()));
                let data = ObjectWriter::new().raw("value", json).finish();
                ObjectWriter::new().text("kind", "data").raw("data", &data)
            }
            PartContent::Raw(bytes) => file("bytes", bytes),
            PartContent::Url(url) => file("uri", url),
        };
        object.maybe_raw("metadata", metadata.as_deref()).finish()
    }
}

/// The metadata with the mark of wrapped data.
fn wrap_metadata(metadata: Option<&str>) -> String {
    let json = metadata.and_then(|text| crate::kit::ijson::read(text.as_bytes()).ok());
    let object = match &json {
        Some(json) => ObjectWriter::copy_without(json, &[WRAPPED_DATA]),
        None => ObjectWriter::new(),
    };
    object.flag(WRAPPED_DATA, true).finish()
}

/// The metadata without the mark of wrapped data; `None` if there is no mark.
fn unwrap_metadata(metadata: &str) -> Option<Option<String>> {
    let json = crate::kit::ijson::read(metadata.as_bytes()).ok()?;
    json.get(WRAPPED_DATA)?;
    let rest = ObjectWriter::copy_without(&json, &[WRAPPED_DATA]).finish();
    Some((rest != "{}").then_some(rest))
}

/// Accepts base64 of both alphabets, with or without padding; returns the standard form.
fn read_bytes(r: &Reader<'_, '_>, name: &str, wrong: &mut Violations) -> Option<String> {
    const LENIENT: GeneralPurposeConfig =
        Config::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const READER: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    let text = r.text(name, wrong)?.replace('-', "+").replace('_', "/");
    let decoded = READER.decode(text.as_bytes()).ok();
    if decoded.is_none() {
        r.reject(name, "must be base64", wrong);
    }
    Some(STANDARD.encode(decoded?))
}

/// Checks an id that a client chose (R29).
pub fn check_id(r: &Reader<'_, '_>, name: &str, id: &str, max: usize, wrong: &mut Violations) {
    match name::check_name(id, max) {
        Ok(()) | Err(BadName::Empty) => {}
        Err(BadName::Invisible) => r.reject(name, BadName::Invisible.to_string(), wrong),
        Err(_) => r.reject(name, format!("must have at most {max} characters"), wrong),
    }
}

impl Message {
    /// A message of an agent with this text.
    pub fn of_agent(message_id: String, parts: Vec<Part>) -> Self {
        Self {
            message_id,
            context_id: None,
            task_id: None,
            role: Role::Agent,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// Reads a message of either side.
    pub fn read(json: &Json<'_>, at: &str, version: Version, wrong: &mut Violations) -> Self {
        Self::read_of((json, at), version, &[Role::User, Role::Agent], wrong)
    }

    /// Reads a message that a client sends.
    pub fn read_sent(json: &Json<'_>, at: &str, version: Version, wrong: &mut Violations) -> Self {
        Self::read_of((json, at), version, &[Role::User], wrong)
    }

    /// Reads a message, with its place, of one of these sides.
    fn read_of(
        (json, at): (&Json<'_>, &str),
        version: Version,
        roles: &[Role],
        wrong: &mut Violations,
    ) -> Self {
        let mut message = Self::of_agent(String::new(), Vec::new());
        let Some(r) = Reader::new(json, at, wrong) else { return message };
        message.message_id = r.required_text("messageId", wrong);
        check_id(&r, "messageId", &message.message_id, MESSAGE_ID_MAX, wrong);
        let given = |text: &String| !text.is_empty();
        message.context_id = r.text("contextId", wrong).filter(given);
        let context_id = message.context_id.as_deref().unwrap_or_default();
        check_id(&r, "contextId", context_id, CONTEXT_ID_MAX, wrong);
        message.task_id = r.text("taskId", wrong).filter(given);
        match r.get("role").map(|role| Role::read(role, version)) {
            Some(Some(role)) if roles.contains(&role) => message.role = role,
            Some(_) => {
                let names: Vec<&str> = roles.iter().map(|role| role.name(version)).collect();
                r.reject("role", format!("must be {}", names.join(" or ")), wrong);
            }
            None => r.reject("role", "is required", wrong),
        }
        let parts = r.list("parts", wrong);
        if parts.is_empty() {
            r.reject("parts", "must have at least one part", wrong);
        }
        if parts.len() > PARTS_MAX {
            r.reject("parts", format!("must have at most {PARTS_MAX} parts"), wrong);
        }
        message.parts = read_parts(parts, version, wrong);
        message.metadata = r.object_text("metadata", wrong);
        message.extensions = r.texts("extensions", wrong);
        message.reference_task_ids = r.texts("referenceTaskIds", wrong);
        message
    }

    /// Writes the message. In 0.3 it says that it is one.
    pub fn write(&self, version: Version) -> String {
        let object = ObjectWriter::new();
        let object = match version {
            Version::V1 => object,
            Version::V03 => object.text("kind", "message"),
        };
        let texts = |all: &[String]| {
            (!all.is_empty()).then(|| string_array(all.iter().map(String::as_str)))
        };
        object
            .text("messageId", &self.message_id)
            .maybe_text("contextId", self.context_id.as_deref())
            .maybe_text("taskId", self.task_id.as_deref())
            .text("role", self.role.name(version))
            .raw("parts", &write_parts(&self.parts, version))
            .maybe_raw("metadata", self.metadata.as_deref())
            .maybe_raw("extensions", texts(&self.extensions).as_deref())
            .maybe_raw("referenceTaskIds", texts(&self.reference_task_ids).as_deref())
            .finish()
    }

    /// A member of the metadata.
    pub fn metadata_member(&self, name: &str) -> Option<String> {
        let json = crate::kit::ijson::read(self.metadata.as_deref()?.as_bytes()).ok()?;
        json.get(name).map(|member| member.raw().to_owned())
    }
}

/// Reads the parts of a message or artifact, at most as many as are allowed.
pub fn read_parts(
    parts: Vec<(&Json<'_>, String)>,
    version: Version,
    wrong: &mut Violations,
) -> Vec<Part> {
    let allowed = parts.into_iter().take(PARTS_MAX);
    allowed.map(|(part, place)| Part::read(part, &place, version, wrong)).collect()
}

/// Writes parts as an array.
pub fn write_parts(parts: &[Part], version: Version) -> String {
    write_array(parts.iter().map(|part| part.write(version)))
}

/// JSON texts as an array.
pub fn write_array(items: impl IntoIterator<Item = String>) -> String {
    let mut out = String::from("[");
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&item);
    }
    out.push(']');
    out
}
