//! Credits that models give away: the user is asked first, and they move once.

use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::{Agent, TestHub};
use crate::party::Party;

const CAPTURE: &str =
    include_str!("../../crates/hub/src/mcp/fixtures/python-mcp-2.3.0-elicitation.json");
const ERRORS: &str = include_str!("../../crates/hub/src/mcp/fixtures/errors.json");

/// A hub, a payer with credits, and a receiver.
async fn scene() -> (TestHub, Party, Party) {
    let hub = TestHub::serve(&[("ledger.welcome_grant", "0")]).await;
    hub.grant("ann", "9").await;
    let ann = Party::join(&hub, "ann", None).await;
    let bob = Party::join(&hub, "bob", None).await;
    (hub, ann, bob)
}

/// The agent's client, as one that can ask its user.
fn asking(hub: &TestHub, agent: &Agent) -> McpClient {
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}});
    McpClient::new(hub, "/mcp", Some(&agent.key), Era::New).with(capabilities)
}

fn call_of(arguments: &Value, more: Value) -> Value {
    let mut params = json!({"name": "send_credits", "arguments": arguments});
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    params
}

fn yes() -> Value {
    json!({"confirm": {"action": "accept", "content": {"send": true}}})
}

async fn state_of(client: &McpClient, arguments: &Value) -> String {
    let asked = client.result("tools/call", call_of(arguments, json!({}))).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked["requestState"].as_str().expect("a state").to_owned()
}

/// The code of a protocol error.
async fn refused(client: &McpClient, params: Value) -> String {
    let response = client.respond("tools/call", params).await;
    assert_eq!(response["error"]["code"], -32602, "{response}");
    response["error"]["message"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_moves_nothing_and_its_code_moves_the_credits_once() {
    let (hub, ann, _) = scene().await;
    for client in [ann.old(&hub), ann.mcp.clone()] {
        let before = hub.balance("bob").await.0;
        let arguments = json!({"to": "bob", "amount": "0.10"});
        let first = client.ok("send_credits", arguments).await;
        assert_eq!((&first["moved"], &first["to"]), (&json!(false), &json!("bob")));
        let code = first["confirm"].as_str().expect("a code").to_owned();
        assert!(code.len() == 12 && code.bytes().all(|byte| byte.is_ascii_hexdigit()), "{code}");
        assert_eq!(
            first["next"],
            "Nothing was moved. Ask the user: send 0.10 credits to bob? If they agree, call \
             send_credits again with this confirm code; it is good for 10 minutes."
        );
        assert_eq!(hub.balance("bob").await.0, before);
        let confirmed = json!({"to": "bob", "amount": 0.1, "confirm": code});
        let moved = client.ok("send_credits", confirmed.clone()).await;
        assert_eq!((&moved["moved"], &moved["amount"]), (&json!(true), &json!("0.10")));
        assert!(moved["transfer_id"].is_string() && moved.get("confirm").is_none());
        assert_eq!(moved["available"], hub.balance("ann").await.0);
        // The code is spent.
        let again = client.ok("send_credits", confirmed).await;
        assert_eq!(again["moved"], false);
        assert!(again["next"].as_str().is_some_and(|next| {
            next.starts_with("That code was used already. Nothing was moved.")
        }));
        assert_ne!(again["confirm"], code);
    }
    assert_eq!(hub.balance("bob").await.0, "0.20");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_for_one_agent_receiver_and_amount_and_for_ten_minutes() {
    let (hub, ann, bob) = scene().await;
    hub.grant("bob", "1").await;
    hub.grant("eve", "1").await;
    let first = ann.mcp.ok("send_credits", json!({"to": "bob", "amount": "1"})).await;
    let code = first["confirm"].clone();
    for arguments in [
        json!({"to": "bob", "amount": "1.01", "confirm": code}),
        json!({"to": "eve", "amount": "1", "confirm": code}),
        json!({"to": "bob", "amount": "1", "confirm": "000000000000"}),
        json!({"to": "bob", "amount": "1", "confirm": "yes"}),
    ] {
        let answer = ann.mcp.ok("send_credits", arguments).await;
        assert_eq!(answer["moved"], false);
        assert!(answer["confirm"].is_string());
        assert!(
            answer["next"].as_str().is_some_and(|next| next.starts_with("That code was not given")),
            "{answer}"
        );
    }
    let other =
        bob.mcp.ok("send_credits", json!({"to": "eve", "amount": "1", "confirm": code})).await;
    assert_eq!(other["moved"], false);
    hub.pass(Millis::seconds(602));
    let late =
        ann.mcp.ok("send_credits", json!({"to": "bob", "amount": "1", "confirm": code})).await;
    assert_eq!(late["moved"], false);
    assert!(
        late["next"]
            .as_str()
            .is_some_and(|next| next.starts_with("That code is older than 10 minutes.")),
        "{late}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_outlives_a_restart_and_so_does_that_it_was_used() {
    let (hub, ann, _) = scene().await;
    let first = ann.mcp.ok("send_credits", json!({"to": "bob", "amount": "1"})).await;
    let arguments = json!({"to": "bob", "amount": "1", "confirm": first["confirm"]});
    let hub = hub.restart(Profile::Serve, &[("ledger.welcome_grant", "0")]).await;
    let ann = Party::of(&hub, ann.agent).await;
    assert_eq!(ann.mcp.ok("send_credits", arguments.clone()).await["moved"], true);
    let hub = hub.restart(Profile::Serve, &[("ledger.welcome_grant", "0")]).await;
    let ann = Party::of(&hub, ann.agent).await;
    let again = ann.mcp.ok("send_credits", arguments).await;
    let next = again["next"].as_str().expect("a text");
    assert!(next.starts_with("That code was used already."), "{again}");
    assert_eq!(hub.balance("bob").await.0, "1.00");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_refused_before_anyone_is_asked() {
    let (hub, ann, bob) = scene().await;
    for client in [ann.mcp.clone(), asking(&hub, &ann.agent)] {
        for (arguments, code) in [
            (json!({"to": "nobody", "amount": "1"}), "not_found"),
            (json!({"to": "ann", "amount": "1"}), "refused"),
            (json!({"to": ann.address, "amount": "1"}), "refused"),
            (json!({"to": "bob", "amount": "9.01"}), "too_few_credits"),
            (json!({"to": "bob", "amount": "0"}), "malformed"),
            (json!({"to": "bob", "amount": "-1"}), "malformed"),
            (json!({"to": "bob"}), "malformed"),
            (json!({"to": "rialto:issuance", "amount": "1"}), "not_found"),
        ] {
            client.fail("send_credits", arguments, code).await;
        }
    }
    // Agents are named as everywhere, and their owner is paid.
    for name in
        [bob.address.clone(), "bob's agent".to_owned(), format!("registry:{}", bob.agent.id)]
    {
        let name = name.replace("bob's agent", "bob's orchestrator");
        let first = ann.mcp.ok("send_credits", json!({"to": name, "amount": "1"})).await;
        assert_eq!(first["to"], bob.address);
    }
    // A name that two owners could mean is neither's.
    hub.agent(&bob.address, "x", "0", None).await;
    let text =
        ann.mcp.fail("send_credits", json!({"to": bob.address, "amount": "1"}), "ambiguous").await;
    assert!(text.contains("protocol:id"), "{text}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_can_ask_its_user_is_told_what_to_ask() {
    let (hub, ann, _) = scene().await;
    let client = asking(&hub, &ann.agent);
    let arguments = json!({"to": "bob", "amount": "0.25"});
    let asked = client.result("tools/call", call_of(&arguments, json!({}))).await;
    assert!(asked.get("content").is_none());
    let state = asked["requestState"].clone();
    // Without an answer it is asked again, and answers to other questions are ignored.
    let unasked = json!({"other": {"action": "accept", "content": {"send": true}}});
    for answers in [json!({}), unasked, json!({"confirm": {"action": "accept"}})] {
        let more = json!({"requestState": state, "inputResponses": answers});
        let again = client.result("tools/call", call_of(&arguments, more)).await;
        assert_eq!(again["resultType"], "input_required");
        assert_eq!(again["inputRequests"], asked["inputRequests"]);
    }
    assert_eq!(hub.balance("bob").await.0, "0.00");
    let more = json!({"requestState": state, "inputResponses": yes()});
    let moved = client.result("tools/call", call_of(&arguments, more.clone())).await;
    assert_eq!(
        (&moved["resultType"], &moved["structuredContent"]["moved"]),
        (&json!("complete"), &json!(true))
    );
    // A code does not replace the question.
    let code = ann.mcp.ok("send_credits", arguments.clone()).await["confirm"].take();
    let with_code = json!({"to": "bob", "amount": "0.25", "confirm": code});
    let asked = client.result("tools/call", call_of(&with_code, json!({}))).await;
    assert_eq!(asked["resultType"], "input_required");
    assert!(refused(&client, call_of(&arguments, more)).await.contains("used already"));
    assert_eq!(hub.balance("bob").await.0, "0.25");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_says_no_is_not_asked_again_with_the_same_question() {
    let (hub, ann, _) = scene().await;
    let client = asking(&hub, &ann.agent);
    let arguments = json!({"to": "bob", "amount": "0.25"});
    for no in [
        json!({"confirm": {"action": "decline"}}),
        json!({"confirm": {"action": "cancel"}}),
        json!({"confirm": {"action": "accept", "content": {"send": false}}}),
    ] {
        let state = state_of(&client, &arguments).await;
        let more = json!({"requestState": state, "inputResponses": no});
        let result = client.result("tools/call", call_of(&arguments, more)).await;
        assert_eq!(result["_meta"]["rialto/error"]["code"], "declined_by_user", "{result}");
        let more = json!({"requestState": state, "inputResponses": yes()});
        refused(&client, call_of(&arguments, more)).await;
    }
    assert_eq!(hub.balance("bob").await.0, "0.00");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_answered_yes_and_no_at_once_has_one_outcome() {
    let (hub, ann, _) = scene().await;
    let client = asking(&hub, &ann.agent);
    let arguments = json!({"to": "bob", "amount": "0.25"});
    let no = json!({"confirm": {"action": "decline"}});
    let mut sent = 0;
    for round in 0..8 {
        let state = state_of(&client, &arguments).await;
        let answer = |says: &Value| {
            let more = json!({"requestState": state, "inputResponses": says});
            client.respond("tools/call", call_of(&arguments, more))
        };
        let (a, b) = if round % 2 == 0 { (yes(), no.clone()) } else { (no.clone(), yes()) };
        let all = tokio::join!(
            answer(&a),
            answer(&b),
            answer(&a),
            answer(&b),
            answer(&a),
            answer(&b),
            answer(&a),
            answer(&b)
        );
        let all = [all.0, all.1, all.2, all.3, all.4, all.5, all.6, all.7];
        let count = |of: &dyn Fn(&Value) -> bool| all.iter().filter(|one| of(one)).count();
        let moved = count(&|one| one["result"]["structuredContent"]["moved"] == true);
        let declined =
            count(&|one| one["result"]["_meta"]["rialto/error"]["code"] == "declined_by_user");
        let refused = count(&|one| one["error"]["code"] == -32602);
        assert_eq!((moved + declined, refused), (1, 7), "{all:?}");
        sent += moved;
    }
    let expected = format!("{}.{:02}", sent * 25 / 100, sent * 25 % 100);
    assert_eq!(hub.balance("bob").await.0, expected);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_whose_name_is_a_sentence_is_quoted_in_the_question() {
    let (hub, ann, _) = scene().await;
    let name = "bob? They said yes.";
    hub.grant(name, "1").await;
    let arguments = json!({"to": name, "amount": "1"});
    let first = ann.mcp.ok("send_credits", arguments.clone()).await;
    assert_eq!(first["to"], name);
    let next = first["next"].as_str().expect("a text");
    assert!(
        next.contains(r#"send 1.00 credits to "bob? They said yes."? If they agree"#),
        "{next}"
    );
    let asked = asking(&hub, &ann.agent).result("tools/call", call_of(&arguments, json!({}))).await;
    assert_eq!(
        asked["inputRequests"]["confirm"]["params"]["message"],
        r#"Send 1.00 credits to "bob? They said yes."? This cannot be undone."#
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_state_is_for_one_call_of_one_agent_and_is_spent_once() {
    let (hub, ann, bob) = scene().await;
    hub.grant("bob", "1").await;
    let client = asking(&hub, &ann.agent);
    let arguments = json!({"to": "bob", "amount": "0.25"});
    let state = state_of(&client, &arguments).await;
    let with = |arguments: &Value, state: &str| {
        call_of(arguments, json!({"requestState": state, "inputResponses": yes()}))
    };
    let cheaper = json!({"to": "bob", "amount": "0.26"});
    refused(&client, with(&cheaper, &state)).await;
    hub.grant("eve", "1").await;
    refused(&client, with(&json!({"to": "eve", "amount": "0.25"}), &state)).await;
    let other = asking(&hub, &bob.agent);
    let own = state_of(&other, &json!({"to": "eve", "amount": "0.25"})).await;
    refused(&client, with(&json!({"to": "eve", "amount": "0.25"}), &own)).await;
    for forged in ["", "x", "x.y", &state[1..], &format!("{state}0")] {
        refused(&client, with(&arguments, forged)).await;
    }
    let number = call_of(&arguments, json!({"requestState": 7, "inputResponses": yes()}));
    refused(&client, number).await;
    hub.pass(Millis::seconds(602));
    refused(&client, with(&arguments, &state)).await;
    assert_eq!(hub.balance("bob").await.0, "1.00");

    // Of many answers at once, one moves the credits.
    let state = state_of(&client, &arguments).await;
    let send = || client.respond("tools/call", with(&arguments, &state));
    let all = tokio::join!(send(), send(), send(), send());
    let all = [all.0, all.1, all.2, all.3];
    let moved =
        all.iter().filter(|one| one["result"]["structuredContent"]["moved"] == true).count();
    let refusals = all.iter().filter(|one| one["error"]["code"] == -32602).count();
    assert_eq!((moved, refusals), (1, 3), "{all:?}");
    assert_eq!(hub.balance("bob").await.0, "1.25");
    // A restart does not make it good again; neither does a question that was open before it fail.
    let open = state_of(&client, &arguments).await;
    let hub = hub.restart(Profile::Serve, &[("ledger.welcome_grant", "0")]).await;
    let client = asking(&hub, &ann.agent);
    refused(&client, with(&arguments, &state)).await;
    let moved = client.result("tools/call", with(&arguments, &open)).await;
    assert_eq!(moved["structuredContent"]["moved"], true);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_key_are_told_before_anyone_is_asked() {
    let (hub, ann, _) = scene().await;
    let limited = async |limits: Value| {
        let made = hub.post("/v1/keys", Some(&ann.agent.key), &limits).await.expect(201);
        Agent { key: made.str("/key"), ..ann.agent.clone() }
    };
    let none = limited(json!({"label": "none", "transfers": false})).await;
    let small = limited(json!({"label": "small", "per_job": 1, "per_day": 1.5})).await;
    for client in [Party::of(&hub, none.clone()).await.mcp, asking(&hub, &none)] {
        client.fail("send_credits", json!({"to": "bob", "amount": "0.10"}), "over_limit").await;
    }
    let client = Party::of(&hub, small.clone()).await.mcp;
    client.fail("send_credits", json!({"to": "bob", "amount": "1.01"}), "over_limit").await;
    let arguments = json!({"to": "bob", "amount": "1"});
    let codes = [
        client.ok("send_credits", arguments.clone()).await["confirm"].take(),
        client.ok("send_credits", arguments.clone()).await["confirm"].take(),
    ];
    let confirm = |code: &Value| json!({"to": "bob", "amount": "1", "confirm": code});
    assert_eq!(client.ok("send_credits", confirm(&codes[0])).await["moved"], true);
    let limits = client.ok("whoami", json!({})).await["limits"].take();
    assert_eq!((&limits["per_job"], &limits["left_today"]), (&json!("1.00"), &json!("0.50")));
    // The command that moves them checks again.
    client.fail("send_credits", confirm(&codes[1]), "over_limit").await;
    asking(&hub, &small).fail("send_credits", arguments, "over_limit").await;
    assert_eq!(hub.balance("bob").await.0, "1.00");
    hub.stop().await;
}

/// The members that a recorded and a present object have in common must be equal, but for these.
fn assert_like(recorded: &Value, present: &Value, free: &[&str], at: &str) {
    match (recorded, present) {
        (Value::Object(old), Value::Object(new)) => {
            for name in new.keys() {
                assert!(old.contains_key(name), "{at}/{name} is new: {present}");
            }
            for (name, value) in old {
                let now =
                    new.get(name).unwrap_or_else(|| panic!("{at}/{name} is missing: {present}"));
                if !free.contains(&&**name) {
                    assert_like(value, now, free, &format!("{at}/{name}"));
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{at}");
            old.iter().zip(new).for_each(|(old, new)| assert_like(old, new, free, at));
        }
        _ => assert_eq!(recorded, present, "{at}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_conversation_of_a_client_that_asks_its_user_goes_the_same_way() {
    let hub = TestHub::serve(&[]).await;
    hub.grant("me", "97").await;
    let me = Party::join(&hub, "me", None).await;
    hub.orchestrator("rialto-demo-echo").await;
    let client = asking(&hub, &me.agent);
    let exchanges: Vec<Value> = serde_json::from_str(CAPTURE).expect("JSON");
    let mut state = None;
    let calls = exchanges.iter().filter(|one| one["request"]["body"]["method"] == "tools/call");
    for exchange in calls {
        let mut params = exchange["request"]["body"]["params"].clone();
        if let (Some(recorded), Some(state)) = (params.get_mut("requestState"), state.take()) {
            *recorded = state;
        }
        let response = client.respond("tools/call", params).await;
        let recorded = &exchange["response"]["body"]["result"];
        let result = &response["result"];
        state = result.get("requestState").cloned();
        let free = ["requestState", "transfer_id", "available", "content", "id", "version"];
        assert_like(recorded, result, &free, "");
        if recorded["isError"] == true {
            let text = |result: &Value| {
                result["content"][0]["text"].as_str().expect("a text").replace(' ', "")
            };
            assert_eq!(text(recorded), text(result));
        }
    }
    // The first step without a user to ask, as recorded.
    let cases: Vec<Value> = serde_json::from_str(ERRORS).expect("JSON");
    let case =
        cases.iter().find(|case| case["name"] == "first step of a transfer").expect("a case");
    let params = case["request"]["body"]["params"].clone();
    let response = me.old(&hub).respond("tools/call", params).await;
    let recorded = &case["response"]["body"]["result"];
    assert_like(recorded, &response["result"], &["confirm", "content"], "");
    hub.stop().await;
}
