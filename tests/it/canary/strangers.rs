//! Unknown callers request everything, by every id.

use rialto_hub::app::operations;
use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::life::Life;
use super::process::Watched;
use crate::agora::kit::Key;
use crate::openclaw::kit::identity;

/// What a market shows to every caller.
const SHOWN: [&str; 5] =
    ["List-Agents", "Tasks-Queue", "Dashboard-Data", "Load-Next-Assigned-Task", "Dispatch-Tasks"];

/// Makes every request as every kind of unknown caller; returns the number of responses.
pub async fn ask_everything(hub: &Watched, life: &Life) -> usize {
    let keys = keys(hub).await;
    let everything = life.canaries.everything();
    let mut answers = 0;
    for route in operations() {
        // These would remove the caller itself and end the test.
        let ends = route.method == "DELETE"
            && ["/v1/me", "/v1/keys", "/v1/keys/{id}"].contains(&&*route.path);
        if ends || route.path.ends_with("/ws") || route.path.ends_with("/keys/rotate") {
            continue;
        }
        for path in filled(&route.path, life) {
            for key in &keys {
                for (query, body) in variants(route.method, &path) {
                    let place = format!("{} {path}{query} {body}", route.method);
                    let url = format!("{}{path}{query}", hub.url);
                    let method = reqwest::Method::from_bytes(route.method.as_bytes());
                    let mut request = hub.http.request(method.expect("a method"), url);
                    if let Some(key) = key {
                        request = request.bearer_auth(key);
                    }
                    if !body.is_null() {
                        request = request.body(body.to_string());
                    }
                    let answer = request.header("last-event-id", "0").send().await;
                    let bytes = begun(answer.expect("an answer")).await;
                    everything.assert_not_in(&place, &bytes);
                    answers += 1;
                }
            }
        }
    }
    answers + lies(hub, life).await + operator(hub, life).await
}

/// The operator reads everything it can: it sees that a message or a job exists, and nothing of its
/// content.
async fn operator(hub: &Watched, life: &Life) -> usize {
    let everything = life.canaries.everything();
    let mut answers = 0;
    for route in operations().into_iter().filter(|route| route.method == "GET") {
        if route.path.ends_with("/ws") {
            continue;
        }
        for path in filled(&route.path, life) {
            for (query, _) in variants("GET", &path) {
                let url = format!("{}{path}{query}", hub.url);
                let asked = hub.http.get(url).bearer_auth(&hub.operator).send().await;
                let bytes = begun(asked.expect("an answer")).await;
                everything.assert_not_in(&format!("{path}{query} by the operator"), &bytes);
                answers += 1;
            }
        }
    }
    answers
}

/// No key, and the key of an unrelated agent of every protocol.
async fn keys(hub: &Watched) -> Vec<Option<String>> {
    let registry = json!({"agent_name": "stranger", "owner_id": "stranger", "skills": []});
    let registry = hub.post("/registry/register", None, &registry).await.expect(201);
    let relay = hub.post("/relay/register", None, &json!({"agent_id": "stranger"})).await;
    let claw = identity("stranger", crate::agora::kit::now());
    let claw = hub.post("/openclaw/identity", None, &claw).await.expect(201);
    let own = hub.get("/agora", None).await.expect(200).str("/hub");
    let own = PublicKey::parse(&own).expect("a key");
    let hello = Key::of(77).sign_for(MessageType::Hello, &json!({"inbox": true}), Some(own)).json();
    let agora = hub.post("/agora/envelopes", None, &hello).await.expect(200);
    vec![
        None,
        Some(registry.str("/api_key")),
        Some(relay.expect(201).str("/data/api_key")),
        Some(claw.str("/api_key")),
        Some(agora.str("/payload/inbox_token")),
    ]
}

/// A path with every value for its parameters.
fn filled(template: &str, life: &Life) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in template.split('/').skip(1) {
        let names = match part {
            "{job_id}" | "{uuid}" => &life.names["job"],
            "{agent_id}" | "{names}" => &life.names["agent"],
            "{owner_id}" | "{name}" => &life.names["owner"],
            "{trace_id}" => &life.names["trace"],
            "{message}" => &life.names["message"],
            "{id}" if template.contains("/agent") || template.contains("/receive") => {
                &life.names["agent"]
            }
            "{id}" if template.contains("/jobs/") || template.contains("/requests/") => {
                &life.names["job"]
            }
            "{id}" if template.contains("/collaborations/") => &life.names["job"],
            "{id}" | "{token}" => &(1..=9).map(|n| n.to_string()).collect(),
            "{agent}" | "{tenant}" => &life.names["a2a agent"][..1].to_vec(),
            "{task}" => &life.names["task"],
            "{config}" => &vec!["hook".to_owned()],
            "{process}" => &vec![rialto_protocols::clara::PROCESS.to_owned()],
            open => {
                assert!(!open.starts_with('{'), "the scenario has no value for {open}");
                &vec![open.to_owned()]
            }
        };
        let longer = |path: &String| names.iter().map(|name| format!("{path}/{name}")).collect();
        paths = paths.iter().flat_map::<Vec<String>, _>(longer).collect();
    }
    paths
}

/// What a model that knows nothing of the scenario can ask for: methods with their parameters.
const MCP_REQUESTS: [(&str, &str); 8] = [
    ("initialize", "{}"),
    ("tools/list", "{}"),
    ("resources/read", r#"{"uri":"rialto://jobs"}"#),
    ("resources/read", r#"{"uri":"rialto://inbox"}"#),
    ("resources/read", r#"{"uri":"rialto://agents/requester"}"#),
    ("tools/call", r#"{"name":"find_agents","arguments":{"online":false,"limit":20}}"#),
    ("tools/call", r#"{"name":"list_jobs","arguments":{"state":"all","side":"worked"}}"#),
    ("tools/call", r#"{"name":"read_inbox","arguments":{"limit":20}}"#),
];

fn mcp_request((method, params): &(&str, &str)) -> (&'static str, Value) {
    let params: Value = serde_json::from_str(params).expect("JSON");
    ("", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

/// The query and body variants for a path.
fn variants(method: &str, path: &str) -> Vec<(&'static str, Value)> {
    const PROCESS: &str = "?process-id=CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc";
    if path.contains("/dry-run") {
        let tags = |action: &str| {
            json!([{"name": "Action", "value": action},
            {"name": "RedStone-Agent-Id", "value": "A"}])
        };
        let run = |action: &&str| (PROCESS, json!({"Owner": "1234", "Tags": tags(action)}));
        return SHOWN.iter().map(run).collect();
    }
    if path.starts_with("/mcp") {
        return MCP_REQUESTS.iter().map(mcp_request).collect();
    }
    match method {
        "GET" if path.contains("/clara/") => vec![(PROCESS, Value::Null), ("", Value::Null)],
        "GET" => vec![
            ("", Value::Null),
            ("?limit=200&after=0&skill=work&owner_id=requester", Value::Null),
        ],
        "DELETE" => vec![("", Value::Null)],
        _ => vec![("", json!({})), ("", json!({"skill": "work", "job_id": 1}))],
    }
}

/// A response; of a stream, its beginning.
async fn begun(mut answer: reqwest::Response) -> Vec<u8> {
    let head = format!("{:?}", answer.headers());
    let kind = answer.headers().get("content-type").map(|kind| kind.as_bytes().to_vec());
    let endless = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
    let mut bytes = head.into_bytes();
    while let Ok(Some(chunk)) = answer.chunk().await {
        bytes.extend_from_slice(&chunk);
        if endless {
            break;
        }
    }
    bytes
}

/// Almost valid keys, and valid ones where none belongs: no response repeats them. The search of
/// the logs shows that no log does either.
async fn lies(hub: &Watched, life: &Life) -> usize {
    let everything = life.canaries.everything();
    let mut answers = 0;
    for (_, secret) in &life.canaries.secrets {
        let mut wrong = secret.clone();
        wrong.pop();
        for reply in [
            hub.get("/v1/me", Some(&wrong)).await,
            hub.get(&format!("/v1/jobs?key={secret}"), None).await,
            hub.get(&format!("/registry/agents/{secret}"), None).await,
            hub.get(&format!("/nowhere/{secret}"), None).await,
            hub.post("/relay/messages", Some(&wrong), &json!({})).await,
            hub.post("/registry/register", None, &json!({ "agent_name": 1, "key": secret })).await,
            hub.post("/a2a", Some(&wrong), &json!({})).await,
            hub.post("/a2a/agents", None, &unusable(secret)).await,
        ] {
            assert!(reply.status >= 400, "{}", reply.text);
            everything.assert_not_in("an error", reply.text.as_bytes());
            answers += 1;
        }
    }
    answers
}

/// A registration of a server that cannot be reached, with a secret for it.
fn unusable(secret: &str) -> Value {
    json!({"name": "unusable", "card_url": "http://127.0.0.1:1/card.json",
        "auth": {"scheme": "bearer", "token": secret}})
}
