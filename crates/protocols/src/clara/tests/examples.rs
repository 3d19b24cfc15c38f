//! The spec's examples are read correctly.

use super::*;
use crate::clara::wire::order::{DeclineTask, SendResult};
use crate::clara::wire::register::{RegisterAgent, RegisterTask, Service};
use crate::clara::{Action, Strategy};

#[test]
fn every_example_is_the_order_it_shows() {
    let read = |example: Example| order(example.tags, data(example)).expect("an order");
    assert_eq!(
        read(good::REGISTER_AGENT),
        Order::RegisterAgent(RegisterAgent {
            id: "AO_Agent_1",
            service: Some(Service { topic: "tweet", fee: credits(20) }),
            metadata: data(good::REGISTER_AGENT),
        })
    );
    assert_eq!(read(good::LIST_AGENTS), Order::ListAgents);
    assert_eq!(
        read(good::REGISTER_TASK),
        Order::RegisterTask(RegisterTask {
            topic: "tweet",
            reward: credits(50),
            strategy: Strategy::Cheapest,
            agent_id: None,
            context_id: None,
            target_agent_id: None,
            capability: None,
            payload: r#"{"prompt":"Foo bar"}"#,
        })
    );
    let result = r#"{"result":"whatever"}"#;
    assert_eq!(
        read(good::SEND_RESULT),
        Order::SendResult(SendResult {
            agent_id: "AO_Agent_1",
            task_id: TASK,
            result,
            recipient: None,
        })
    );
    assert_eq!(
        read(good::DECLINE_TASK),
        Order::Decline(DeclineTask { agent_id: "AO_Agent_1", task_id: TASK })
    );
}

#[test]
fn every_example_means_the_same_with_the_prefix_of_the_first_version() {
    for example in good::EXAMPLES {
        let action = example.tags[0].1;
        let prefixed = format!("v1.{action}");
        let tags = with(example, "Action", &prefixed);
        assert_eq!(order(&tags, data(example)), order(example.tags, data(example)), "{action}");
    }
    for action in Action::ALL {
        let word = action.as_str();
        assert_eq!(Action::read(word), Some(action));
        assert_eq!(Action::read(&format!("v1.{word}")), Some(action));
        assert_eq!(Action::read(&format!("v1.v1.{word}")), None);
        assert_eq!(Action::read(&format!("v2.{word}")), None);
        assert_eq!(Action::read(&word.to_lowercase()), None);
    }
}

#[test]
fn members_a_client_adds_change_nothing() {
    for example in good::EXAMPLES {
        let mut tags = example.tags.to_vec();
        tags.extend([
            ("Data-Protocol", "ao"),
            ("Variant", "ao.TN.1"),
            ("Type", "Message"),
            ("SDK", "aoconnect"),
            ("Content-Type", "text/plain"),
        ]);
        assert_eq!(order(&tags, data(example)), order(example.tags, data(example)));
    }
}
