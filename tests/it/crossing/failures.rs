//! Failures of every pair: what the requester learns in its own protocol's terms (section 6), that
//! its money is released, and whose score changed (C17, B16).
//!
//! Where a protocol has no message for a case, the table of such gaps lists it, cell by cell.

use std::collections::BTreeSet;

use rialto_core::time::Millis;

use super::books::{Balances, Counted, Names, total};
use super::cells::{Cell, FLAGS, Meeting, Placed, hire_and_say, recorded_as_received, walk};
use super::matrix::order;
use super::party::{End, Found, Order, Saying, Terms, Ticket, WAITS};
use crate::kit::{TestHub, eventually};

/// A worker's own text, which its requester must be able to read (B7).
pub const OWN_WORDS: &str = "not with these gloves";

/// A registered pair, and the worker's ids in the protocols with scores.
struct Scene {
    cell: Cell,
    meeting: Meeting,
    names: Names,
    found: Found,
    /// The requester's balance before.
    balances: Balances,
}

impl Placed for Scene {
    fn cell(&self) -> Cell {
        self.cell
    }
}

impl Scene {
    async fn set(hub: &TestHub, cell: Cell, terms: Terms) -> Self {
        Self::of(hub, cell, cell.meet(hub, terms).await).await
    }

    async fn of(hub: &TestHub, cell: Cell, meeting: Meeting) -> Self {
        let names = Names::of(hub, meeting.worker.as_ref()).await;
        let found = cell.from.find(hub, meeting.worker.as_ref()).await;
        let balances = Balances::of(hub, &meeting.requester.owner());
        Self { cell, meeting, names, found, balances }
    }

    /// Nothing was paid, nothing is held, and the worker was counted like this.
    async fn came_to_nothing(&self, hub: &TestHub, judged: Counted) {
        let owner = self.meeting.requester.owner();
        assert_eq!(Balances::of(hub, &owner), self.balances, "all money is released");
        assert_eq!(Balances::of(hub, &self.meeting.worker.owner()), Balances::with(0));
        assert_eq!(Counted::of(hub, &self.names).await, judged);
        // A server is told so by a call that the hub does not wait for.
        eventually(async || self.meeting.worker.waiting(hub).await.is_empty()).await;
    }

    /// The worker responds with something other than a result, and the requester is notified.
    async fn says(&self, hub: &TestHub, saying: Saying, end: End, judged: Counted) {
        let (requester, asked) = (&self.meeting.requester, (&self.found, &order()));
        let hired = hire_and_say(hub, &self.meeting, asked, (saying, OWN_WORDS)).await;
        let (words, quoted, bytes, begun) = match hired {
            Err(refused) => (refused.words, refused.bytes.clone(), refused.bytes, false),
            Ok(ticket) => {
                let ended = requester.ended(hub, &ticket).await;
                assert_eq!(ended.id, ticket.id, "{}", ended.bytes);
                (ended.words, ended.detail, ended.bytes, true)
            }
        };
        assert_eq!(words, self.cell.from.words(end, begun), "{bytes}");
        // The text of a Decline-Task is not read, so there is nothing to forward.
        let can_quote = self.cell.to.id() != "clara";
        assert_eq!(quoted.contains(OWN_WORDS), can_quote, "its own text is kept (B7): {bytes}");
        self.came_to_nothing(hub, judged).await;
    }
}

/// Notices to clara requesters carry one sentence, which can include the worker's text.
#[tokio::test(flavor = "multi_thread")]
async fn a_clara_requester_reads_the_workers_own_words() {
    let hub = TestHub::serve(FLAGS).await;
    for saying in [Saying::Refuses, Saying::Declines, Saying::Fails] {
        let asks = |cell: &Cell| cell.from.id() == "clara" && cell.crosses();
        let cells = can(saying).into_iter().filter(asks);
        let seats = cells.zip(30 * (1 + saying as u8)..).map(|(cell, seat)| cell.seated(seat));
        walk(&hub, seats.collect(), async |hub, cell| {
            let terms =
                Terms { asked_first: saying != Saying::Fails, ..Terms::at(cell.to.price()) };
            let scene = Scene::set(hub, cell, terms).await;
            let asked = (&scene.found, &order());
            let hired = hire_and_say(hub, &scene.meeting, asked, (saying, OWN_WORDS)).await;
            let ended = scene.meeting.requester.ended(hub, &hired.expect("a task")).await;
            assert!(ended.detail.contains(OWN_WORDS), "{saying:?} (B7): {}", ended.bytes);
        })
        .await;
    }
    hub.stop().await;
}

/// A hired worker that does not respond.
struct Silent {
    scene: Scene,
    ticket: Ticket,
}

impl Placed for Silent {
    fn cell(&self) -> Cell {
        self.scene.cell
    }
}

/// The cells in which the worker can respond like this.
fn can(saying: Saying) -> Vec<Cell> {
    Cell::all().into_iter().filter(|cell| cell.to.sayings().contains(&saying)).collect()
}

/// The protocols whose workers cannot respond like this.
fn cannot(saying: Saying) -> BTreeSet<&'static str> {
    let all = super::parties::ALL.iter();
    all.filter(|party| !party.sayings().contains(&saying)).map(|party| party.id()).collect()
}

async fn all_say(saying: Saying, end: End, judged: Counted) {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, can(saying), async |hub, cell| {
        // A worker that is asked first can decline; only started work can fail.
        let asked_first = saying != Saying::Fails;
        let terms = Terms { asked_first, ..Terms::at(cell.to.price()) };
        Scene::set(hub, cell, terms).await.says(hub, saying, end, judged).await;
    })
    .await;
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_do_it_is_a_refusal_and_is_not_judged() {
    all_say(Saying::Refuses, End::Refused, Counted::NOTHING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_will_not_do_it_is_a_refusal_and_is_not_judged() {
    all_say(Saying::Declines, End::Declined, Counted::NOTHING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_fails_is_judged_and_costs_nothing() {
    all_say(Saying::Fails, End::Failed, Counted::BAD).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stays_silent_is_judged_and_costs_nothing() {
    let hub = TestHub::serve(FLAGS).await;
    let hired = walk(&hub, Cell::all(), async |hub, cell| {
        let scene = Scene::set(hub, cell, Terms::at(cell.to.price())).await;
        let ticket = scene.meeting.requester.hire(hub, &scene.found, &order()).await;
        let ticket = ticket.expect("it is hired");
        scene.meeting.received(hub).await;
        recorded_as_received(hub, &ticket).await;
        Silent { scene, ticket }
    });
    let hired = hired.await;
    // Longer than any worker may be silent, shorter than the lifetime of a clara task.
    hub.pass(Millis::hours(25));
    walk(&hub, hired, async |hub, Silent { scene, ticket }| {
        let ended = scene.meeting.requester.ended(hub, &ticket).await;
        assert_eq!(ended.words, scene.cell.from.words(End::TimedOut, true), "{}", ended.bytes);
        scene.came_to_nothing(hub, Counted::BAD).await;
    })
    .await;
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}

/// A price that no budget of these tests covers.
const DEAR: &str = "7";

/// The cells in which work can cost this much: a relay agent's messages are free.
pub fn dear() -> Vec<Cell> {
    Cell::all().into_iter().filter(|cell| cell.to.price() != "0").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_below_the_price_is_refused_in_the_requesters_words() {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, dear(), async |hub, cell| {
        let scene = Scene::set(hub, cell, Terms::at(DEAR)).await;
        let order = Order { budget: "6".to_owned(), ..order() };
        refused(hub, &scene, &order, End::BudgetTooLow).await;
    })
    .await;
    hub.stop().await;
}

/// The registry lets its workers decide about an input; openclaw's requesters see the schema
/// (section 5) and must follow it.
#[tokio::test(flavor = "multi_thread")]
async fn a_registry_workers_input_schema_binds_openclaw_requesters_and_no_others() {
    let hub = TestHub::serve(FLAGS).await;
    let cells = Cell::all().into_iter().filter(|cell| cell.to.id() == "registry").collect();
    walk(&hub, cells, async |hub, cell| {
        let terms = Terms { strict: true, ..Terms::at(cell.to.price()) };
        let scene = Scene::set(hub, cell, terms).await;
        let order = Order { input: r#"{"n":"many"}"#.to_owned(), ..order() };
        match cell.from.id() {
            "openclaw" => refused(hub, &scene, &order, End::Unfit).await,
            _ => {
                let hired = scene.meeting.requester.hire(hub, &scene.found, &order).await;
                assert_eq!(scene.meeting.received(hub).await.input, order.input, "{hired:?}");
            }
        }
    })
    .await;
    hub.stop().await;
}

/// The request is refused like this, and nothing changed.
async fn refused(hub: &TestHub, scene: &Scene, order: &Order, end: End) {
    let Meeting { requester, .. } = &scene.meeting;
    let refused = requester.hire(hub, &scene.found, order).await;
    let refused = refused.expect_err("a refusal");
    assert_eq!(refused.words, scene.cell.from.words(end, false), "{}", refused.bytes);
    scene.came_to_nothing(hub, Counted::NOTHING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_purse_is_refused_in_the_requesters_words() {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, dear(), async |hub, cell| {
        let meeting = cell.meet_with(hub, Terms::at(DEAR), "6").await;
        let scene = Scene::of(hub, cell, meeting).await;
        let order = Order { budget: "8".to_owned(), ..order() };
        refused(hub, &scene, &order, End::TooFewCredits).await;
    })
    .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_breaks_the_workers_schema_is_refused_in_the_requesters_words() {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, can(Saying::Strict), async |hub, cell| {
        let terms = Terms { strict: true, ..Terms::at(cell.to.price()) };
        let scene = Scene::set(hub, cell, terms).await;
        let order = Order { input: r#"{"n":"many"}"#.to_owned(), ..order() };
        refused(hub, &scene, &order, End::Unfit).await;
    })
    .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offline_agent_is_refused_or_waited_for() {
    let hub = TestHub::serve(FLAGS).await;
    let scenes = walk(&hub, can(Saying::Offline), async |hub, cell| {
        Scene::set(hub, cell, Terms::at(cell.to.price())).await
    });
    let scenes = scenes.await;
    scenes.iter().for_each(|scene| scene.meeting.worker.leave());
    hub.pass(Millis::minutes(5));
    let waited = walk(&hub, scenes, async |hub, scene| {
        let ticket = match scene.meeting.requester.hire(hub, &scene.found, &order()).await {
            Ok(ticket) => ticket,
            Err(refused) => {
                let words = scene.cell.from.words(End::Offline, false);
                assert_eq!(refused.words, words, "{}", refused.bytes);
                scene.came_to_nothing(hub, Counted::NOTHING).await;
                return None;
            }
        };
        // It waits until the worker is back, and is then a normal job.
        let given = scene.meeting.received(hub).await;
        let sent = scene.meeting.worker.deliver(hub, &given).await;
        assert!(sent.taken, "{}", sent.answer);
        let ended = scene.meeting.requester.ended(hub, &ticket).await;
        assert_eq!(ended.words, scene.cell.from.words(End::Done, true), "{}", ended.bytes);
        assert_eq!(Counted::of(hub, &scene.names).await, Counted::GOOD);
        Some(scene.cell.name())
    });
    let waited: BTreeSet<_> = waited.await.into_iter().flatten().collect();
    // An agora agent has its inbox whether it reads it or not (agora R31).
    let waits =
        |cell: &Cell| cell.from.words(End::Offline, false) == WAITS || cell.name() == "agora-agora";
    let expected = can(Saying::Offline).into_iter().filter(waits).map(|cell| cell.name());
    assert_eq!(waited, expected.collect());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_off_before_it_is_begun_costs_nothing() {
    let hub = TestHub::serve(FLAGS).await;
    let gaps = walk(&hub, Cell::all(), async |hub, cell| {
        let scene = Scene::set(hub, cell, Terms::at(cell.to.price())).await;
        match scene.meeting.requester.call_off(hub, &scene.found, &order()).await {
            None => Some(cell.name()),
            Some(ended) => {
                assert_eq!(ended.words, cell.from.words(End::Cancelled, true), "{}", ended.bytes);
                scene.came_to_nothing(hub, Counted::NOTHING).await;
                None
            }
        }
    });
    let mut gaps: BTreeSet<_> = gaps.await.into_iter().flatten().collect();
    // The hub may have handed the job over before to a server or an open inbox: both answers are
    // right.
    for sent in ["registry-a2a", "registry-relay"] {
        gaps.remove(sent);
    }
    let all = ["clara", "relay"].into_iter().flat_map(|from| {
        let cells = Cell::all().into_iter().filter(move |cell| cell.from.id() == from);
        cells.map(|cell| cell.name())
    });
    // Free work of agora starts at once.
    let expected: BTreeSet<_> = all.chain(["agora-relay".to_owned()]).collect();
    assert_eq!(gaps, expected);
    hub.stop().await;
}

/// A protocol that gains such a response must be changed here, so that no case is skipped silently.
#[test]
fn what_workers_have_no_word_for() {
    let gaps = |saying| cannot(saying).into_iter().collect::<Vec<_>>();
    assert_eq!(gaps(Saying::Refuses), ["a2a", "clara", "relay"]);
    assert_eq!(gaps(Saying::Declines), ["registry"]);
    assert_eq!(gaps(Saying::Fails), ["clara"]);
    assert_eq!(gaps(Saying::Offline), ["a2a", "clara"]);
    assert_eq!(gaps(Saying::Strict), ["a2a", "agora", "clara", "registry", "relay"]);
    let own: Vec<_> = super::parties::ALL.iter().filter(|one| !one.hires_its_own()).collect();
    assert_eq!(own.iter().map(|one| one.id()).collect::<Vec<_>>(), ["relay"]);
}
