//! Jobs from request to settlement.

mod agreed;
mod agreeing;
mod answering;
mod asking;
mod bargaining;
mod bidding;
mod calling;
mod calling_off;
mod crossing;
mod edges;
mod ending;
mod fairness;
mod fitting;
mod flaws;
mod hands;
mod margins;
mod naming;
mod opening;
mod promises;
mod reading;
mod responding;
mod resting;
mod returning;
mod selecting;
mod wording;
mod working;

use super::{Job, Policy, Selection};
use crate::agent::presence::Stance;
use crate::agent::status::Condition;
use crate::agent::{Skill, Terms};
use crate::command::{Command, Enrol, OpenJob};
use crate::id::AgentId;
use crate::refusal::Refusal;
use crate::testkit::{Scene, enrolment, skill};
use crate::time::{Millis, Timestamp};

/// Goes on to the next worker whatever happens, and is queued when there is none.
const PATIENT: Policy = Policy {
    next_when_unreachable: true,
    next_when_declined: true,
    next_when_failed: true,
    queue_unmatched: true,
    presence_first: false,
    cancel_any_time: false,
    absent_too: false,
    requester_waits: false,
    queue_later: false,
    unpaid: false,
    not_before: None,
};

/// The initial credits of a signer that can pay.
const AWAY_PURSE: &str = "10";

/// A hub with one client that can pay.
fn market() -> (Scene, AgentId) {
    let mut scene = Scene::default();
    let client = scene.client("client", "rich", "100.00");
    (scene, client)
}

/// An agent that is always online, sums for 0.10, and has the given terms.
fn keeps(scene: &mut Scene, native: &str, terms: Terms) -> AgentId {
    let order = enrolment(native, "acme", &[("sum", "0.10")]);
    scene.enrol(Enrol { terms, ..order }).unwrap()
}

/// The same without terms, but with a customized skill.
fn sums(scene: &mut Scene, native: &str, more: impl Fn(&mut Skill)) -> AgentId {
    let mut one = skill("sum", "0.10");
    more(&mut one);
    let order = enrolment(native, "acme", &[]);
    scene.enrol(Enrol { skills: vec![one], ..order }).unwrap()
}

/// An order of 0.50 for one named agent.
fn order_for(scene: &mut Scene, client: AgentId, worker: AgentId) -> OpenJob {
    let order = scene.ask(client, "sum", "0.50");
    OpenJob { selection: Selection::Direct(worker), ..order }
}

/// Opens a job for one named agent.
fn hire(
    scene: &mut Scene,
    client: AgentId,
    worker: AgentId,
) -> Result<std::sync::Arc<Job>, Refusal> {
    let order = order_for(scene, client, worker);
    scene.try_open(order)
}

/// The agent reports its availability, and for how many seconds.
fn stand(scene: &mut Scene, agent: AgentId, stance: Stance, seconds: Option<i64>) {
    let until: Option<Timestamp> = seconds.map(|seconds| scene.now.plus(Millis::seconds(seconds)));
    scene.run(Command::Stand { agent, told: Condition { stance, until, words: None } }).unwrap();
}
