//! Hostile clients, and other clients that must not be affected (T43, T45, T49).

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::kit::{BODY_LIMIT, Form, Hub, SHORT, get_more, get_request, patient};
use crate::edge::Settings;

#[tokio::test]
async fn a_silent_connection_is_ended() {
    let hub = Hub::start(Settings { header_timeout: SHORT, ..patient() });
    let mut silent = hub.connect().await;
    assert_eq!(silent.rest().await, "");
    hub.until_open(0).await;
    hub.assert_well().await;
}

#[tokio::test]
async fn a_request_head_sent_byte_by_byte_is_cut_off_and_others_are_served() {
    let hub = Hub::start(Settings { header_timeout: SHORT, ..patient() });
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut client = hub.connect().await;
        slow.push(tokio::spawn(async move {
            for byte in get_more("/hello").into_bytes().into_iter().cycle() {
                // The request repeats without end, so only the hub can end it.
                if byte != b'\r' && client.0.write_all(&[byte]).await.is_err() {
                    break;
                }
                sleep(SHORT / 15).await;
            }
        }));
    }
    hub.assert_well().await;
    for client in slow {
        client.await.expect("the hub ends it");
    }
    hub.assert_well().await;
    hub.until_open(0).await;
}

#[tokio::test]
async fn a_second_head_is_timed_from_its_first_byte() {
    let hub = Hub::start(Settings { header_timeout: SHORT, ..patient() });
    let mut client = hub.connect().await;
    client.send(&get_more("/hello")).await;
    client.until("hello").await;
    client.send("GET /he").await;
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn heads_without_measure_are_refused() {
    let hub = Hub::start(patient());
    let long = "x".repeat(40 << 10);
    let many: String = (0..100_000).map(|n| format!("h{n}: v\r\n")).collect();
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), "431"),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), "431"),
        (format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", long.repeat(2)), "4"),
        ("\0\0\0\0\r\n\r\n".to_owned(), "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), ""),
    ] {
        let mut client = hub.connect().await;
        // The hub need not read all of it.
        let _ = client.0.write_all(request.as_bytes()).await;
        let answer = client.rest().await;
        let expected = format!("HTTP/1.1 {status}");
        assert!(status.is_empty() || answer.starts_with(&expected), "{expected}: {answer}");
    }
    hub.assert_well().await;
    hub.until_open(0).await;
}

#[tokio::test]
async fn a_stalled_reader_is_disconnected_and_others_are_served() {
    let hub = Hub::start(Settings { stall_timeout: SHORT, ..patient() });
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut client = hub.connect().await;
        client.send(&get_more("/flood")).await;
        stalled.push(client);
    }
    hub.assert_well().await;
    hub.until_open(0).await;
    hub.assert_well().await;
}

#[tokio::test]
async fn a_stream_whose_reader_is_gone_is_ended() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&get_more("/events")).await;
    client.until("data: first\n\n\r\n").await;
    hub.until_open(1).await;
    drop(client);
    hub.until_open(0).await;
}

#[tokio::test]
async fn a_body_with_two_lengths_is_refused_in_any_order() {
    let hub = Hub::start(patient());
    let (one, other) = ("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n");
    for lengths in [[one, other], [other, one]] {
        let request = format!(
            "POST /write HTTP/1.1\r\nHost: localhost\r\n{}\r\n0\r\n\r\nGET /hello HTTP/1.1\r\n",
            lengths.concat()
        );
        let answer = hub.ask(&request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("write says: ") && answer.contains("both"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }
    for lengths in ["Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: +5\r\n"] {
        let answer =
            hub.ask(&format!("POST /write HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
}

#[tokio::test]
async fn the_doubt_about_one_request_does_not_cling_to_the_next() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    let head = "POST /write HTTP/1.1\r\nHost: localhost\r\n";
    client.send(&format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")).await;
    assert!(client.until("\r\n\r\n2").await.starts_with("HTTP/1.1 200"));
    client.send(&format!("{head}Content-Length: 3\r\nConnection: close\r\n\r\nabc")).await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with('3'), "{answer}");
}

#[tokio::test]
async fn a_caller_still_sending_gets_to_read_why_he_was_refused() {
    let hub = Hub::start(patient());
    let body = "x".repeat(4 << 20);
    for (path, status) in [("/limited", "413"), ("/unread", "401")] {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        let mut client = hub.connect().await;
        client.send(&head).await;
        client.send(&body).await;
        let answer = client.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    hub.until_open(0).await;
}

#[tokio::test]
async fn after_a_refusal_the_next_request_is_answered_or_the_close_was_announced() {
    let hub = Hub::with(patient(), &[("limits.wrong_keys_per_minute", "1")]);
    let wrong_key = "Authorization: Bearer wrong\r\n";
    let refusals: &[(&str, &str, &[&str])] = &[
        ("/unread", "", &["401"]),
        ("/unread", wrong_key, &["401", "429"]),
        ("/keyed", "X-Refused: 1\r\n", &["401", "413"]),
        ("/nowhere", "", &["404"]),
        ("/hello", "", &["405"]),
        ("/write", "Origin: null\r\n", &["403"]),
        ("/write", "Host: evil.test\r\n", &["421"]),
        ("/write", "Content-Encoding: gzip\r\n", &["415"]),
        ("/limited", "", &["413"]),
    ];
    let mut kept = 0;
    for length in [BODY_LIMIT + 1, 40_000, 65_537, 4 << 20] {
        for (path, headers, statuses) in refusals {
            for form in [Form::Whole, Form::Chunked, Form::AfterTheHead] {
                let mut client = hub.connect().await;
                client.send_body(path, headers, length, form).await;
                let answer = client.until("\r\n\r\n").await;
                let case = format!("{path} {headers:?} {length} {form:?}: {answer}");
                assert!(statuses.contains(&answer.get(9..12).unwrap_or_default()), "{case}");
                if answer.contains("connection: close\r\n") {
                    continue;
                }
                assert!(length < 65_537, "{case}");
                kept += 1;
                client.send(&get_more("/health")).await;
                assert!(client.until("well").await.contains("HTTP/1.1 200"), "{case}");
            }
        }
    }
    assert!(
        kept > 0,
        "a short body is drained before the refusal, so that the connection can be reused"
    );
}

#[tokio::test]
async fn a_refused_caller_that_waits_for_a_go_ahead_is_told_of_the_close_and_sends_nothing() {
    let hub = Hub::start(patient());
    let head = "POST /unread HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
                Content-Length: 5\r\n\r\n";
    let answer = hub.ask(head).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "no go-ahead: {answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn a_refusal_does_not_wait_long_for_a_body_that_does_not_come() {
    let hub = Hub::start(patient());
    let head = "POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab";
    let answer = hub.ask(head).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn a_client_that_keeps_sending_after_a_refusal_is_disconnected() {
    let hub = Hub::start(Settings { linger_timeout: SHORT, ..patient() });
    let mut client = hub.connect().await;
    let head = "POST /limited HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n";
    client.send(head).await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("connection: close"), "not to be used again: {answer}");
    hub.until_open(0).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let hub = Hub::with(patient(), &[("http.body_timeout", "150ms")]);
    let request = "POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab";
    let answer = hub.ask(request).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("write says"), "{answer}");
    assert!(answer.contains("connection: close"), "not to be used again: {answer}");
    hub.until_open(0).await;
}

#[tokio::test]
async fn a_body_that_drips_is_given_up_at_both_doors_long_before_its_time_is_over() {
    let flags = [
        ("http.body_timeout", "1h"),
        ("http.body_grace", "150ms"),
        ("http.min_body_bytes_per_second", "1000000"),
    ];
    let hub = Hub::with(patient(), &flags);
    for (path, says) in [("/write", "write says"), ("/keyed", "keyed says")] {
        let mut client = hub.connect().await;
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n");
        client.send(&head).await;
        let (mut reads, mut writes) = client.0.into_split();
        let dripping = tokio::spawn(async move {
            while writes.write_all(b"x").await.is_ok() {
                sleep(SHORT / 100).await;
            }
        });
        let mut answer = Vec::new();
        let _ = reads.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains(says), "{answer}");
        dripping.abort();
    }
}

#[tokio::test]
async fn a_body_without_a_stated_length_is_measured_while_it_comes() {
    let hub = Hub::start(patient());
    let chunk = format!("64\r\n{}\r\n", "x".repeat(100));
    let head = "POST /limited HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let fits = chunk.repeat(BODY_LIMIT / 100);
    let answer = hub.ask(&format!("{head}{fits}0\r\n\r\n")).await;
    assert!(answer.ends_with(&BODY_LIMIT.to_string()), "{answer}");
    let answer = hub.ask(&format!("{head}{fits}1\r\nx\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("limited says"), "{answer}");
}

#[tokio::test]
async fn a_body_cut_short_or_badly_chunked_is_no_body() {
    let hub = Hub::start(patient());
    let head = "POST /write HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = hub.ask(&format!("{head}zz\r\nab\r\n0\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("write says"), "{answer}");
    let mut cut = hub.connect().await;
    cut.send(&format!("{head}5\r\nab")).await;
    drop(cut);
    hub.until_open(0).await;
    hub.ask(&get_request("/hello")).await;
}
