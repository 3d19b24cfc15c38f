//! Relay workers with an endpoint, hired from every other protocol (B16).

use super::books::{Balances, Counted, Names, micros, total};
use super::cells::{Cell, FLAGS, STARTING_CREDITS, walk};
use super::failures::OWN_WORDS;
use super::matrix::{order, works};
use super::party::{End, Terms};
use crate::kit::{Behaviour, TestHub, Worker as Endpoint};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn who_is_called_is_hired_from_everywhere_works_and_is_paid() {
    let hub = TestHub::serve(FLAGS).await;
    assert_eq!(Cell::others().len(), 5);
    walk(&hub, Cell::others(), works).await;
    assert_eq!(total(&hub), 0);
    hub.stop().await;
}

/// Immediate responses of an endpoint: status, code, the resulting end, and what is counted.
const CODES: [(u16, &str, End, Counted); 5] = [
    (200, "ADAPTATION_FAILED", End::Failed, Counted::BAD),
    (500, "ADAPTATION_FAILED", End::Failed, Counted::BAD),
    (200, "SOMETHING_ELSE", End::Failed, Counted::BAD),
    (200, "INVALID_ENVELOPE", End::Declined, Counted::NOTHING),
    (400, "UNSUPPORTED_VERSION", End::Declined, Counted::NOTHING),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_code_of_an_endpoint_is_a_failure_or_a_refusal_in_the_requesters_words() {
    for (status, code, end, judged) in CODES {
        let hub = TestHub::serve(FLAGS).await;
        walk(&hub, Cell::others(), async |hub, cell| {
            let meeting = cell.meet(hub, Terms::at("0")).await;
            let names = Names::of(hub, meeting.worker.as_ref()).await;
            let found = cell.from.find(hub, meeting.worker.as_ref()).await;
            let said = json!({"status": "error", "error_code": code, "detail": OWN_WORDS});
            let endpoint = Endpoint::start(Behaviour::Say(status, said.to_string())).await;
            meeting.worker.moves_to(hub, &endpoint.url).await;
            let (words, bytes, begun) = match meeting.requester.hire(hub, &found, &order()).await {
                Err(refused) => (refused.words, refused.bytes, false),
                Ok(ticket) => {
                    let ended = meeting.requester.ended(hub, &ticket).await;
                    (ended.words, ended.bytes, true)
                }
            };
            let what = format!("{status} {code}: {bytes}");
            assert_eq!(words, cell.from.words(end, begun), "{what}");
            let quotes = bytes.contains(OWN_WORDS);
            assert!(quotes, "its own text is kept (B7): {what}");
            let balances = Balances::with(micros(STARTING_CREDITS));
            assert_eq!(Balances::of(hub, &meeting.requester.owner()), balances, "{what}");
            assert_eq!(Counted::of(hub, &names).await, judged, "{what}");
        })
        .await;
        hub.stop().await;
    }
}
