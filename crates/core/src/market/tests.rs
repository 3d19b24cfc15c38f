//! Market records: one for every order, and one for each step without an order.

mod auctions;
mod choosing;
mod coming;
mod posting;
mod publishing;
mod resting;
mod tallies;

use crate::alias::{ClaimTarget, claim};
use crate::command::{Command, JobRef, OfferTerms, OpenJob, Registration};
use crate::id::{AgentId, JobId, PostingId};
use crate::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use crate::job::{Policy, Selection};
use crate::notice::NoticeKind;
use crate::testkit::market::ParsedRecord;
use crate::testkit::{AWAY, HOME, TestHub, credits, registration};
use crate::time::Millis;
use crate::world::Rules;

/// How long the auctions of these tests are open.
const WINDOW: Millis = Millis::seconds(2);

/// A market's task policy: refused without candidates, and never lost afterwards.
const TASK: Policy = Policy {
    reassignment: Reassignment { when_unreachable: false, when_declined: true, when_failed: true },
    queueing: Queueing { when_unmatched: false, after_failure: true },
    requester: RequesterOptions {
        answered_at_once: false,
        unpaid: false,
        follows_log: false,
        cancels_any_time: false,
        waits: false,
    },
    named_worker: NamedWorker { may_be_offline: false, not_before: None },
};

/// A hub with a market and one client of it that can pay.
fn market() -> (TestHub, AgentId) {
    let mut scene = TestHub::with_market(Rules::default(), HOME);
    let client = scene.register_client("client", "rich", "100");
    (scene, client)
}

/// Three agents of the market with three owners, in order of registration.
fn three(scene: &mut TestHub) -> [AgentId; 3] {
    ["a", "b", "c"]
        .map(|name| scene.register_worker(name, &format!("owner-{name}"), &[("sum", "70")]))
}

/// An agent of another protocol.
fn stranger(scene: &mut TestHub, native: &str, skills: &[(&str, &str)]) -> AgentId {
    let order = registration(native, &format!("owner-{native}"), skills);
    scene.register(Registration { home: AWAY, ..order }).unwrap()
}

/// A task of the market.
fn task(scene: &mut TestHub, by: AgentId, budget: &str, selection: Selection) -> OpenJob {
    OpenJob { selection, policy: TASK, ..scene.job_order(by, "sum", budget) }
}

fn auction(scene: &mut TestHub, by: AgentId, budget: &str) -> OpenJob {
    let closes = scene.now.plus(WINDOW);
    task(scene, by, budget, Selection::Auction { closes })
}

fn opening(order: OpenJob) -> Command {
    Command::OpenJob(Box::new(order))
}

/// Submits a task under its own id; returns its job.
fn post_task(scene: &mut TestHub, order: OpenJob) -> JobId {
    let (id, job) = (order.foreign_id.clone(), scene.world.next.job);
    assert_eq!(scene.submit_and_read(&id, opening(order)).outcome, "done");
    job
}

/// An order under an unused id.
fn post_new(scene: &mut TestHub, command: Command) -> ParsedRecord {
    let id = format!("order-{}", scene.world.next.market_orders);
    scene.submit_and_read(&id, command)
}

fn bid(scene: &mut TestHub, job: JobId, by: AgentId, price: &str) -> ParsedRecord {
    let price = credits(price);
    post_new(scene, Command::Offer { job: JobRef::Id(job), by, price, terms: OfferTerms::Bid })
}

fn pass(scene: &mut TestHub, job: JobId, by: AgentId) -> ParsedRecord {
    post_new(scene, Command::Pass { job: JobRef::Id(job), by })
}

/// The notices in a record.
fn heard(told: &ParsedRecord) -> Vec<(AgentId, NoticeKind)> {
    let one = |notice: crate::notice::Notice| (notice.to.unwrap_or_default(), notice.news);
    told.notices().into_iter().map(one).collect()
}

/// The record of how a job's auction ended.
fn closing(scene: &TestHub, job: JobId) -> Option<PostingId> {
    let name = claim::closed_auction(HOME, &scene.job(job).request.foreign_id);
    match scene.store.claim(name)?.target {
        ClaimTarget::MarketRecord(id) => Some(id),
        other => panic!("{other:?}"),
    }
}

/// Restarts the hub from its stored rows.
fn restart(scene: &mut TestHub) {
    let markets = scene.world.markets.clone();
    scene.world = scene.store.rebuild_world(scene.world.rules);
    scene.world.markets = markets;
}

fn account(available: &str, held: &str) -> (String, String) {
    (available.to_owned(), held.to_owned())
}
