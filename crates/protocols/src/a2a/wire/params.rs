//! The parameters of operations, from the body of a call or from the query of a URL.

use rialto_core::time::Timestamp;

use super::Version;
use super::message::{Message, check_id};
use super::reader::{Reader, Violation, Violations, parse_integer, parse_time};
use super::task::TaskState;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::query::Query;

/// The longest id of a push configuration, in characters.
const PUSH_ID_MAX: usize = 256;
/// The longest URL or token of one.
const PUSH_TEXT_MAX: usize = 2_048;

/// A message to an agent, and how its result is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendParams {
    pub message: Message,
    pub configuration: SendConfiguration,
    /// A JSON object as text.
    pub metadata: Option<String>,
    pub tenant: Option<String>,
    /// All of this as it came: JSON text.
    pub raw: String,
}

/// How the result of a send is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendConfiguration {
    pub accepted_output_modes: Vec<String>,
    pub history_length: Option<u32>,
    pub return_immediately: bool,
    pub push: Option<PushConfig>,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskParams {
    pub id: String,
    pub history_length: Option<u32>,
    pub tenant: Option<String>,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListParams {
    pub context_id: Option<String>,
    pub status: Option<TaskState>,
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
    pub history_length: Option<u32>,
    pub status_timestamp_after: Option<Timestamp>,
    pub include_artifacts: bool,
    pub tenant: Option<String>,
}

/// Where the events of a task are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushConfig {
    pub id: Option<String>,
    pub task_id: Option<String>,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<PushAuthentication>,
    pub tenant: Option<String>,
}

/// What the receiver of pushes wants in `Authorization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushAuthentication {
    pub scheme: String,
    pub credentials: Option<String>,
}

/// One push configuration of a task, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushParams {
    pub task_id: String,
    pub id: Option<String>,
    pub tenant: Option<String>,
}

/// A page has at most this many tasks.
pub const PAGE_SIZE_MAX: u32 = 100;

/// Runs a reader and returns everything that is wrong.
fn collect<T>(read: impl FnOnce(&mut Violations) -> T) -> Result<T, Violations> {
    let mut wrong = Violations::new();
    let value = read(&mut wrong);
    if wrong.is_empty() { Ok(value) } else { Err(wrong) }
}

/// The tenant of a request that has nothing else.
pub fn read_tenant(json: &Json<'_>) -> Result<Option<String>, Violations> {
    collect(|wrong| Reader::new(json, "", wrong)?.text("tenant", wrong))
}

impl SendParams {
    /// Reads the parameters of a send.
    pub fn read(json: &Json<'_>, version: Version) -> Result<Self, Violations> {
        collect(|wrong| Self::read_members(json, version, wrong))
    }

    /// The same, adding what is wrong to a list.
    pub fn read_members(json: &Json<'_>, version: Version, wrong: &mut Violations) -> Self {
        let mut params = Self {
            message: Message::of_agent(String::new(), Vec::new()),
            configuration: SendConfiguration::default(),
            metadata: None,
            tenant: None,
            raw: json.raw().to_owned(),
        };
        let Some(r) = Reader::new(json, "", wrong) else { return params };
        match r.get("message") {
            Some(message) => {
                params.message = Message::read_sent(message, "message", version, wrong);
            }
            None => r.reject("message", "is required", wrong),
        }
        if let Some(r) = r.object("configuration", wrong) {
            params.configuration = SendConfiguration::read(&r, version, wrong);
        }
        params.metadata = r.object_text("metadata", wrong);
        params.tenant = r.text("tenant", wrong);
        params
    }

    /// The parameters as they came, but of a push configuration only its id and URL: its secrets are
    /// stored sealed, elsewhere.
    pub fn without_secrets(&self) -> String {
        const PUSH: [&str; 4] = [
            "taskPushNotificationConfig",
            "task_push_notification_config",
            "pushNotificationConfig",
            "push_notification_config",
        ];
        let Ok(json) = ijson::read(self.raw.as_bytes()) else { return self.raw.clone() };
        let configuration = json.get("configuration");
        let given = |name: &&&str| configuration.is_some_and(|all| all.get(name).is_some());
        let (Some(configuration), Some(name)) = (configuration, PUSH.iter().find(given)) else {
            return self.raw.clone();
        };
        let push = self.configuration.push.as_ref();
        let public = push.map(|push| {
            let id = push.id.as_deref();
            ObjectWriter::new().maybe_text("id", id).text("url", &push.url).finish()
        });
        let configuration = ObjectWriter::copy_without(configuration, &PUSH)
            .maybe_raw(name, public.as_deref())
            .finish();
        ObjectWriter::copy_without(&json, &["configuration"])
            .raw("configuration", &configuration)
            .finish()
    }
}

impl SendConfiguration {
    fn read(r: &Reader<'_, '_>, version: Version, wrong: &mut Violations) -> Self {
        let (push, return_immediately) = match version {
            Version::V1 => ("taskPushNotificationConfig", r.flag("returnImmediately", wrong)),
            Version::V03 => {
                ("pushNotificationConfig", r.flag("blocking", wrong).map(|blocks| !blocks))
            }
        };
        Self {
            accepted_output_modes: r.texts("acceptedOutputModes", wrong),
            history_length: history_length(r, version, wrong),
            return_immediately: return_immediately.unwrap_or(false),
            push: r.object(push, wrong).map(|r| PushConfig::read_members(&r, version, wrong)),
        }
    }
}

/// How many messages of the history are wanted. In 0.3 zero means all of them.
fn history_length(r: &Reader<'_, '_>, version: Version, wrong: &mut Violations) -> Option<u32> {
    let length = r.integer("historyLength", wrong)?;
    let Ok(length) = u32::try_from(length) else {
        r.reject("historyLength", "must not be negative", wrong);
        return None;
    };
    let is_all = version == Version::V03 && length == 0;
    Some(if is_all { u32::MAX } else { length })
}

impl TaskParams {
    /// Reads the parameters of an operation on one task.
    pub fn read(json: &Json<'_>, version: Version) -> Result<Self, Violations> {
        collect(|wrong| {
            let Some(r) = Reader::new(json, "", wrong) else { return Self::default() };
            Self {
                id: r.required_text("id", wrong),
                history_length: history_length(&r, version, wrong),
                tenant: r.text("tenant", wrong),
            }
        })
    }

    /// The same from a path and a query.
    pub fn read_query(id: String, query: &Query) -> Result<Self, Violations> {
        collect(|wrong| Self {
            id,
            history_length: query_length(query, "historyLength", wrong),
            tenant: None,
        })
    }
}

/// A number in a query that is not negative.
fn query_length(query: &Query, name: &str, wrong: &mut Violations) -> Option<u32> {
    let text = query.text(name).filter(|text| !text.is_empty())?;
    let length = parse_integer(text).and_then(|length| u32::try_from(length).ok());
    if length.is_none() {
        let description = "must be an integer that is not negative".to_owned();
        wrong.push(Violation { field: name.to_owned(), description });
    }
    length
}

impl ListParams {
    /// Reads the parameters of a list.
    pub fn read(json: &Json<'_>, version: Version) -> Result<Self, Violations> {
        collect(|wrong| {
            let Some(r) = Reader::new(json, "", wrong) else { return Self::default() };
            let given = |text: &String| !text.is_empty();
            let status = r.get("status").and_then(|status| match status.value() {
                JsonValue::String(text) => read_status(text, version, wrong),
                JsonValue::Number(digits) => read_status(digits, version, wrong),
                _ => {
                    r.reject("status", STATUS, wrong);
                    None
                }
            });
            let page_size = r.integer("pageSize", wrong);
            Self {
                context_id: r.text("contextId", wrong).filter(given),
                status,
                page_size: page_size.and_then(|size| check_page_size(size, wrong)),
                page_token: r.text("pageToken", wrong).filter(given),
                history_length: history_length(&r, version, wrong),
                status_timestamp_after: r
                    .get("statusTimestampAfter")
                    .and_then(|_| r.time("statusTimestampAfter", wrong)),
                include_artifacts: r.flag("includeArtifacts", wrong).unwrap_or(false),
                tenant: r.text("tenant", wrong),
            }
        })
    }

    /// The same from a query.
    pub fn read_query(query: &Query) -> Result<Self, Violations> {
        collect(|wrong| {
            let text =
                |name: &str| query.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
            let mut reject = |name: &str, description: &str| {
                let description = description.to_owned();
                wrong.push(Violation { field: name.to_owned(), description });
            };
            let include_artifacts = match query.text("includeArtifacts") {
                None | Some("" | "false") => false,
                Some("true") => true,
                Some(_) => {
                    reject("includeArtifacts", "must be true or false");
                    false
                }
            };
            let page_size = text("pageSize").and_then(|text| {
                let size = parse_integer(&text);
                if size.is_none() {
                    reject("pageSize", "must be an integer");
                }
                size
            });
            let status = text("status").and_then(|text| read_status(&text, Version::V1, wrong));
            let after = text("statusTimestampAfter")
                .and_then(|text| parse_time(&text, || "statusTimestampAfter".to_owned(), wrong));
            Self {
                context_id: text("contextId"),
                status,
                page_size: page_size.and_then(|size| check_page_size(size, wrong)),
                page_token: text("pageToken"),
                history_length: query_length(query, "historyLength", wrong),
                status_timestamp_after: after,
                include_artifacts,
                tenant: None,
            }
        })
    }
}

/// What a filter by state must be.
const STATUS: &str = "must be the name or the number of a state, such as TASK_STATE_WORKING";

/// The state of a filter, by name or number; those for "no state" filter nothing.
fn read_status(text: &str, version: Version, wrong: &mut Violations) -> Option<TaskState> {
    let number = parse_integer(text);
    if number == Some(0) || matches!(text, "" | "UNRECOGNIZED" | "TASK_STATE_UNSPECIFIED") {
        return None;
    }
    let state = number.map_or_else(|| TaskState::parse(text, version), TaskState::from_number);
    if state.is_none() {
        let (field, description) = ("status".to_owned(), STATUS.to_owned());
        wrong.push(Violation { field, description });
    }
    state
}

fn check_page_size(size: i32, wrong: &mut Violations) -> Option<u32> {
    let size = u32::try_from(size).ok().filter(|size| (1..=PAGE_SIZE_MAX).contains(size));
    if size.is_none() {
        let description = format!("must be from 1 to {PAGE_SIZE_MAX}");
        wrong.push(Violation { field: "pageSize".to_owned(), description });
    }
    size
}

impl PushConfig {
    /// Reads a configuration. In 0.3 the task stands beside it.
    pub fn read(json: &Json<'_>, version: Version) -> Result<Self, Violations> {
        collect(|wrong| {
            let Some(r) = Reader::new(json, "", wrong) else { return Self::default() };
            match version {
                Version::V1 => Self::read_members(&r, version, wrong),
                Version::V03 => {
                    let task_id = r.required_text("taskId", wrong);
                    let Some(inner) = r.object("pushNotificationConfig", wrong) else {
                        r.reject("pushNotificationConfig", "is required", wrong);
                        return Self::default();
                    };
                    let config = Self::read_members(&inner, version, wrong);
                    Self { task_id: Some(task_id), ..config }
                }
            }
        })
    }

    fn read_members(r: &Reader<'_, '_>, version: Version, wrong: &mut Violations) -> Self {
        let given = |text: &String| !text.is_empty();
        let url = r.required_text("url", wrong);
        if url.chars().count() > PUSH_TEXT_MAX {
            r.reject("url", format!("must have at most {PUSH_TEXT_MAX} characters"), wrong);
        }
        let authentication = r.object("authentication", wrong).and_then(|r| {
            let scheme = match version {
                Version::V1 => r.text("scheme", wrong),
                Version::V03 => r.texts("schemes", wrong).into_iter().next(),
            };
            let credentials = r.short_text("credentials", PUSH_TEXT_MAX, wrong).filter(given);
            Some(PushAuthentication { scheme: scheme.filter(given)?, credentials })
        });
        let id = r.text("id", wrong).filter(given);
        check_id(r, "id", id.as_deref().unwrap_or_default(), PUSH_ID_MAX, wrong);
        Self {
            id,
            task_id: r.text("taskId", wrong).filter(given),
            url,
            token: r.short_text("token", PUSH_TEXT_MAX, wrong).filter(given),
            authentication,
            tenant: r.text("tenant", wrong),
        }
    }

    /// Writes the configuration, without its secrets (R71).
    pub fn write(&self, version: Version) -> String {
        match version {
            Version::V1 => ObjectWriter::new()
                .maybe_text("id", self.id.as_deref())
                .maybe_text("taskId", self.task_id.as_deref())
                .text("url", &self.url)
                .maybe_raw("authentication", self.write_authentication(version).as_deref())
                .finish(),
            Version::V03 => {
                let inner = ObjectWriter::new()
                    .maybe_text("id", self.id.as_deref())
                    .text("url", &self.url)
                    .maybe_raw("authentication", self.write_authentication(version).as_deref())
                    .finish();
                ObjectWriter::new()
                    .maybe_text("taskId", self.task_id.as_deref())
                    .raw("pushNotificationConfig", &inner)
                    .finish()
            }
        }
    }

    fn write_authentication(&self, version: Version) -> Option<String> {
        let scheme = &self.authentication.as_ref()?.scheme;
        Some(match version {
            Version::V1 => ObjectWriter::new().text("scheme", scheme).finish(),
            Version::V03 => {
                let schemes = crate::kit::object::string_array([scheme.as_str()]);
                ObjectWriter::new().raw("schemes", &schemes).finish()
            }
        })
    }
}

impl PushParams {
    /// Reads which configuration is meant. In 0.3 `id` is the task.
    pub fn read(json: &Json<'_>, version: Version) -> Result<Self, Violations> {
        collect(|wrong| {
            let Some(r) = Reader::new(json, "", wrong) else { return Self::default() };
            let (task, config) = match version {
                Version::V1 => ("taskId", "id"),
                Version::V03 => ("id", "pushNotificationConfigId"),
            };
            let given = |text: &String| !text.is_empty();
            Self {
                task_id: r.required_text(task, wrong),
                id: r.text(config, wrong).filter(given),
                tenant: r.text("tenant", wrong),
            }
        })
    }
}
