//! Tests of every Error text.

use super::*;
use crate::kit::name::BadName;

const UNKNOWN_PROTOCOL: &str = "Unknown protocol nil, supported: C.L.A.R.A.";

#[test]
fn all_but_what_only_shows_something_need_the_protocol() {
    for example in good::EXAMPLES {
        let without = order(&without(example, "Protocol"), data(example));
        let other = order(&with(example, "Protocol", "clara"), data(example));
        if example == good::LIST_AGENTS {
            assert_eq!((without, other), (Ok(Order::ListAgents), Ok(Order::ListAgents)));
            continue;
        }
        assert_eq!(without.expect_err("no protocol").to_string(), UNKNOWN_PROTOCOL);
        let text = other.expect_err("another protocol").to_string();
        assert_eq!(text, "Unknown protocol clara, supported: C.L.A.R.A.");
    }
    for action in ["Load-Next-Assigned-Task", "Submit-Offer", "Withdraw", "Task-Trace"] {
        assert_eq!(fault(&[("Action", action)], ""), UNKNOWN_PROTOCOL, "{action}");
    }
    for action in ["Tasks-Queue", "Dispatch-Tasks", "Dashboard-Data", "Balance"] {
        assert!(order(&[("Action", action)], "").is_ok(), "{action}");
    }
    assert_eq!(fault(&[("Action", "Balances")], ""), OrderError::SignToRead.to_string());
}

#[test]
fn topics_and_strategies_are_known() {
    let tag = "RedStone-Agent-Topic";
    for topic in ["broadcast", "chat", "none", "TWEET", "tweet "] {
        let tags = with(good::REGISTER_AGENT, tag, topic);
        assert_eq!(fault(&tags, "{}"), format!("Unknown Topic {topic}"));
    }
    for example in [good::REGISTER_AGENT, good::REGISTER_TASK] {
        assert_eq!(fault(&with(example, tag, "cooking"), "{}"), "Unknown Topic cooking");
    }
    assert_eq!(fault(&without(good::REGISTER_TASK, tag), "{}"), "Unknown Topic nil");
    for word in ["roundrobin", "best", ""] {
        let tags = with(good::REGISTER_TASK, "RedStone-Agent-Matching", word);
        assert_eq!(fault(&tags, "{}"), format!("Unknown strategy {word}"));
    }
    let everybody = with(good::REGISTER_TASK, "RedStone-Agent-Topic", "broadcast");
    let mut tags = everybody;
    tags.retain(|(name, _)| *name != "RedStone-Agent-Matching");
    tags.push(("RedStone-Agent-Matching", "best"));
    assert_eq!(fault(&tags, "{}"), "Unknown strategy best");
}

#[test]
fn fees_and_rewards_are_positive_integers() {
    let fee = "Value Agent-Fee must be positive integer";
    let reward = "Value Agent-Reward must be positive integer";
    for (example, tag, text) in [
        (good::REGISTER_AGENT, "RedStone-Agent-Fee", fee),
        (good::REGISTER_TASK, "RedStone-Agent-Reward", reward),
    ] {
        for value in prices::WRONG {
            assert_eq!(fault(&with(example, tag, value), "{}"), text, "{value:?}");
        }
        assert_eq!(fault(&without(example, tag), "{}"), text);
        for value in ["1", "7", "1000000000"] {
            assert!(order(&with(example, tag, value), "{}").is_ok(), "{value}");
        }
    }
}

#[test]
fn data_is_json_where_it_is_read() {
    for example in [good::REGISTER_AGENT, good::REGISTER_TASK, good::SEND_RESULT] {
        for wrong in ["", " ", "{", "{\"a\":1,\"a\":2}", "nope", "{} {}", "'a'", "01"] {
            assert_eq!(fault(example.tags, wrong), "Data must be valid JSON", "{wrong:?}");
        }
        for right in ["{}", "1234", "null", "\"text\"", " [1] "] {
            assert!(order(example.tags, right).is_ok(), "{right:?}");
        }
    }
    assert!(order(good::DECLINE_TASK.tags, "{").is_ok());
}

#[test]
fn tags_without_a_text_of_their_own_are_required() {
    for example in [good::SEND_RESULT, good::DECLINE_TASK] {
        for tag in ["RedStone-Agent-Id", "RedStone-Task-Id"] {
            assert_eq!(fault(&without(example, tag), "{"), format!("Tag {tag} is required"));
        }
    }
    let id = "Tag RedStone-Agent-Id is required";
    assert_eq!(fault(&without(good::REGISTER_AGENT, "RedStone-Agent-Id"), "{}"), id);
    for action in ["Load-Next-Assigned-Task", "Load-Next-Query", "Submit-Offer"] {
        assert_eq!(fault(&[("Action", action), ("Protocol", "C.L.A.R.A.")], ""), id);
    }
}

#[test]
fn an_agent_is_called_by_something_that_can_be_seen_and_is_its_own() {
    let named = |id: &str| order(&with(good::REGISTER_AGENT, "RedStone-Agent-Id", id), "{}").err();
    let long = "界".repeat(128);
    for id in [
        "A",
        "a b",
        "registry",
        "mine/registry/x",
        "relays/x",
        "☁\u{fe0f} Weather",
        "می\u{200c}خواهم",
        &long,
    ] {
        assert_eq!(named(id), None, "{id}");
    }
    let longer = "x".repeat(129);
    for (id, why) in [
        ("", BadName::Empty),
        (longer.as_str(), BadName::TooLong { max: 128 }),
        ("a\u{200b}", BadName::Invisible),
        ("a\n", BadName::Invisible),
    ] {
        assert_eq!(named(id), Some(OrderError::BadAgentId(why)), "{id:?}");
    }
    for protocol in ["registry", "relay", "openclaw", "clara", "agora", "a2a"] {
        let fault = named(&format!("{protocol}/x")).expect("reserved");
        assert_eq!(fault.to_string(), format!("Value Agent-Id must not start with {protocol}/"));
    }
}

#[test]
fn the_first_of_many_mistakes_is_told() {
    let mut tags = vec![("Action", "Register-Agent-Profile")];
    let mut told = vec![fault(&tags, "{")];
    for (name, value) in [
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Id", "relay/x"),
        ("RedStone-Agent-Topic", "cooking"),
    ] {
        tags.push((name, value));
        told.push(fault(&tags, "{"));
    }
    let topic = tags.iter_mut().find(|(name, _)| *name == "RedStone-Agent-Topic").expect("one");
    topic.1 = "nft";
    told.push(fault(&tags, "{"));
    tags.push(("RedStone-Agent-Fee", "1"));
    told.push(fault(&tags, "{"));
    let id = tags.iter_mut().find(|(name, _)| *name == "RedStone-Agent-Id").expect("an id");
    id.1 = "x";
    told.push(fault(&tags, "{"));
    assert_eq!(
        told,
        [
            UNKNOWN_PROTOCOL,
            "Tag RedStone-Agent-Id is required",
            "Value Agent-Id must not start with relay/",
            "Unknown Topic cooking",
            "Value Agent-Fee must be positive integer",
            "Value Agent-Id must not start with relay/",
            "Data must be valid JSON",
        ]
    );
}

#[test]
fn accounts_are_told_to_their_owner_only() {
    let ask = |more: &[(&str, &str)], signed| {
        let tags = [&[("Action", "Balance"), ("Protocol", "C.L.A.R.A.")], more].concat();
        let asked = IncomingMessage { signed, ..message(&tags, "") };
        Order::read(&asked, &Topics::default(), Dialect::Spec).is_ok()
    };
    assert!(ask(&[], true) && ask(&[("Recipient", ALICE)], true));
    assert!(!ask(&[("Recipient", BOB)], true) && !ask(&[("Recipient", "")], true));
    assert!(!ask(&[], false) && !ask(&[("Recipient", ALICE)], false));
    let all = fault(&[("Action", "Balances"), ("Protocol", "C.L.A.R.A.")], "");
    assert_eq!(all, "Sign this message to read it");
}

#[test]
fn what_only_the_market_knows_has_its_texts_too() {
    let (address, agent) = (ALICE.to_owned(), "A1".to_owned());
    let task = || TASK.to_owned();
    for (fault, text) in [
        (
            OrderError::NotOwner { address: address.clone(), agent: agent.clone() },
            format!("{ALICE} does not own A1"),
        ),
        (
            OrderError::NotRegistered { agent, address: address.clone() },
            format!("Agent A1 not registered for sender {ALICE}"),
        ),
        (OrderError::NoAgents, "No agents to choose from".to_owned()),
        (
            OrderError::InsufficientFunds { address, funds: Credits::from_micros(49_999_999) },
            format!("Requesting agent ({ALICE}) funds (49) are insufficient"),
        ),
        (OrderError::NotAssigned, "Agent was not assigned to task".to_owned()),
        (OrderError::AlreadySent(task()), format!("Already sent result for task {TASK}")),
        (OrderError::NoOffers(task()), format!("No offers for task {TASK}")),
        (OrderError::AuctionClosed(task()), format!("Auction for task {TASK} is closed")),
        (
            OrderError::OfferTooHigh { offer: credits(51), reward: credits(50) },
            "Offer 51 exceeds reward 50".to_owned(),
        ),
        (OrderError::AlreadyOffered(task()), format!("Already offered for task {TASK}")),
    ] {
        assert_eq!(fault.to_string(), text);
    }
}
