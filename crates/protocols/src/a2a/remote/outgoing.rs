//! What the hub sends to the server of an agent: requests, and what their requesters send after
//! them.

use rialto_core::job::Job;
use rialto_core::world::World;

use super::RemoteAgent;
use super::handover_state::{HandoverState, Outgoing};
use crate::a2a::translate::{self, TaskMeta, price_text};
use crate::a2a::wire::Version;
use crate::a2a::wire::message::{Message, Part, Role};
use crate::a2a::{ID, extensions};
use crate::adapter::fidelity;
use crate::adapter::open_job::{requester_name, skill_name};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::{ObjectWriter, string_array};
use crate::kit::rfc3339;

/// The characters of a client's message id that are kept before the job's.
const CLIENT_ID_MAX: usize = 200;

/// The ids that the worker's own server gave, and those of tasks that the message refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerIds {
    pub task: Option<String>,
    pub context: Option<String>,
    pub references: Vec<String>,
}

/// The message with a job's number `number`, in the form of version 1.0.
pub fn message(
    world: &World,
    job: &Job,
    remote: &RemoteAgent,
    what: Outgoing,
    number: u32,
    ids: WorkerIds,
) -> Option<Message> {
    let skill = skill_name(world, job);
    let own = own_message(job, what);
    let parts = match &own {
        Some(own) => own.parts.clone(),
        None => vec![part_of(input_of(job, what)?, remote.takes_json(&skill))],
    };
    let strangers = match &own {
        Some(own) => strangers_metadata(own.metadata.as_deref()),
        None => None,
    };
    let metadata = match what {
        Outgoing::Request => {
            let hire = hire_metadata(world, job, &skill);
            let extras = if own.is_none() { fidelity::extras(job) } else { None };
            let strangers = strangers.unwrap_or_default();
            let object = match ijson::read(strangers.as_bytes()) {
                Ok(json) => ObjectWriter::copy_without(&json, &[]),
                Err(_) => ObjectWriter::new(),
            };
            let object = object.raw(extensions::HIRE, &hire);
            Some(object.maybe_raw("meta", extras.as_deref()).finish())
        }
        _ => strangers,
    };
    Some(Message {
        message_id: message_id(job, own.as_ref(), number),
        context_id: ids.context,
        task_id: ids.task,
        role: Role::User,
        parts,
        metadata,
        extensions: own.map(|own| own.extensions).unwrap_or_default(),
        reference_task_ids: ids.references,
    })
}

/// The parameters with which a worker gets the request of a job.
pub fn request_params(world: &World, job: &Job, remote: &RemoteAgent) -> Option<String> {
    let state = HandoverState::of(job);
    let interface = state.map_or_else(|| remote.interface.clone(), |state| state.interface);
    let version = interface.read()?.version;
    let message = message(world, job, remote, Outgoing::Request, 1, WorkerIds::default())?;
    Some(send_params(job, &message, version, !remote.streaming, None))
}

/// The message as its requester sent it, if it uses this protocol.
pub fn own_message(job: &Job, what: Outgoing) -> Option<Message> {
    let meta = TaskMeta::of(job)?;
    match what {
        Outgoing::Request => meta.message(job),
        Outgoing::Message(number) => {
            let at = usize::try_from(number).ok()?.checked_sub(1)?;
            translate::read_message(&job.messages.get(at)?.body)
        }
        Outgoing::Answer(_) => None,
    }
}

/// What a message says, in no protocol's words: JSON text.
fn input_of(job: &Job, what: Outgoing) -> Option<&str> {
    let at = |number: u32| usize::try_from(number).ok()?.checked_sub(1);
    match what {
        Outgoing::Request => Some(&job.request.input),
        Outgoing::Message(number) => Some(&job.messages.get(at(number)?)?.input),
        Outgoing::Answer(number) => job.questions.get(at(number)?)?.answer.as_deref(),
    }
}

/// The id of a message: that of the client, made unique (D7).
pub fn message_id(job: &Job, own: Option<&Message>, number: u32) -> String {
    match own {
        Some(own) => {
            let client: String = own.message_id.chars().take(CLIENT_ID_MAX).collect();
            format!("{client}.{}-{number}", job.uuid)
        }
        None => format!("{}-{number}", job.uuid),
    }
}

/// The id of the message that is on its way.
pub fn sending_id(job: &Job, state: &HandoverState, what: Outgoing) -> String {
    message_id(job, own_message(job, what).as_ref(), state.sent)
}

/// A part with a text, or with JSON, or with JSON as text (R96).
fn part_of(input: &str, takes_json: bool) -> Part {
    let json = ijson::read(input.as_bytes()).ok();
    match json.as_ref().and_then(only_text) {
        Some(text) => Part::text(text),
        None if takes_json && json.is_some() => Part::data(input),
        None => Part::text(input),
    }
}

/// The text of `{"text":…}`.
pub fn only_text(json: &Json<'_>) -> Option<String> {
    let JsonValue::Object(members) = json.value() else { return None };
    match &members[..] {
        [(name, value)] if name == "text" => match value.value() {
            JsonValue::String(text) => Some(text.clone().into_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// What a requester's metadata has besides what it says to the hub.
fn strangers_metadata(metadata: Option<&str>) -> Option<String> {
    let json = ijson::read(metadata?.as_bytes()).ok()?;
    let rest = ObjectWriter::copy_without(&json, &[extensions::HIRE]).finish();
    (rest != "{}").then_some(rest)
}

/// What the hub says about the job.
fn hire_metadata(world: &World, job: &Job, skill: &str) -> String {
    let price = job.assignment.map(|turn| price_text(turn.price));
    ObjectWriter::new()
        .text("job", &job.uuid.to_string())
        .text("skill", skill)
        .maybe_text("price", price.as_deref())
        .text("deadline", &rfc3339::format_millis(job.request.deadline))
        .text("requester", &requester_name(world, job, ID))
        .text("protocol", job.request.origin.as_str())
        .integer("hop", i64::from(job.request.hops) + 1)
        .finish()
}

/// The parameters of a send.
pub fn send_params(
    job: &Job,
    message: &Message,
    version: Version,
    returns_at_once: bool,
    push: Option<&str>,
) -> String {
    let modes = TaskMeta::of(job).map(|meta| meta.modes).unwrap_or_default();
    let modes = (!modes.is_empty()).then(|| string_array(modes.iter().map(String::as_str)));
    let configuration = ObjectWriter::new().maybe_raw("acceptedOutputModes", modes.as_deref());
    let configuration = match (returns_at_once, version) {
        (false, _) => configuration,
        (true, Version::V1) => configuration.flag("returnImmediately", true),
        (true, Version::V03) => configuration.flag("blocking", false),
    };
    let push = push.map(|url| ObjectWriter::new().text("url", url).finish());
    let name = match version {
        Version::V1 => "taskPushNotificationConfig",
        Version::V03 => "pushNotificationConfig",
    };
    let configuration = configuration.maybe_raw(name, push.as_deref()).finish();
    let configuration = Some(configuration).filter(|text| text != "{}");
    ObjectWriter::new()
        .raw("message", &message.write(version))
        .maybe_raw("configuration", configuration.as_deref())
        .finish()
}
