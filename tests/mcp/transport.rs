//! How messages travel: eras, headers, statuses, streams.

use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn both_eras_are_served_at_one_url() {
    let hub = TestHub::serve(&[]).await;
    let old = McpClient::new(&hub, "/mcp", None, Era::Old);
    let new = McpClient::new(&hub, "/mcp", None, Era::New);
    let opened = old.result("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(opened["protocolVersion"], "2025-06-18");
    let discovered = new.result("server/discover", Value::Null).await;
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    assert_eq!(opened["instructions"], discovered["instructions"]);
    hub.stop().await;
}
