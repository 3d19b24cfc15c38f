//! The field map: which parts of this market's messages carry which part of a job.

use std::collections::HashSet;

use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester, Selection};
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::layout::{ASSIGNMENT, REGISTER_TASK, SEND_RESULT, TASK_RESULT, Tags};
use super::message::{self, Message};
use super::order::{Order, RegisterTask};
use super::outgoing::Outgoing;
use super::people;
use super::record::Task;
use super::strategy::Strategy;
use super::task::{self, Meta};
use super::topics::Topics;
use super::{Dialect, ID, PROCESS, PROTOCOL, deed, evidence, price, word};
use crate::adapter::Floor;
use crate::adapter::fidelity::{Field, Finding, Part, Shown, Side, Sides, Wanted, fields};
use crate::kit::ans104::{Id, Item};
use crate::kit::base64url;
use crate::kit::ijson;
use crate::kit::object::Object;
use crate::kit::raw_json;

/// Placeholder for an id that only the hub can assign.
const BY_HUB: &str = "(named by the hub)";

/// The field map of this protocol.
pub struct ClaraSides;

impl Sides for ClaraSides {
    fn asked(&self, shown: Shown<'_>) -> Side {
        let signed = evidence::item(shown.job).and_then(|bytes| of_item(&bytes));
        signed.unwrap_or_else(|| bare(shown))
    }

    /// The assignment, with the payload as its agent loads it. The directory shows the payload only
    /// if the task was registered here (R20).
    fn given(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        let worker = job.worker()?;
        let message = floor.engine.look(|world| {
            let shown = task::task(world, job, true);
            let to = people::address(world, worker);
            Outgoing::assignment(task::dialect(job), &to, &shown, 1)
        });
        Some(sent(&message, ASSIGNMENT))
    }

    fn made(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        let report = job.report.as_ref()?;
        let agent_id = floor.engine.look(|world| people::agent_id(world, job.worker()?))?;
        let (action, data) = match (report.ok, report.cause) {
            (true, _) => ("Send-Result", report.output.as_deref().unwrap_or("{}")),
            (false, Some(Cause::Policy)) => ("Decline-Task", ""),
            _ => return None,
        };
        let id = task::id(job);
        let tags = [
            ("Action", action),
            ("Protocol", PROTOCOL),
            ("RedStone-Agent-Id", &agent_id),
            ("RedStone-Task-Id", &id),
        ];
        Some(written(&[], &tags, data, SEND_RESULT))
    }

    fn told(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        let message = floor.engine.look(|world| {
            let to = task::requester(world, job);
            word::ended(world, job, &to)
        })?;
        Some(sent(&message, TASK_RESULT))
    }

    fn extras(&self, job: &Job) -> Option<String> {
        of_item(&evidence::item(job)?)?.extras()
    }

    fn evidence(&self, job: &Job) -> Option<String> {
        evidence::item(job).map(|bytes| base64url::encode(&bytes))
    }

    fn find<'a>(&'a self, floor: &'a Floor, by: AgentId, id: &'a str) -> Finding<'a> {
        Box::pin(deed::meant(floor, by, id))
    }

    fn read(&self, bytes: &[u8], _: Timestamp) -> Result<(Side, Wanted), String> {
        if let Ok(item) = Item::read(bytes) {
            let message = Message::of(&item).map_err(|bad| bad.text.into_owned())?;
            return read(&message);
        }
        let json = message::parse(bytes).map_err(|bad| bad.text.into_owned())?;
        let target = json.get("Target").and_then(|target| match target.kind() {
            ijson::Kind::Text(text) => Id::read(text),
            _ => None,
        });
        let process = target.or_else(|| Id::read(PROCESS)).unwrap_or(Id([0; 32]));
        let message = Message::dry_run(&json, process).map_err(|bad| bad.text.into_owned())?;
        read(&message)
    }

    fn compose(&self, wanted: &Wanted, at: Timestamp) -> Side {
        let task = Task {
            id: BY_HUB.into(),
            agent_id: None,
            requester: BY_HUB.into(),
            // A bid is in whole credits; fractions are cut off (B9).
            reward: wanted.budget.unwrap_or_default(),
            strategy: Strategy::default(),
            payload: Some(&wanted.input),
            timestamp: at,
            block: 0,
            topic: task::topic(&wanted.skill).into(),
            context_id: BY_HUB.into(),
            requester_id: Some(BY_HUB.into()),
        };
        sent(&Outgoing::assignment(Dialect::Spec, BY_HUB, &task, 1), ASSIGNMENT)
    }
}

/// Reads a request that has not been submitted.
fn read(message: &Message<'_>) -> Result<(Side, Wanted), String> {
    let order = Order::read(message, &Topics::default(), Dialect::Deployed);
    let Order::RegisterTask(order) = order.map_err(|fault| fault.to_string())? else {
        return Err("only Register-Task can be converted".to_owned());
    };
    let side = posted(message);
    let RegisterTask { topic, reward, capability, payload, .. } = order;
    let wanted = Wanted {
        skill: capability.map_or_else(|| task::skill(topic), str::to_owned),
        input: payload.to_owned(),
        budget: Some(reward),
        deadline: None,
        extras: side.extras(),
    };
    Ok((side, wanted))
}

fn of_item(bytes: &[u8]) -> Option<Side> {
    let item = Item::read(bytes).ok()?;
    Message::of(&item).ok().map(|message| posted(&message))
}

/// A message to the market.
fn posted(message: &Message<'_>) -> Side {
    let around = [("Id", &*message.id), ("Owner", &*message.from)];
    let around: Vec<_> = around.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let tags: Vec<_> = message.tags.iter().map(|tag| (tag.name, tag.value)).collect();
    written(&around, &tags, message.data, REGISTER_TASK)
}

/// The fields of a task that has no stored item.
fn bare(shown: Shown<'_>) -> Side {
    let Shown { floor, job, .. } = shown;
    let meta = Meta::of(job).unwrap_or_default();
    let owner = floor.engine.look(|world| task::requester(world, job));
    let target = match (&job.requester, job.selection) {
        (Requester::Agent(_), Selection::Direct(agent)) => {
            floor.engine.look(|world: &World| people::agent_id(world, agent))
        }
        _ => None,
    };
    let reward = price::text(job.budget);
    let optional = [
        ("RedStone-Agent-Id", meta.requester_id.as_deref()),
        ("Context-Id", meta.context_id.as_deref()),
        ("Target-Agent-Id", target.as_deref()),
    ];
    let known = [
        ("Action", "Register-Task"),
        ("Protocol", PROTOCOL),
        ("RedStone-Agent-Topic", meta.topic.as_str()),
        ("RedStone-Agent-Reward", &reward),
        ("RedStone-Agent-Matching", meta.strategy.as_str()),
    ];
    let given = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let tags: Vec<_> = known.into_iter().chain(given).collect();
    let id = task::id(job);
    written(&[("Id", &id), ("Owner", &owner)], &tags, &job.input, REGISTER_TASK)
}

/// A message of the market, without its number.
fn sent(message: &Outgoing, layout: Tags) -> Side {
    let tags: Vec<_> = message.tags.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let data = message.data.as_deref().unwrap_or_default();
    written(&[("Target", &message.target)], &tags, data, layout)
}

/// A message of tags and data, and its fields. Where the data is a record, its members are fields.
fn written(around: &[(&str, &str)], tags: &[(&str, &str)], data: &str, layout: Tags) -> Side {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let tag = |(name, value): &(&str, &str)| Field {
        name: (*name).to_owned(),
        part: layout.tag(name),
        value: quoted(value),
    };
    let head = |(name, value): &(&str, &str)| Field {
        name: format!("/{name}"),
        part: layout.tag(&format!("/{name}")),
        value: quoted(value),
    };
    let mut found: Vec<Field> = around.iter().map(head).chain(tags.iter().map(tag)).collect();
    found.extend(data_fields(data, layout));
    // Of several tags with the same name, the first counts.
    let mut named = HashSet::new();
    found.retain(|field| named.insert(field.name.clone()));
    let pairs: Vec<String> = tags
        .iter()
        .map(|(name, value)| Object::new().text("name", name).text("value", value).finish())
        .collect();
    let whole = around.iter().fold(Object::new(), |all, (name, value)| all.text(name, value));
    let data = Some(data).filter(|data| !data.is_empty());
    let whole = whole.raw("Tags", &format!("[{}]", pairs.join(","))).maybe_text("Data", data);
    Side { protocol: ID, payload: whole.finish(), fields: found }
}

fn data_fields(data: &str, layout: Tags) -> Vec<Field> {
    const DATA: &str = "/Data";
    let whole = |part| {
        // Data that is not valid JSON is text for people.
        let value = raw_json::verbatim(data.trim()).get().to_owned();
        vec![Field { name: DATA.to_owned(), part, value }]
    };
    match layout.data {
        _ if data.is_empty() => Vec::new(),
        Some(part) => whole(part),
        None => match fields(data, DATA, layout.record) {
            none if none.is_empty() => whole(Part::Reason),
            some => some,
        },
    }
}
