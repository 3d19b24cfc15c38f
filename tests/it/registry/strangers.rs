//! Agents of other protocols, listed and hired in the registry under their aliases (R28).

use rialto_core::agent::{Liveness, Skill};
use rialto_core::alias::Protocol;
use rialto_core::answer::Answer;
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::money::Credits;
use rialto_protocols::adapter::{NewAgent, make_aliases};
use serde_json::json;

use super::forms::{both_modes, registration, with};
use crate::kit::{TestHub, assert_refused, digits, snapshot};

/// Protocol, native id, display name, owner in the ledger, skill, price in millionths; and the
/// worked alias of docs/requirements.md, section 9.
const STRANGERS: [(&str, &str, &str, &str, &str, i64, &str); 4] = [
    (
        "relay",
        "alice@chorus",
        "alice",
        "relay:alice@chorus",
        "message",
        0,
        "a6ee3ec5-dd35-589a-917a-ea2c3a03e30f",
    ),
    (
        "clara",
        "AO_Agent_1",
        "AO_Agent_1",
        "clara:wallet",
        "clara.tweet",
        50_000_000,
        "a25984fa-b6e7-5fbd-8b3e-7e30b3a61a49",
    ),
    (
        "openclaw",
        "550e8400-e29b-41d4-a716-446655440000",
        "Claw",
        "openclaw:550e8400-e29b-41d4-a716-446655440000",
        "write",
        100_000,
        "7c6f2182-27c5-5a95-a060-9240c3ec1362",
    ),
    (
        "agora",
        "did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s",
        "key",
        "agora:did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s",
        "weather",
        1,
        "a34baa6d-9533-54b0-9199-d6f717ba9fc8",
    ),
];

/// Registers them as their own protocols do.
async fn arrive(hub: &TestHub) {
    for (home, native, name, owner, skill, price, _) in STRANGERS {
        let home = Protocol::new(home);
        let enrol = Registration {
            actor: Actor::Anonymous,
            home,
            native_id: native.to_owned(),
            aliases: make_aliases(&hub.engine, NewAgent { home, native, name }),
            owner: owner.to_owned(),
            name: name.to_owned(),
            endpoint: Some("https://secret.example/inbox".to_owned()),
            liveness: Liveness::Always,
            skills: vec![Skill {
                name: skill.to_owned(),
                price: Credits::from_micros(price),
                by_offer: false,
                expected_duration: None,
                needs_approval: false,
                category: None,
                native_name: None,
                description: String::new(),
                input: r#"{"text":"string"}"#.to_owned(),
                output: r#"{"text":"string"}"#.to_owned(),
            }],
            terms: Default::default(),
            status: None,
            card: "{}".to_owned(),
            key: None,
            rotate_key: false,
        };
        let answer =
            hub.engine.run(Command::Register(Box::new(enrol))).await.expect("it registers");
        assert!(matches!(answer, Answer::Agent { new: true, .. }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_the_other_protocols_are_found_under_their_alias() {
    for hub in both_modes().await {
        arrive(&hub).await;
        for (home, native, name, owner, skill, price, alias) in STRANGERS {
            let found = hub.get(&format!("/discover?skill={skill}"), None).await.expect(200);
            assert_eq!(
                hub.get(&format!("/registry/discover?skill={skill}"), None).await.text,
                found.text
            );
            let one = found.at("/agents/0");
            assert_eq!(one["agent_id"], alias, "{home}:{native}");
            assert_eq!(one["protocol"], home);
            assert_eq!(one["agent_name"], name);
            assert_eq!(one["owner_id"], owner);
            let endpoint = format!("{}/registry/agents/{alias}", hub.url);
            assert_eq!(one["api_endpoint"], endpoint.as_str());
            assert_eq!(one["hub_endpoint"], endpoint.as_str());
            assert!(!found.text.contains("secret.example"), "its own endpoint is not shown here");
            let cents = (price + 9_999) / 10_000;
            let shown = format!("{}.{:02}", cents / 100, cents % 100);
            assert_eq!(digits(&found.text, "cost_per_call"), shown, "rounded up to a cent");
            let shown = hub
                .get(&format!("/registry/agents/{}", alias.to_uppercase()), None)
                .await
                .expect(200);
            assert_eq!(shown.str("/agent_id"), alias);
            assert_eq!(shown.str("/status"), "online");
            let score = hub.get(&format!("/reputation/{alias}"), None).await.expect(200);
            assert_eq!(digits(&score.text, "score"), "50.0");
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_is_hired_like_any_agent() {
    let hub = TestHub::serve(&[]).await;
    arrive(&hub).await;
    let asking = hub.orchestrator("o1").await;
    hub.grant("o1", "100").await;
    for (.., skill, _, alias) in STRANGERS {
        let ask = json!({"skill_name": skill, "budget": 50});
        let path = format!("/registry/agents/{alias}/jobs");
        let by_path = hub.post(&path, Some(&asking.key), &ask).await.expect(202);
        assert_eq!(by_path.str("/agent_id"), alias);
        hub.post(
            &format!("/jobs/{}/cancel", by_path.str("/job_id")),
            Some(&asking.key),
            &json!({}),
        )
        .await
        .expect(200);
        let picked = hub.post("/jobs", Some(&asking.key), &ask).await.expect(202);
        assert_eq!(picked.str("/agent_id"), alias);
        hub.post(&format!("/jobs/{}/cancel", picked.str("/job_id")), Some(&asking.key), &json!({}))
            .await
            .expect(200);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_is_nobodys_to_register_or_to_act_for() {
    for hub in both_modes().await {
        arrive(&hub).await;
        let other = hub.orchestrator("o1").await;
        let before = snapshot(&hub).await;
        for (.., alias) in STRANGERS {
            let body = with(&registration("thief"), "/agent_id", Some(json!(alias)));
            for path in ["/registry/register", "/register"] {
                for key in [None, Some(hub.operator.as_str()), Some(other.key.as_str())] {
                    assert_refused(&hub.post(path, key, &body).await, 409, "CONFLICT");
                }
            }
            let posing = json!({"orchestrator_id": alias, "skill_name": "message", "budget": 0});
            let reply = hub.post("/jobs", Some(&other.key), &posing).await;
            assert_refused(&reply, 403, "FORBIDDEN");
            for key in [None, Some(other.key.as_str())] {
                let own = format!("/registry/agents/{alias}");
                assert!([401, 404].contains(&hub.call("DELETE", &own, key, None).await.status));
                assert!([401, 404].contains(&hub.get(&format!("{own}/jobs"), key).await.status));
                assert!([401, 403].contains(&hub.post("/jobs", key, &posing).await.status));
                let beat = hub.post("/heartbeat", key, &json!({"agent_id": alias})).await;
                assert!([401, 403, 404].contains(&beat.status), "{}", beat.text);
            }
        }
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}
