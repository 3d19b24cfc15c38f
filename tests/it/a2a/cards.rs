//! Cards (R1–R13).

use super::kit::HUB;
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_and_every_agent_have_a_card_without_a_key() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("acme", "analyze_text", "0.10", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    for path in [
        "/.well-known/agent-card.json".to_owned(),
        format!("{HUB}/.well-known/agent-card.json"),
        HUB.to_owned(),
    ] {
        let card = hub.get(&path, None).await.expect(200);
        assert_eq!(card.str("/name"), "Rialto", "{path}");
    }
    for path in [format!("{base}/.well-known/agent-card.json"), base.clone()] {
        let card = hub.get(&path, None).await.expect(200);
        assert_eq!(card.str("/supportedInterfaces/0/url"), format!("{}{base}", hub.url), "{path}");
        assert_eq!(card.str("/skills/0/id"), "analyze_text");
    }
    hub.stop().await;
}
