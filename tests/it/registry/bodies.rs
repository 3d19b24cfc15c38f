//! Bodies that are ambiguous, too large or compressed (C1).

use serde_json::json;

use super::forms::{both_modes, registration};
use crate::kit::{TestHub, assert_malformed, assert_refused, counted, snapshot};

/// Every path that takes a body, with and without the prefix, except `/register`, which two
/// protocols share.
const PATHS: [&str; 13] = [
    "/registry/register",
    "/registry/discover",
    "/discover",
    "/registry/jobs",
    "/jobs",
    "/registry/results",
    "/results",
    "/registry/transfer",
    "/transfer",
    "/registry/heartbeat",
    "/heartbeat",
    "/registry/accounts",
    "/accounts",
];

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn items(count: usize) -> String {
    format!("[{}]", vec!["0"; count].join(","))
}

fn unreadable() -> Vec<(&'static str, Vec<u8>)> {
    let with =
        |member: &str| format!(r#"{{"agent_name":"n","owner_id":"o","skill":"s",{member}}}"#);
    let text = |text: String| text.into_bytes();
    vec![
        ("nothing", Vec::new()),
        ("a byte order mark", text(format!("\u{feff}{}", with(r#""x":1"#)))),
        ("bytes that are not UTF-8", b"{\"agent_name\":\"\xff\"}".to_vec()),
        ("UTF-16", "{}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("text after the value", text(with(r#""x":1"#) + " x")),
        ("two values", text(with(r#""x":1"#) + "{}")),
        ("a zero byte after the value", text(with(r#""x":1"#) + "\0")),
        ("a name twice", text(with(r#""owner_id":"p""#))),
        ("a name twice, once escaped", text(with(r#""owner\u005fid":"p""#))),
        ("a name twice, deep inside", text(with(r#""x":[{"a":1,"a":1}]"#))),
        ("half a surrogate pair", text(with(r#""x":"\ud800""#))),
        ("a pair the wrong way round", text(with(r#""x":"\udc00\ud800""#))),
        ("65 levels", text(with(&format!(r#""x":{}"#, nested(64))))),
        ("10,001 members and items", text(with(&format!(r#""x":{}"#, items(9_997))))),
        ("a raw line break in a text", text(with("\"x\":\"\n\""))),
        ("a comment", text(with("/* x */\"x\":1"))),
        ("a comma too many", text(with(r#""x":[1,]"#))),
        ("an end too early", text(r#"{"agent_name":"n""#.to_owned())),
        ("a list", b"[]".to_vec()),
        ("a text", b"\"agent_name\"".to_vec()),
        ("a number", b"7".to_vec()),
        ("null", b"null".to_vec()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_in_one_way_only_is_refused_without_effect() {
    for hub in both_modes().await {
        let caller = hub.agent("acme", "s", "0", None).await;
        let key = format!("Bearer {}", caller.key);
        let before = snapshot(&hub).await;
        for (what, body) in unreadable() {
            for path in PATHS {
                let reply = hub.send("POST", path, &[("authorization", &key)], &body).await;
                assert_eq!(reply.status, 400, "{what} at {path}: {}", reply.text);
                assert_malformed(&reply, "");
            }
            let shared = hub.send("POST", "/register", &[("authorization", &key)], &body).await;
            assert_eq!(shared.status, 400, "{what} at /register: {}", shared.text);
            assert_eq!(counted(&hub), before.counted, "{what}");
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_object_is_answered_with_a_whole_one_that_works() {
    let hub = TestHub::serve(&[]).await;
    let caller = hub.agent("acme", "analyze_text", "0", None).await;
    for path in PATHS {
        let reply = hub.post(path, Some(&caller.key), &json!([])).await;
        assert_malformed(&reply, "");
        let shown = reply.at("/error/example");
        let again = hub.post(path, Some(&caller.key), &shown).await;
        assert_ne!(again.status, 400, "{path}: {shown} gave {}", again.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_at_the_edge_of_every_limit_is_read() {
    let hub = TestHub::serve(&[]).await;
    let body = |owner: &str, more: &str| {
        let text = registration(owner).to_string();
        format!("{},\"x\":{more}}}", text.strip_suffix('}').expect("an object"))
    };
    // The registration itself has 6 + 1 + 1 + 5 + 2 members and items, and x is one more.
    let full = 1 << 20;
    let padding = "a".repeat(full - body("o3", "\"\"").len());
    for (n, more) in
        [nested(63), items(10_000 - 15), format!("\"{padding}\"")].into_iter().enumerate()
    {
        let path = if n == 1 { "/register" } else { "/registry/register" };
        let text = body(&format!("o{}", n + 1), &more);
        let reply = hub.post_text(path, None, &text).await;
        assert_eq!(reply.status, 201, "{n}: {}", reply.text);
    }
    for (n, more) in [nested(64), items(10_001 - 15)].into_iter().enumerate() {
        let reply = hub.post_text("/registry/register", None, &body("p", &more)).await;
        assert_eq!(reply.status, 400, "{n}: {}", reply.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_above_one_mebibyte_is_too_large_and_a_packed_one_is_not_unpacked() {
    let hub = TestHub::serve(&[]).await;
    let caller = hub.agent("acme", "s", "0", None).await;
    let key = format!("Bearer {}", caller.key);
    let before = snapshot(&hub).await;
    let large = registration("o").to_string() + &" ".repeat(1 << 20);
    // `{}` compressed with gzip.
    let packed =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00";
    for path in PATHS.into_iter().chain(["/register", "/registry/callbacks/x"]) {
        // The hub does not read such a body to its end, so the connection cannot be reused.
        let headers = [("authorization", key.as_str()), ("connection", "close")];
        assert_refused(&hub.send("POST", path, &headers, large.as_bytes()).await, 413, "TOO_LARGE");
        for coding in ["gzip", "br", "identity, gzip"] {
            let headers = [
                ("authorization", key.as_str()),
                ("content-encoding", coding),
                ("connection", "close"),
            ];
            let reply = hub.send("POST", path, &headers, packed).await;
            assert_refused(&reply, 415, "UNSUPPORTED_ENCODING");
        }
    }
    assert_eq!(snapshot(&hub).await, before);
    let plain = registration("plain").to_string();
    hub.send("POST", "/register", &[("content-encoding", "identity")], plain.as_bytes())
        .await
        .expect(201);
    hub.stop().await;
}
