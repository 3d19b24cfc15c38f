//! Orders to the market, signed or as a dry-run, and its records as clients read them.

use rialto_protocols::clara::wire::message::read_dry_run;
use rialto_protocols::clara::wire::record::{self, AgentRecord};
use rialto_protocols::clara::wire::result::{MessageResult, ResultPage};
use rialto_protocols::clara::wire::task::{TaskQuery, TaskRecord, TaskResult};
use rialto_protocols::clara::{Dialect, IncomingMessage, Order, Topics};
use rialto_protocols::kit::ans104::{Item, ItemId};
use rialto_protocols::kit::ijson;

use super::text;

/// Checks the order in a signed item.
pub fn clara_item(bytes: &[u8]) {
    let Ok(item) = Item::read(bytes) else { return };
    if let Ok(message) = IncomingMessage::of(&item) {
        assert!(message.signed);
        ordered(&message);
    }
}

/// Checks the order in a dry-run.
pub fn clara_order(bytes: &[u8]) {
    let Ok(json) = read_dry_run(bytes) else { return };
    if let Ok(message) = IncomingMessage::dry_run(&json, ItemId([7; 32])) {
        assert!(!message.signed && message.item.is_none());
        ordered(&message);
    }
}

fn ordered(message: &IncomingMessage<'_>) {
    for hidden in ["From", "Owner", "From-Process"] {
        assert_eq!(message.tag(hidden), None, "only the hub may set {hidden}");
    }
    let topics = Topics::with(["chess"]);
    for dialect in [Dialect::Spec, Dialect::Deployed] {
        match Order::read(message, &topics, dialect) {
            Ok(Order::RegisterTask(task)) => {
                assert!(ijson::read(message.data.as_bytes()).is_ok(), "{task:?} has no input");
            }
            Ok(_) => {}
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
    }
}

/// Checks the parsers of results and records.
pub fn clara_record(bytes: &[u8]) {
    if let Ok(result) = MessageResult::read(bytes) {
        for sent in &result.messages {
            let first = sent.tags.iter().find(|pair| pair.name == "Action");
            assert_eq!(sent.tag("Action"), first.map(|pair| &*pair.value));
        }
    }
    let _ = ResultPage::read(bytes);
    let Some(text) = text(bytes) else { return };
    // Some members are kept verbatim, so only strict JSON is sure to be the same again.
    if ijson::read(bytes).is_err() {
        let _ = record::read_record::<Vec<AgentRecord<'_>>>(text);
        return;
    }
    if let Ok(agent) = record::read_record::<AgentRecord<'_>>(text) {
        let written = agent.write();
        let again: AgentRecord<'_> = record::read_record(&written).expect("an agent of ours");
        assert_eq!((&again.id, again.fee, &again.topic), (&agent.id, agent.fee, &agent.topic));
    }
    if let Ok(task) = record::read_record::<TaskRecord<'_>>(text) {
        assert_eq!(
            record::read_record::<TaskRecord<'_>>(&task.write()).expect("a task of ours"),
            task
        );
    }
    if let Ok(done) = record::read_record::<TaskResult<'_>>(text) {
        assert_eq!(
            record::read_record::<TaskResult<'_>>(&done.write()).expect("a result of ours"),
            done
        );
    }
    if let Ok(query) = record::read_record::<TaskQuery<'_>>(text) {
        assert_eq!(
            record::read_record::<TaskQuery<'_>>(&query.write()).expect("a query of ours"),
            query
        );
    }
}
