//! How messages travel: eras, headers, statuses, streams, keys.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Era, McpClient, data_of};
use crate::kit::{Behaviour, Reply, TestHub, Worker, eventually};

/// An origin that the operator lists.
const LISTED: &str = "https://app.example";

fn clients(hub: &TestHub, key: Option<&str>) -> [McpClient; 2] {
    [Era::Old, Era::New].map(|era| McpClient::new(hub, "/mcp", key, era))
}

/// A message of the old era without any header but those given.
async fn post(hub: &TestHub, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut request = hub.http.post(format!("{}/mcp", hub.url)).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Reply::to(request).await
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn both_eras_are_served_at_one_url_and_nothing_is_remembered() {
    let hub = TestHub::serve(&[]).await;
    let [old, new] = clients(&hub, None);
    let opened = old.result("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(opened["protocolVersion"], "2025-06-18");
    let discovered = new.result("server/discover", Value::Null).await;
    let versions = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]);
    assert_eq!(discovered["supportedVersions"], versions);
    assert_eq!(opened["instructions"], discovered["instructions"]);
    assert!(opened["instructions"].as_str().expect("a text").chars().count() <= 2_000);
    let unknown = old.result("initialize", json!({"protocolVersion": "2024-11-05"})).await;
    assert_eq!(unknown["protocolVersion"], "2025-11-25");
    // Without any opening, with a session of another server, and after a restart.
    let before = post(&hub, &[], LIST).await.expect(200).text;
    let session = post(&hub, &[("mcp-session-id", "s-1")], LIST).await.expect(200);
    assert_eq!(session.text, before);
    assert!(!session.headers.contains_key("mcp-session-id"));
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    assert_eq!(post(&hub, &[], LIST).await.expect(200).text, before, "equal bytes");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_the_new_era_name_the_server_and_how_long_they_may_be_kept() {
    let hub = TestHub::serve(&[]).await;
    let [old, new] = clients(&hub, None);
    let kept = |result: &Value| {
        (result["ttlMs"].as_u64(), result["cacheScope"].as_str().map(str::to_owned))
    };
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let result = new.result(method, Value::Null).await;
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "rialto");
        assert_eq!(kept(&result), (Some(3_600_000), Some("public".to_owned())), "{method}");
        let result = old.result(method, Value::Null).await;
        for member in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert!(result.get(member).is_none(), "{method}: {result}");
        }
        let cursor = new.respond(method, json!({"cursor": "x"})).await;
        assert_eq!(cursor["error"]["code"], -32602, "{method}: no cursor was given out");
    }
    let discovered = new.result("server/discover", Value::Null).await;
    assert_eq!(kept(&discovered), (Some(3_600_000), Some("public".to_owned())));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accept_decides_the_form_of_the_answer() {
    let hub = TestHub::serve(&[]).await;
    let media = |reply: &Reply| reply.headers["content-type"].to_str().expect("a text").to_owned();
    for both in ["*/*", "application/json, text/event-stream", "application/json"] {
        let reply = post(&hub, &[("accept", both)], PING).await.expect(200);
        assert_eq!(media(&reply), "application/json", "{both}");
    }
    let stream = post(&hub, &[("accept", "text/event-stream")], PING).await.expect(200);
    assert_eq!(media(&stream), "text/event-stream");
    assert_eq!(data_of(&stream.text), [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
    assert!(!stream.text.contains("id:"), "no ids: {}", stream.text);
    let neither = post(&hub, &[("accept", "text/html")], PING).await.expect(406);
    assert_eq!(neither.json()["error"]["code"], -32600);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_offered_is_refused_and_none_means_the_first() {
    let hub = TestHub::serve(&[]).await;
    for version in ["2024-11-05", "draft", "1"] {
        let reply = post(&hub, &[("mcp-protocol-version", version)], PING).await.expect(400);
        assert_eq!(reply.json()["error"]["code"], -32600, "{version}");
    }
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        post(&hub, &[("mcp-protocol-version", version)], PING).await.expect(200);
    }
    post(&hub, &[], PING).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_refused_before_the_body_is_read_and_told_how_to_connect() {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("ada").await;
    let unknown = format!("Bearer rk_{}", "0".repeat(48));
    let basic = "Basic YTpi".to_owned();
    for (path, credential) in [("/mcp", &unknown), ("/mcp", &basic), ("/mcp/agents/x", &unknown)] {
        let request =
            hub.http.post(format!("{}{path}", hub.url)).header("authorization", credential);
        // A body that would be refused if it were read.
        let reply = Reply::to(request.body("{nope")).await.expect(401);
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        assert!(!reply.text.contains("resource_metadata"));
        let error = &reply.json()["error"];
        assert!(error["message"].as_str().expect("a text").contains("rialto connect"), "{error}");
        assert_eq!(error["data"], json!({"code": "unauthorized", "retryable": false}));
    }
    let operator =
        post(&hub, &[("authorization", &format!("Bearer {}", hub.operator))], "{nope").await;
    assert_eq!(operator.expect(403).json()["error"]["data"]["code"], "forbidden");
    hub.call("DELETE", "/v1/keys", Some(&agent.key), None).await;
    let revoked = post(&hub, &[("authorization", &format!("Bearer {}", agent.key))], PING).await;
    revoked.expect(401);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_edge_are_json_rpc_errors_with_the_usual_headers() {
    let flags = [("http.body_limit", "2000"), ("limits.wrong_keys_per_minute", "1")];
    let hub = TestHub::serve(&flags).await;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(3_000));
    let reply = post(&hub, &[], &long).await.expect(413);
    assert_eq!(reply.json()["error"]["data"], json!({"code": "too_large", "retryable": false}));
    let reply = post(&hub, &[("content-encoding", "gzip")], PING).await.expect(415);
    assert_eq!(reply.json()["error"]["data"]["code"], "encoded");
    let wrong = format!("Bearer rk_{}", "0".repeat(48));
    post(&hub, &[("authorization", &wrong)], PING).await.expect(401);
    let reply = post(&hub, &[("authorization", &wrong)], PING).await.expect(429);
    let data = &reply.json()["error"]["data"];
    assert_eq!((&data["code"], &data["retryable"]), (&json!("rate_limited"), &json!(true)));
    let seconds = reply.headers["retry-after"].to_str().expect("a text");
    assert_eq!(data["retry_after_seconds"].to_string(), seconds);
    let unknown = hub.post("/mcp/nope", None, &json!({})).await.expect(404);
    assert_eq!(unknown.json()["error"]["data"]["code"], "not_found");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_oauth_and_a_client_registration_is_no_registration() {
    let hub = TestHub::serve(&[]).await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration",
    ] {
        hub.get(path, None).await.expect(404);
    }
    let client = json!({"client_name": "Some client", "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": ["authorization_code"], "token_endpoint_auth_method": "none"});
    hub.post("/register", None, &client).await.expect(400);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_pages_of_listed_origins_may_call_and_they_may_read_the_answer() {
    let hub = TestHub::serve(&[("mcp.allowed_origins", LISTED)]).await;
    post(&hub, &[("host", "evil.example")], PING).await.expect(421);
    let listed = post(&hub, &[("origin", LISTED)], PING).await.expect(200);
    assert_eq!(listed.headers["access-control-allow-origin"], LISTED);
    assert_eq!(listed.headers["vary"], "origin");
    for origin in ["https://evil.example", "http://app.example", "null"] {
        let reply = post(&hub, &[("origin", origin)], PING).await.expect(403);
        assert!(!reply.headers.contains_key("access-control-allow-origin"), "{origin}");
    }
    // A refusal can be read, too.
    let wrong = [("origin", LISTED), ("authorization", "Bearer rk_x")];
    let refused = post(&hub, &wrong, PING).await.expect(401);
    assert_eq!(refused.headers["access-control-allow-origin"], LISTED);
    let preflight = async |origin: &str, path: &str| {
        let request = hub.http.request(reqwest::Method::OPTIONS, format!("{}{path}", hub.url));
        let request = request
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,mcp-method");
        Reply::to(request).await
    };
    let allowed = preflight(LISTED, "/mcp").await.expect(204);
    assert_eq!(allowed.headers["access-control-allow-origin"], LISTED);
    assert_eq!(allowed.headers["access-control-allow-methods"], "POST");
    assert_eq!(allowed.headers["access-control-allow-headers"], "authorization,mcp-method");
    preflight("https://evil.example", "/mcp").await.expect(403);
    // The list is for models alone.
    preflight(LISTED, "/v1/jobs").await.expect(403);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_can_be_switched_off() {
    let hub = TestHub::serve(&[("mcp.enabled", "false")]).await;
    post(&hub, &[], PING).await.expect(404);
    hub.post("/mcp/agents/x", None, &json!({})).await.expect(404);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_only_what_is_public_works() {
    let hub = TestHub::serve(&[]).await;
    hub.agent("ada", "sum", "0.05", None).await;
    for client in clients(&hub, None) {
        client.result("tools/list", Value::Null).await;
        client.result("prompts/get", json!({"name": "inbox"})).await;
        client.ok("find_agents", json!({"skill": "sum", "online": false})).await;
        client.ok("describe_agent", json!({"agent": "ada's agent"})).await;
        client.ok("explain_reputation", json!({"agent": "ada's agent"})).await;
        let uri = "rialto://agents/ada's%20agent";
        client.result("resources/read", json!({"uri": uri})).await;
        for tool in ["whoami", "list_jobs"] {
            let text = client.fail(tool, json!({}), "no_key").await;
            assert!(text.contains("rialto connect"), "{text}");
        }
        let hire = json!({"skill": "sum", "input": {}, "budget": "1"});
        client.fail("hire", hire, "no_key").await;
        for uri in ["rialto://me", "rialto://inbox", "rialto://jobs"] {
            let response = client.respond("resources/read", json!({"uri": uri})).await;
            assert_eq!(response["error"]["data"]["code"], "no_key", "{response}");
        }
    }
    let [_, new] = clients(&hub, None);
    let listen = new.respond("subscriptions/listen", json!({"notifications": {}})).await;
    assert_eq!(listen["error"]["data"]["code"], "no_key", "{listen}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guest_is_one_agent_with_an_account_of_its_own_for_ever() {
    let flags = [("mcp.guest", "true"), ("ledger.welcome_grant", "100")];
    let hub = TestHub::serve(&flags).await;
    let [old, new] = clients(&hub, None);
    // Two at once find or register the same agent.
    let (one, other) = tokio::join!(old.ok("whoami", json!({})), new.ok("whoami", json!({})));
    assert_eq!(one["agent"], other["agent"]);
    assert!(one["agent"].as_str().expect("an address").starts_with("mcp-guest-"), "{one}");
    assert_eq!(one["available"], "100.00", "the welcome grant, once");
    assert_eq!(hub.balance("mcp-guest").await.0, "100.00");
    // Nobody else gets the account.
    let body = json!({"agent_name": "x", "owner_id": "mcp-guest", "skills": []});
    hub.post("/registry/register", None, &body).await.expect(409);
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &flags).await;
    let [old, _] = clients(&hub, None);
    let again = old.ok("whoami", json!({})).await;
    assert_eq!((&again["agent"], &again["available"]), (&one["agent"], &one["available"]));
    hub.stop().await;
}

#[test]
fn a_guest_beyond_loopback_is_an_error_of_the_configuration() {
    use rialto_hub::config::{LoadedConfig, Profile};
    let load = |flags: &[(&str, &str)]| {
        let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        LoadedConfig::load(Profile::Serve, None, std::iter::empty(), &flags)
    };
    let open = [("http.listen", "192.0.2.1:7425"), ("mcp.guest", "true")];
    let error = load(&open).expect_err("a conflict").to_string();
    assert!(error.contains("mcp.guest") && error.contains("loopback"), "{error}");
    load(&open[..1]).expect("without a guest");
    load(&open[1..]).expect("on loopback");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_longer_than_a_second_is_a_stream() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.orchestrator("ada").await;
    for client in clients(&hub, Some(&ada.key)) {
        let wait = json!({"name": "next_job", "arguments": {"wait_seconds": 2}});
        let mut slow = client.request("tools/call", wait.clone()).send().await.expect("a head");
        assert_eq!(slow.headers()["content-type"], "text/event-stream");
        assert_eq!(slow.headers()["x-accel-buffering"], "no");
        let mut text = String::new();
        while let Some(bytes) = slow.chunk().await.expect("bytes") {
            text += &String::from_utf8_lossy(&bytes);
        }
        let messages = data_of(&text);
        assert_eq!(messages.len(), 1, "{text}");
        assert_eq!(messages[0]["result"]["structuredContent"]["more"], false, "{text}");
        // A client that takes no stream waits.
        let (message, _) = client.message("tools/call", wait);
        let mut request = hub.http.post(&client.url).body(message.to_string());
        for (name, value) in client.message("tools/call", message["params"].clone()).1 {
            let value = if name == "accept" { "application/json".to_owned() } else { value };
            request = request.header(name, value);
        }
        let whole = Reply::to(request.bearer_auth(&ada.key)).await.expect(200);
        assert_eq!(whole.headers["content-type"], "application/json");
    }
    hub.stop().await;
}

/// How many waits of a hub's agents are open.
fn open_waits(metrics: &str) -> usize {
    let line = "rialto_mcp_requests_total{method=\"tools/call\"";
    metrics
        .lines()
        .filter(|found| found.starts_with(line) && found.contains("outcome=\"hung_up\""))
        .filter_map(|found| found.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_may_wait_sixty_four_times_and_hanging_up_frees_its_waits() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.orchestrator("ada").await;
    let client = McpClient::new(&hub, "/mcp", Some(&ada.key), Era::New);
    let wait = json!({"name": "read_inbox", "arguments": {"wait_seconds": 50}});
    let (mut silent, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..32 {
        // One that takes no stream gets no head before the end.
        let (message, headers) = client.message("tools/call", wait.clone());
        let mut request = hub.http.post(&client.url).bearer_auth(&ada.key);
        for (name, value) in headers.into_iter().filter(|(name, _)| *name != "accept") {
            request = request.header(name, value);
        }
        let request = request.header("accept", "application/json").body(message.to_string());
        silent.push(tokio::spawn(request.send()));
        streams.push(tokio::spawn(client.request("tools/call", wait.clone()).send()));
    }
    let mut open = Vec::new();
    for stream in streams {
        open.push(stream.await.expect("no panic").expect("a head"));
    }
    let refused = async || {
        let call = json!({"wait_seconds": 1});
        let result = client.call("read_inbox", call).await;
        result["_meta"]["rialto/error"].clone()
    };
    let error = refused().await;
    assert_eq!(
        (&error["code"], &error["retry_after_seconds"]),
        (&json!("rate_limited"), &json!(1))
    );
    // Other agents wait on.
    let other = hub.orchestrator("bob").await;
    let other = McpClient::new(&hub, "/mcp", Some(&other.key), Era::New);
    other.ok("read_inbox", json!({"wait_seconds": 1})).await;
    // Half of them hang up before their head, half in the middle of their stream.
    silent.iter().for_each(tokio::task::JoinHandle::abort);
    drop(open);
    let begun = std::time::Instant::now();
    eventually(async || refused().await.is_null()).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let metrics = hub.get("/metrics", Some(&hub.operator)).await.text;
    assert!(open_waits(&metrics) >= 32, "{metrics}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_may_write_count_as_writes_and_calls_that_only_read_do_not() {
    let hub = TestHub::serve(&[("limits.writes_per_minute", "3")]).await;
    let ada = hub.orchestrator("ada").await;
    let client = McpClient::new(&hub, "/mcp", Some(&ada.key), Era::Old);
    for _ in 0..6 {
        client.ok("whoami", json!({})).await;
        client.result("tools/list", Value::Null).await;
    }
    for _ in 0..3 {
        client.ok("update_profile", json!({"name": "Ada"})).await;
    }
    let result = client.call("update_profile", json!({"name": "Ada"})).await;
    let error = &result["_meta"]["rialto/error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("rate_limited"), &json!(true)));
    assert!(error["retry_after_seconds"].as_u64().is_some_and(|seconds| seconds > 0), "{error}");
    client.ok("whoami", json!({})).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_method_era_tool_and_outcome_and_never_by_agent() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.orchestrator("ada-canary").await;
    let [old, new] = clients(&hub, Some(&ada.key));
    old.ok("whoami", json!({})).await;
    new.respond("tools/call", json!({"name": "canary_tool", "arguments": {}})).await;
    new.fail("get_job", json!({"job_id": "00000000-0000-4000-8000-000000000000"}), "not_found")
        .await;
    new.result("server/discover", Value::Null).await;
    let metrics = hub.get("/metrics", Some(&hub.operator)).await.text;
    for line in [
        r#"method="tools/call",era="old",tool="whoami",outcome="ok"} 1"#,
        r#"method="tools/call",era="new",tool="unknown",outcome="protocol_error"} 1"#,
        r#"method="tools/call",era="new",tool="get_job",outcome="tool_error"} 1"#,
        r#"method="server/discover",era="new",tool="none",outcome="ok"} 1"#,
    ] {
        assert!(
            metrics.contains(&format!("rialto_mcp_requests_total{{{line}")),
            "{line}\n{metrics}"
        );
    }
    assert!(!metrics.contains("canary") && !metrics.contains(&ada.id));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_request_names_is_dialled_and_no_key_reaches_a_worker() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Succeed(json!({}), "0")).await;
    hub.agent("worker", "sum", "0", Some(&worker.url)).await;
    let ada = hub.orchestrator("ada").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/x", listener.local_addr().expect("an address"));
    for client in clients(&hub, Some(&ada.key)) {
        let info = json!({"name": "x", "version": "1", "websiteUrl": url, "icons": [{"src": url}]});
        let opened =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        client.respond("initialize", opened).await;
        client.respond("resources/read", json!({"uri": url})).await;
        let input = json!({"$ref": url, "callback_url": url, "link": url, "era": format!("{:?}", client.era)});
        let meta = json!({"io.modelcontextprotocol/clientInfo": info, "callback": url, "progressToken": url});
        let hire = json!({"name": "hire", "arguments": {"skill": "sum", "input": input, "budget": "0"},
            "_meta": meta});
        let hired = client.respond("tools/call", hire).await;
        assert_eq!(hired["result"]["isError"], false, "{hired}");
        client
            .fail(
                "hire",
                json!({"skill": "sum", "input": {}, "budget": "0", "callback_url": url}),
                "malformed",
            )
            .await;
        client
            .ok(
                "update_profile",
                json!({"name": url, "skills": [{"name": "x", "price": "0", "about": url}]}),
            )
            .await;
    }
    let dialled = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await;
    assert!(dialled.is_err(), "the hub dialled {url}");
    let received = worker.got();
    assert!(!received.is_empty());
    for request in received {
        let text = format!("{:?} {}", request.headers, request.body);
        assert!(!text.contains(&ada.key) && !text.contains("rk_"), "{text}");
    }
    hub.stop().await;
}
