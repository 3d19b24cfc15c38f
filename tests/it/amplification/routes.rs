//! Every route, repeated by every kind of caller.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use rialto_hub::app::operations;
use rialto_protocols::adapter::Access;
use serde_json::{Value, json};

use super::answers::swell;
use super::bound::{self, Bound, REFUSED, ROUTES};
use super::measure::Standing;
use crate::authority::scene::Scene;
use crate::authority::table::{Row, SceneKind, TABLE};
use crate::authority::{CALLERS, Caller, name, route_of};
use crate::clara::kit::Wallet;
use crate::kit::eventually;

/// How often each caller makes each request.
const TIMES: usize = 4;
/// Prefixes of the root paths that write.
const ROOT: [&str; 8] = [
    "/register",
    "/jobs",
    "/results",
    "/transfer",
    "/heartbeat",
    "/accounts",
    "/agent",
    "/messages",
];
/// Bytes a request sends besides its path and its body.
const HEAD: usize = 160;

#[test]
fn every_route_has_a_bound_and_every_bound_a_route() {
    let routes: BTreeSet<String> = operations().iter().map(name).collect();
    let bounds: BTreeSet<String> = ROUTES.iter().map(|(route, _)| (*route).to_owned()).collect();
    let without_bound: Vec<_> = routes.difference(&bounds).collect();
    let without_route: Vec<_> = bounds.difference(&routes).collect();
    assert!(without_bound.is_empty(), "routes without a bound: {without_bound:?}");
    assert!(without_route.is_empty(), "bounds without a route: {without_route:?}");
    assert_eq!(bounds.len(), ROUTES.len(), "a route has two bounds");
}

/// An unused idempotency key.
fn fresh_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("fresh {}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a row only reads, and so changes nothing for the next one.
fn reads(row: &Row) -> bool {
    let route = route_of(row);
    (route.method == "GET" || route.access == Access::Public)
        && !row.route.ends_with("/work")
        && !row.route.ends_with("/agents/{agent_id}/jobs")
        && !row.route.contains("/receive/")
}

/// Repeats a row's request; returns the longest response and the bytes each request sent.
async fn repeat(scene: &Scene, row: &Row, caller: Caller) -> (usize, usize) {
    let (mut longest, mut sent) = (0, 0);
    for _ in 0..TIMES {
        let request = scene.request(row, caller).header("idempotency-key", fresh_key());
        let request = request.build().expect("a request");
        let body = request.body().and_then(|body| body.as_bytes()).map_or(0, <[u8]>::len);
        sent = HEAD + request.url().path().len() + body;
        let answer = scene.hub.http.execute(request).await.expect("an answer");
        let kind = answer.headers().get("content-type").map(|kind| kind.as_bytes().to_vec());
        let streams = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        // Streams have no end.
        if !streams && answer.status().as_u16() != 101 {
            longest = longest.max(answer.bytes().await.expect("a body").len());
        }
    }
    settle(scene).await;
    (longest, sent)
}

/// Waits for due deliveries, since their results are written, too.
async fn settle(scene: &Scene) {
    let engine = &scene.hub.engine;
    eventually(async || {
        engine.with_world(|world| world.deliveries_due(engine.now()).next().is_none())
    })
    .await;
}

/// The cost bound of a row for this answer.
fn bound_for(row: &Row, status: u16) -> Bound {
    match status {
        0..300 => bound::of(ROUTES, row.route),
        _ => REFUSED,
    }
}

/// All costs that exceed their bound.
#[derive(Default)]
struct Report(Vec<String>);

impl Report {
    fn check(&mut self, what: &str, bound: Bound, cost: &super::measure::Cost, sent: usize) {
        println!("{what}: {sent} sent, {cost:?}");
        self.0.extend(bound.excess(cost, sent).map(|excess| format!("{what}: {excess}")));
    }

    fn assert_empty(self) {
        assert!(self.0.is_empty(), "{} cost too much:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// Fills a hub with more of everything than one response may hold.
async fn fill(scene: &Scene) {
    let hub = &scene.hub;
    swell(hub, 14, "free").await;
    let about = json!({"about": "m".repeat(15_000)}).to_string();
    for number in 0..150 {
        let id = format!("market-{number}");
        let tags = [
            ("Action", "Register-Agent-Profile"),
            ("Protocol", "C.L.A.R.A."),
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "10"),
            ("RedStone-Agent-Id", id.as_str()),
        ];
        let item = Wallet::of(9).item(&tags, about.as_bytes());
        let posted = hub.http.post(format!("{}/clara/mu", hub.url)).body(item);
        assert_eq!(posted.send().await.expect("an answer").status(), 202);
    }
    let all = hub.get("/relay/agents", None).await.expect(200).at("/data");
    let address = |native: &str| -> Value {
        let found = all.as_array().expect("a list").iter();
        let mut found = found.filter(|one| one["native_id"] == native || one["agent_id"] == native);
        found.next().expect("an agent")["agent_id"].clone()
    };
    for number in 0..24 {
        for to in [&scene.named, &scene.addressed] {
            let envelope = json!({"chorus_version": "0.4", "sender_id": address(&scene.worker.id),
                "original_text": format!("{number} {}", "t".repeat(50_000)), "sender_culture": "en"});
            let body = json!({"receiver_id": address(&to.id), "envelope": envelope});
            let sent = hub.post("/relay/messages", Some(&scene.worker.key), &body).await;
            assert!(sent.status < 300, "{}", sent.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_answers_so_much_and_leaves_nothing_however_often_and_by_whomever() {
    let mut report = Report::default();
    for kind in SceneKind::ALL {
        let rows: Vec<&Row> = kind.rows().into_iter().filter(|row| reads(row)).collect();
        let scene = Scene::set(rows[0]).await;
        fill(&scene).await;
        // A new caller is recorded once.
        for caller in CALLERS {
            repeat(&scene, rows[0], caller).await;
        }
        for row in rows {
            let before = Standing::of(&scene.hub);
            let (mut longest, mut sent) = (0, 0);
            for caller in CALLERS {
                let (answered, bytes) = repeat(&scene, row, caller).await;
                (longest, sent) = (longest.max(answered), bytes);
            }
            let cost = before.cost_of(&scene.hub, TIMES * CALLERS.len(), longest);
            report.check(row.route, bound::of(ROUTES, row.route), &cost, sent);
        }
        scene.end().await;
    }
    report.assert_empty();
}

/// Rows that write and whose path has one of these prefixes.
async fn write(prefixes: &[&str]) {
    let mut report = Report::default();
    let path = |row: &Row| row.route.split_once(' ').map_or("", |(_, path)| path);
    let ours = |row: &&Row| prefixes.iter().any(|prefix| path(row).starts_with(prefix));
    let rows: Vec<&Row> = TABLE.iter().filter(|row| !reads(row)).filter(ours).collect();
    assert!(!rows.is_empty(), "{prefixes:?}");
    for row in rows {
        let scene = Scene::set(row).await;
        settle(&scene).await;
        // Refused callers first, while nothing has changed.
        let columns = || CALLERS.into_iter().zip(row.expected);
        let refused = columns().filter(|(_, status)| *status >= 300);
        for (caller, status) in refused.chain(columns().filter(|(_, status)| *status < 300)) {
            let before = Standing::of(&scene.hub);
            let (longest, sent) = repeat(&scene, row, caller).await;
            let cost = before.cost_of(&scene.hub, TIMES, longest);
            let what = format!("{} by {caller:?}", row.route);
            report.check(&what, bound_for(row, status), &cost, sent);
        }
        scene.end().await;
    }
    report.assert_empty();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_in_registry_costs_so_much_and_no_more() {
    write(&["/registry/"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_in_relay_costs_so_much_and_no_more() {
    write(&["/relay/"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_in_signed_protocols_and_openclaw_costs_so_much_and_no_more() {
    write(&["/agora", "/clara", "/openclaw"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_in_a2a_costs_so_much_and_no_more() {
    write(&["/a2a"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_by_the_hubs_own_api_costs_so_much_and_no_more() {
    write(&["/v1/", "/mcp"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_at_the_root_costs_so_much_and_no_more() {
    write(&ROOT).await;
}

#[test]
fn every_row_that_writes_is_measured_in_one_of_the_groups() {
    let groups = ["/registry/", "/relay/", "/agora", "/clara", "/openclaw", "/a2a", "/v1/", "/mcp"];
    let groups: Vec<&str> = groups.into_iter().chain(ROOT).collect();
    for row in TABLE.iter().filter(|row| !reads(row)) {
        let (_, path) = row.route.split_once(' ').expect("method and path");
        assert!(
            groups.iter().any(|group| path.starts_with(group)),
            "{} is not measured",
            row.route
        );
    }
}
