//! The loop guard: agents in a message loop are delayed and told so; nothing is dropped (R89).

use std::time::{Duration, Instant};

use serde_json::json;

use super::bridge::{QUICK, address, assert_no, wish};
use super::kit::{Event, Peer, envelope, turn};
use super::looks::trace;
use crate::kit::{Behaviour, Reply, TestHub, Worker, eventually};

/// The shortest delay.
const LEAST: Duration = Duration::from_millis(500);

#[track_caller]
fn assert_free(reply: &Reply, event: &Event) {
    assert_eq!((reply.status, reply.str("/data/delivery")), (200, "delivered_sse".to_owned()));
    assert_eq!(reply.at("/data").get("loop_guard"), None, "{}", reply.text);
    assert_eq!(event.data.get("loop_guard"), None, "{}", event.text);
}

#[track_caller]
fn assert_slowed(reply: &Reply, event: &Event) {
    // The response came before the message reached the inbox, which is open all the time.
    let data = json!({"delivery": "queued", "trace_id": trace(reply), "loop_guard": true});
    assert_eq!((reply.status, reply.at("/data")), (202, data));
    assert_eq!(event.data["loop_guard"], true, "{}", event.text);
    assert_eq!(event.data["trace_id"], trace(reply));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_thirty_a_minute_in_one_conversation_are_slowed_and_marked() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let (mut bobs, mut alices) = (hub.inbox(&bob).await, hub.inbox(&alice).await);
    let mut said = 0;
    let mut say = async |conversation: &str| {
        // Both alternate, as agents in a loop do.
        let (from, to, inbox): (&Peer, &Peer, _) = match said % 2 {
            0 => (&alice, &bob, &mut bobs),
            _ => (&bob, &alice, &mut alices),
        };
        said += 1;
        let envelope = turn(&from.id, &format!("text {said}"), conversation, said);
        let started = Instant::now();
        let reply = hub.mail(from, to, &envelope).await;
        (reply, inbox.message().await, started.elapsed())
    };
    for _ in 0..30 {
        let (reply, event, _) = say("c").await;
        assert_free(&reply, &event);
    }
    for least in [LEAST, 2 * LEAST] {
        let (reply, event, took) = say("c").await;
        assert_slowed(&reply, &event);
        assert!(took >= least, "each waits longer: {took:?}");
    }
    // Another conversation of the same two is not delayed.
    let (reply, event, _) = say("d").await;
    assert_free(&reply, &event);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_text_a_fourth_time_running_is_slowed_whatever_its_case_and_spacing() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let mut inbox = hub.inbox(&bob).await;
    let mut say = async |text: &str| {
        let reply = hub.say(&alice, &bob, text).await;
        (reply, inbox.message().await)
    };
    for text in ["Thank you!", "  thank\tYOU!", "THANK YOU!\n"] {
        let (reply, event) = say(text).await;
        assert_free(&reply, &event);
    }
    let (reply, event) = say("thank you!").await;
    assert_slowed(&reply, &event);
    assert_eq!(event.said(), "thank you!", "the text is complete");
    // Its state is reported like that of any other message.
    assert_eq!(
        hub.standing(&alice, &trace(&reply)).await.expect(200).at("/data/envelope"),
        envelope(&alice.id, "thank you!")
    );
    for text in ["something else", "thank you!"] {
        let (reply, event) = say(text).await;
        assert_free(&reply, &event);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slowed_message_is_answered_at_once_and_marked_wherever_it_goes() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let alice = hub.join("alice@chorus").await;
    let offline = hub.join("offline@chorus").await;
    let called = hub.join_at("called@chorus", &worker.url).await;
    let mut slowed = Vec::new();
    for (to, status) in [(&offline, 202), (&called, 200)] {
        for n in 1..=3 {
            let reply = hub.mail(&alice, to, &turn(&alice.id, "again", "c", n)).await;
            assert_eq!(reply.expect(status).at("/data").get("loop_guard"), None);
        }
        let said = turn(&alice.id, "again", "c", 4);
        // The endpoint would answer, but the response does not wait for it.
        let reply = hub.mail(&alice, to, &said).await.expect(202);
        let data = json!({"delivery": "queued", "trace_id": trace(&reply), "loop_guard": true});
        assert_eq!(reply.at("/data"), data);
        // A repeat of the turn does not count as a message.
        let repeat = hub.mail(&alice, to, &said).await;
        assert_eq!(trace(&repeat), trace(&reply));
        slowed.push(trace(&reply));
    }
    assert_eq!(worker.heard(4).await[3].json()["envelope"]["turn_number"], 4);
    eventually(async || hub.state_of(&alice, &slowed[1]).await == "delivered").await;
    let mut inbox = hub.inbox(&offline).await;
    for n in 1..=4 {
        let event = inbox.message().await;
        assert_eq!(
            event.data["envelope"]["turn_number"], n,
            "nothing is dropped, nothing reordered"
        );
        assert_eq!(event.data.get("loop_guard").is_some(), n == 4);
    }
    assert_eq!(worker.got().len(), 4);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slowed_message_goes_where_its_receiver_is_when_the_delay_is_over() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let alice = hub.join("alice@chorus").await;
    let called = hub.join_at("called@chorus", &worker.url).await;
    let inbox = hub.inbox(&called).await;
    for n in 1..=3 {
        hub.mail(&alice, &called, &turn(&alice.id, "again", "c", n)).await.expect(200);
    }
    // These wait half a second, one, two and four; meanwhile the recipient closes its inbox.
    let mut last = String::new();
    for n in 4..=7 {
        let reply = hub.mail(&alice, &called, &turn(&alice.id, "again", "c", n)).await.expect(202);
        last = trace(&reply);
    }
    drop(inbox);
    eventually(async || hub.state_of(&alice, &last).await == "delivered").await;
    let got = worker.got().pop().expect("a call").json();
    assert_eq!(got["envelope"]["turn_number"], 7);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_is_asked_for_in_circles_is_answered_at_once_and_given_out_later() {
    let hub = TestHub::serve(QUICK).await;
    let alice = hub.join("alice@chorus").await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let to = address(&hub, &worker.id).await;
    let ask = async || hub.mail_to(&alice, &to, &envelope(&alice.id, "again")).await;
    for _ in 0..3 {
        assert_eq!(ask().await.expect(200).at("/data").get("loop_guard"), None);
    }
    let started = Instant::now();
    let slowed = ask().await.expect(202);
    let job = slowed.header("rialto-job").expect("an id").to_owned();
    let data = json!({"delivery": "queued", "trace_id": job, "loop_guard": true});
    assert_eq!(slowed.at("/data"), data);
    let has_it = async || {
        let path = format!("/registry/agents/{}/jobs", worker.id);
        hub.get(&path, Some(&worker.key)).await.expect(200).text.contains(&job)
    };
    eventually(has_it).await;
    assert!(started.elapsed() >= LEAST, "it was delayed");
    // A refusal is not delayed: nothing is forwarded.
    let paint = wish(&alice, "again", json!({"skill": "paint"}));
    assert_no(&hub.mail_to(&alice, &to, &paint).await, "has no skill");
    hub.stop().await;
}
