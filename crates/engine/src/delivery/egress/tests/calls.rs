//! Calls to real listeners: which server is reached, with what, and how much of the response is
//! read.

use super::server::{Does, Server};
use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn an_endpoint_on_loopback_is_not_called_unless_the_operator_allowed_it() {
    let server = Server::start(Does::Reply(OK)).await;
    let closed = egress(&[], LONG);
    for scheme in ["http", "https"] {
        for host in ["127.0.0.1", "localhost", "2130706433", "0", "[::ffff:127.0.0.1]", "[::1]"] {
            let refused = post(&closed, &server.url(scheme, host)).await;
            assert_eq!(
                refused,
                Err(SendError::Blocked(TargetError::PrivateAddress)),
                "{scheme} {host}"
            );
        }
    }
    assert_eq!(server.hits(), 0);

    let answer = post(&egress(&["127.0.0.0/8"], LONG), &server.url("http", "127.0.0.1")).await;
    assert_eq!(answer, Ok(HttpResponse { status: 200, body: Bytes::from_static(b"ok") }));
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn a_request_arrives_as_it_was_given() {
    let server = Server::start(Does::Reply(OK)).await;
    let headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), "msg_1".to_owned()),
    ];
    let url = format!("{}#fragment", server.url("http", "127.0.0.1"));
    let egress = egress(&["127.0.0.0/8"], LONG);
    let answer = egress.post(&url, headers, Bytes::from_static(b"{}"), 1_000).await;
    assert!(answer.is_ok());
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{request}");
    for line in ["content-type: application/json", "webhook-id: msg_1", "content-length: 2"] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{request}");
    }
    assert!(!request.to_lowercase().contains("accept-encoding"), "{request}");
}

#[tokio::test]
async fn headers_that_cannot_be_sent_stop_the_call_before_it_starts() {
    let server = Server::start(Does::Reply(OK)).await;
    let egress = egress(&["127.0.0.0/8"], LONG);
    for (name, value) in [("x-note", "a\r\nx-evil: 1"), ("host", "internal"), ("x y", "1")] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let url = server.url("http", "127.0.0.1");
        let refused = egress.post(&url, headers, Bytes::from_static(b"{}"), 1_000).await;
        assert_eq!(refused, Err(SendError::Blocked(TargetError::InvalidHeader)));
    }
    assert_eq!(server.hits(), 0);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let server = Server::start(Does::Reply(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
    ))
    .await;
    let url = server.url("http", "127.0.0.1");
    let answer = post(&egress(&["127.0.0.0/8"], LONG), &url).await;
    assert_eq!(answer, Ok(HttpResponse { status: 307, body: Bytes::new() }));
    assert_eq!((server.hits(), server.requests().len()), (1, 1));
}

#[tokio::test]
async fn an_answer_is_read_up_to_the_limit_and_not_a_byte_further() {
    let server = Server::start(Does::Reply(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    ))
    .await;
    let (egress, url) = (egress(&["127.0.0.0/8"], LONG), server.url("http", "127.0.0.1"));
    let with_limit = |limit| egress.post(&url, Vec::new(), Bytes::from_static(b"{}"), limit);
    assert_eq!(with_limit(5).await.map(|a| a.body), Ok(Bytes::from_static(b"abcde")));
    for limit in [4, 3, 0] {
        let broken = with_limit(limit).await;
        assert!(matches!(broken, Err(SendError::InvalidResponse(_))), "{limit} {broken:?}");
    }
}

#[tokio::test]
async fn an_answer_that_announces_too_much_or_never_ends_is_dropped() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for does in [
        Does::Reply("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n"),
        Does::Reply("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n"),
        Does::ReplyAndRepeat(chunked, "5\r\nabcde\r\n", Duration::ZERO),
        Does::ReplyAndRepeat("HTTP/1.1 200 OK\r\n\r\n", "abcde", Duration::ZERO),
        Does::ReplyAndRepeat("HTTP/1.1 200 OK\r\n", "x-more: abcde\r\n", Duration::ZERO),
    ] {
        let server = Server::start(does).await;
        let broken = post(&egress(&["127.0.0.0/8"], LONG), &server.url("http", "127.0.0.1")).await;
        assert!(matches!(broken, Err(SendError::InvalidResponse(_))), "{broken:?}");
    }
}

#[tokio::test]
async fn no_more_calls_than_the_cap_reach_one_host_at_the_same_time() {
    let server = Server::start(Does::Hang).await;
    let egress = Arc::new(egress(&["127.0.0.0/8"], LONG));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (egress, url) = (Arc::clone(&egress), server.url("http", "127.0.0.1"));
        calls.spawn(async move { post(&egress, &url).await });
    }
    while server.requests().len() < 4 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(SHORT).await;
    assert_eq!((server.hits(), server.requests().len()), (4, 4));
    // Cancelled calls release their permits to waiting ones.
    drop(calls);
    tokio::task::yield_now().await;
    let (egress, url) = (Arc::clone(&egress), server.url("http", "127.0.0.1"));
    let next = tokio::spawn(async move { post(&egress, &url).await });
    while server.requests().len() < 5 {
        tokio::task::yield_now().await;
    }
    next.abort();
}
