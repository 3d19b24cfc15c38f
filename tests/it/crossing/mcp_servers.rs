//! One tool of an MCP server of others, sold by `rialto agent run --mcp`, hired from every protocol.

use super::cells::{FLAGS, STARTING_CREDITS};
use super::parties::ALL;
use super::party::{End, Order};
use super::programs::Program;
use crate::kit::{TestHub, npm_package};
use crate::runtime::kit::Place;

const SERVER: &str = "@modelcontextprotocol/server-everything";
const VERSION: &str = "2026.8.31";

#[tokio::test]
async fn one_tool_of_a_foreign_mcp_server_answers_a_requester_of_every_protocol() {
    let (hub, place) = (TestHub::serve(FLAGS).await, Place::new());
    let program = npm_package(SERVER, VERSION).join("node_modules").join(SERVER);
    let command = format!("node '{}'", program.join("dist/index.js").display());
    let flags = ["--mcp", &command, "--price", "0.10", "--tools", "echo"];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let agent = Program::of(&runtime, "echo", r#"{"text":"Echo: one 1.50"}"#);
    let order = Order {
        input: r#"{"message":"one 1.50"}"#.to_owned(),
        budget: "1".to_owned(),
        aside: None,
    };
    for (protocol, seat) in ALL.iter().zip(1..) {
        let requester = protocol.requester(&hub, seat).await;
        hub.grant(&requester.owner(), STARTING_CREDITS).await;
        let found = protocol.find(&hub, &agent).await;
        let ticket = requester.hire(&hub, &found, &order).await.expect("it is hired");
        let ended = requester.ended(&hub, &ticket).await;
        let words = [true, false].map(|begun| protocol.words(End::Done, begun));
        assert!(words.contains(&ended.words.as_str()), "{}: {}", protocol.id(), ended.bytes);
        let output = Some(r#"{"text":"Echo: one 1.50"}"#);
        assert_eq!(ended.output.as_deref(), output, "{}", protocol.id());
    }
    let taken = runtime.events().into_iter().filter(|event| event["event"] == "took");
    assert_eq!(taken.count(), ALL.len(), "each was called once");
}
