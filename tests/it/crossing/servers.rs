//! What only agents with an A2A server of their own do, as a requester of every protocol sees it.

use super::books::{Balances, Counted, Names, micros, shown, total};
use super::cells::{Cell, FLAGS, STARTING_CREDITS, received, walk};
use super::failures::OWN_WORDS;
use super::matrix::order;
use super::parties::a2a::Hired;
use super::parties::a2a_server::REFUSAL;
use super::party::{End, Found, Protocol, Requester, Terms, Ticket, Worker};
use super::raw::{items, text};
use crate::kit::{TestHub, eventually};
use serde_json::Value;

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// An error with this code.
    Refuses(i32),
    /// A task that begins, and then has this state.
    Becomes(&'static str),
}

/// What a server does, the end that its requester sees, and what is counted.
const ENDS: [(Does, End, Counted); 6] = [
    (Does::Refuses(-32_602), End::Unfit, Counted::NOTHING),
    (Does::Refuses(-32_005), End::Unfit, Counted::NOTHING),
    (Does::Refuses(-32_004), End::Declined, Counted::NOTHING),
    (Does::Refuses(-32_603), End::Failed, Counted::BAD),
    (Does::Becomes("TASK_STATE_CANCELED"), End::Declined, Counted::NOTHING),
    (Does::Becomes("TASK_STATE_FAILED"), End::Failed, Counted::BAD),
];

/// A requester and an agent that it has found.
struct Pair {
    hired: Hired,
    requester: Box<dyn Requester>,
    found: Found,
    /// The worker's ids in the protocols with scores, whose lists leave out agents that are away.
    names: Names,
}

impl Pair {
    async fn meet(hub: &TestHub, from: &dyn Protocol, number: u8) -> Self {
        let a2a = super::parties::of("a2a");
        let hired = Hired::register(hub, 2 * number, Terms::at(a2a.price())).await;
        let requester = from.requester(hub, 2 * number + 1).await;
        hub.grant(&requester.owner(), STARTING_CREDITS).await;
        let found = from.find(hub, &hired).await;
        let names = Names::of(hub, &hired).await;
        Self { hired, requester, found, names }
    }

    async fn hire(&self, hub: &TestHub) -> Ticket {
        self.requester.hire(hub, &self.found, &order()).await.expect("it is hired")
    }

    /// Nothing was paid, and the worker was counted like this.
    async fn came_to_nothing(&self, hub: &TestHub, judged: Counted) {
        let balances = Balances::with(micros(STARTING_CREDITS));
        assert_eq!(Balances::of(hub, &self.requester.owner()), balances);
        assert_eq!(Counted::of(hub, &self.names).await, judged);
        eventually(async || self.hired.waiting(hub).await.is_empty()).await;
    }
}

/// Every requester with an A2A worker, numbered from here on.
fn cells(first: u8) -> Vec<Cell> {
    let cells = Cell::all().into_iter().filter(|cell| cell.to.id() == "a2a");
    cells.zip(first..).map(|(cell, number)| cell.seated(number)).collect()
}

/// The words for an end that came when there was a job already.
fn words(from: &dyn Protocol, end: End) -> &'static str {
    match (from.id(), end) {
        // Only agora has words then for an input that is wrong.
        ("agora", End::Unfit) => from.words(end, true),
        ("clara", End::Unfit) => from.words(End::Declined, true),
        (_, End::Unfit) => from.words(End::Failed, true),
        _ => from.words(end, true),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_at_a_server_is_a_failure_or_a_refusal_in_the_requesters_words() {
    let hub = TestHub::serve(FLAGS).await;
    for ((does, end, judged), first) in ENDS.into_iter().zip((0..).step_by(6)) {
        walk(&hub, cells(first).into_iter().zip(first..).collect(), async |hub, (cell, number)| {
            let pair = Pair::meet(hub, cell.from, number).await;
            if let Does::Refuses(code) = does {
                pair.hired.server.refuse(code);
            }
            let ticket = pair.hire(hub).await;
            if let Does::Becomes(state) = does {
                let task = received(hub, &pair.hired).await.also.remove(0);
                pair.hired.server.state(&task, state, Some(OWN_WORDS));
            }
            let ended = pair.requester.ended(hub, &ticket).await;
            let what = format!("{does:?}: {}", ended.bytes);
            assert_eq!(ended.words, words(cell.from, end), "{what}");
            let said = if let Does::Refuses(_) = does { REFUSAL } else { OWN_WORDS };
            assert!(ended.bytes.contains(said), "its own text is kept (B7): {what}");
            pair.came_to_nothing(hub, judged).await;
        })
        .await;
    }
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}

/// The end that a requester sees whose request found out that the server is away; `None` if the
/// request waits.
fn words_of_away(from: &dyn Protocol) -> Option<&'static str> {
    match from.id() {
        "clara" | "a2a" => None,
        "openclaw" => Some("failed AGENT_UNAVAILABLE"),
        "agora" => Some(from.words(End::Offline, true)),
        _ => Some(from.words(End::Failed, true)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn work_for_a_server_that_is_away_waits_or_ends_without_blame() {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, cells(0).into_iter().zip(0..).collect(), async |hub, (cell, number)| {
        let pair = Pair::meet(hub, cell.from, number).await;
        pair.hired.leave();
        let first = pair.hire(hub).await;
        let is_away = async || {
            hub.engine.with_world(|world| {
                let agent = world.agent_by_alias(rialto_protocols::a2a::ID, pair.hired.native());
                let state = agent.and_then(|agent| world.agent_state(agent));
                state.is_some_and(|state| state.presence.unreachable)
            })
        };
        eventually(is_away).await;
        let waits = match words_of_away(cell.from) {
            None => first,
            Some(words) => {
                let ended = pair.requester.ended(hub, &first).await;
                assert_eq!(ended.words, words, "{}", ended.bytes);
                pair.came_to_nothing(hub, Counted::NOTHING).await;
                // Who asks now is told, or waits.
                match pair.requester.hire(hub, &pair.found, &order()).await {
                    Ok(second) => second,
                    Err(refused) => {
                        let words = cell.from.words(End::Offline, false);
                        return assert_eq!(refused.words, words, "{}", refused.bytes);
                    }
                }
            }
        };
        pair.hired.come_back(hub).await;
        let given = received(hub, &pair.hired).await;
        pair.hired.deliver(hub, &given).await;
        let ended = pair.requester.ended(hub, &waits).await;
        assert_eq!(ended.words, cell.from.words(End::Done, true), "{}", ended.bytes);
        let price = shown(cell.to.price(), cell.from.price_step());
        assert_eq!(Balances::of(hub, &pair.hired.owner()), Balances::with(price));
        assert_eq!(Counted::of(hub, &pair.names).await, Counted::GOOD);
    })
    .await;
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_has_the_bytes_that_the_server_got_and_sent() {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, cells(0).into_iter().zip(0..).collect(), async |hub, (cell, number)| {
        let pair = Pair::meet(hub, cell.from, number).await;
        let ticket = pair.hire(hub).await;
        let given = received(hub, &pair.hired).await;
        let sent = pair.hired.deliver(hub, &given).await;
        pair.requester.ended(hub, &ticket).await;
        let trace = pair.hired.trace(hub, &given.id).await;
        let hop = |what: &str| {
            let hops = items(&trace, "/hops");
            let of_kind = |hop: &&String| text(hop, "/what").as_deref() == Some(what);
            hops.iter().find(of_kind).cloned().unwrap_or_else(|| panic!("no {what} in {trace}"))
        };
        let request = hop("request");
        assert_eq!((text(&request, "/from"), text(&request, "/to")), pair_of(cell));
        assert_eq!(text(&request, "/given").as_deref(), Some(given.bytes.as_str()));
        let task = text(&hop("result"), "/asked").expect("a task");
        let task: Value = serde_json::from_str(&task).expect("JSON");
        for (name, value) in &sent.members {
            assert_eq!(task.pointer(name), Some(value), "{name} in {task}");
        }
        assert_eq!(task["id"], given.also[0].as_str());
    })
    .await;
    hub.stop().await;
}

fn pair_of(cell: Cell) -> (Option<String>, Option<String>) {
    (Some(cell.from.id().to_owned()), Some(cell.to.id().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_the_requester_cannot_answer_ends_the_task_at_the_server_too() {
    let hub = TestHub::serve(FLAGS).await;
    let mute = |cell: &Cell| ["agora", "clara"].contains(&cell.from.id());
    let cells: Vec<_> = cells(0).into_iter().zip(0..).filter(|(cell, _)| mute(cell)).collect();
    assert_eq!(cells.len(), 2);
    walk(&hub, cells, async |hub, (cell, number)| {
        let pair = Pair::meet(hub, cell.from, number).await;
        let ticket = pair.hire(hub).await;
        let task = received(hub, &pair.hired).await.also.remove(0);
        pair.hired.server.state(&task, "TASK_STATE_INPUT_REQUIRED", Some("Which city?"));
        let ended = pair.requester.ended(hub, &ticket).await;
        assert!(ended.bytes.contains("Which city?"), "{}", ended.bytes);
        pair.came_to_nothing(hub, Counted::NOTHING).await;
    })
    .await;
    hub.stop().await;
}
