use rialto_core::money::Credits;

use super::Stand;
use crate::agora::direct::{Peer, request};
use crate::agora::{Identity, RequestOutcome, RequestSpec, Seed};
use crate::call::CallError;

fn me() -> Identity {
    Identity::new(&Seed::from_bytes([1; 32]))
}

async fn ask(stand: &Stand, order: &RequestSpec) -> Result<RequestOutcome, CallError> {
    request(&stand.url, me(), order, |_| true).await
}

fn done(outcome: RequestOutcome) -> (String, Option<Credits>) {
    match outcome {
        RequestOutcome::Done(work) => (work.data, work.cost),
        other => panic!("not done: {other:?}"),
    }
}

#[tokio::test]
async fn a_skill_is_a_resource_by_its_uri_or_its_name() {
    let stand = Stand::new().await;
    for resource in ["echo", "agora:echo:v1"] {
        let outcome = ask(&stand, &RequestSpec::new(resource, r#"{"n":1.0}"#)).await.expect("done");
        assert_eq!(done(outcome), (r#"{"n":1.0}"#.to_owned(), None));
    }
    let peer = Peer::connect(&stand.url, me(), std::time::Duration::from_secs(60)).await;
    assert_eq!(peer.expect("a peer").key(), stand.identity.signer().key());
}

#[tokio::test]
async fn a_price_is_offered_and_taken() {
    let stand = Stand::new().await;
    let price = Credits::parse("0.05", 2).expect("an amount");
    let order = RequestSpec::new("agora:shout:v1", r#"{"text":"hi"}"#).budget(price);
    let outcome = ask(&stand, &order).await.expect("done");
    assert_eq!(done(outcome), (r#"{"text":"HI"}"#.to_owned(), Some(price)));
    let left = request(&stand.url, me(), &order, |_| false).await.expect("no deal");
    assert!(matches!(left, RequestOutcome::NoOfferAccepted { .. }), "{left:?}");
    assert_eq!(stand.works.begun(), 1);
}

#[tokio::test]
async fn what_cannot_be_done_has_its_code() {
    let stand = Stand::new().await;
    let cent = |text| Credits::parse(text, 2).expect("an amount");
    for (order, wanted) in [
        (RequestSpec::new("agora:sing:v1", "{}"), 404),
        (RequestSpec::new("agora:echo:v2", "{}"), 404),
        (RequestSpec::new("shout", "{}").budget(cent("1")), 400),
        (RequestSpec::new("shout", r#"{"text":"hi"}"#).budget(cent("0.04")), 402),
        (RequestSpec::new("fail", "{}"), 500),
        (RequestSpec::new("decline", "{}"), 503),
    ] {
        let refused = ask(&stand, &order).await.expect_err("refused");
        assert!(
            matches!(refused, CallError::Refused { status, .. } if status == wanted),
            "{order:?}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_full_agent_declines_for_now() {
    let stand = Stand::new().await;
    let held = || async { ask(&stand, &RequestSpec::new("held", "{}")).await };
    let full = async {
        stand.begun(2).await;
        let refused = ask(&stand, &RequestSpec::new("echo", "{}")).await.expect_err("full");
        stand.works.gate.add_permits(2);
        refused
    };
    let (one, two, refused) = tokio::join!(held(), held(), full);
    assert!(one.is_ok() && two.is_ok());
    assert!(
        matches!(refused, CallError::Refused { status: 503, retryable: true, .. }),
        "{refused}"
    );
}
