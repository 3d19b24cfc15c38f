use crate::CallError;
use crate::relay::{Inbox, InboxOptions, Key, Message, Server};
use crate::testing::{RecordedRequest, TestServer, failure, in_time, stream, success};

const CONNECTED: &str =
    "retry: 1\nid: 41\nevent: connected\ndata: {\"agent_id\":\"me@chorus\"}\n\n";

fn message(id: u64) -> String {
    let data = format!(
        r#"{{"trace_id":"t-{id}","sender_id":"a@b","envelope":{{"original_text":"{id}"}}}}"#
    );
    format!("id: {id}\nevent: message\ndata: {data}\n\n")
}

async fn open(stage: &TestServer, how: InboxOptions) -> Result<Inbox, CallError> {
    let server = Server::discover(&stage.url).await.expect("a server");
    server.with_key(Key::new("ca_1")).inbox(how).await
}

async fn stage(connection: impl Fn(usize) -> Vec<u8> + Send + 'static) -> TestServer {
    TestServer::plain(move |heard, number| match heard.target.split('?').next() {
        Some("/agent/inbox") => connection(number),
        Some("/agent/inbox/ack") => success(r#"{"acked_to":42,"pending":2}"#),
        other => panic!("{other:?}"),
    })
    .await
}

async fn next(inbox: &mut Inbox) -> Message {
    in_time(inbox.next()).await.expect("open").expect("a message")
}

fn resumed(heard: &[RecordedRequest]) -> Vec<Option<&str>> {
    let inbox = |heard: &&RecordedRequest| {
        heard.target.starts_with("/agent/inbox") && heard.method == "GET"
    };
    heard.iter().filter(inbox).map(|heard| heard.header("last-event-id")).collect()
}

#[tokio::test]
async fn a_cut_in_the_middle_of_an_event_loses_and_repeats_nothing() {
    let stage = stage(|number| match number {
        0 => {
            let (whole, cut) = (message(42), message(43));
            stream(&[CONNECTED, &whole, &cut[..cut.len() / 2]].concat())
        }
        // The server repeats messages of which it does not know that they arrived.
        1 => stream(&[CONNECTED, &message(42), &message(43), &message(43), &message(44)].concat()),
        _ => stream(&[CONNECTED, &message(45)].concat()),
    });
    let stage = stage.await;
    let mut inbox = open(&stage, InboxOptions::default()).await.expect("an inbox");
    for wanted in 42..=45 {
        let message = next(&mut inbox).await;
        assert_eq!(message.position, Some(wanted));
        assert_eq!(message.contents.original_text, wanted.to_string());
    }
    let heard = stage.heard();
    assert_eq!(resumed(&heard)[..3], [None, Some("42"), Some("44")]);
    assert_eq!(heard[0].header("authorization"), Some("Bearer ca_1"));
    assert_eq!(heard[0].target, "/agent/inbox");
}

#[tokio::test]
async fn a_cut_before_the_first_message_resumes_where_the_connection_began() {
    let stage = stage(|number| match number {
        0 => stream(CONNECTED),
        _ => stream(&[CONNECTED, &message(42)].concat()),
    });
    let stage = stage.await;
    let mut inbox = open(&stage, InboxOptions::default()).await.expect("an inbox");
    assert_eq!(next(&mut inbox).await.position, Some(42));
    assert_eq!(resumed(&stage.heard())[..2], [None, Some("41")]);
}

#[tokio::test]
async fn an_explicit_reader_acknowledges_nothing_by_coming_back() {
    let stage = stage(|number| match number {
        0 => stream(&[CONNECTED, &message(42), &message(43)].concat()),
        1 => stream(&[CONNECTED, &message(42), &message(43), &message(44)].concat()),
        _ => stream(&[CONNECTED, &message(45)].concat()),
    });
    let stage = stage.await;
    let how = InboxOptions { explicit_ack: true, after: None };
    let mut inbox = open(&stage, how).await.expect("an inbox");
    for wanted in [42, 43, 44] {
        assert_eq!(next(&mut inbox).await.position, Some(wanted));
    }
    assert_eq!(inbox.ack(42).await.expect("acked").pending, 2);
    assert_eq!(next(&mut inbox).await.position, Some(45));
    let heard = stage.heard();
    assert_eq!(heard[0].target, "/agent/inbox?ack=explicit");
    assert_eq!(resumed(&heard)[..3], [None, Some("41"), Some("42")]);
}

#[tokio::test]
async fn a_reader_may_start_wherever_it_likes() {
    let stage = stage(|_| stream(&[message(3), message(4)].concat())).await;
    let how = InboxOptions { after: Some(3), explicit_ack: false };
    let mut inbox = open(&stage, how).await.expect("an inbox");
    assert_eq!(next(&mut inbox).await.position, Some(4));
    assert_eq!(resumed(&stage.heard())[0], Some("3"));
}

#[tokio::test]
async fn servers_that_do_not_count_are_listened_to_all_the_same() {
    let event = "event: message\ndata: {\"sender_id\":\"a@b\",\"envelope\":{}}\n\n";
    let stage = stage(move |_| stream(&[event, event].concat())).await;
    let mut inbox = open(&stage, InboxOptions::default()).await.expect("an inbox");
    for _ in 0..2 {
        assert_eq!(next(&mut inbox).await.position, None);
    }
}

#[tokio::test]
async fn a_revoked_key_ends_the_inbox() {
    let stage = stage(|number| match number {
        0 => stream(&[CONNECTED, &message(42)].concat()),
        // Temporary errors are retried.
        1 => failure(503, "ERR_UNAVAILABLE", ""),
        2 => failure(429, "ERR_RATE_LIMITED", ""),
        _ => failure(401, "ERR_UNAUTHORIZED", ""),
    });
    let stage = stage.await;
    let mut inbox = open(&stage, InboxOptions::default()).await.expect("an inbox");
    assert_eq!(next(&mut inbox).await.position, Some(42));
    let end = inbox.next().await.expect("the reason").expect_err("an error");
    assert!(matches!(end, CallError::Refused { status: 401, .. }), "{end}");
    assert!(inbox.next().await.is_none());
    assert_eq!(stage.heard().len(), 4);
    let error = open(&stage, InboxOptions::default()).await.expect_err("no key");
    assert!(matches!(error, CallError::Refused { status: 401, .. }));
}

#[tokio::test]
async fn one_bad_message_does_not_hide_the_next() {
    let bad = "id: 42\nevent: message\ndata: nonsense\n\n";
    let stage = stage(move |_| stream(&[CONNECTED, bad, &message(43)].concat())).await;
    let mut inbox = open(&stage, InboxOptions::default()).await.expect("an inbox");
    let error = inbox.next().await.expect("open").expect_err("nonsense");
    assert!(matches!(error, CallError::Unreadable(_)));
    assert_eq!(next(&mut inbox).await.position, Some(43));
}

#[tokio::test]
async fn an_event_without_end_ends_the_inbox() {
    let stage = stage(|_| stream(&format!("data: {}", "x".repeat(300_000)))).await;
    let mut inbox = open(&stage, InboxOptions::default()).await.expect("an inbox");
    let error = inbox.next().await.expect("the reason").expect_err("too long");
    assert!(matches!(error, CallError::Unreadable(_)), "{error}");
    assert!(inbox.next().await.is_none());
}
