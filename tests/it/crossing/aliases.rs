//! Aliases of every agent in every protocol: derived once from its id (section 4), listed
//! everywhere (B1), not available to other agents (B2, C5), and permanent (B4).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_hub::config::Profile;
use rialto_protocols::agora::EnvelopeSigner;
use rialto_protocols::kit::ed25519::SecretKey;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::cells::{Cell, FLAGS, walk};
use super::parties::{self, ALL};
use super::party::{Found, Terms, Worker};
use super::raw::text;
use crate::kit::{Process, TestHub, http, snapshot};

/// The hub's secret in the worked values of the requirements.
fn worked_secret() -> [u8; 32] {
    std::array::from_fn(|at| at as u8)
}

/// A directory whose hub has that secret.
fn worked_directory() -> tempfile::TempDir {
    let dir = tempfile::TempDir::new().expect("a directory");
    let file = dir.path().join("hub.key");
    std::fs::write(&file, worked_secret()).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    dir
}

fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(data);
    mac.finalize().into_bytes().into()
}

/// The key the hub holds for an agent, with HKDF written out.
fn held_key(secret: &[u8], name: &str) -> String {
    let extracted = hmac(b"rialto agora alias v1", secret);
    let seed = hmac(&extracted, &[name.as_bytes(), &[1]].concat());
    EnvelopeSigner::new(SecretKey::from_seed(&seed)).did().to_owned()
}

/// The UUID of an agent outside its home protocol.
fn uuid_of(name: &str) -> String {
    let space = Uuid::new_v5(&Uuid::NAMESPACE_URL, b"urn:rialto:agent");
    Uuid::new_v5(&space, name.as_bytes()).to_string()
}

/// The alias that the requirements define for an agent in another protocol.
fn alias_in(protocol: &str, worker: &dyn Worker, secret: &[u8]) -> String {
    let home = worker.home().id();
    let name = format!("{home}:{}", worker.native());
    let uuid = uuid_of(&name);
    let (slug, h) = (worker.name(), &uuid[..8]);
    match protocol {
        "registry" | "openclaw" => uuid,
        "relay" => format!("{slug}-{h}@{home}"),
        "clara" => format!("{home}/{slug}-{h}"),
        "agora" => held_key(secret, &name),
        "a2a" => format!("{slug}-{h}"),
        other => panic!("the requirements have no aliases in {other}"),
    }
}

/// The aliases of an agent in all protocols.
async fn listed(hub: &TestHub, worker: &dyn Worker) -> BTreeMap<&'static str, Found> {
    let mut all = BTreeMap::new();
    for protocol in ALL {
        all.insert(protocol.id(), protocol.find(hub, worker).await);
    }
    all
}

async fn names(hub: &TestHub, worker: &dyn Worker) -> Vec<String> {
    listed(hub, worker).await.into_values().map(|found| found.alias).collect()
}

/// The cells with one worker of each protocol.
fn one_each() -> Vec<Cell> {
    Cell::square().into_iter().filter(|cell| !cell.crosses()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_is_listed_in_all_protocols_under_the_name_derived_from_its_id() {
    let hub = TestHub::serve(FLAGS).await;
    let secret = std::fs::read(hub.dir.path().join("hub.key")).expect("a secret");
    walk(&hub, one_each(), async |hub, cell| {
        let worker = cell.meet(hub, Terms::at(cell.to.price())).await.worker;
        let (worker, home) = (worker.as_ref(), cell.to.id());
        for (protocol, found) in listed(hub, worker).await {
            if protocol == home {
                assert_eq!(found.alias, worker.native());
                continue;
            }
            assert_eq!(found.alias, alias_in(protocol, worker, &secret), "in {protocol}");
            let entry = |at| text(&found.entry, at);
            assert_eq!(entry("/protocol").as_deref(), Some(home), "{}", found.entry);
            let native = entry("/native_id").or_else(|| entry("/nativeId"));
            assert_eq!(native.as_deref(), Some(worker.native()), "{}", found.entry);
            match protocol {
                "registry" => {
                    let endpoint = format!("{}/registry/agents/{}", hub.url, found.alias);
                    assert_eq!(entry("/api_endpoint"), Some(endpoint), "{}", found.entry);
                    assert_eq!(entry("/agent_name").as_deref(), Some(worker.name()));
                    assert_eq!(entry("/owner_id"), Some(worker.owner()), "{}", found.entry);
                }
                "openclaw" => {
                    let h = &found.alias[..8];
                    let name = format!("chimera-bridge-{}-{h}", worker.name());
                    assert_eq!(entry("/agent_name"), Some(name));
                    assert_eq!(entry("/version").as_deref(), Some("0.0.0"));
                }
                "clara" => {
                    let name = format!("rialto:{home}:{}", worker.native());
                    let address = URL_SAFE_NO_PAD.encode(Sha256::digest(name));
                    assert_eq!(entry("/profileAddress"), Some(address));
                }
                _ => {}
            }
        }
    })
    .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_another_name_nor_leaving_nor_a_restart_changes_an_alias() {
    let mut hub = TestHub::serve(FLAGS).await;
    let mut known = Vec::new();
    for cell in one_each() {
        let worker = cell.meet(&hub, Terms::at(cell.to.price())).await.worker;
        let before = names(&hub, worker.as_ref()).await;
        worker.register_again(&hub, "somebody-else").await;
        assert_eq!(
            names(&hub, worker.as_ref()).await,
            before,
            "{} after registering again",
            cell.to.id()
        );
        known.push((worker, before));
    }
    hub = hub.restart(Profile::Serve, FLAGS).await;
    for (worker, before) in &known {
        assert_eq!(&names(&hub, worker.as_ref()).await, before, "{}", worker.home().id());
    }
    drop(known);
    hub.stop().await;
}

/// Each protocol's answers to a caller that claims another identity, and to one that registers its
/// name.
fn answers(protocol: &str) -> (&'static str, Option<&'static str>) {
    match protocol {
        "registry" => ("403 FORBIDDEN", Some("409 CONFLICT")),
        "relay" => ("403 ERR_SENDER_MISMATCH", Some("400 ERR_VALIDATION")),
        "openclaw" => ("403 FORBIDDEN", Some("409 CONFLICT")),
        "clara" => ("Agent not registered for sender", Some("Value Agent-Id must not start with")),
        "agora" => ("ERROR 401", None),
        "a2a" => ("401 UNAUTHENTICATED", Some("400 INVALID_PARAMS")),
        other => panic!("{other} has no line in this table"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_can_neither_send_nor_be_registered() {
    let hub = TestHub::serve(FLAGS).await;
    // One after the other, since no row may change after each. The attempt itself is in clara's
    // public record.
    for cell in Cell::square() {
        let meeting = cell.meet(&hub, Terms::at(cell.to.price())).await;
        let found = cell.from.find(&hub, meeting.worker.as_ref()).await;
        let before = snapshot(&hub).await.kept;
        let posed = meeting.requester.pose(&hub, &found).await;
        let (spoke, took) = answers(cell.from.id());
        assert_eq!(posed.spoke.words, spoke, "{}: {}", cell.name(), posed.spoke.bytes);
        let answer = posed.took.as_ref().map(|refused| refused.words.as_str());
        if cell.crosses() {
            let as_told = answer.zip(took).map(|(answer, took)| answer.starts_with(took));
            assert_eq!(as_told, took.map(|_| true), "{}: {posed:?}", cell.name());
        } else {
            assert!(answer.is_none_or(|words| !words.is_empty()), "{}: {posed:?}", cell.name());
        }
        assert_eq!(snapshot(&hub).await.kept, before, "{}: {posed:?}", cell.name());
        assert_eq!(cell.from.find(&hub, meeting.worker.as_ref()).await.alias, found.alias);
    }
    hub.stop().await;
}

/// The hub's own key, and the one it holds for the agent of the requirements.
const WORKED_HUB: &str = "did:key:z6MkshWLjEnbWLWHeQeFqmuLGuu45GiRuTykNCTWboBhBhnR";
const WORKED_ALIAS: &str = "did:key:z6MkvCk6gX4MWxypJfYrBxVz3HRcJCStjkYa8eTGKsPN5m5u";

#[tokio::test(flavor = "multi_thread")]
async fn the_books_agent_has_the_names_the_book_works_out() {
    const NATIVE: &str = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
    let hub = TestHub::start(Profile::Serve, FLAGS, worked_directory()).await;
    let skills = json!([{"skill_name": "analyze_text", "cost_per_call": 0.10}]);
    let body = json!({"agent_id": NATIVE, "agent_name": "Text-Analyst-3000", "owner_id": "acme",
        "skills": skills});
    hub.enrol(&body, None).await;
    let uuid = "20917bb1-7e13-5f41-9321-10f5be2a3322";
    let openclaw = hub.get(&format!("/openclaw/agents/{uuid}"), None).await.expect(200);
    assert!(openclaw.text.contains("chimera-bridge-text-analyst-3000-20917bb1"));
    let relay = hub.record("text-analyst-3000-20917bb1@registry").await;
    assert_eq!(relay["native_id"], NATIVE);
    let agora = hub.get("/agora/agents", None).await.expect(200);
    assert_eq!(agora.str("/agents/0/id"), WORKED_ALIAS);
    assert_eq!(hub.get("/agora", None).await.expect(200).str("/hub"), WORKED_HUB);
    let market = crate::clara::kit::Hub(hub);
    let entry = market.listed("registry/text-analyst-3000-20917bb1").await;
    assert_eq!(entry["profileAddress"], "rImQ3O6EqiZEOUjMfkrF0cP36q9fMAVSg_hjx0ipdWY");
    assert_eq!(entry["fee"], "1", "0.10 is 1 there");
    let card = market.0.get("/a2a/agents/text-analyst-3000-20917bb1", None).await.expect(200);
    assert!(card.text.contains(NATIVE), "{}", card.text);
    market.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_a2a_agent_has_the_names_the_book_works_out() {
    const UUID: &str = "68ef6c45-25e2-5d30-97f6-0fb3b39d956e";
    let hub = TestHub::start(Profile::Serve, FLAGS, worked_directory()).await;
    hub.post("/a2a/agents", None, &json!({"name": "echo"})).await.expect(201);
    let registry = hub.get(&format!("/registry/agents/{UUID}"), None).await.expect(200);
    assert_eq!(registry.str("/owner_id"), "a2a:echo");
    let openclaw = hub.get(&format!("/openclaw/agents/{UUID}/status"), None).await.expect(200);
    assert_eq!(openclaw.str("/agent_id"), UUID);
    assert_eq!(hub.record("echo-68ef6c45@a2a").await["native_id"], "echo");
    let agora = hub.get("/agora/agents", None).await.expect(200);
    let key = "did:key:z6MkhWt3ARjU3haVRXAqUou5o3VoCNuvkFx7cw21zsHpAmvF";
    assert_eq!(agora.str("/agents/0/id"), key);
    // An agent without skills is on no board.
    let shown = hub.get("/v1/agents/a2a:echo", None).await.expect(200);
    assert_eq!(shown.str("/names/clara"), "a2a/echo-68ef6c45");
    hub.stop().await;
}

#[test]
fn the_books_other_names_follow_from_the_same_rule() {
    for (name, uuid) in [
        ("relay:alice@chorus", "a6ee3ec5-dd35-589a-917a-ea2c3a03e30f"),
        ("clara:AO_Agent_1", "a25984fa-b6e7-5fbd-8b3e-7e30b3a61a49"),
        ("openclaw:550e8400-e29b-41d4-a716-446655440000", "7c6f2182-27c5-5a95-a060-9240c3ec1362"),
        (
            "agora:did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s",
            "a34baa6d-9533-54b0-9199-d6f717ba9fc8",
        ),
        ("a2a:echo", "68ef6c45-25e2-5d30-97f6-0fb3b39d956e"),
        ("a2a:geo-route-planner", "f125dec4-767a-5025-8cb8-179b833bbf2a"),
    ] {
        assert_eq!(uuid_of(name), uuid, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_never_registered_asks_under_the_alias_of_its_address() {
    let hub = TestHub::serve(FLAGS).await;
    let from_clara = |cell: &Cell| cell.from.id() == "clara" && cell.to.id() == "registry";
    let cell = Cell::square().into_iter().find(from_clara).expect("a cell");
    let meeting = cell.meet(&hub, Terms::at("1")).await;
    let found = cell.from.find(&hub, meeting.worker.as_ref()).await;
    meeting.requester.hire(&hub, &found, &super::matrix::order()).await.expect("it is hired");
    let given = meeting.received(&hub).await;
    let alias = uuid_of(&format!("clara:{}", meeting.requester.native()));
    assert_eq!(text(&given.bytes, "/orchestrator_id"), Some(alias), "{}", given.bytes);
    drop(meeting);
    hub.stop().await;
}

/// A hub with this secret in the environment answers the same and writes no file (B17).
#[tokio::test(flavor = "multi_thread")]
async fn the_hubs_secret_is_in_its_file_or_in_the_environment() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let hex: String = worked_secret().iter().map(|byte| format!("{byte:02x}")).collect();
    let env = [("RIALTO_HUB_SECRET", hex.as_str())];
    let hub = Process::with_env("serve", dir.path(), &[], &env);
    let http = http();
    let about = http.get(format!("{}/agora", hub.url)).send().await.expect("an answer");
    assert!(about.text().await.expect("text").contains(WORKED_HUB));
    assert!(!dir.path().join("hub.key").exists());
    hub.kill();

    let made = TestHub::serve(FLAGS).await;
    let file = made.dir.path().join("hub.key");
    assert_eq!(std::fs::read(&file).expect("a file").len(), 32);
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "readable by its owner only");
    let own = made.get("/agora", None).await.expect(200).str("/hub");
    let made = made.restart(Profile::Serve, FLAGS).await;
    assert_eq!(made.get("/agora", None).await.expect(200).str("/hub"), own);
    made.stop().await;
}

/// Every protocol in the requirements' table has a party here.
#[test]
fn the_table_of_answers_has_a_line_for_every_protocol() {
    for protocol in rialto_protocols::ALL {
        let id = parties::of(protocol.id().as_str()).id();
        assert!(!answers(id).0.is_empty());
    }
}
