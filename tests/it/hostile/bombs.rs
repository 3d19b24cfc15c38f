//! Bodies that are small to send and expensive to read (T44).

use super::bystander::Bystander;
use super::hub_process::HubProcess;
use crate::kit::Reply;

/// Routes that read JSON, and whether they need a key.
const DOORS: [(&str, bool); 12] = [
    ("/registry/register", false),
    ("/registry/discover", false),
    ("/registry/jobs", true),
    ("/relay/register", false),
    ("/relay/messages", true),
    ("/openclaw/identity", false),
    ("/openclaw/collaborations", true),
    ("/agora/envelopes", false),
    ("/v1/jobs", true),
    ("/a2a/agents", false),
    ("/a2a/message:send", true),
    (RPC, true),
];

/// Refuses what it cannot read with the status 200 and an error, as JSON-RPC does.
const RPC: &str = "/a2a";

/// Just below the size limit.
const LARGE: usize = 1_000_000;

fn bombs() -> Vec<(&'static str, String)> {
    let members = |count: usize, name: fn(usize) -> String| {
        let all: Vec<String> = (0..count).map(|n| format!("\"{}\":0", name(n))).collect();
        format!("{{{}}}", all.join(","))
    };
    let within = |inner: String| format!(r#"{{"agent_name":"x","owner_id":"x","skills":{inner}}}"#);
    vec![
        ("deep lists", "[".repeat(LARGE)),
        ("deep closed lists", within("[".repeat(100_000) + &"]".repeat(100_000))),
        ("deep objects", r#"{"a":"#.repeat(LARGE / 5)),
        ("sixty-five levels", within("[".repeat(65) + &"]".repeat(65))),
        ("many members", members(100_000, |n| format!("m{n}"))),
        ("one member many times", members(100_000, |_| "a".to_owned())),
        ("many empty lists", within(format!("[{}[]]", "[],".repeat(300_000)))),
        ("many numbers", within(format!("[{}0]", "0,".repeat(450_000)))),
        ("a long name", format!("{{\"{}\":0}}", "k".repeat(LARGE - 10))),
        ("a long number", within("9".repeat(LARGE - 100))),
        ("a long fraction", within(format!("0.{}", "3".repeat(LARGE - 100)))),
        ("a huge exponent", within("1e999999999999".to_owned())),
        ("a long escaped text", within(format!("\"{}\"", "\\u0041".repeat(LARGE / 7)))),
        ("half a surrogate", within("\"\\ud800\"".to_owned())),
        ("no end", within("\"".to_owned() + &"x".repeat(LARGE - 100))),
        ("white space", " ".repeat(LARGE)),
        ("two values", "{} {}".to_owned()),
        ("a byte order mark", "\u{feff}{}".to_owned()),
    ]
}

async fn sent(
    process: &HubProcess,
    door: (&str, bool),
    key: &str,
    body: impl Into<reqwest::Body>,
) -> Reply {
    let mut request = process.http.post(format!("{}{}", process.url, door.0)).body(body);
    // A refused body is not read to its end, so the connection cannot be reused.
    request = request.header("connection", "close");
    if door.1 {
        request = request.bearer_auth(key);
    }
    Reply::to(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bomb_is_refused_at_every_door_and_leaves_nothing_behind() {
    let process = HubProcess::open(&[]);
    let bystander = Bystander::arrive(&process).await;
    let ada = process.join("ada").await;
    let before = process.memory();
    for door in DOORS {
        for (what, bomb) in bombs() {
            let reply = sent(&process, door, &ada.key, bomb).await;
            let fine = match door.0 {
                RPC => reply.at("/error/code").is_i64(),
                _ => [400, 404, 413, 422].contains(&reply.status),
            };
            assert!(fine, "{what} at {}: {} {}", door.0, reply.status, reply.text);
        }
        let large = sent(&process, door, &ada.key, " ".repeat(4 << 20)).await;
        assert_eq!(large.status, 413, "{}: {}", door.0, large.text);
    }
    process.assert_within(before, 96 << 20, "JSON bombs");
    bystander.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_packed_is_unpacked() {
    let process = HubProcess::open(&[]);
    let ada = process.join("ada").await;
    let before = process.memory();
    for door in DOORS {
        for coding in
            ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, identity", "identity, gzip"]
        {
            let mut request = process.http.post(format!("{}{}", process.url, door.0));
            request = request.header("content-encoding", coding).header("connection", "close");
            if door.1 {
                request = request.bearer_auth(&ada.key);
            }
            // A gzip header followed by invalid data.
            let body = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0xff; 1_000]].concat();
            let reply = Reply::to(request.body(body)).await;
            assert_eq!(reply.status, 415, "{coding} at {}: {}", door.0, reply.text);
        }
    }
    process.assert_within(before, 32 << 20, "packed bodies");
}
