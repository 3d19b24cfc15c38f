//! Credentials for servers of other agents (R92).

use serde_json::{Value, json};

use super::server::{Dialect, Puppet, TOKEN};
use crate::a2a::kit::{id, text_message};
use crate::kit::TestHub;

/// Does one job; the server must get what it wants.
async fn works(hub: &TestHub, puppet: &Puppet, name: &str) {
    let client = hub.a2a_client(&format!("client-of-{name}")).await;
    let base = format!("/a2a/agents/{name}");
    let own = id(&hub.begin(&base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    puppet.complete(&task, "done");
    hub.until(&client, &base, &own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn every_call_presents_the_credentials_that_were_registered_and_the_card_does_not() {
    let hub = TestHub::serve(&[]).await;
    let cases = [
        (
            json!({"scheme": "bearer", "token": "throw-away-1"}),
            "authorization",
            "Bearer throw-away-1",
        ),
        (
            json!({"scheme": "basic", "username": "ann", "password": "throw-away-2"}),
            "authorization",
            "Basic YW5uOnRocm93LWF3YXktMg==",
        ),
        (
            json!({"scheme": "header", "name": "X-Key", "value": "throw-away-3"}),
            "x-key",
            "throw-away-3",
        ),
    ];
    for ((auth, header, value), dialect) in cases.into_iter().zip(Dialect::ALL) {
        let puppet = Puppet::speaking(dialect).await;
        puppet.want(header, value);
        let name = auth["scheme"].as_str().expect("a text").to_owned();
        let body = json!({"card_url": puppet.card_url(), "name": name, "auth": auth});
        hub.register_card(None, &body).await.expect(201);
        works(&hub, &puppet, &name).await;
        for seen in puppet.seen() {
            let given = seen.header(header);
            let is_card = seen.rpc().is_empty();
            assert_eq!(given, (!is_card).then_some(value), "{} {}", seen.method, seen.path);
        }
    }
}

#[tokio::test]
async fn credentials_are_sealed_and_go_to_the_origin_of_the_interface_alone() {
    let hub = TestHub::serve(&[]).await;
    let (shown, called, later) =
        (Puppet::start().await, Puppet::start().await, Puppet::start().await);
    let secret = "throw-away-and-never-on-disk";
    shown.change_card(|card| card["supportedInterfaces"][0]["url"] = called.url.clone().into());
    called.want("authorization", &format!("Bearer {secret}"));
    let body = json!({"card_url": shown.card_url(), "name": "geo",
        "auth": {"scheme": "bearer", "token": secret}});
    let reply = hub.register_card(None, &body).await.expect(201);
    assert!(!reply.text.contains(secret), "no answer shows it");
    works(&hub, &called, "geo").await;
    // A card that names another origin cannot take the credentials there.
    shown.change_card(|card| card["supportedInterfaces"][0]["url"] = later.url.clone().into());
    let refused = hub.refresh("geo", &reply.str("/api_key")).await.expect(400);
    assert!(refused.str("/error/message").contains("register it again"), "{}", refused.text);
    assert!(later.seen().is_empty());
    assert!(shown.seen().iter().all(|seen| seen.header("authorization").is_none()));
    let dir = hub.stop().await;
    for file in walk(dir.path()) {
        let bytes = std::fs::read(&file).expect("a file");
        let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{} has the token", file.display());
    }
}

/// All files of a directory.
fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[tokio::test]
async fn access_tokens_are_fetched_once_and_again_after_they_were_refused() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    puppet.change_card(|card| {
        card["securitySchemes"] = json!({"o": {"oauth2SecurityScheme": {"flows":
            {"clientCredentials": {"tokenUrl": puppet.at(TOKEN), "scopes": {}}}}}});
        card["securityRequirements"] = json!([{"schemes": {"o": {"list": []}}}]);
    });
    puppet.want("authorization", "Bearer at-1");
    let auth = json!({"scheme": "oauth2", "token_url": puppet.at(TOKEN), "client_id": "rialto:1",
        "client_secret": "throw-away", "scope": "routes plans"});
    let body = json!({"card_url": puppet.card_url(), "name": "geo", "auth": auth});
    hub.register_card(None, &body).await.expect(201);
    works(&hub, &puppet, "geo").await;
    let tokens = || {
        let seen = puppet.seen().into_iter();
        seen.filter(|seen| seen.path == TOKEN).collect::<Vec<_>>()
    };
    let [asked] = &tokens()[..] else { panic!("{:?}", tokens()) };
    // RFC 6749, section 2.3.1: the client's id is encoded before it becomes a user name.
    assert_eq!(asked.header("authorization"), Some("Basic cmlhbHRvJTNBMTp0aHJvdy1hd2F5"));
    assert_eq!(asked.raw, "grant_type=client_credentials&scope=routes+plans");
    puppet.want("authorization", "Bearer at-2");
    let client = hub.a2a_client("another").await;
    let base = "/a2a/agents/geo";
    let own = id(&hub.begin(base, &client.key, text_message("m-1", "go")).await);
    // The first try is refused, and the agent counts as away until its card was fetched.
    let task = puppet.task().await;
    puppet.complete(&task, "done");
    hub.until(&client, base, &own, "TASK_STATE_COMPLETED").await;
    assert_eq!(tokens().len(), 2);
}

#[tokio::test]
async fn a_card_that_wants_more_than_the_hub_can_present_is_refused() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let good = super::server::card(&puppet.url);
    let bearer = json!({"scheme": "bearer", "token": "throw-away"});
    let header = json!({"scheme": "header", "name": "x-key", "value": "throw-away"});
    let cases = [
        (json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}), json!(null), "bearer token"),
        (json!({"httpAuthSecurityScheme": {"scheme": "basic"}}), bearer.clone(), "a password"),
        (json!({"httpAuthSecurityScheme": {"scheme": "digest"}}), bearer.clone(), "\"digest\""),
        (
            json!({"apiKeySecurityScheme": {"location": "query", "name": "key"}}),
            header.clone(),
            "a key in the query",
        ),
        (
            json!({"apiKeySecurityScheme": {"location": "cookie", "name": "key"}}),
            header.clone(),
            "a cookie",
        ),
        (
            json!({"apiKeySecurityScheme": {"location": "header", "name": "x-other"}}),
            header,
            "header x-other",
        ),
        (json!({"mtlsSecurityScheme": {}}), bearer.clone(), "a client certificate"),
        (
            json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://idp.example"}}),
            json!(null),
            "a person logs in",
        ),
        (
            json!({"oauth2SecurityScheme": {"flows": {"authorizationCode": {}}}}),
            json!(null),
            "a person logs in",
        ),
        // The same in the words of 0.3.
        (json!({"type": "apiKey", "in": "query", "name": "key"}), json!(null), "in the query"),
        (json!({"type": "mutualTLS"}), json!(null), "a client certificate"),
    ];
    let register = async |scheme: &Value, auth: &Value| {
        let mut card = good.clone();
        card["securitySchemes"] = json!({ "s": scheme });
        match scheme.get("type") {
            Some(_) => card["security"] = json!([{"s": []}]),
            None => card["securityRequirements"] = json!([{"schemes": {"s": {"list": []}}}]),
        }
        puppet.set_card(card);
        let mut body = json!({"card_url": puppet.card_url(), "name": "geo"});
        if !auth.is_null() {
            body["auth"] = auth.clone();
        }
        hub.register_card(None, &body).await
    };
    for (scheme, auth, why) in cases {
        let refused = register(&scheme, &auth).await.expect(400);
        assert!(refused.str("/error/message").contains(why), "{scheme}: {}", refused.text);
    }
    register(&json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}), &bearer).await.expect(201);
    // Names of headers that no call can have, or that the hub sets itself.
    for name in ["Host", "Content-Length", "Transfer-Encoding", "Connection", "TE", "Accept"] {
        let auth = json!({"scheme": "header", "name": name, "value": "a"});
        let body = json!({"card_url": puppet.card_url(), "name": "other", "auth": auth});
        let refused = hub.register_card(None, &body).await.expect(400);
        let field = refused.str("/error/details/1/fieldViolations/0/field");
        assert_eq!(field, "auth.name", "{name}: {}", refused.text);
    }
    for auth in [
        json!({"scheme": "bearer"}),
        json!({"scheme": "digest", "token": "x"}),
        json!({"scheme": "header", "name": "content-type", "value": "x"}),
        json!({"scheme": "bearer", "token": "two\nlines"}),
        json!({"scheme": "oauth2", "token_url": "http://10.0.0.1/t", "client_id": "a", "client_secret": "b"}),
    ] {
        let body = json!({"card_url": puppet.card_url(), "name": "other", "auth": auth});
        let refused = hub.register_card(None, &body).await.expect(400);
        let field = refused.str("/error/details/1/fieldViolations/0/field");
        assert!(field.starts_with("auth"), "{field}");
    }
}
