//! Market records: one for every order, and one for each step without an order.

mod auctions;
mod choosing;
mod coming;
mod posting;
mod publishing;
mod resting;
mod tallies;

use super::{Deed, Opening};
use crate::alias::{Target, claim};
use crate::command::{Enrol, JobRef, OpenJob};
use crate::id::{AgentId, JobId, PostingId};
use crate::job::{Policy, Selection};
use crate::notice::News;
use crate::testkit::market::Told;
use crate::testkit::{AWAY, HOME, Scene, credits, enrolment};
use crate::time::Millis;
use crate::world::Rules;

/// How long the auctions of these tests are open.
const WINDOW: Millis = Millis::seconds(2);

/// A market's task policy: refused without candidates, and never lost afterwards.
const TASK: Policy = Policy {
    next_when_unreachable: false,
    next_when_declined: true,
    next_when_failed: true,
    queue_unmatched: false,
    presence_first: false,
    queue_later: true,
    unpaid: false,
    cancel_any_time: false,
    absent_too: false,
    not_before: None,
    requester_waits: false,
};

/// A hub with a market and one client of it that can pay.
fn market() -> (Scene, AgentId) {
    let mut scene = Scene::with_market(Rules::default(), HOME);
    let client = scene.client("client", "rich", "100");
    (scene, client)
}

/// Three agents of the market with three owners, in order of registration.
fn three(scene: &mut Scene) -> [AgentId; 3] {
    ["a", "b", "c"].map(|name| scene.worker(name, &format!("owner-{name}"), &[("sum", "70")]))
}

/// An agent of another protocol.
fn stranger(scene: &mut Scene, native: &str, skills: &[(&str, &str)]) -> AgentId {
    let order = enrolment(native, &format!("owner-{native}"), skills);
    scene.enrol(Enrol { home: AWAY, ..order }).unwrap()
}

/// A task of the market.
fn task(scene: &mut Scene, by: AgentId, budget: &str, selection: Selection) -> OpenJob {
    OpenJob { selection, policy: TASK, ..scene.ask(by, "sum", budget) }
}

fn auction(scene: &mut Scene, by: AgentId, budget: &str) -> OpenJob {
    let closes = scene.now.plus(WINDOW);
    task(scene, by, budget, Selection::Auction { closes })
}

fn opening(order: OpenJob) -> Deed {
    Deed::Open(Box::new(Opening { order, newcomer: None }))
}

/// Submits a task under its own id; returns its job.
fn post_task(scene: &mut Scene, order: OpenJob) -> JobId {
    let (id, job) = (order.foreign.clone(), scene.world.next.job);
    assert_eq!(scene.posted(&id, opening(order)).outcome, "done");
    job
}

/// An order under an unused id.
fn post_new(scene: &mut Scene, deed: Deed) -> Told {
    let id = format!("order-{}", scene.world.next.posts);
    scene.posted(&id, deed)
}

fn bid(scene: &mut Scene, job: JobId, by: AgentId, price: &str) -> Told {
    let price = credits(price);
    post_new(scene, Deed::Offer { job: JobRef::Id(job), by, price })
}

fn pass(scene: &mut Scene, job: JobId, by: AgentId) -> Told {
    post_new(scene, Deed::Decline { job: JobRef::Id(job), by })
}

/// The notices in a record.
fn heard(told: &Told) -> Vec<(AgentId, News)> {
    let one = |notice: crate::notice::Notice| (notice.to.unwrap_or_default(), notice.news);
    told.notices().into_iter().map(one).collect()
}

/// The record of how a job's auction ended.
fn closing(scene: &Scene, job: JobId) -> Option<PostingId> {
    let name = claim::closed(HOME, &scene.job(job).foreign);
    match scene.store.claim(name)?.target {
        Target::Posting(id) => Some(id),
        other => panic!("{other:?}"),
    }
}

/// Restarts the hub from its stored rows.
fn restart(scene: &mut Scene) {
    let market = scene.world.market.clone();
    scene.world = scene.store.rebuilt(scene.world.rules);
    scene.world.market = market;
}

fn purse(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}
