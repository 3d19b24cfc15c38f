use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::{BODY_MAX, Code, Envelope, MessageType, prove};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::*;
use crate::agora::Seed;
use crate::agora::handler::{Handler, Job, Progress, Terms, WorkError};
use crate::clock;

const FIVE: Credits = Credits::from_micros(5_000_000);

/// Tells the time for free, searches for five credits, and fails on request.
#[derive(Default)]
struct TestHandler {
    works: AtomicUsize,
}

impl Handler for TestHandler {
    async fn terms(&self, job: &Job) -> Terms {
        match job.resource.as_str() {
            "agora:time:v1" | "break" | "panic" | "nonsense" | "slow" | "odd" | "long" => {
                Terms::Work
            }
            "agora:search:v1" => {
                Terms::Offer { cost: FIVE, ttl: Duration::from_secs(60), eta: Duration::ZERO }
            }
            other => Terms::unsupported(other),
        }
    }

    async fn work(&self, job: Job, progress: Progress) -> Result<String, WorkError> {
        let first = self.works.fetch_add(1, Ordering::SeqCst) == 0;
        progress.send_part("{}").await.expect("parts are dropped");
        match job.resource.as_str() {
            "break" => Err(WorkError::new(Code::Internal, "it is broken")),
            "panic" => panic!("on purpose"),
            "nonsense" => Ok("[]".to_owned()),
            "slow" => std::future::pending().await,
            "odd" => Ok(r#"{"n":9007199254740993}"#.to_owned()),
            "long" => Ok(format!(r#"{{"n":"{}"}}"#, "x".repeat(BODY_MAX - 20))),
            // The first time it is at capacity.
            "agora:search:v1" if job.params.contains("busy") && first => {
                Err(WorkError::new(Code::Unavailable, "not now"))
            }
            _ => Ok(format!(r#"{{"asked":{}}}"#, job.params)),
        }
    }
}

struct Stand {
    url: String,
    runner: Arc<TestHandler>,
    key: PublicKey,
    _stop: oneshot::Sender<()>,
}

fn identity(byte: u8) -> Identity {
    Identity::new(&Seed::from_bytes([byte; 32]))
}

async fn stand() -> Stand {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (runner, (stop, stopped)) = (Arc::new(TestHandler::default()), oneshot::channel());
    let server = serve(listener, identity(9), Arc::clone(&runner), async {
        let _ = stopped.await;
    });
    tokio::spawn(server);
    // It has started once it responds: envelopes signed before are refused.
    Peer::connect(&url, identity(1), DEFAULT_TIMEOUT).await.expect("a peer");
    Stand { url, runner, key: identity(9).key(), _stop: stop }
}

/// Posts a body and reads the response, checking that the agent signed it.
async fn post(
    stand: &Stand,
    path: &str,
    body: impl Into<reqwest::Body>,
) -> (u16, MessageType, String) {
    let client = crate::testing::http();
    let answer = client.post(format!("{}{path}", stand.url)).body(body).send().await;
    let answer = answer.expect("an answer");
    let (status, text) = (answer.status().as_u16(), answer.text().await.expect("text"));
    let json = envelope::read_json(text.as_bytes()).expect("JSON");
    let read = Envelope::read(&json).expect("an envelope");
    let proof = prove(&read, clock::now(), Millis::seconds(60)).expect("signed");
    assert_eq!(proof.key, stand.key);
    (status, read.message_type, text.clone())
}

async fn ask(stand: &Stand, order: &RequestSpec) -> Result<RequestOutcome, CallError> {
    request(&stand.url, identity(1), order, |_| true).await
}

fn status(error: CallError) -> u16 {
    match error {
        CallError::Refused { status, .. } => status,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn two_agents_greet_and_work_without_a_hub() {
    let stand = stand().await;
    let peer = Peer::connect(&stand.url, identity(1), DEFAULT_TIMEOUT).await.expect("a peer");
    assert_eq!(peer.key(), stand.key);
    let welcomed = peer.hello(&Profile::default()).await.expect("welcome");
    assert_eq!(welcomed.hub, stand.key.did());
    let order = RequestSpec::new("agora:time:v1", r#"{"n":1.0}"#);
    let RequestOutcome::Done(work) = peer.request(&order, |_| false).await.expect("done") else {
        panic!("not done")
    };
    assert_eq!(
        (work.data.as_str(), work.cost, work.is_complete),
        (r#"{"asked":{"n":1.0}}"#, None, true)
    );
}

#[tokio::test]
async fn an_offer_is_taken_or_left() {
    let stand = stand().await;
    let order = RequestSpec::new("agora:search:v1", "{}").budget(FIVE);
    let RequestOutcome::Done(work) = ask(&stand, &order).await.expect("done") else {
        panic!("not done")
    };
    assert_eq!((work.provider, work.cost), (stand.key, Some(FIVE)));
    let left = request(&stand.url, identity(1), &order, |offer| offer.cost < FIVE).await;
    assert!(
        matches!(left, Ok(RequestOutcome::NoOfferAccepted { offers, .. }) if offers.len() == 1)
    );
    assert_eq!(stand.runner.works.load(Ordering::SeqCst), 1);
    let poor = RequestSpec::new("agora:search:v1", "{}").budget(Credits::from_micros(4_999_999));
    assert_eq!(status(ask(&stand, &poor).await.expect_err("too little")), 402);
}

#[tokio::test]
async fn work_that_cannot_be_done_ends_with_its_error_code() {
    let stand = stand().await;
    let slow = RequestSpec::new("slow", "{}").timeout(Duration::from_millis(50));
    for (order, wanted) in [
        (RequestSpec::new("unknown", "{}"), 404),
        (RequestSpec::new("break", "{}"), 500),
        (RequestSpec::new("panic", "{}"), 500),
        (RequestSpec::new("nonsense", "{}"), 500),
        (RequestSpec::new("odd", "{}"), 500),
        (RequestSpec::new("long", "{}"), 500),
        (slow, 408),
    ] {
        assert_eq!(status(ask(&stand, &order).await.expect_err("refused")), wanted, "{order:?}");
    }
}

#[tokio::test]
async fn the_same_envelope_is_answered_alike_and_done_once() {
    let stand = stand().await;
    let me = identity(1);
    let payload = RequestSpec::new("agora:time:v1", "{}").payload().expect("an order");
    let sealed = me.sign(MessageType::Request, &payload, Some(stand.key)).expect("sealed");
    let body = || sealed.as_str().to_owned();
    let (one, two) =
        tokio::join!(post(&stand, "/agora", body()), post(&stand, "/agora/envelopes", body()));
    assert_eq!((one.0, one.1), (200, MessageType::Result));
    assert_eq!(one, two);
    let by_key = format!("/agora/agents/{}", stand.key.did().replace(':', "%3A"));
    assert_eq!(post(&stand, &by_key, body()).await, one);
    assert_eq!(stand.runner.works.load(Ordering::SeqCst), 1);
    let other = me.sign_with_id(&sealed.id, clock::now(), MessageType::Request, &payload, None);
    let other = other.expect("sealed").as_str().to_owned();
    assert_eq!(post(&stand, "/agora", other).await.0, 400);
}

#[tokio::test]
async fn strangers_latecomers_and_forgers_are_refused() {
    let stand = stand().await;
    let (me, now) = (identity(1), clock::now());
    let time = RequestSpec::new("agora:time:v1", "{}").payload().expect("an order");
    let seal = |at: Timestamp, kind, payload: &str, to: Option<PublicKey>| {
        let sealed = me.sign_with_id(&at.0.to_string(), at, kind, payload, to).expect("sealed");
        sealed.as_str().to_owned()
    };
    let fresh = seal(now, MessageType::Request, &time, None);
    let other = identity(2).key();
    let before = Timestamp(now.0 - 70_000);
    let at = |n: i64| Timestamp(now.0 + n);
    let elsewhere = format!("/agora/agents/{}", other.did());
    for (path, body, wanted) in [
        ("/agora", "{".to_owned(), 400),
        ("/agora", fresh.replace("agora:time", "agora:tame"), 401),
        ("/agora", fresh.replace("\"agora/1.0\"", "\"agora/2.0\""), 400),
        ("/agora", seal(before, MessageType::Request, &time, None), 401),
        ("/agora", seal(at(1), MessageType::Request, &time, Some(other)), 404),
        (&elsewhere, seal(at(2), MessageType::Request, &time, None), 404),
        (&elsewhere, seal(at(3), MessageType::Request, &time, Some(stand.key)), 400),
        ("/agora", seal(at(4), MessageType::Request, r#"{"params":{}}"#, None), 400),
        ("/agora", seal(at(5), MessageType::Accept, r#"{"offer_id":"o"}"#, None), 401),
        (
            "/agora",
            seal(
                at(6),
                MessageType::Result,
                r#"{"request_id":"r","status":"success","data":{}}"#,
                None,
            ),
            401,
        ),
        (
            "/agora",
            seal(at(7), MessageType::Error, r#"{"code":500,"message":"x","request_id":"r"}"#, None),
            401,
        ),
        ("/agora", " ".repeat(BODY_MAX + 1), 413),
        ("/elsewhere", fresh.clone(), 404),
    ] {
        let shown: String = body.chars().take(200).collect();
        let (status, kind, _) = post(&stand, path, body).await;
        assert_eq!((status, kind), (wanted, MessageType::Error), "{path} {shown}");
    }
    assert_eq!(stand.runner.works.load(Ordering::SeqCst), 0);
    let tell = seal(at(8), MessageType::Status, r#"{"status":"idle"}"#, None);
    assert_eq!(post(&stand, "/agora", tell).await.0, 202);
}

#[tokio::test]
async fn an_offer_is_for_its_requester_only() {
    let stand = stand().await;
    let (me, you) = (identity(1), identity(2));
    let payload = RequestSpec::new("agora:search:v1", "{}").payload().expect("an order");
    let sealed = me.sign(MessageType::Request, &payload, None).expect("sealed");
    let (_, kind, offer) = post(&stand, "/agora", sealed.as_str().to_owned()).await;
    assert_eq!(kind, MessageType::Offer);
    let offer: serde_json::Value = serde_json::from_str(&offer).expect("JSON");
    let payload = format!(r#"{{"offer_id":{}}}"#, offer["id"]);
    for (who, wanted) in [(&you, 401), (&me, 200), (&me, 400)] {
        let sealed = who.sign(MessageType::Accept, &payload, None).expect("sealed");
        assert_eq!(post(&stand, "/agora", sealed.as_str().to_owned()).await.0, wanted);
    }
}

async fn request_then_accept(stand: &Stand, payload: &str) -> String {
    let sealed = identity(1).sign(MessageType::Request, payload, None).expect("sealed");
    let (_, _, offer) = post(stand, "/agora", sealed.as_str().to_owned()).await;
    let offer: serde_json::Value = serde_json::from_str(&offer).expect("JSON");
    let payload = format!(r#"{{"offer_id":{}}}"#, offer["id"]);
    let accept = identity(1).sign(MessageType::Accept, &payload, None).expect("sealed");
    accept.as_str().to_owned()
}

#[tokio::test]
async fn an_offer_that_could_not_be_worked_on_stands_and_the_same_accept_takes_it() {
    let stand = stand().await;
    let payload = RequestSpec::new("agora:search:v1", r#"{"busy":1}"#).payload().expect("an order");
    let accept = request_then_accept(&stand, &payload).await;
    assert_eq!(post(&stand, "/agora", accept.clone()).await.0, 503);
    let done = post(&stand, "/agora", accept.clone()).await;
    assert_eq!((done.0, done.1), (200, MessageType::Result));
    assert_eq!(post(&stand, "/agora", accept).await, done);
    assert_eq!(stand.runner.works.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_result_that_cannot_be_signed_or_is_too_long_ends_with_a_signed_error() {
    let stand = stand().await;
    for (resource, says) in [("odd", "cannot be"), ("long", "more than 1048576 bytes")] {
        let payload = RequestSpec::new(resource, "{}").payload().expect("an order");
        let sealed = identity(1).sign(MessageType::Request, &payload, None).expect("sealed");
        let (status, kind, text) = post(&stand, "/agora", sealed.as_str().to_owned()).await;
        assert_eq!((status, kind), (500, MessageType::Error));
        assert!(text.contains(says) && text.contains(&sealed.id), "{text}");
    }
}

#[tokio::test]
async fn who_remembers_nothing_of_before_hears_nothing_of_before() {
    let early =
        identity(1).sign(MessageType::Request, r#"{"resource":"agora:time:v1","params":{}}"#, None);
    let early = early.expect("sealed").as_str().to_owned();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let stand = stand().await;
    let (status, _, text) = post(&stand, "/agora", early).await;
    assert_eq!(status, 401);
    assert!(text.contains("before this agent started"), "{text}");
    assert_eq!(stand.runner.works.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_envelope_whose_answer_was_lost_goes_again_as_it_is() {
    use crate::testing::{TestServer, answer};
    // The test server plays a peer that loses its first responses.
    let about = format!(
        r#"{{"protocol":"agora/1.0","hub":"{}","window_ms":60000,"endpoints":{{"envelopes":"/agora/envelopes","agents":"/agora/agents"}}}}"#,
        identity(9).did()
    );
    let stage = TestServer::new(move |heard: &crate::testing::RecordedRequest, _| {
        match heard.body.is_empty() {
            true => answer(200, "", &about),
            false => Vec::new(),
        }
    })
    .await;
    let peer = Peer::connect(&stage.url, identity(1), DEFAULT_TIMEOUT).await.expect("a peer");
    let retry = crate::retry::RetryPolicy { max_attempts: 2, ..Default::default() };
    let agent = peer.agent.with_retry(retry);
    let old = Timestamp(clock::now().0 - 40_000);
    let sealed = identity(1).sign_with_id("x", old, MessageType::Request, "{}", Some(peer.key()));
    agent.send(sealed.expect("sealed")).await.expect_err("no answer");
    let sent: Vec<_> = stage.heard().into_iter().filter(|heard| !heard.body.is_empty()).collect();
    assert_eq!((sent.len(), &sent[0].body), (2, &sent[1].body));
    assert!(
        sent[0].body.contains(&rialto_protocols::kit::rfc3339::format_millis(old)),
        "{}",
        sent[0].body
    );
}
