//! After a refusal that left a body unread, the response says whether the connection stays open.

use rialto_hub::app::operations;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kit::{TestHub, in_time};

/// The head of the next response on a connection; its body is read, too.
async fn answer(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.expect("there is an answer"));
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    in_time(stream.read_exact(&mut body)).await.expect("the body is whole");
    head
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_after_an_early_refusal_is_answered_unless_the_close_was_announced() {
    let hub = TestHub::serve(&[("limits.wrong_keys_per_minute", "20")]).await;
    let address = hub.url.trim_start_matches("http://").to_owned();
    let known = operations().into_iter().map(|route| (route.method, route.path));
    let nowhere = ["/nowhere", "/v1/nowhere", "/relay/nowhere", "/openclaw/nowhere", "/agora/no"];
    let nowhere = nowhere.map(|path| ("POST", path.to_owned()));
    let wrong_method = ("PATCH", "/v1/agents".to_owned());
    let requests: Vec<_> = known.chain(nowhere).chain([wrong_method]).collect();
    let heads = [
        "",
        "Authorization: Bearer rk_000000000000000000000000000000000000000000000000\r\n",
        "Origin: https://elsewhere.example\r\n",
        "Content-Encoding: gzip\r\n",
    ];
    // A small unread body is read after the refusal, so that the connection stays; a large one is
    // not.
    let (mut kept, mut closed) = (0, 0);
    for (method, path) in &requests {
        // Paths with a parameter are served the same way for every value.
        let path = path.replace(['{', '}'], "");
        for head in heads {
            for length in [40_000, 200_000] {
                let mut stream = TcpStream::connect(&address).await.expect("it listens");
                let request = format!(
                    "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{head}Content-Length: {length}\r\n\r\n{}",
                    "x".repeat(length)
                );
                stream.write_all(request.as_bytes()).await.expect("it reads");
                let first = answer(&mut stream).await;
                let case = format!("{method} {path} {head:?} {length}: {first}");
                if first.contains("connection: close\r\n") {
                    closed += 1;
                    continue;
                }
                kept += 1;
                // A stream has no end to wait for.
                if !first.contains("content-length: ") {
                    continue;
                }
                let next = format!("GET /livez HTTP/1.1\r\nHost: {address}\r\n\r\n");
                stream.write_all(next.as_bytes()).await.expect("it reads");
                let second = answer(&mut stream).await;
                assert!(second.starts_with("HTTP/1.1 200"), "{case} then {second}");
            }
        }
    }
    assert!(kept > 100 && closed > 100, "{kept} kept, {closed} closed");
    hub.stop().await;
}
