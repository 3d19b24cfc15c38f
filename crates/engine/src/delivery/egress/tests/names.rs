//! Hostile names: answers that change, answers that mix, and plain http.

use super::server::{Does, Server};
use super::*;

const OK_CLOSE: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Only 127.0.0.1 is allowed here; 127.0.0.2 leads to the same servers and is forbidden.
fn with_names(names: &Arc<Names>) -> Egress {
    let names: Arc<dyn Resolve> = Arc::clone(names) as _;
    Egress::with_resolver(settings(&["127.0.0.1/32"], LONG), names).expect("good settings")
}

#[tokio::test]
async fn a_name_that_turns_to_a_forbidden_address_is_refused_from_then_on() {
    let server = Server::start(Does::Reply(OK_CLOSE)).await;
    let names = Names::answering(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let (egress, url) = (with_names(&names), server.url("http", "agent.example"));
    assert!(post(&egress, &url).await.is_ok());
    for _ in 0..2 {
        let refused = post(&egress, &url).await;
        assert_eq!(refused, Err(SendError::Blocked(TargetError::ResolvesToPrivate)));
    }
    assert_eq!((server.hits(), names.asked()), (1, 3));
}

#[tokio::test]
async fn one_forbidden_answer_among_good_ones_refuses_them_all() {
    let server = Server::start(Does::Reply(OK)).await;
    for answer in [
        ["127.0.0.1", "127.0.0.2"],
        ["127.0.0.2", "127.0.0.1"],
        ["93.184.216.34", "10.0.0.1"],
        ["127.0.0.1", "169.254.169.254"],
        ["127.0.0.1", "::1"],
        ["127.0.0.1", "::ffff:127.0.0.2"],
        ["2606:4700::1111", "64:ff9b::7f00:1"],
    ] {
        for scheme in ["http", "https"] {
            let egress = with_names(&Names::answering(&[&answer]));
            let refused = post(&egress, &server.url(scheme, "agent.example")).await;
            let refused = refused.expect_err("a forbidden answer");
            assert!(matches!(refused, SendError::Blocked(_)), "{answer:?} {refused:?}");
        }
    }
    assert_eq!(server.hits(), 0);
}

#[tokio::test]
async fn a_forbidden_address_cannot_hide_behind_many_good_ones() {
    let server = Server::start(Does::Reply(OK)).await;
    let mut answer = vec!["127.0.0.1"; 1_000];
    let egress = with_names(&Names::answering(&[&answer]));
    assert!(post(&egress, &server.url("http", "agent.example")).await.is_ok());
    answer.push("127.0.0.2");
    let egress = with_names(&Names::answering(&[&answer]));
    let refused = post(&egress, &server.url("http", "agent.example")).await;
    assert_eq!(refused, Err(SendError::Blocked(TargetError::ResolvesToPrivate)));
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn plain_http_goes_to_listed_networks_only_even_by_name() {
    let names = Names::answering(&[&["93.184.216.34"]]);
    let refused = post(&with_names(&names), "http://agent.example/").await;
    assert_eq!(refused, Err(SendError::Blocked(TargetError::PlainHttp)));
    // A mix of allowed and public addresses is not allowed for plain http.
    let mixed = Names::answering(&[&["127.0.0.1", "93.184.216.34"]]);
    let refused = post(&with_names(&mixed), "http://agent.example/").await;
    assert_eq!(refused, Err(SendError::Blocked(TargetError::PlainHttp)));
    // If no network is allowed, the name is not even looked up.
    let egress = Egress::with_resolver(settings(&[], LONG), Arc::clone(&names) as _);
    let refused = post(&egress.expect("good settings"), "http://agent.example/").await;
    assert_eq!(refused, Err(SendError::Blocked(TargetError::PlainHttp)));
    assert_eq!(names.asked(), 1);
}

#[tokio::test]
async fn calls_in_a_row_share_a_connection_which_keeps_its_checked_address() {
    let server = Server::start(Does::ReplyAndKeep(OK)).await;
    let names = Names::answering(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let (egress, url) = (with_names(&names), server.url("http", "agent.example"));
    for _ in 0..3 {
        assert!(post(&egress, &url).await.is_ok());
    }
    assert_eq!((server.hits(), server.requests().len(), names.asked()), (1, 3, 1));
    // https does not share that connection: its own is resolved and refused.
    let refused = post(&egress, &server.url("https", "agent.example")).await;
    assert_eq!(refused, Err(SendError::Blocked(TargetError::ResolvesToPrivate)));
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn localhost_is_this_machine_and_dns_is_not_asked_about_it() {
    let server = Server::start(Does::Reply(OK_CLOSE)).await;
    let names = Names::answering(&[&["93.184.216.34"]]);
    let egress = with_names(&names);
    for host in ["localhost", "LOCALHOST", "localhost.", "agent.localhost"] {
        assert!(post(&egress, &server.url("http", host)).await.is_ok(), "{host}");
    }
    assert_eq!((server.hits(), names.asked()), (4, 0));
}
