//! What the edge layer checks and adds.

use super::kit::{BODY_LIMIT, Hub, get_more, get_request, patient, with};
use crate::telemetry::LogCapture;

fn assert_refused(answer: &str, status: u16, owner: &str) {
    assert_eq!(answer.split(' ').nth(1), Some(status.to_string().as_str()), "{answer}");
    assert!(answer.contains(&format!("{owner} says: ")), "{answer}");
    assert!(answer.contains("x-request-id: made-"), "{answer}");
}

#[tokio::test]
async fn every_answer_carries_the_id_of_its_request() {
    let hub = Hub::start(patient());
    let answer = hub.ask(&with("GET", "/about", "X-Request-Id: mine\r\n")).await;
    assert!(answer.contains("x-request-id: mine\r\n") && answer.ends_with("mine 0"), "{answer}");
    let answer = hub.ask(&with("GET", "/about", "X-Request-Id: not mine\r\n")).await;
    assert!(answer.contains("x-request-id: made-0\r\n"), "{answer}");
    let answer = hub.ask(&with("GET", "/nowhere", "")).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("x-request-id: made-1\r\n"), "{answer}");
    let answer = hub.ask(&with("DELETE", "/hello", "")).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.contains("x-request-id: made-2\r\n"), "{answer}");
}

#[tokio::test]
async fn a_well_formed_traceparent_is_handed_on() {
    let hub = Hub::start(patient());
    let trace = "traceparent: 00-000000000000000000000000000000ab-00000000000000cd-00\r\n";
    let answer = hub.ask(&with("GET", "/about", trace)).await;
    assert!(answer.ends_with(" ab"), "{answer}");
    let answer = hub.ask(&with("GET", "/about", "traceparent: 00-ab-cd-00\r\n")).await;
    assert!(answer.ends_with(" 0"), "{answer}");
}

#[tokio::test]
async fn a_hub_on_loopback_answers_only_to_its_names() {
    let hub = Hub::with(patient(), &[("http.allowed_hosts", "hub.test")]);
    for host in ["localhost:1", "127.0.0.1", "[::1]:7425", "hub.test:80"] {
        let answer = hub.ask(&with("GET", "/hello", &format!("Host: {host}\r\n"))).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
    }
    assert_refused(&hub.ask(&with("GET", "/hello", "Host: evil.test\r\n")).await, 421, "hello");
    let absolute = with("GET", "http://evil.test/hello", "Host: localhost\r\n");
    assert_refused(&hub.ask(&absolute).await, 421, "hello");
    assert_refused(&hub.ask("GET /hello HTTP/1.0\r\n\r\n").await, 421, "hello");
    let none = "GET /hello HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_refused(&hub.ask(none).await, 400, "hello");
    let two = with("GET", "/hello", "Host: localhost\r\nHost: evil.test\r\n");
    assert_refused(&hub.ask(&two).await, 400, "hello");
}

#[tokio::test]
async fn pages_of_strangers_may_read_what_is_public_and_nothing_else() {
    let hub = Hub::start(patient());
    let origin = "Origin: http://evil.test\r\n";
    for request in [with("GET", "/hello", origin), with("GET", "/hello", "Origin: null\r\n")] {
        let answer = hub.ask(&request).await;
        assert_refused(&answer, 403, "hello");
        assert!(!answer.contains("access-control"), "{answer}");
    }
    assert_refused(&hub.ask(&with("POST", "/open", origin)).await, 403, "open");
    let answer = hub.ask(&with("GET", "/open", origin)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: *\r\n"), "{answer}");
    let own = "Host: localhost:7425\r\nOrigin: http://localhost:7425\r\n";
    let answer = hub.ask(&with("GET", "/hello", own)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("access-control"), "{answer}");
}

#[tokio::test]
async fn a_page_on_another_loopback_port_is_a_stranger_unless_it_is_configured() {
    let page = "Host: 127.0.0.1:7425\r\nOrigin: http://127.0.0.1:3000\r\n";
    let hub = Hub::start(patient());
    assert_refused(&hub.ask(&with("GET", "/hello", page)).await, 403, "hello");
    let hub = Hub::with(patient(), &[("http.allowed_hosts", "127.0.0.1:3000")]);
    assert!(hub.ask(&with("GET", "/hello", page)).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn what_a_page_of_another_site_fetches_without_an_origin_is_refused_too() {
    let hub = Hub::start(patient());
    let from = |site: &str| format!("Sec-Fetch-Site: {site}\r\n");
    for site in ["cross-site", "same-site", "anything"] {
        assert_refused(&hub.ask(&with("GET", "/hello", &from(site))).await, 403, "hello");
        assert!(hub.ask(&with("GET", "/open", &from(site))).await.starts_with("HTTP/1.1 200"));
    }
    for site in ["same-origin", "none"] {
        let answer = hub.ask(&with("GET", "/hello", &from(site))).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{site}: {answer}");
    }
}

#[tokio::test]
async fn strangers_pages_may_send_what_is_signed_only_where_the_hub_is_published() {
    let flags = [("http.public_url", "https://hub.test"), ("http.allowed_hosts", "app.test")];
    let hub = Hub::with(patient(), &flags);
    let asking = "Access-Control-Request-Method: POST\r\n";
    for (host, origin, published) in [
        ("hub.test", "https://page.test", true),
        ("hub.test", "null", true),
        ("localhost:7425", "https://page.test", false),
        ("[::1]", "null", false),
        ("app.test", "https://page.test", false),
        // A configured origin.
        ("localhost:7425", "https://app.test", true),
    ] {
        let headers = format!("Host: {host}\r\nOrigin: {origin}\r\n");
        let posted = hub.ask(&with("POST", "/signed", &headers)).await;
        let asked = hub.ask(&with("OPTIONS", "/signed", &format!("{headers}{asking}"))).await;
        for (answer, status) in [(posted, "200"), (asked, "204")] {
            let status = if published { status } else { "403" };
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
            let shared = answer.contains("access-control-allow-origin: *\r\n");
            assert_eq!(shared, published, "{host}: {answer}");
        }
    }
}

#[tokio::test]
async fn browsers_that_ask_first_are_told_the_same() {
    let hub = Hub::start(patient());
    let asking =
        |method| format!("Origin: http://evil.test\r\nAccess-Control-Request-Method: {method}\r\n");
    let answer = hub.ask(&with("OPTIONS", "/open", &asking("GET"))).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: *\r\n"), "{answer}");
    assert!(answer.contains("access-control-allow-methods: GET\r\n"), "{answer}");
    assert!(!answer.contains("credentials"), "{answer}");
    let answer = hub.ask(&with("OPTIONS", "/open", &asking("POST"))).await;
    assert_refused(&answer, 403, "open");
    assert!(!answer.contains("access-control"), "{answer}");
    assert_refused(&hub.ask(&with("OPTIONS", "/hello", &asking("GET"))).await, 403, "hello");
}

#[tokio::test]
async fn bodies_are_taken_plain_and_within_the_limit_of_their_path() {
    let hub = Hub::start(patient());
    let gzip = with("POST", "/write", "Content-Encoding: gzip\r\nContent-Length: 0\r\n");
    assert_refused(&hub.ask(&gzip).await, 415, "write");
    let identity = with("POST", "/write", "Content-Encoding: Identity\r\nContent-Length: 0\r\n");
    assert!(hub.ask(&identity).await.starts_with("HTTP/1.1 200"));
    // The body is never sent: the refusal does not wait for it.
    let large = |length| with("POST", "/limited", &format!("Content-Length: {length}\r\n"));
    assert_refused(&hub.ask(&large(BODY_LIMIT + 1)).await, 413, "limited");
    let fits = large(BODY_LIMIT) + &"x".repeat(BODY_LIMIT);
    assert!(hub.ask(&fits).await.starts_with("HTTP/1.1 200"));
    // Larger than axum's own limit.
    let three = 3 << 20;
    let request = with("POST", "/write", &format!("Content-Length: {three}\r\n"));
    let answer = hub.ask(&(request + &"x".repeat(three))).await;
    assert!(answer.ends_with(&three.to_string()), "{answer}");
}

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_come_back() {
    let limits = [("limits.registrations_per_minute", "1"), ("limits.writes_per_minute", "2")];
    let hub = Hub::with(patient(), &limits);
    let post = |path, key| {
        with("POST", path, &format!("Authorization: Bearer {key}\r\nContent-Length: 0\r\n"))
    };
    assert!(hub.ask(&post("/register", "a")).await.starts_with("HTTP/1.1 200"));
    let answer = hub.ask(&post("/register", "b")).await;
    assert_refused(&answer, 429, "register");
    assert!(answer.contains("retry-after: 60\r\n"), "{answer}");
    for _ in 0..2 {
        assert!(hub.ask(&post("/write", "a")).await.starts_with("HTTP/1.1 200"));
    }
    let answer = hub.ask(&post("/write", "a")).await;
    assert_refused(&answer, 429, "write");
    assert!(answer.contains("retry-after: 30\r\n"), "{answer}");
    assert!(hub.ask(&post("/write", "b")).await.starts_with("HTTP/1.1 200"));
    hub.assert_well().await;
}

#[tokio::test]
async fn who_shows_wrong_keys_is_told_to_wait_and_who_has_a_good_one_is_not() {
    let hub = Hub::with(patient(), &[("limits.wrong_keys_per_minute", "2")]);
    let wrong = |path, n| {
        let key = format!("Authorization: Bearer wrong-{n}\r\nX-Refused: 1\r\n");
        with("POST", path, &(key + "Content-Length: 0\r\n"))
    };
    // A request without a key does not count as a guess.
    for _ in 0..5 {
        let answer = hub.ask(&with("POST", "/unread", "Content-Length: 0\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    for (n, path) in ["/unread", "/keyed"].into_iter().enumerate() {
        let answer = hub.ask(&wrong(path, n)).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    for path in ["/unread", "/keyed"] {
        let answer = hub.ask(&wrong(path, 9)).await;
        assert_refused(&answer, 429, &path[1..]);
        assert!(answer.contains("retry-after: 30\r\n"), "{answer}");
    }
    for path in ["/write", "/keyed"] {
        let good = "Authorization: Bearer good\r\nContent-Length: 0\r\n";
        let answer = hub.ask(&with("POST", path, good)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let mut elsewhere = hub.connect_from(2).await.expect("another address");
    elsewhere.send(&wrong("/unread", 0)).await;
    assert!(elsewhere.rest().await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn a_mistake_of_ours_is_an_answer_and_harms_nothing_else() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&get_more("/panic")).await;
    let answer = client.until("request id").await;
    assert_refused(&answer, 500, "panic");
    client.send(&get_request("/hello")).await;
    assert!(client.rest().await.ends_with("hello"));
}

#[tokio::test]
async fn requests_are_counted_by_template_and_never_by_what_callers_made_up() {
    let hub = Hub::start(patient());
    for path in ["/agents/secret-1?key=secret-2", "/agents/secret-3", "/secret-4"] {
        hub.ask(&with("GET", path, "")).await;
    }
    hub.ask(&with("SECRET", "/hello", "")).await;
    let text = hub.metrics.encode();
    for line in [
        "rialto_http_requests_total{method=\"GET\",route=\"/agents/{id}\",status=\"200\"} 2",
        "rialto_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1",
        "rialto_http_requests_total{method=\"OTHER\",route=\"/hello\",status=\"405\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.to_lowercase().contains("secret"), "{text}");
}

#[tokio::test]
async fn a_request_leaves_one_line_that_tells_nothing_of_its_caller() {
    let hub = Hub::start(patient());
    let (page, _open) = LogCapture::json("warn,rialto=debug");
    let headers = "X-Request-Id: r-1\r\nAuthorization: Bearer secret-1\r\nContent-Length: 8\r\n";
    let request = with("POST", "/write?key=secret-2", headers);
    assert!(hub.ask(&(request + "secret-3")).await.starts_with("HTTP/1.1 200"));
    hub.ask(&with("GET", "/agents/secret-4", "X-Request-Id: r-2\r\n")).await;
    let text = page.text();
    assert!(!text.contains("secret"), "{text}");
    let lines: Vec<_> = text.lines().filter(|line| line.contains("rialto::access")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for part in ["\"method\":\"POST\"", "\"route\":\"/write\"", "\"status\":200", "\"micros\":"] {
        assert!(lines[0].contains(part), "{part} is not in {text}");
    }
    assert!(lines[0].contains("\"request_id\":\"r-1\""), "{text}");
    assert!(lines[1].contains("\"route\":\"/agents/{id}\""), "{text}");
}

#[tokio::test]
async fn the_lines_of_a_handler_name_its_request_and_its_trace() {
    let hub = Hub::start(patient());
    let (page, _open) = LogCapture::json("error");
    let headers = "X-Request-Id: r-1\r\n\
                   traceparent: 00-000000000000000000000000000000ab-00000000000000cd-00\r\n";
    hub.ask(&with("GET", "/panic", headers)).await;
    let text = page.text();
    let panicked = text.lines().find(|line| line.contains("handler panicked"));
    let panicked = panicked.expect("it is logged");
    assert!(panicked.contains("\"request_id\":\"r-1\""), "{text}");
    assert!(panicked.contains("\"what\":\"a mistake\""), "{text}");
    let logged = text.lines().find(|line| line.contains("about to panic")).expect("it is logged");
    assert!(logged.contains("\"request_id\":\"r-1\""), "{text}");
    assert!(logged.contains("\"trace_id\":\"000000000000000000000000000000ab\""), "{text}");
}
