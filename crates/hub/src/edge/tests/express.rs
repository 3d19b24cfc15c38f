//! The fast path checks, counts and answers like the normal path.

use super::kit::{BODY_LIMIT, Hub, patient, with};

fn post(headers: &str, body: &str) -> String {
    let length = format!("Content-Length: {}\r\n{headers}", body.len());
    with("POST", "/express", &length) + body
}

#[tokio::test]
async fn a_request_is_answered_with_its_id_and_counted_under_its_route() {
    let hub = Hub::start(patient());
    let answer = hub.ask(&post("X-Request-Id: r-1\r\n", "1234")).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("express 4"), "{answer}");
    assert!(answer.contains("x-request-id: r-1"), "{answer}");
    let counted = hub.metrics.encode();
    let line = "rialto_http_requests_total{method=\"POST\",route=\"/express\",status=\"200\"} 1";
    assert!(counted.contains(line), "{counted}");
}

#[tokio::test]
async fn what_is_out_of_the_ordinary_takes_the_main_door() {
    let hub = Hub::start(patient());
    for headers in [
        "X-Slow: 1\r\n",
        "Expect: something\r\n",
        "traceparent: 00-00000000000000000000000000000001-0000000000000001-00\r\n",
    ] {
        let answer = hub.ask(&post(headers, "1234")).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n4"), "{answer}");
    }
    let chunked =
        with("POST", "/express", "Transfer-Encoding: chunked\r\n") + "2\r\nab\r\n0\r\n\r\n";
    let answer = hub.ask(&chunked).await;
    assert!(answer.ends_with("\r\n\r\n2"), "{answer}");
    let read = hub.ask(&with("GET", "/express", "")).await;
    assert!(read.starts_with("HTTP/1.1 405"), "{read}");
}

#[tokio::test]
async fn it_refuses_what_the_main_door_refuses() {
    let hub = Hub::with(patient(), &[("limits.writes_per_minute", "1")]);
    let large = "x".repeat(BODY_LIMIT + 1);
    assert!(hub.ask(&post("", &large)).await.starts_with("HTTP/1.1 413"));
    let encoded = hub.ask(&post("Content-Encoding: gzip\r\n", "x")).await;
    assert!(encoded.starts_with("HTTP/1.1 415"), "{encoded}");
    let foreign = hub.ask(&post("Origin: https://elsewhere.example\r\n", "x")).await;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    // None of those was counted; the first valid request uses up the limit of this minute.
    assert!(hub.ask(&post("", "x")).await.starts_with("HTTP/1.1 200"));
    let again = hub.ask(&post("", "x")).await;
    assert!(again.starts_with("HTTP/1.1 429") && again.contains("retry-after:"), "{again}");
}

#[tokio::test]
async fn a_handler_that_panics_is_the_hubs_mistake_and_nobody_elses() {
    let hub = Hub::start(patient());
    let broken = hub.ask(&post("X-Panic: 1\r\n", "x")).await;
    assert!(broken.starts_with("HTTP/1.1 500") && broken.contains("x-request-id"), "{broken}");
    assert!(hub.ask(&post("", "x")).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_body_that_comes_in_pieces_is_put_together() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&with("POST", "/express", "Content-Length: 9\r\nConnection: close\r\n")).await;
    for piece in ["abc", "def", "ghi"] {
        client.send(piece).await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(client.rest().await.ends_with("express 9"));
}

#[tokio::test]
async fn whoever_is_refused_for_its_key_is_told_before_its_body_comes() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&with("POST", "/express", "X-Refused: 1\r\nContent-Length: 9\r\n")).await;
    assert!(client.rest().await.starts_with("HTTP/1.1 401"));
}
