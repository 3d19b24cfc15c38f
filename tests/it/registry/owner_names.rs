//! Owner names: names that look the same belong to one owner (T3).

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::forms::{both_modes, registration, with};
use crate::kit::{Reply, TestHub, assert_malformed, assert_refused, snapshot};

/// All of them could be read as `Acme1`.
const LOOK_ALIKES: [&str; 7] = ["acme1", "ACME1", "Acmel", "AcmeI", "Аcme1", "Acrne1", "Acme1 "];

#[track_caller]
fn assert_taken(reply: &Reply, field: &str) {
    assert_refused(reply, 409, "CONFLICT");
    assert_eq!(reply.at("/error/field"), json!(field), "{}", reply.text);
}

fn transfer(from: &str, to: &str) -> Value {
    json!({"from_owner": from, "to_owner": to, "amount": 0.25})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_looks_like_another_is_taken_and_the_field_is_named() {
    let [keys, open] = both_modes().await;
    for hub in [&keys, &open] {
        let own = hub.enrol(&registration("Acme1"), None).await;
        let before = snapshot(hub).await;
        for name in LOOK_ALIKES {
            for key in [None, Some(own.key.as_str()), Some(hub.operator.as_str())] {
                for path in ["/registry/register", "/register"] {
                    assert_taken(&hub.post(path, key, &registration(name)).await, "/owner_id");
                }
            }
            let grant = json!({"owner_id": name, "initial_balance": 1.00});
            let granted = hub.post("/accounts", Some(&hub.operator), &grant).await;
            assert_taken(&granted, "/owner_id");
        }
        assert_eq!(snapshot(hub).await, before);
        // The exact name is still accepted.
        hub.post("/register", Some(&own.key), &registration("Acme1")).await.expect(201);
        let again = with(&registration("Acme1"), "/agent_id", Some(json!(own.id)));
        hub.post("/register", Some(&own.key), &again).await.expect(200);
        hub.grant("Acme1", "1.00").await;
        hub.enrol(&registration("Acme2"), None).await;
    }
    // Where a payment opens an account, it opens none with a confusable name.
    let before = snapshot(&open).await;
    let paid = open.post("/transfer", None, &transfer("Acme1", "ACME2")).await;
    assert_taken(&paid, "/to_owner");
    assert_eq!(snapshot(&open).await, before);
    open.post("/transfer", None, &transfer("Acme1", "Acme2")).await.expect(200);
    open.post("/transfer", None, &transfer("Acme1", "Acme3")).await.expect(200);
    keys.stop().await;
    open.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_of_another_protocol_or_the_hub_cannot_be_imitated() {
    let hub = TestHub::serve(&[]).await;
    let before = snapshot(&hub).await;
    for name in ["Relay:bob@chorus", "reIay:bob@chorus", "сlara:x", "HUB:issuance", "Hub:x"] {
        assert_taken(&hub.post("/register", None, &registration(name)).await, "/owner_id");
    }
    assert_eq!(snapshot(&hub).await, before);
    // Names that the hub generates are compared exactly: these are two wallets.
    hub.grant("clara:abc", "1.00").await;
    hub.grant("clara:ABC", "2.00").await;
    assert_eq!(hub.balance("clara:abc").await.0, "1.00");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composed_and_decomposed_letters_are_one_owner_also_after_a_restart() {
    let (composed, apart) = ("caf\u{e9}", "cafe\u{301}");
    let mut hub = TestHub::serve(&[]).await;
    let own = hub.enrol(&registration(apart), None).await;
    hub.grant(composed, "1.00").await;
    hub.grant("rich", "1.00").await;
    for round in 0..2 {
        for spelling in [composed, apart] {
            let path = format!("/registry/accounts/{spelling}");
            let account = hub.get(&path, Some(&own.key)).await.expect(200);
            assert_eq!(account.str("/owner_id"), composed, "new names are stored composed");
            hub.post("/register", Some(&own.key), &registration(spelling)).await.expect(201);
            let paid = hub.post("/transfer", Some(&own.key), &transfer(spelling, "rich")).await;
            assert_eq!(paid.expect(200).str("/transfer/from_owner"), composed);
            let audit = format!("/registry/audit?owner_id={spelling}");
            hub.get(&audit, Some(&own.key)).await.expect(200);
            assert_refused(
                &hub.post("/register", None, &registration(spelling)).await,
                409,
                "CONFLICT",
            );
        }
        assert_taken(&hub.post("/register", None, &registration("CAF\u{c9}")).await, "/owner_id");
        if round == 0 {
            hub = hub.restart(Profile::Serve, &[]).await;
        }
    }
    assert_eq!(hub.balance("rich").await.0, "2.00");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_with_emoji_and_joiners_are_taken_and_shown_as_they_came() {
    for hub in both_modes().await {
        for (n, name) in [
            "☁\u{fe0f} Weather",
            "می\u{200c}خواهم",
            "👩🏽\u{200d}💻 coder",
            "क्\u{200d}ष",
            "🏳\u{fe0f}\u{200d}🌈",
        ]
        .into_iter()
        .enumerate()
        {
            let skills = json!([{"skill_name": name, "cost_per_call": 0}]);
            let body = with(&registration(name), "/agent_name", Some(json!(name)));
            let agent = hub.enrol(&with(&body, "/skills", Some(skills)), None).await;
            let shown = hub.get(&format!("/registry/agents/{}", agent.id), None).await.expect(200);
            for member in ["/agent_name", "/owner_id", "/skills/0/skill_name"] {
                assert_eq!(shown.str(member), name, "{n}");
            }
            let asked = json!({"skill": name});
            let found = hub.post("/discover", None, &asked).await.expect(200);
            assert_eq!(found.at("/total"), 1, "{name}");
        }
        // Without invisible characters they are the same names.
        let before = snapshot(&hub).await;
        for look_alike in ["☁ Weather", "☁\u{fe0e} weather", "میخواهم", "क्ष"] {
            let reply = hub.post("/register", None, &registration(look_alike)).await;
            assert_taken(&reply, "/owner_id");
        }
        for hidden in ["☁\u{200d} Weather", "we\u{200c}ather", "weather\u{fe0f}", "\u{200d}"] {
            let reply = hub.post("/register", None, &registration(hidden)).await;
            assert_malformed(&reply, "/owner_id");
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}
