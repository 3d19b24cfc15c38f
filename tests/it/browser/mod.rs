//! A page of another origin has no effect on a hub and reads only public data. Tested with a real
//! browser, for every route, in every way a page can send a request.
//!
//! Without Chromium the test is skipped, and fails where `CI` is set.

use std::path::{Path, PathBuf};
use std::process::Command;

use rialto_engine::testkit::skip_test;
use rialto_hub::app::operations;
use rialto_hub::config::Profile;
use rialto_protocols::adapter::{Access, OperationInfo};
use serde_json::{Value, json};

use crate::authority::scene::Scene;
use crate::authority::table::{Row, SceneKind, TABLE};
use crate::clara::kit::Wallet;
use crate::kit::{Reply, TestHub, npm_package, output, snapshot};

const NAME: &str =
    "browser::a_page_of_another_origin_changes_nothing_and_reads_only_what_is_public";
/// Names of the Chromium binary.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The version of Playwright, which drives it.
const PLAYWRIGHT: &str = "1.65.0";

/// A request that a page tries, and whether any page may read the response.
struct Attempt {
    route: String,
    method: String,
    path: String,
    body: Option<Vec<u8>>,
    public: bool,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_changes_nothing_and_reads_only_what_is_public() {
    let Some(chromium) = chromium() else {
        let remedy = "install Debian's package `chromium`, or let `cargo xtask test` do it as root";
        return skip_test(NAME, "Chromium", remedy);
    };
    for posture in [Profile::Dev, Profile::Serve] {
        for kind in SceneKind::ALL {
            let rows = kind.rows();
            let scene = scene(posture, &[], rows[0]).await;
            let attempts: Vec<Attempt> = rows.iter().map(|row| attempt(&scene, row)).collect();
            let before = snapshot(&scene.hub).await;
            let url = scene.hub.url.clone();
            let origins: &[&str] = match posture {
                Profile::Dev => &["other", "port", "null"],
                Profile::Serve => &["other", "port"],
            };
            let seen = tried(&chromium, &url, origins, &attempts);
            assert_eq!(
                snapshot(&scene.hub).await,
                before,
                "a page changed something ({posture:?})"
            );
            assert_eq!(seen.len(), origins.len() * attempts.len());
            for (attempt, seen) in attempts.iter().cycle().zip(&seen) {
                assert_kept_apart(attempt, seen, attempt.public);
            }
            scene.end().await;
        }
    }
    a_published_hub_serves_pages_what_is_signed_and_nothing_else(&chromium).await;
}

/// Under its public URL a hub accepts clara's signed items from every page, as AO's browser clients
/// need. The rest is as closed as on loopback.
async fn a_published_hub_serves_pages_what_is_signed_and_nothing_else(chromium: &Path) {
    let flags = [("http.public_url", "http://hub.example")];
    let rows = SceneKind::Common.rows();
    let scene = scene(Profile::Serve, &flags, rows[0]).await;
    let url = scene.hub.url.replace("127.0.0.1", "hub.example");
    let attempts = rows.iter().map(|row| attempt(&scene, row));
    let (signed, others): (Vec<Attempt>, Vec<Attempt>) =
        attempts.partition(|attempt| attempt.path.starts_with("/clara"));
    let before = snapshot(&scene.hub).await;
    for (attempt, seen) in others.iter().zip(tried(chromium, &url, &["other"], &others)) {
        assert_kept_apart(attempt, &seen, attempt.public);
    }
    assert_eq!(snapshot(&scene.hub).await, before, "a page changed something");
    for (attempt, seen) in signed.iter().zip(tried(chromium, &url, &["other"], &signed)) {
        assert_kept_apart(attempt, &seen, true);
    }
    assert_ne!(snapshot(&scene.hub).await, before, "an item was accepted");
    scene.end().await;
}

#[track_caller]
fn assert_kept_apart(attempt: &Attempt, seen: &Value, public: bool) {
    let ways: Vec<&str> =
        seen["read"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(seen["route"], attempt.route.as_str(), "{seen}");
    if public {
        // Also with a custom header, which makes the browser send a preflight.
        assert!(ways.contains(&"preflighted"), "every page may read it: {seen}");
        assert!(attempt.method != "GET" || ways.contains(&"simple"), "{seen}");
    } else {
        assert!(ways.is_empty(), "a page of another origin read the answer: {seen}");
    }
}

async fn scene(posture: Profile, flags: &[(&str, &str)], row: &Row) -> Scene {
    // No agent goes offline while the browser runs.
    let own =
        [("relay.accept_direct", "true"), ("registry.heartbeat_ttl", "1h"), ("jobs.lease", "1h")];
    let flags = [&own, flags].concat();
    let dir = tempfile::TempDir::new().expect("a directory");
    Scene::on(TestHub::start(posture, &flags, dir).await, row).await
}

/// The request of a row, built so that it would have an effect.
fn attempt(scene: &Scene, row: &Row) -> Attempt {
    let (method, template) = row.route.split_once(' ').expect("method and path");
    let is_post = method == "POST" && template.starts_with("/clara");
    let signed = is_post && row.expected == [202; 6];
    let body = row.body.map(|body| body(scene).to_string().into_bytes());
    let is_socket = template.ends_with("/ws");
    let envelope = || TABLE.iter().find(|row| row.route == "POST /agora").and_then(|row| row.body);
    Attempt {
        route: row.route.to_owned(),
        method: method.to_owned(),
        path: scene.filled(template, row),
        body: match (signed, is_socket) {
            (true, _) => Some(registration()),
            (_, true) => envelope().map(|body| body(scene).to_string().into_bytes()),
            _ => body,
        },
        public: is_public_read(row.route),
    }
}

fn is_public_read(route: &str) -> bool {
    let reads = |listed: &OperationInfo| listed.method == "GET" && listed.access == Access::Public;
    operations().iter().any(|listed| reads(listed) && route == format!("GET {}", listed.path))
}

/// An item with an effect: an unknown wallet registers an agent.
fn registration() -> Vec<u8> {
    let tags = [
        ("Action", "Register-Agent-Profile"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "1"),
        ("RedStone-Agent-Id", "STRANGER"),
    ];
    Wallet::of(9).item(&tags, b"{}")
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut all = CHROMIUM.iter().flat_map(|name| folders.iter().map(move |at| at.join(name)));
    all.find(|path| path.is_file())
}

/// Lets pages of these origins try everything; returns what they could read, in order.
fn tried(chromium: &Path, url: &str, origins: &[&str], attempts: &[Attempt]) -> Vec<Value> {
    let requests: Vec<Value> = attempts
        .iter()
        .map(|Attempt { route, method, path, body, .. }| {
            json!({"route": route, "method": method, "url": format!("{url}{path}"), "bytes": body})
        })
        .collect();
    let folder = tempfile::TempDir::new().expect("a directory");
    let plan = folder.path().join("plan.json");
    let text = json!({"origins": origins, "requests": requests}).to_string();
    std::fs::write(&plan, text).expect("a file");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/it/browser/run.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(npm_package("playwright-core", PLAYWRIGHT)).arg(chromium).arg(plan);
    let ran = output(&mut node).expect("node starts: the browser is driven by Node.js 20 or later");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "the browser failed: {said}");
    let lines = String::from_utf8(ran.stdout).expect("text");
    let mut seen: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(seen.pop(), Some(json!({"end": true})), "{said}");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn every_public_read_answers_a_preflight_and_no_other_route_does() {
    let hub = TestHub::open(&[]).await;
    let origin = ("origin", "https://page.example");
    for OperationInfo { method, path, access, .. } in operations() {
        let path = path.replace(['{', '}'], "");
        let asked = ("access-control-request-method", method);
        let header = ("access-control-request-headers", "x-asked");
        let reply: Reply = hub.send("OPTIONS", &path, &[origin, asked, header], b"").await;
        let public = access == Access::Public && method == "GET";
        let case = format!("{method} {path}: {} {}", reply.status, reply.text);
        assert_eq!(reply.status, if public { 204 } else { 403 }, "{case}");
        let allowed = reply.header("access-control-allow-origin");
        assert_eq!(allowed, public.then_some("*"), "{case}");
        let methods = reply.header("access-control-allow-methods");
        assert_eq!(methods, public.then_some("GET"), "{case}");
    }
    hub.stop().await;
}
