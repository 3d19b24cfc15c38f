//! Requests that two parsers could read differently, and oversized heads (T49).

use futures_util::future::join_all;

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use super::slow::TIMEOUTS;

/// Hidden in the body of another request; if it is ever executed, there are two responses.
const HIDDEN: &str = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_hidden_in_another_and_no_head_is_endless() {
    let process = HubProcess::open(&TIMEOUTS);
    let bystander = Bystander::arrive(&process).await;
    let before = process.memory();
    let host = format!("host: {}\r\n", process.address);
    let post = |headers: &str, body: &str| {
        format!("POST /registry/discover HTTP/1.1\r\n{host}{headers}\r\n{body}")
    };
    let length = HIDDEN.len();
    let chunked = format!("0\r\n\r\n{HIDDEN}");
    let ambiguous = [
        post(&format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"), &chunked),
        post(&format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n"), &chunked),
        post("content-length: 0\r\ncontent-length: 44\r\n", HIDDEN),
        post("content-length: 0, 44\r\n", HIDDEN),
        post("content-length: +0\r\n", HIDDEN),
        post("content-length: -1\r\n", HIDDEN),
        post("content-length: 0x0\r\n", HIDDEN),
        post("content-length: 18446744073709551616\r\n", HIDDEN),
        post("transfer-encoding: xchunked\r\n", &chunked),
        post("transfer-encoding: chunked, identity\r\n", &chunked),
        post("transfer-encoding: gzip, chunked, x\r\n", &chunked),
        post("transfer-encoding : chunked\r\n", &chunked),
        post("transfer-encoding: chunked\r\n", &format!("-1\r\n{HIDDEN}")),
        post("transfer-encoding: chunked\r\n", &format!("fffffffffffffffff\r\n{HIDDEN}")),
        post("transfer-encoding: chunked\r\n", &format!("0x0\r\n\r\n{HIDDEN}")),
        post("x: y\r\n folded: z\r\ncontent-length: 0\r\n", HIDDEN),
        post("x\0y: z\r\n", HIDDEN),
        post(&host, ""),
        "GET /health HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET /health HTTP/9.9\r\n{host}\r\n"),
        format!("GET http://evil.example/health HTTP/1.1\r\n{host}\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ];
    let answers = join_all(ambiguous.iter().map(|request| process.raw(request.as_bytes()))).await;
    for (request, answer) in ambiguous.iter().zip(answers) {
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "a hidden request was answered: {request}\n{answer}");
        let status = answer.get(9..12).unwrap_or("none");
        let refused = status == "none" || status.starts_with('4') || status == "505";
        assert!(refused || status == "501", "{request}\n{answer}");
    }
    let many: String = (0..100_000).map(|n| format!("h{n}: v\r\n")).collect();
    let long = "x".repeat(1 << 20);
    for (request, wanted) in [
        (format!("GET /health HTTP/1.1\r\n{host}{many}\r\n"), "431"),
        (format!("GET /health HTTP/1.1\r\n{host}x: {long}\r\n\r\n"), "431"),
        (format!("GET /{long} HTTP/1.1\r\n{host}\r\n"), "4"),
        (format!("{long} / HTTP/1.1\r\n{host}\r\n"), "4"),
    ] {
        let answer = process.raw(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {wanted}")), "{wanted}: {answer}");
    }
    process.assert_within(before, 48 << 20, "heads without measure");
    bystander.leave().await;
}
