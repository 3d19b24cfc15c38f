//! Cards (R1–R4, R6–R10).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rialto_engine::secret::HubSecret;
use rialto_hub::config::Profile;
use rialto_protocols::kit::ed25519::PublicKey;
use rialto_protocols::kit::jws::{self, JwkSet, ProtectedHeader};
use rialto_protocols::kit::{ijson, jcs};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::kit::{HIRE, HUB, TaskWorker, text_message};
use crate::agora::kit as agora;
use crate::clara::kit as clara;
use crate::kit::{Reply, TestHub};
use crate::openclaw::kit::Hub;

/// What 0.3 adds to a card.
const OLD_MEMBERS: [&str; 6] = [
    "url",
    "preferredTransport",
    "protocolVersion",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "security",
];
const SIGNED: &str = include_str!("../../../crates/protocols/src/a2a/fixtures/signed-card.json");

/// JSON text without the spaces and line ends between its tokens.
fn compact(text: &str) -> String {
    let (mut out, mut in_text, mut escaped) = (String::new(), false, false);
    for c in text.chars() {
        if in_text || !c.is_ascii_whitespace() {
            out.push(c);
        }
        match c {
            '"' if !escaped => in_text = !in_text,
            _ => {}
        }
        escaped = in_text && c == '\\' && !escaped;
    }
    out
}

/// A value of the signed cards, as it is written.
fn signed(path: [&str; 2]) -> String {
    let text = compact(SIGNED);
    let json = ijson::read(text.as_bytes()).expect("a fixture");
    let found = path.iter().filter(|name| !name.is_empty());
    found.fold(&json, |json, name| json.get(name).expect("a member")).raw().to_owned()
}

/// The card of 1.0.
pub async fn strict(hub: &TestHub, path: &str) -> Reply {
    hub.send("GET", path, &[("a2a-version", "1.0")], b"").await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_and_every_agent_have_a_card_without_a_key() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    let own = hub.get(HUB, None).await.expect(200);
    assert_eq!(own.str("/name"), "Rialto");
    assert_eq!(own.header("content-type"), Some("application/json"));
    for path in ["/.well-known/agent-card.json", "/a2a/.well-known/agent-card.json"] {
        assert_eq!(hub.get(path, None).await.expect(200).text, own.text, "{path}");
    }
    let card = hub.get(&base, None).await.expect(200);
    assert_eq!(card.str("/supportedInterfaces/0/url"), format!("{}{base}", hub.url));
    assert_eq!(card.str("/skills/0/id"), "analyze_text");
    let path = format!("{base}/.well-known/agent-card.json");
    assert_eq!(hub.get(&path, None).await.expect(200).text, card.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_unknown_or_has_left_has_no_card() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    hub.get(&base, None).await.expect(200);
    let path = format!("/registry/agents/{}", worker.id);
    hub.call("DELETE", &path, Some(&worker.key), None).await.expect(200);
    for base in [base.as_str(), "/a2a/agents/nobody-12345678"] {
        for path in [base.to_owned(), format!("{base}/.well-known/agent-card.json")] {
            let reply = hub.get(&path, None).await.expect(404);
            assert_eq!(reply.at("/error/code"), 404, "{path}");
            assert_eq!(reply.str("/error/status"), "NOT_FOUND");
            assert_eq!(reply.str("/error/details/0/reason"), "NOT_FOUND");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_how_long_it_may_be_kept_and_is_sent_again_only_when_it_changed() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    for path in [base.as_str(), HUB] {
        let both = hub.get(path, None).await.expect(200);
        let one = strict(&hub, path).await;
        for card in [&both, &one] {
            assert_eq!(card.header("cache-control"), Some("public, max-age=60"));
            assert_eq!(card.header("vary"), Some("A2A-Version"));
            let changed = card.header("last-modified").expect("a time");
            assert!(changed.ends_with(" GMT") && changed.len() == 29, "{changed}");
        }
        let tag = both.header("etag").expect("a tag").to_owned();
        assert!(tag.starts_with("W/\"") && tag.ends_with('"'), "{tag}");
        assert_ne!(one.header("etag"), Some(tag.as_str()), "the forms differ");
        let strong = tag.trim_start_matches("W/").to_owned();
        for known in [tag.clone(), format!("\"other\", {tag}"), strong, "*".to_owned()] {
            let same = hub.send("GET", path, &[("if-none-match", known.as_str())], b"").await;
            assert_eq!((same.status, same.text.as_str()), (304, ""), "{known}");
            assert_eq!(same.header("etag"), Some(tag.as_str()));
            assert_eq!(same.header("cache-control"), Some("public, max-age=60"));
        }
        let other = [("if-none-match", tag.as_str()), ("a2a-version", "1.0")];
        hub.send("GET", path, &other, b"").await.expect(200);
        hub.send("GET", path, &[("if-none-match", "\"other\"")], b"").await.expect(200);
    }
    hub.stop().await;
}

/// Everything in a value that has the form of an absent member.
fn empty_values(value: &Value, at: &str, found: &mut Vec<String>) {
    let is_empty = match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if is_empty {
        found.push(at.to_owned());
    }
    match value {
        Value::Array(items) => {
            items.iter().for_each(|item| empty_values(item, &format!("{at}[]"), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| {
                empty_values(value, &format!("{at}.{name}"), found);
            });
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_card_has_the_members_of_1_0_and_nothing_empty() {
    // Agents of every protocol.
    let hub = clara::Hub::serve(&[]).await;
    hub.agent(&clara::Wallet::of(1), "A", "tweet", "1").await;
    let hub = agora::Hub(hub.0);
    hub.provider(&agora::Key::of(1), "sum", Some(json!(0.5))).await;
    hub.provider(&agora::Key::of(2), "sum", None).await;
    let hub = Hub(hub.0);
    hub.node("summer").await;
    let hub = hub.0;
    let full = hub.agent("acme", "analyze_text", "0.10", None).await;
    let plain = json!({"agent_name": "Plain", "owner_id": "plain",
        "skills": [{"skill_name": "sum", "cost_per_call": 0}]});
    let plain = hub.enrol(&plain, None).await;
    let without_skills = hub.orchestrator("boss").await;
    hub.a2a_client("my-client").await;
    hub.join("bob@chorus").await;
    let listed = hub.get("/a2a/agents", None).await.expect(200).at("/agents");
    let listed = listed.as_array().expect("agents");
    // Those without skills are not listed; they have a card, too.
    assert_eq!(listed.len(), 7, "{listed:?}");
    let homes: BTreeSet<&str> =
        listed.iter().map(|one| one["protocol"].as_str().expect("a protocol")).collect();
    assert_eq!(homes.len(), rialto_protocols::ALL.len() - 1, "{homes:?}");
    let boss = hub.a2a_path("registry", &without_skills.id);
    let by_offer = listed.iter().filter(|one| one["protocol"] == "agora").nth(1);
    let by_offer =
        format!("/a2a/agents/{}", by_offer.expect("a provider")["name"].as_str().unwrap());
    let card = strict(&hub, &by_offer).await;
    let price = card.at("/capabilities/extensions/0/params/skills/sum");
    assert_eq!(price, json!({"price": "0", "byOffer": true}));
    let urls = listed.iter().map(|one| one["card"].as_str().expect("a URL"));
    let mut paths: Vec<&str> = urls.map(|url| url.trim_start_matches(&hub.url)).collect();
    paths.extend([HUB, "/a2a/agents/my-client", boss.as_str()]);
    for own in [&full, &plain] {
        let path = hub.a2a_path("registry", &own.id);
        assert!(paths.iter().any(|one| one.starts_with(&path)), "{path}");
    }
    for path in paths {
        let card = strict(&hub, path).await.json();
        let names: Vec<&String> = card.as_object().expect("an object").keys().collect();
        let printed = [
            "capabilities",
            "defaultInputModes",
            "defaultOutputModes",
            "description",
            "name",
            "provider",
            "securityRequirements",
            "securitySchemes",
            "signatures",
            "skills",
            "supportedInterfaces",
            "version",
        ];
        assert_eq!(names, printed, "{path}");
        let mut empty = Vec::new();
        empty_values(&card, "", &mut empty);
        assert_eq!(empty, Vec::<String>::new(), "{path}");
        for skill in card["skills"].as_array().expect("skills") {
            assert!(skill["tags"].as_array().is_some_and(|tags| !tags.is_empty()), "{skill}");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_0_3_find_their_members_unless_they_ask_for_1_0() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    let url = format!("{}{base}", hub.url);
    for stated in ["", "0.3", "0.3.0", "2.0"] {
        let card = hub.send("GET", &base, &[("a2a-version", stated)], b"").await.expect(200);
        let card = card.json();
        assert_eq!(card["protocolVersion"], "0.3.0", "{stated}");
        assert_eq!((&card["url"], &card["preferredTransport"]), (&json!(url), &json!("JSONRPC")));
        let additional = json!([{"url": url, "transport": "JSONRPC"}]);
        assert_eq!(card["additionalInterfaces"], additional);
        assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
        assert_eq!(card["security"], json!([{"key": ["agent"]}]));
        assert_eq!(card["securitySchemes"]["key"]["type"], "http");
        assert_eq!(card["securitySchemes"]["key"]["scheme"], "Bearer");
    }
    for (path, stated) in
        [(base.clone(), "1.0"), (base.clone(), "1.7"), (format!("{base}?A2A-Version=1.0"), "")]
    {
        let card = hub.send("GET", &path, &[("a2a-version", stated)], b"").await.expect(200);
        let card = card.json();
        assert!(OLD_MEMBERS.iter().all(|name| card.get(name).is_none()), "{path} {stated}");
        let scheme = card["securitySchemes"]["key"].as_object().expect("a scheme");
        assert_eq!(scheme.keys().collect::<Vec<_>>(), ["httpAuthSecurityScheme"]);
    }
    hub.stop().await;
    // The operator may leave them out for all.
    let hub = TestHub::serve(&[("a2a.card", "1.0")]).await;
    let card = hub.get(HUB, None).await.expect(200).json();
    assert!(OLD_MEMBERS.iter().all(|name| card.get(name).is_none()), "{card}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_three_interfaces_are_at_one_url_in_their_order() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    for base in [HUB.to_owned(), hub.a2a_path("registry", &worker.id)] {
        let card = strict(&hub, &base).await.json();
        let url = format!("{}{base}", hub.url);
        let of = |binding: &str, version: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
        let printed = json!([of("JSONRPC", "1.0"), of("HTTP+JSON", "1.0"), of("JSONRPC", "0.3")]);
        assert_eq!(card["supportedInterfaces"], printed);
    }
    hub.stop().await;
}

/// The text that a card's signature is over.
fn signed_text(card: &str) -> String {
    let mut members: Value = serde_json::from_str(card).expect("JSON");
    let object = members.as_object_mut().expect("an object");
    for name in OLD_MEMBERS.iter().chain(&["signatures"]) {
        object.remove(*name);
    }
    if let Some(key) = object.get_mut("securitySchemes").and_then(|all| all.get_mut("key")) {
        for name in ["type", "scheme", "description"] {
            key.as_object_mut().expect("a scheme").remove(name);
        }
    }
    let text = members.to_string();
    jcs::canonicalize(&ijson::read(text.as_bytes()).expect("JSON")).expect("canonical JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_are_signed_by_the_key_of_the_hub() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let keys = hub.get("/a2a/jwks.json", None).await.expect(200);
    assert_eq!(keys.at("/keys").as_array().map(Vec::len), Some(1));
    // The hub's key for envelopes is another one.
    let envelopes = hub.get("/agora", None).await.expect(200).str("/hub");
    let envelopes = PublicKey::parse(&envelopes).expect("a key");
    assert_ne!(keys.str("/keys/0/x"), URL_SAFE_NO_PAD.encode(envelopes.as_bytes()));
    let keys = JwkSet::parse(keys.text.as_bytes()).expect("a key set");
    for base in [HUB.to_owned(), hub.a2a_path("registry", &worker.id)] {
        let both = hub.get(&base, None).await.expect(200);
        let one = strict(&hub, &base).await;
        assert_eq!(both.at("/signatures"), one.at("/signatures"), "one signature for both forms");
        for card in [both, one] {
            let protected = card.str("/signatures/0/protected");
            let header = ProtectedHeader::parse(&protected).expect("a header");
            assert_eq!(header.alg.as_str(), "EdDSA");
            assert_eq!(header.kid.as_deref(), Some("card-1"));
            assert_eq!(header.typ.as_deref(), Some("JOSE"));
            assert_eq!(header.jku, Some(format!("{}/a2a/jwks.json", hub.url)));
            let key = keys.find(&header).expect("the key");
            let signature = card.str("/signatures/0/signature");
            let text = signed_text(&card.text);
            assert_eq!(jws::verify(&protected, text.as_bytes(), &signature, key), Ok(()));
            let changed = text.replacen("\"version\":\"", "\"version\":\"9", 1);
            assert!(jws::verify(&protected, changed.as_bytes(), &signature, key).is_err());
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_the_printed_secret_and_url_has_the_printed_card_and_key() {
    let dir = TempDir::new().expect("a directory");
    let secret = HubSecret::from_bytes(std::array::from_fn(|at| at as u8));
    secret.write_file(dir.path()).expect("a file");
    let flags = [("http.public_url", "https://hub.example")];
    let hub = TestHub::start(Profile::Serve, &flags, dir).await;
    for path in [HUB, "/.well-known/agent-card.json"] {
        let one = strict(&hub, path).await.text;
        assert_eq!(one, signed(["hub", "strict"]));
        let both = hub.get(path, None).await.expect(200).text;
        assert_eq!(both, signed(["hub", "both"]));
        let canonical: String =
            serde_json::from_str(&signed(["hub", "canonical"])).expect("a text");
        assert_eq!(signed_text(&both), canonical);
    }
    let keys = hub.get("/a2a/jwks.json", None).await.expect(200).text;
    assert_eq!(keys, signed(["jwks", ""]));
    // Another key signs otherwise, and the tag is that of the same card.
    let other = TestHub::serve(&flags).await;
    let (own, others) = (strict(&hub, HUB).await, strict(&other, HUB).await);
    assert_ne!(own.at("/signatures"), others.at("/signatures"));
    assert_eq!(own.header("etag"), others.header("etag"));
    other.stop().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_prices_schemas_and_trust_are_those_of_the_other_lists() {
    let hub = TestHub::serve(&[]).await;
    let schema = json!({"text": "string"});
    let skills = json!([
        {"skill_name": "analyze_text", "description": "Finds names", "cost_per_call": 0.10,
            "input_schema": schema, "output_schema": {"entities": "list"}},
        {"skill_name": "sum", "description": "", "cost_per_call": 0},
    ]);
    let worker = TaskWorker::with_skills(&hub, "Text-Analyst-3000", skills).await;
    let card = strict(&hub, &worker.base).await;
    assert_eq!(card.str("/name"), "Text-Analyst-3000");
    assert_eq!(card.str("/version"), "0.1");
    assert_eq!(card.str("/description"), "analyze_text, sum", "it has none of its own");
    assert_eq!(card.at("/provider"), json!({"organization": "Text-Analyst-3000", "url": hub.url}));
    let ids: Vec<Value> = card
        .at("/skills")
        .as_array()
        .expect("skills")
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(ids, ["analyze_text", "sum"]);
    assert_eq!(card.at("/skills/0/tags"), json!(["analyze_text", "registry"]));
    assert_eq!(card.str("/skills/1/description"), "sum");
    let extension = |uri: &str| {
        let all = card.at("/capabilities/extensions");
        let uri = format!("urn:rialto:a2a:{uri}");
        let mut found = all.as_array().expect("extensions").iter().filter(|one| one["uri"] == uri);
        found.next().unwrap_or_else(|| panic!("no {uri} in {all}")).clone()
    };
    let prices = &extension("hire:v1")["params"];
    assert_eq!(prices["currency"], "credits");
    assert_eq!(prices["skills"], json!({"analyze_text": {"price": "0.10"}, "sum": {"price": "0"}}));
    // The schemas that other protocols show of the same skill.
    let shown = hub.get(&format!("/registry/agents/{}", worker.agent.id), None).await.expect(200);
    let schemas = &extension("schemas:v1")["params"]["skills"];
    assert_eq!(schemas["analyze_text"]["input"], shown.at("/skills/0/input_schema"));
    assert!(schemas.get("sum").is_none(), "it has no schemas: {schemas}");
    let trust = &extension("trust:v1")["params"];
    assert_eq!(trust["protocol"], "registry");
    assert_eq!(trust["nativeId"], worker.agent.id);
    let counts = ["settled", "succeeded", "requesters"].map(|name| trust[name].clone());
    assert_eq!(counts, [json!(0), json!(0), json!(0)]);
    let score = shown.at("/reputation_score").as_f64();
    let own = trust["scores"]["registry"].as_str().and_then(|score| score.parse().ok());
    assert_eq!((own, score), (Some(50.0), Some(50.0)), "{trust}");
    assert!(trust["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{trust}");
    assert_eq!(extension("resume:v1").get("params"), None);
    assert!(
        card.at("/capabilities/extensions")
            .as_array()
            .expect("extensions")
            .iter()
            .all(|one| one.get("required").is_none())
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_skill_price_or_trust_is_in_the_next_card() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "analyze_text", "0.10").await;
    let tag = async || strict(&hub, &worker.base).await.header("etag").expect("a tag").to_owned();
    let first = tag().await;
    assert_eq!(tag().await, first);
    let skills = json!([{"skill_name": "analyze_text", "cost_per_call": 0.25}]);
    let update = json!({"agent_id": worker.agent.id, "agent_name": "analyze_text",
        "owner_id": worker.agent.owner, "version": "0.1", "skills": skills});
    hub.pass(rialto_core::time::Millis::seconds(2));
    hub.post("/registry/register", Some(&worker.agent.key), &update).await.expect(200);
    let second = tag().await;
    assert_ne!(second, first);
    let card = strict(&hub, &worker.base).await;
    let changed_price = card.header("last-modified").expect("a time").to_owned();
    let prices = card.at("/capabilities/extensions/0/params/skills/analyze_text/price");
    assert_eq!(prices, "0.25");
    // A finished job counts for the trust that the card shows.
    let client = hub.rich_client("payer").await;
    let message = super::kit::hire_message("m-1", "hi", json!({"budget": "0.25"}));
    hub.pass(rialto_core::time::Millis::seconds(2));
    let (_, job) = tokio::join!(
        hub.result(&worker.base, &client.key, "SendMessage", json!({"message": message})),
        worker.work(json!({"text": "done"}))
    );
    assert_eq!(job["skill"], "analyze_text");
    assert_ne!(tag().await, second);
    let card = strict(&hub, &worker.base).await;
    let trust = card.at("/capabilities/extensions");
    let trust = trust.as_array().expect("extensions").iter();
    let mut trust = trust.filter(|one| one["uri"] == "urn:rialto:a2a:trust:v1");
    assert_eq!(trust.next().expect("trust")["params"]["succeeded"], 1);
    let changed_trust = card.header("last-modified").expect("a time");
    assert_ne!(changed_trust, changed_price);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_skills_has_a_card_and_takes_no_tasks() {
    let hub = TestHub::serve(&[]).await;
    let boss = hub.orchestrator("boss").await;
    let client = hub.a2a_client("asker").await;
    let base = hub.a2a_path("registry", &boss.id);
    assert_eq!(strict(&hub, &base).await.str("/skills/0/id"), "none");
    let message = json!({"message": text_message("m-1", "hello")});
    let answer = hub.result(&base, &client.key, "SendMessage", message).await;
    assert_eq!(answer["message"]["metadata"][HIRE]["refused"], "NO_SUCH_SKILL", "{answer}");
    hub.stop().await;
}
