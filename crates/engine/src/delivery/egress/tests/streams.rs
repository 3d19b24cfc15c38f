//! GET, and responses that are read while they arrive.

use super::server::{Does, Server};
use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n";
/// The time between two chunks of a stream that stays alive.
const PAUSE: Duration = Duration::from_millis(20);

fn request(method: Method, url: &str) -> HttpRequest<'_> {
    let headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
    HttpRequest { method, url, headers, body: Bytes::from_static(b"{}") }
}

fn endless(idle_timeout: Duration) -> ResponseLimits {
    ResponseLimits { bytes_max: usize::MAX, head_timeout: LONG, idle_timeout, whole_timeout: None }
}

async fn error_of(opened: Result<StreamingResponse, SendError>) -> SendError {
    match opened {
        Ok(mut stream) => loop {
            match stream.next_chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the stream ended without an error"),
                Err(error) => return error,
            }
        },
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_get_carries_its_headers_and_no_body() {
    let server = Server::start(Does::Reply(OK)).await;
    let headers = vec![("accept".to_owned(), "application/json".to_owned())];
    let url = server.url("http", "127.0.0.1");
    let answer = egress(&["127.0.0.0/8"], LONG).get(&url, headers, 2, LONG).await;
    assert_eq!(answer, Ok(HttpResponse { status: 200, body: Bytes::from_static(b"ok") }));
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /hook?x=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\naccept: application/json\r\n"), "{request}");
    assert!(!request.contains("content-length"), "{request}");
}

#[tokio::test]
async fn a_get_is_bounded_in_size_and_time() {
    let server = Server::start(Does::Reply(OK)).await;
    let (egress, url) = (egress(&["127.0.0.0/8"], LONG), server.url("http", "127.0.0.1"));
    let large = egress.get(&url, Vec::new(), 1, LONG).await;
    let why = "the response is larger than 1 bytes".to_owned();
    assert_eq!(large, Err(SendError::InvalidResponse(why)));

    let drip = Does::ReplyAndRepeat("HTTP/1.1 200 OK\r\n\r\n", "x", PAUSE);
    for does in [Does::Hang, drip] {
        let server = Server::start(does).await;
        let url = server.url("http", "127.0.0.1");
        let late = egress.get(&url, Vec::new(), 1_000_000, SHORT).await;
        assert_eq!(late, Err(SendError::TimedOut));
    }
}

#[tokio::test]
async fn every_kind_of_call_passes_the_same_guard() {
    let server = Server::start(Does::Reply(OK)).await;
    let names = Names::answering(&[&["93.184.216.34", "127.0.0.1"]]);
    let closed = Egress::with_resolver(settings(&[], LONG), names).expect("good settings");
    for (host, error) in [
        ("127.0.0.1", TargetError::PrivateAddress),
        ("[::ffff:7f00:1]", TargetError::PrivateAddress),
        ("agent.example", TargetError::ResolvesToPrivate),
    ] {
        let url = server.url("https", host);
        let blocked = SendError::Blocked(error);
        assert_eq!(closed.get(&url, Vec::new(), 10, LONG).await, Err(blocked.clone()));
        for method in [Method::Get, Method::Post] {
            let opened = closed.open(request(method, &url), endless(LONG), None).await;
            assert_eq!(error_of(opened).await, blocked, "{host}");
        }
        assert_eq!(closed.check_addresses(&url).await, Err(blocked));
    }
    let mut smuggled = request(Method::Get, "https://agent.example/");
    smuggled.headers.push(("host".to_owned(), "internal".to_owned()));
    let refused = closed.open(smuggled, endless(LONG), None).await;
    assert_eq!(error_of(refused).await, SendError::Blocked(TargetError::InvalidHeader));
    assert_eq!(server.hits(), 0);
}

#[tokio::test]
async fn the_addresses_of_a_name_can_be_checked_without_connecting() {
    let check = async |answers: &[&str], url: &str| {
        let names = Names::answering(&[answers]);
        let egress = Egress::with_resolver(settings(&["10.7.0.0/16"], LONG), names);
        egress.expect("good settings").check_addresses(url).await
    };
    assert_eq!(check(&["93.184.216.34"], "https://agent.example/").await, Ok(()));
    assert_eq!(check(&["10.7.0.1"], "http://agent.example/").await, Ok(()));
    assert_eq!(check(&[], "https://93.184.216.34/").await, Ok(()));
    let plain = check(&["93.184.216.34"], "http://agent.example/").await;
    assert_eq!(plain, Err(SendError::Blocked(TargetError::PlainHttp)));
    let unknown = check(&[], "https://agent.example/").await;
    assert!(matches!(unknown, Err(SendError::Unreachable(_))), "{unknown:?}");
}

#[test]
fn private_urls_are_told_from_public_ones() {
    for url in ["https://127.0.0.1/", "https://localhost/", "http://[::1]/", "https://0x7f.1/"] {
        assert!(url_is_private(url), "{url}");
    }
    for url in ["https://agent.example/", "https://93.184.216.34/", "not a URL"] {
        assert!(!url_is_private(url), "{url}");
    }
}

#[tokio::test]
async fn a_redirect_of_a_get_is_not_followed() {
    let server = Server::start(Does::Reply(
        "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
    ))
    .await;
    let url = server.url("http", "127.0.0.1");
    let answer = egress(&["127.0.0.0/8"], LONG).get(&url, Vec::new(), 10, LONG).await;
    assert_eq!(answer, Ok(HttpResponse { status: 302, body: Bytes::new() }));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn chunks_arrive_while_the_stream_goes_on() {
    let server = Server::start(Does::ReplyAndRepeat(EVENTS, "data: 1\n\n", PAUSE)).await;
    let (egress, url) = (egress(&["127.0.0.0/8"], SHORT), server.url("http", "127.0.0.1"));
    for method in [Method::Get, Method::Post] {
        let opened = egress.open(request(method, &url), endless(LONG), None).await;
        let mut stream = opened.expect("the head arrives");
        assert_eq!((stream.status, stream.media_type.as_str()), (200, "text/event-stream"));
        // Longer than a whole call may take.
        let end = tokio::time::Instant::now() + 2 * SHORT;
        while tokio::time::Instant::now() < end {
            let chunk = stream.next_chunk().await.expect("the stream goes on");
            assert!(chunk.is_some_and(|chunk| chunk.starts_with(b"data: 1\n\n")));
        }
    }
}

#[tokio::test]
async fn a_stream_that_pauses_ends_or_grows_too_long_is_cut() {
    let cut = async |does, limits| {
        let server = Server::start(does).await;
        let (egress, url) = (egress(&["127.0.0.0/8"], LONG), server.url("http", "127.0.0.1"));
        error_of(egress.open(request(Method::Get, &url), limits, None).await).await
    };
    let drip = Does::ReplyAndRepeat(EVENTS, ":\n\n", PAUSE);
    assert_eq!(cut(Does::ReplyAndKeep(EVENTS), endless(SHORT)).await, SendError::TimedOut);
    let whole = ResponseLimits { whole_timeout: Some(SHORT), ..endless(LONG) };
    assert_eq!(cut(drip, whole).await, SendError::TimedOut);
    let head = ResponseLimits { head_timeout: SHORT, ..endless(LONG) };
    assert_eq!(cut(Does::Hang, head).await, SendError::TimedOut);
    let small = cut(drip, ResponseLimits { bytes_max: 10, ..endless(LONG) }).await;
    assert!(matches!(small, SendError::InvalidResponse(_)), "{small:?}");
    let torn = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
    let torn = cut(Does::Reply(torn), endless(LONG)).await;
    assert!(matches!(torn, SendError::InvalidResponse(_)), "{torn:?}");
}

#[tokio::test]
async fn the_wait_a_host_asks_for_is_read_if_it_is_in_seconds() {
    for (reply, wait) in [
        ("HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", Some(7)),
        ("HTTP/1.1 503 Busy\r\nretry-after: +7\r\ncontent-length: 0\r\n\r\n", None),
        ("HTTP/1.1 503 Busy\r\nretry-after: \r\ncontent-length: 0\r\n\r\n", None),
        ("HTTP/1.1 503 Busy\r\nretry-after: 99999999999999999999\r\n\r\n", None),
        ("HTTP/1.1 503 Busy\r\nretry-after: Wed, 18 Nov 2026 15:00:00 GMT\r\n\r\n", None),
    ] {
        let server = Server::start(Does::Reply(reply)).await;
        let (egress, url) = (egress(&["127.0.0.0/8"], LONG), server.url("http", "127.0.0.1"));
        let opened = egress.open(request(Method::Post, &url), endless(LONG), None).await;
        let answer = opened.expect("the head arrives");
        assert_eq!((answer.status, answer.retry_after.map(|t| t.as_secs())), (503, wait));
    }
}

#[tokio::test]
async fn a_dropped_stream_frees_its_slot_and_a_kept_one_may_outlive_the_egress() {
    let server = Server::start(Does::ReplyAndRepeat(EVENTS, ":\n\n", PAUSE)).await;
    let (egress, url) = (egress(&["127.0.0.0/8"], LONG), server.url("http", "127.0.0.1"));
    let mut streams = Vec::new();
    // Four slots: long calls get three of them.
    while let Some(slot) = egress.try_reserve_slot(&url) {
        let opened = egress.open(request(Method::Get, &url), endless(LONG), Some(slot)).await;
        streams.push(opened.expect("the head arrives"));
    }
    assert_eq!((streams.len(), egress.has_spare_slot(&url)), (3, false));
    let short = egress.open(request(Method::Get, &url), endless(LONG), None).await;
    streams.push(short.expect("short calls get the last slot"));
    drop(streams);
    assert!(egress.has_spare_slot(&url));
    assert!(!egress.has_spare_slot("https://127.0.0.1@agent.example/"));
    let opened = egress.open(request(Method::Get, &url), endless(LONG), None).await;
    let mut stream = opened.expect("the head arrives");
    // A stream can be kept in a task that does not borrow the egress.
    drop(egress);
    let next = tokio::spawn(async move { stream.next_chunk().await });
    assert!(next.await.expect("no panic").is_ok_and(|chunk| chunk.is_some()));
}

#[tokio::test]
async fn a_slot_of_another_host_is_of_no_use() {
    let server = Server::start(Does::ReplyAndRepeat(EVENTS, ":\n\n", PAUSE)).await;
    let (egress, url) = (egress(&["127.0.0.0/8"], LONG), server.url("http", "127.0.0.1"));
    let other = egress.try_reserve_slot("https://agent.example/");
    let opened = egress.open(request(Method::Get, &url), endless(LONG), other).await;
    let _first = opened.expect("the head arrives");
    let _second = egress.try_reserve_slot(&url).expect("two of four slots are left");
    let _third = egress.try_reserve_slot(&url).expect("one of four slots is left");
    assert!(egress.try_reserve_slot(&url).is_none());
}
