//! The field map: which part of a job each tag and each record member of this market's messages
//! carries.

use std::collections::HashSet;

use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester, Selection};
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::ClaraContext;
use super::task::{self, TaskMeta};
use super::translate::find_task_job;
use super::wire::message::read_dry_run;
use super::wire::register::{RegisterTask, format_price};
use super::wire::task::TaskRecord;
use super::{
    Dialect, ID, IncomingMessage, Order, OutgoingMessage, PROCESS, PROTOCOL, Strategy, Topics,
    auth, delivery,
};
use crate::adapter::HubContext;
use crate::adapter::fidelity::{
    Field, FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest, Part,
    TracedJob, read_fields,
};
use crate::kit::ans104::{Item, ItemId};
use crate::kit::base64url;
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::kit::raw_json;

/// Placeholder for an id that only the hub can assign.
const BY_HUB: &str = "(named by the hub)";

/// The field map of this protocol.
pub struct ClaraFieldMap;

impl JobMessages for ClaraContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        let signed = task::signed_item(shown.job).and_then(|bytes| of_item(&bytes));
        signed.unwrap_or_else(|| bare(self, shown.job))
    }

    /// The assignment, with the payload as its agent loads it. The directory shows the payload only
    /// if the task was registered here (R20).
    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let worker = job.worker()?;
        let message = self.engine.with_world(|world| {
            let shown = task::task_record(world, job, true);
            let to = auth::agent_address(world, worker);
            OutgoingMessage::assignment(task::dialect(job), &to, &shown, 1)
        });
        Some(sent(&message, ASSIGNMENT))
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let report = job.result.as_ref()?;
        let agent_id = self.engine.with_world(|world| auth::agent_id(world, job.worker()?))?;
        let (action, data) = match (report.ok, report.cause) {
            (true, _) => ("Send-Result", report.output.as_deref().unwrap_or("{}")),
            (false, Some(Cause::Policy)) => ("Decline-Task", ""),
            _ => return None,
        };
        let id = task::task_id(job);
        let tags = [
            ("Action", action),
            ("Protocol", PROTOCOL),
            ("RedStone-Agent-Id", &agent_id),
            ("RedStone-Task-Id", &id),
        ];
        Some(written(&[], &tags, data, SEND_RESULT))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let message = self.engine.with_world(|world| {
            let to = task::requester_address(world, job);
            delivery::end_message(world, job, &to)
        })?;
        Some(sent(&message, TASK_RESULT))
    }

    fn find_job<'a>(&'a self, by: AgentId, id: &'a str) -> FindJobFuture<'a> {
        Box::pin(find_task_job(self, by, id))
    }
}

impl FieldMap for ClaraFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        of_item(&task::signed_item(job)?)?.extras()
    }

    fn evidence(&self, job: &Job) -> Option<String> {
        task::signed_item(job).map(|bytes| base64url::encode(&bytes))
    }

    fn read_request(
        &self,
        bytes: &[u8],
        _: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        if let Ok(item) = Item::read(bytes) {
            let message = IncomingMessage::of(&item).map_err(|bad| bad.text.into_owned())?;
            return read(&message);
        }
        let json = read_dry_run(bytes).map_err(|bad| bad.text.into_owned())?;
        let target = json.get("Target").and_then(|target| match target.value() {
            ijson::JsonValue::String(text) => ItemId::read(text),
            _ => None,
        });
        let process = target.or_else(|| ItemId::read(PROCESS)).unwrap_or(ItemId([0; 32]));
        let message =
            IncomingMessage::dry_run(&json, process).map_err(|bad| bad.text.into_owned())?;
        read(&message)
    }

    fn write_request(&self, wanted: &NeutralRequest, at: Timestamp) -> MessageView {
        let task = TaskRecord {
            id: BY_HUB.into(),
            agent_id: None,
            requester: BY_HUB.into(),
            // A bid is in whole credits; fractions are cut off (B9).
            reward: wanted.budget.unwrap_or_default(),
            strategy: Strategy::default(),
            payload: Some(&wanted.input),
            timestamp: at,
            block: 0,
            topic: task::topic_of_skill(&wanted.skill).into(),
            context_id: BY_HUB.into(),
            requester_id: Some(BY_HUB.into()),
        };
        sent(&OutgoingMessage::assignment(Dialect::Spec, BY_HUB, &task, 1), ASSIGNMENT)
    }
}

/// Reads a request that has not been submitted.
fn read(message: &IncomingMessage<'_>) -> Result<(MessageView, NeutralRequest), String> {
    let order = Order::read(message, &Topics::default(), Dialect::Deployed);
    let Order::RegisterTask(order) = order.map_err(|fault| fault.to_string())? else {
        return Err("only Register-Task can be converted".to_owned());
    };
    let side = posted(message);
    let RegisterTask { topic, reward, capability, payload, .. } = order;
    let wanted = NeutralRequest {
        skill: capability.map_or_else(|| task::skill_of_topic(topic), str::to_owned),
        input: payload.to_owned(),
        budget: Some(reward),
        deadline: None,
        extras: side.extras(),
    };
    Ok((side, wanted))
}

fn of_item(bytes: &[u8]) -> Option<MessageView> {
    let item = Item::read(bytes).ok()?;
    IncomingMessage::of(&item).ok().map(|message| posted(&message))
}

/// A message to the market.
fn posted(message: &IncomingMessage<'_>) -> MessageView {
    let around = [("Id", &*message.id), ("Owner", &*message.from)];
    let around: Vec<_> = around.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let tags: Vec<_> = message.tags.iter().map(|tag| (tag.name, tag.value)).collect();
    written(&around, &tags, message.data, REGISTER_TASK)
}

/// The fields of a task that has no stored item.
fn bare(context: &HubContext, job: &Job) -> MessageView {
    let meta = TaskMeta::of(job).unwrap_or_default();
    let owner = context.engine.with_world(|world| task::requester_address(world, job));
    let target = match (&job.request.requester, job.selection) {
        (Requester::Agent(_), Selection::Direct(agent)) => {
            context.engine.with_world(|world: &World| auth::agent_id(world, agent))
        }
        _ => None,
    };
    let reward = format_price(job.payment.budget);
    let optional = [
        ("RedStone-Agent-Id", meta.requester_id.as_deref()),
        ("Context-Id", meta.context_id.as_deref()),
        ("Target-Agent-Id", target.as_deref()),
    ];
    let known = [
        ("Action", "Register-Task"),
        ("Protocol", PROTOCOL),
        ("RedStone-Agent-Topic", meta.topic.as_ref()),
        ("RedStone-Agent-Reward", &reward),
        ("RedStone-Agent-Matching", meta.strategy.as_ref()),
    ];
    let given = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let tags: Vec<_> = known.into_iter().chain(given).collect();
    let id = task::task_id(job);
    written(&[("Id", &id), ("Owner", &owner)], &tags, &job.request.input, REGISTER_TASK)
}

/// A message of the market, without its number.
fn sent(message: &OutgoingMessage, layout: TagParts) -> MessageView {
    let tags: Vec<_> = message.tags.iter().map(|(name, value)| (&**name, value.as_str())).collect();
    let data = message.data.as_deref().unwrap_or_default();
    written(&[("Target", &message.target)], &tags, data, layout)
}

/// A message of tags and data, and its fields. Where the data is a record, its members are fields.
fn written(
    around: &[(&str, &str)],
    tags: &[(&str, &str)],
    data: &str,
    layout: TagParts,
) -> MessageView {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let tag = |(name, value): &(&str, &str)| Field {
        name: (*name).to_owned(),
        part: layout.part_of_tag(name),
        value: quoted(value),
    };
    let head = |(name, value): &(&str, &str)| Field {
        name: format!("/{name}"),
        part: layout.part_of_tag(&format!("/{name}")),
        value: quoted(value),
    };
    let mut found: Vec<Field> = around.iter().map(head).chain(tags.iter().map(tag)).collect();
    found.extend(data_fields(data, layout));
    // Of several tags with the same name, the first counts.
    let mut named = HashSet::new();
    found.retain(|field| named.insert(field.name.clone()));
    let pairs: Vec<String> = tags
        .iter()
        .map(|(name, value)| ObjectWriter::new().text("name", name).text("value", value).finish())
        .collect();
    let whole = around.iter().fold(ObjectWriter::new(), |all, (name, value)| all.text(name, value));
    let data = Some(data).filter(|data| !data.is_empty());
    let whole = whole.raw("Tags", &format!("[{}]", pairs.join(","))).maybe_text("Data", data);
    MessageView { protocol: ID, payload: whole.finish(), fields: found }
}

fn data_fields(data: &str, layout: TagParts) -> Vec<Field> {
    const DATA: &str = "/Data";
    let whole = |part| {
        // Data that is not valid JSON is text for people.
        let value = raw_json::verbatim(data.trim()).get().to_owned();
        vec![Field { name: DATA.to_owned(), part, value }]
    };
    match layout.data {
        _ if data.is_empty() => Vec::new(),
        Some(part) => whole(part),
        None => match read_fields(data, DATA, layout.record) {
            none if none.is_empty() => whole(Part::Reason),
            some => some,
        },
    }
}

/// The field parts of one kind of message.
#[derive(Clone, Copy, Debug)]
struct TagParts {
    tags: &'static [(&'static str, Part)],
    /// The part that the data carries as a whole, where it is not a record of the market.
    data: Option<Part>,
    record: FieldParts,
}

impl TagParts {
    /// The part that a tag carries.
    fn part_of_tag(&self, name: &str) -> Part {
        let found = self.tags.iter().chain(USUAL).find(|(known, _)| *known == name);
        found.map_or(Part::Extra, |(_, part)| *part)
    }
}

/// The tags of every message.
const USUAL: &[(&str, Part)] = &[
    ("Action", Part::Framing),
    ("Protocol", Part::Framing),
    ("Data-Protocol", Part::Framing),
    ("Variant", Part::Framing),
    ("Type", Part::Framing),
];

/// A task is registered.
const REGISTER_TASK: TagParts = TagParts {
    tags: &[
        ("/Id", Part::Id),
        ("/Owner", Part::Requester),
        ("RedStone-Agent-Topic", Part::Skill),
        ("RedStone-Agent-Reward", Part::Budget),
        ("RedStone-Agent-Matching", Part::Strategy),
        ("RedStone-Agent-Id", Part::Requester),
        ("Context-Id", Part::Correlation),
        ("Target-Agent-Id", Part::Worker),
        ("Capability", Part::Skill),
    ],
    data: Some(Part::Input),
    record: &[],
};

/// A task is assigned.
const ASSIGNMENT: TagParts = TagParts {
    tags: &[
        ("/Target", Part::Worker),
        ("TaskId", Part::Id),
        ("Task-Id", Part::Id),
        ("Agent-Id", Part::Worker),
        ("Assigned-Agent-Id", Part::Worker),
        ("Requesting-Agent-Id", Part::Requester),
        ("Context-Id", Part::Correlation),
        ("Number-Of-Agents", Part::Framing),
    ],
    data: None,
    record: &[
        ("/Data/id", Part::Id),
        ("/Data/agentId", Part::Worker),
        ("/Data/requester", Part::Requester),
        ("/Data/requesterId", Part::Requester),
        ("/Data/reward", Part::Budget),
        ("/Data/matchingStrategy", Part::Strategy),
        ("/Data/strategy", Part::Strategy),
        ("/Data/payload", Part::Input),
        ("/Data/topic", Part::Skill),
        ("/Data/contextId", Part::Correlation),
        ("/Data/timestamp", Part::Time),
        ("/Data/block", Part::Framing),
    ],
};

/// A result is sent, or the task declined.
const SEND_RESULT: TagParts = TagParts {
    tags: &[("RedStone-Agent-Id", Part::Worker), ("RedStone-Task-Id", Part::Id)],
    data: Some(Part::Output),
    record: &[],
};

/// The result of a task, or the notice that there is none.
const TASK_RESULT: TagParts = TagParts {
    tags: &[
        ("/Target", Part::Requester),
        ("TaskId", Part::Id),
        ("Task-Id", Part::Id),
        ("Assigned-Agent-Id", Part::Worker),
        ("Assigned-Agent-Address", Part::Worker),
        ("Fee", Part::Paid),
    ],
    data: None,
    record: &[
        ("/Data/id", Part::Id),
        ("/Data/agentId", Part::Worker),
        ("/Data/agentAddress", Part::Worker),
        ("/Data/sender", Part::Worker),
        ("/Data/recipient", Part::Requester),
        ("/Data/result", Part::Output),
        ("/Data/timestamp", Part::Time),
        ("/Data/block", Part::Framing),
        ("/Data/originalTask", Part::Framing),
    ],
};
