//! Jobs from request to settlement.

mod agreed;
mod agreeing;
mod answering;
mod asking;
mod bargaining;
mod bidding;
mod calling;
mod calling_off;
mod choices;
mod crossing;
mod dialogue;
mod edges;
mod ending;
mod fairness;
mod fitting;
mod flaws;
mod handing;
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
use crate::agent::presence::Availability;
use crate::agent::status::AgentStatusUpdate;
use crate::agent::{Skill, Terms};
use crate::command::{Command, OpenJob, Registration};
use crate::id::AgentId;
use crate::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use crate::refusal::Refusal;
use crate::testkit::{TestHub, registration, skill};
use crate::time::{Millis, Timestamp};

/// Goes on to the next worker whatever happens, and is queued when there is none.
const PATIENT: Policy = Policy {
    reassignment: Reassignment { when_unreachable: true, when_declined: true, when_failed: true },
    queueing: Queueing { when_unmatched: true, after_failure: false },
    requester: RequesterOptions {
        answered_at_once: false,
        cancels_any_time: false,
        waits: false,
        unpaid: false,
        follows_log: false,
    },
    named_worker: NamedWorker { may_be_offline: false, not_before: None },
};

/// The initial credits of a signer that can pay.
const AWAY_CREDITS: &str = "10";

/// A hub with one client that can pay.
fn market() -> (TestHub, AgentId) {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "100.00");
    (scene, client)
}

/// An agent that is always online, sums for 0.10, and has the given terms.
fn keeps(scene: &mut TestHub, native: &str, terms: Terms) -> AgentId {
    let order = registration(native, "acme", &[("sum", "0.10")]);
    scene.register(Registration { terms, ..order }).unwrap()
}

/// The same without terms, but with a customized skill.
fn sums(scene: &mut TestHub, native: &str, more: impl Fn(&mut Skill)) -> AgentId {
    let mut one = skill("sum", "0.10");
    more(&mut one);
    let order = registration(native, "acme", &[]);
    scene.register(Registration { skills: vec![one], ..order }).unwrap()
}

/// An order of 0.50 for one named agent.
fn order_for(scene: &mut TestHub, client: AgentId, worker: AgentId) -> OpenJob {
    let order = scene.job_order(client, "sum", "0.50");
    OpenJob { selection: Selection::Direct(worker), ..order }
}

/// Opens a job for one named agent.
fn hire(
    scene: &mut TestHub,
    client: AgentId,
    worker: AgentId,
) -> Result<std::sync::Arc<Job>, Refusal> {
    let order = order_for(scene, client, worker);
    scene.try_open_job(order)
}

/// The agent reports its availability, and for how many seconds.
fn stand(scene: &mut TestHub, agent: AgentId, availability: Availability, seconds: Option<i64>) {
    let until: Option<Timestamp> = seconds.map(|seconds| scene.now.plus(Millis::seconds(seconds)));
    scene
        .run(Command::ReportStatus {
            agent,
            status: AgentStatusUpdate { availability, until, words: None },
        })
        .unwrap();
}
