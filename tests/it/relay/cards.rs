//! Agent cards: version, culture, languages (R13–R15, R28).

use serde_json::{Value, json};

use super::kit::{assert_bad, card, registration, state, with};
use crate::kit::TestHub;

fn carded(id: &str, pointer: &str, value: Option<Value>) -> Value {
    with(&registration(id), &format!("/agent_card/{pointer}"), value)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_of_another_version_is_refused() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    for wrong in [
        None,
        Some(json!("0.2")),
        Some(json!("0.4")),
        Some(json!(0.3)),
        Some(json!("")),
        Some(json!(null)),
    ] {
        let body = carded("ada@chorus", "card_version", wrong);
        let operators = with(&body, "/endpoint", Some(json!("https://ada.example/in")));
        assert_bad(&hub.post("/relay/register", None, &body).await, "/agent_card/card_version");
        let reply = hub.post("/relay/agents", Some(&hub.operator), &operators).await;
        assert_bad(&reply, "/agent_card/card_version");
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_with_the_old_field_name_is_told_the_new_one() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    for version in ["0.2", "0.3"] {
        let body = carded("ada@chorus", "card_version", None);
        let body = with(&body, "/agent_card/chorus_version", Some(json!(version)));
        let reply = hub.post("/relay/register", None, &body).await;
        assert_bad(&reply, "/agent_card/card_version");
        let hint = reply.str("/error/hint");
        assert!(hint.contains("card_version: \"0.3\""), "{hint}");
    }
    assert_eq!(state(&hub).await, before);
    // Beside the right member it is just an unknown one.
    let body = carded("ada@chorus", "chorus_version", Some(json!("0.4")));
    hub.post("/relay/register", None, &body).await.expect(201);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cultures_and_languages_are_bcp_47() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    for wrong in ["english", "e", "en_US", "", "en-", "x-private", "中文", " en"] {
        let body = carded("ada@chorus", "user_culture", Some(json!(wrong)));
        assert_bad(&hub.post("/relay/register", None, &body).await, "/agent_card/user_culture");
        let body = carded("ada@chorus", "supported_languages", Some(json!(["en", wrong])));
        let reply = hub.post("/relay/register", None, &body).await;
        assert_bad(&reply, "/agent_card/supported_languages/1");
    }
    for wrong in [None, Some(json!([])), Some(json!("en")), Some(json!({})), Some(json!(null))] {
        let body = carded("ada@chorus", "supported_languages", wrong);
        let reply = hub.post("/relay/register", None, &body).await;
        assert_bad(&reply, "/agent_card/supported_languages");
    }
    for wrong in [None, Some(json!(7)), Some(json!(["en"]))] {
        let body = carded("ada@chorus", "user_culture", wrong);
        assert_bad(&hub.post("/relay/register", None, &body).await, "/agent_card/user_culture");
    }
    let body = carded("ada@chorus", "supported_languages", Some(json!(["en", 7])));
    assert_bad(
        &hub.post("/relay/register", None, &body).await,
        "/agent_card/supported_languages/1",
    );
    assert_eq!(state(&hub).await, before);
    let good = ["en", "zh-CN", "zh-Hant-TW", "es-419", "en-us", "en-GB-oxendict", "yue"];
    for (n, tag) in good.into_iter().enumerate() {
        let body = carded(&format!("ada{n}@chorus"), "user_culture", Some(json!(tag)));
        let body = with(&body, "/agent_card/supported_languages", Some(json!(good)));
        let reply = hub.post("/relay/register", None, &body).await.expect(201);
        assert_eq!(reply.at("/data/registration/agent_card/user_culture"), tag, "the case is kept");
        assert_eq!(reply.at("/data/registration/agent_card/supported_languages"), json!(good));
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_shows_the_whole_card_as_it_came() {
    let hub = TestHub::serve(&[]).await;
    let mut own = card();
    own["user_culture"] = json!("zh-CN");
    own["supported_languages"] = json!(["zh-CN", "en"]);
    own["personality"] = json!({"tone": ["dry", 1.50, null], "data: ": "\u{2028}"});
    let ada = hub.join_with(&json!({"agent_id": "ada", "agent_card": own})).await;
    for shown in [hub.record(&ada.id).await, hub.get("/agents", None).await.at("/data/0")] {
        assert_eq!(shown["agent_card"], own);
    }
    hub.stop().await;
}
