//! A hub that cannot accept writes now.

use rialto_engine::cluster::state::Role;

use super::kit::Node;
use crate::app::operations;

#[tokio::test]
async fn every_write_says_when_to_retry() {
    let node = Node::start(Role::Writer).await;
    let key = node.register().await;
    node.engine.stop().await;
    for path in ["/relay/register", "/registry/register", "/openclaw/identity", "/v1/me/status"] {
        let operation = operations().into_iter().find(|operation| operation.path == path);
        let example = operation.and_then(|operation| operation.example).expect(path);
        let key = if path.starts_with("/v1") { &key } else { "" };
        let answer = node.post(path, key, example).await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{path}: {answer}");
        assert!(answer.contains("retry-after: 1\r\n"), "{path}: {answer}");
    }
}
