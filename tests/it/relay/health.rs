//! The public health route (R72).

use super::kit::{BOTH, assert_wrapped};
use crate::kit::{ClosedPort, TestHub, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_no_key_and_counts_what_there_is() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let path = format!("{prefix}/health");
        let fresh = hub.get(&path, None).await.expect(200);
        assert_wrapped(&fresh, true);
        assert_eq!(fresh.str("/data/status"), "ok");
        assert!(!fresh.str("/data/version").is_empty());
        assert!(fresh.at("/data/uptime_seconds").is_u64());
        let counts = [
            "agents_registered",
            "messages_delivered",
            "messages_failed",
            "messages_queued",
            "inbox_connections",
        ];
        for count in counts {
            assert_eq!(fresh.at(&format!("/data/{count}")), 0, "{count}");
        }
        let closed = ClosedPort::take();
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        let gone = hub.join_at("gone", &closed.url).await;
        let inbox = hub.inbox(&bob).await;
        hub.say(&ada, &bob, "delivered").await.expect(200);
        hub.say(&bob, &ada, "queued").await.expect(202);
        hub.say(&ada, &gone, "failed").await.expect(200);
        let now = hub.get(&path, None).await.expect(200);
        let found = counts.map(|count| now.at(&format!("/data/{count}")).as_u64());
        assert_eq!(found, [3, 1, 1, 1, 1].map(Some), "{}", now.text);
        drop(inbox);
        eventually(async || hub.get(&path, None).await.at("/data/inbox_connections") == 0).await;
        hub.stop().await;
    }
}
