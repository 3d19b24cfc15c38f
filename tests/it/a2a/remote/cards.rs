//! Cards of other servers: which are taken, what is shown of them, and whose they are.

use serde_json::{Value, json};

use super::server::{Fault, Puppet, old_card};
use crate::kit::TestHub;

#[tokio::test]
async fn a_price_counts_once_the_card_shows_the_owners_token() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let body = json!({"card_url": puppet.card_url(), "name": "geo-route-planner",
        "prices": {"route": "0.25"}, "auth": {"scheme": "bearer", "token": "secret-1"}});
    let reply = hub.register_card(None, &body).await.expect(201);
    let token = reply.str("/proof/params/token");
    assert!(token.starts_with("po_"), "{token}");
    let expected = json!({
        "status": "registered", "name": "geo-route-planner",
        "url": format!("{}/a2a/agents/geo-route-planner", hub.url),
        "owner": "a2a:geo-route-planner", "api_key": reply.at("/api_key"),
        "skills": [{"id": "route", "price": "0", "asks": "0.25"}],
        "interface": {"url": puppet.url, "binding": "JSONRPC", "version": "1.0"},
        "signature": "unsigned", "proven": false,
        "proof": {"uri": "urn:rialto:a2a:owner:v1", "params": {"token": token}},
        "next": format!("add proof to capabilities.extensions of your card, then POST \
            {}/a2a/agents/geo-route-planner/refresh with your key; until then your prices are 0 \
            and you work for free", hub.url),
    });
    assert_eq!(reply.json(), expected);
    let key = reply.str("/api_key");
    let extension =
        |token: &str| json!([{"uri": "urn:rialto:a2a:owner:v1", "params": {"token": token}}]);
    puppet.change_card(|card| card["capabilities"]["extensions"] = extension("po_other"));
    let reply = hub.refresh("geo-route-planner", &key).await.expect(200);
    assert_eq!(reply.at("/proven"), false, "another token shows nothing");
    puppet.change_card(|card| card["capabilities"]["extensions"] = extension(&token));
    let reply = hub.refresh("geo-route-planner", &key).await.expect(200);
    let expected = json!({
        "status": "refreshed", "name": "geo-route-planner", "changed": true,
        "skills": [{"id": "route", "price": "0.25", "asks": "0.25"}],
        "interface": {"url": puppet.url, "binding": "JSONRPC", "version": "1.0"},
        "signature": "unsigned", "proven": true,
    });
    assert_eq!(reply.json(), expected);
    let again = hub.refresh("geo-route-planner", &key).await.expect(200);
    assert_eq!(again.at("/changed"), false);
    puppet.change_card(|card| card["capabilities"]["extensions"] = json!([]));
    let reply = hub.refresh("geo-route-planner", &key).await.expect(200);
    assert_eq!(reply.at("/skills/0/price"), "0", "the card shows it no more");
}

#[tokio::test]
async fn a_hub_that_wants_no_proof_takes_prices_as_they_are_asked() {
    let hub = TestHub::open(&[]).await;
    let puppet = Puppet::start().await;
    let body = json!({"card_url": puppet.card_url(), "prices": {"route": 0.25}});
    let reply = hub.register_card(None, &body).await.expect(201);
    assert_eq!(reply.str("/name"), "geo-route-planner", "that of the card");
    assert_eq!(reply.at("/proven"), true);
    assert_eq!(reply.at("/skills/0/price"), "0.25");
}

#[tokio::test]
async fn the_interface_is_the_first_of_1_0_and_else_json_rpc_of_0_3() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let url = puppet.url.clone();
    let of = |binding: &str, version: &str, path: &str| json!({"url": format!("{url}{path}"), "protocolBinding": binding, "protocolVersion": version});
    let interfaces = |list: Value| {
        let mut card = super::server::card(&url);
        card["supportedInterfaces"] = list;
        card
    };
    let cases: Vec<(Value, &str, &str, &str)> = vec![
        (
            interfaces(json!([
                of("GRPC", "1.0", "/g"),
                of("HTTP+JSON", "1.0", "/h"),
                of("JSONRPC", "1.0", "/j")
            ])),
            "/h",
            "HTTP+JSON",
            "1.0",
        ),
        (
            interfaces(json!([of("JSONRPC", "0.3", "/old"), of("JSONRPC", "1.0", "/j")])),
            "/j",
            "JSONRPC",
            "1.0",
        ),
        (
            interfaces(json!([of("HTTP+JSON", "0.3", "/h"), of("JSONRPC", "0.3.0", "/old")])),
            "/old",
            "JSONRPC",
            "0.3",
        ),
        (old_card(&url), "", "JSONRPC", "0.3"),
    ];
    for (at, (card, path, binding, version)) in cases.into_iter().enumerate() {
        puppet.set_card(card);
        let body = json!({"card_url": puppet.card_url(), "name": format!("geo-{at}")});
        let reply = hub.register_card(None, &body).await.expect(201);
        let expected =
            json!({"url": format!("{url}{path}"), "binding": binding, "version": version});
        assert_eq!(reply.at("/interface"), expected);
    }
}

#[tokio::test]
async fn a_card_that_cannot_be_used_is_refused_and_says_why() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let good = super::server::card(&puppet.url);
    let with = |member: &str, value: Value| {
        let mut card = good.clone();
        card[member] = value;
        card
    };
    let skills: Vec<Value> = (0..65)
        .map(|n| json!({"id": format!("s{n}"), "name": "S", "description": "s", "tags": ["s"]}))
        .collect();
    let own = json!([{"url": format!("{}/a2a/agents/x", hub.url), "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0"}]);
    let private = json!([{"url": "http://10.0.0.1/rpc", "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0"}]);
    let cases = [
        (with("name", json!("")), "name is required"),
        (with("name", json!("a\u{202e}b")), "control, bidi or zero-width"),
        (with("skills", skills.into()), "at most 64 skills"),
        (with("supportedInterfaces", json!([])), "no usable interface"),
        (with("supportedInterfaces", own), "interface at this hub"),
        (with("supportedInterfaces", private.clone()), "an address this hub does not call"),
        (with("supportedInterfaces", private), "the interface http://10.0.0.1/rpc, which"),
        (json!(["no", "card"]), "is not a card"),
    ];
    let body = json!({"card_url": puppet.card_url(), "name": "geo"});
    for (card, why) in cases {
        puppet.set_card(card);
        let reply = hub.register_card(None, &body).await.expect(400);
        assert_eq!(reply.str("/error/details/1/fieldViolations/0/field"), "card_url");
        assert!(reply.str("/error/message").contains(why), "{why}: {}", reply.text);
    }
    puppet.set_card(good);
    let faults = [
        (Fault::Status(404, &[], String::new()), "answered HTTP 404"),
        (Fault::Status(302, &[("location", "http://127.0.0.1:1/")], String::new()), "HTTP 302"),
        (Fault::Text("application/json", "{\"name\":".to_owned()), "not valid JSON"),
        (Fault::Text("application/json", " ".repeat(300 << 10)), "larger than 262144 bytes"),
    ];
    for (fault, why) in faults {
        puppet.fault_of("card", fault);
        let reply = hub.register_card(None, &body).await.expect(400);
        assert!(reply.str("/error/message").contains(why), "{why}: {}", reply.text);
    }
    for (url, why) in [
        ("http://127.0.0.1:1/card".to_owned(), "could not be reached: the connection was refused"),
        (format!("{}/a2a/agents/x/.well-known/agent-card.json", hub.url), "is at this hub"),
        (format!("{}/livez", hub.url), "is at this hub"),
        ("ftp://geo.example/card".to_owned(), "must begin with https"),
        ("http://10.0.0.1/card".to_owned(), "an address this hub does not call"),
    ] {
        let body = json!({"card_url": url, "name": "geo"});
        let reply = hub.register_card(None, &body).await.expect(400);
        assert!(reply.str("/error/message").contains(why), "{why}: {}", reply.text);
    }
    // The hub under other names.
    let (_, port) = hub.url.rsplit_once(':').expect("a port");
    for host in ["localhost", "LOCALHOST", "localhost.", "127.0.0.2", "[::ffff:127.0.0.1]"] {
        let at = format!("http://{host}:{port}/a2a/agents/x");
        let body = json!({"card_url": format!("{at}/.well-known/agent-card.json"), "name": "geo"});
        let reply = hub.register_card(None, &body).await.expect(400);
        let said = reply.str("/error/message");
        assert!(said.contains("at this hub"), "{host}: {said}");
        puppet.change_card(|card| card["supportedInterfaces"][0]["url"] = at.clone().into());
        let body = json!({"card_url": puppet.card_url(), "name": "geo"});
        let reply = hub.register_card(None, &body).await.expect(400);
        let said = reply.str("/error/message");
        assert!(said.contains("at this hub"), "{host}: {said}");
    }
    assert_eq!(hub.get("/a2a/agents/geo", None).await.status, 404, "nothing is left");
}

#[tokio::test]
async fn a_registration_with_a_member_that_does_not_exist_is_refused() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let with = |member: &str, value: Value| {
        let mut body = json!({"card_url": puppet.card_url(), "name": "geo"});
        body[member] = value;
        body
    };
    let auth = json!({"scheme": "oauth2", "token_url": "http://127.0.0.1/", "client_id": "c",
        "client_secret": "throw-away", "scopes": "all"});
    for (body, text) in [
        (
            with("price", json!({"route": "1"})),
            "price is not a member of a registration; did you mean prices?",
        ),
        (
            with("colour", json!("red")),
            "colour is not a member of a registration; its members are name,",
        ),
        (with("auth", auth), "auth.scopes is not a member of auth; did you mean scope?"),
        (
            with("prices", json!({"route": -1})),
            "prices.route must be an amount from 0 to 1000000000",
        ),
        (
            with("prices", json!({"root": "1"})),
            "prices.root is no skill of the card, which has route",
        ),
    ] {
        let reply = hub.register_card(None, &body).await.expect(400);
        let message = reply.str("/error/message");
        assert!(message.contains(text), "{text}: {message}");
    }
}

#[tokio::test]
async fn an_update_keeps_prices_and_credentials_that_it_does_not_name() {
    let hub = TestHub::open(&[]).await;
    let puppet = Puppet::start().await;
    puppet.want("authorization", "Bearer throw-away");
    let mut body = json!({"card_url": puppet.card_url(), "name": "geo", "prices": {"route": "0.25"},
        "auth": {"scheme": "bearer", "token": "throw-away"}});
    let key = hub.register_card(None, &body).await.expect(201).str("/api_key");
    puppet.change_card(|card| {
        card["securitySchemes"] = json!({"s": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
        card["securityRequirements"] = json!([{"schemes": {"s": {"list": []}}}]);
    });
    let same = json!({"card_url": puppet.card_url(), "name": "geo"});
    let kept = hub.register_card(Some(&key), &same).await.expect(200);
    assert_eq!((kept.at("/skills/0/price"), kept.json().get("note")), (json!("0.25"), None));
    // What is set to nothing is cleared: the card still wants a token.
    for nothing in [Value::Null, json!({})] {
        body["auth"] = nothing.clone();
        let refused = hub.register_card(Some(&key), &body).await.expect(400);
        let example = r#"send "auth":{"scheme":"bearer","token":"…"}"#;
        assert!(refused.str("/error/message").contains(example), "{}", refused.text);
        let clear = json!({"card_url": puppet.card_url(), "name": "geo", "prices": nothing});
        let free = hub.register_card(Some(&key), &clear).await.expect(200);
        assert_eq!(free.at("/skills/0/price"), "0");
        let note = "free of charge, because prices does not name them: route";
        assert_eq!(free.str("/note"), note);
        body["auth"] = json!({"scheme": "bearer", "token": "throw-away"});
        hub.register_card(Some(&key), &body).await.expect(200);
    }
    // Credentials never follow to a server at another origin.
    let other = Puppet::start().await;
    let moved = json!({"card_url": other.card_url(), "name": "geo"});
    let refused = hub.register_card(Some(&key), &moved).await.expect(400);
    assert_eq!(refused.str("/error/details/1/fieldViolations/0/field"), "auth");
}

#[tokio::test]
async fn a_card_is_found_at_the_url_of_its_server() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let server = puppet.url.trim_end_matches("/rpc");
    for (at, url) in [server.to_owned(), format!("{server}/?x=1#y")].iter().enumerate() {
        let body = json!({"card_url": url, "name": format!("geo-{at}")});
        let reply = hub.register_card(None, &body).await.expect(201);
        assert_eq!(reply.str("/interface/url"), puppet.url);
        hub.refresh(&format!("geo-{at}"), &reply.str("/api_key")).await.expect(200);
    }
    let missing = json!({"card_url": format!("{server}/elsewhere"), "name": "geo"});
    let reply = hub.register_card(None, &missing).await.expect(400);
    let text = reply.str("/error/message");
    let tried = format!("{server}/elsewhere/.well-known/agent-card.json has no card either");
    assert!(text.contains("is not a card") && text.contains(&tried), "{text}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    puppet.fault_of("card", Fault::Silence);
    let body = json!({"card_url": puppet.card_url(), "name": "geo"});
    let reply = hub.register_card(None, &body).await.expect(400);
    let text = reply.str("/error/message");
    assert!(text.contains("did not answer within 10 s"), "{text}");
}

#[tokio::test]
async fn a_name_belongs_to_the_key_that_came_with_it() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let other = hub.a2a_client("other").await;
    let body = json!({"card_url": puppet.card_url(), "name": "geo"});
    let fetched = puppet.seen().len();
    hub.register_card(None, &body).await.expect(409);
    hub.register_card(Some(&other.key), &body).await.expect(401);
    assert_eq!(puppet.seen().len(), fetched, "nothing is fetched for a taken name");
    let again = hub.register_card(Some(&geo.key), &body).await.expect(200);
    assert_eq!(again.str("/api_key"), geo.key);
    hub.refresh("geo", &other.key).await.expect(401);
    let path = "/a2a/agents/geo";
    hub.call("DELETE", path, Some(&other.key), None).await.expect(401);
    hub.call("DELETE", path, Some(&geo.key), None).await.expect(200);
    assert_eq!(hub.get(path, None).await.status, 404);
    hub.register_card(None, &body).await.expect(409);
    hub.register_card(Some(&geo.key), &body).await.expect(200);
}
