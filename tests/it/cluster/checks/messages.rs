//! Messages: acknowledged ones are there once and where the answer says, in the order in which they
//! were sent; a stream over several nodes has each position once (G1, G2, G4, G6).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::order::{Observation, find_regressions};
use crate::cluster::client::Client;
use crate::cluster::history::{CommandHistory, Operation, Read, Seen};
use crate::cluster::traffic::cast::Cast;
use crate::kit::Agent;

/// How many notices are read at once.
const PAGE: usize = 100;

pub async fn check(
    client: &Client,
    node: usize,
    cast: &Cast,
    commands: &BTreeMap<String, CommandHistory>,
    reads: &[Read],
) -> Vec<String> {
    let mut found = Vec::new();
    for agent in cast.receivers.iter().chain([&cast.relay_receiver]) {
        let mut inbox = read_inbox(client, node, agent).await;
        let streams = client.round.history.streams();
        for event in streams.get(&agent.id).into_iter().flatten() {
            // What was read and acknowledged may be gone.
            let known = inbox.entry(event.position).or_insert_with(|| event.text.clone());
            if *known != event.text {
                let (id, position) = (&agent.id, event.position);
                found.push(format!("{id}: {position} was {} and is {known}", event.text));
            }
        }
        found.extend(check_inbox(&agent.id, &inbox, commands, reads));
    }
    found
}

/// The texts of an inbox by position.
async fn read_inbox(client: &Client, node: usize, agent: &Agent) -> BTreeMap<u64, String> {
    let (mut inbox, mut after) = (BTreeMap::new(), 0);
    loop {
        let path = format!("/v1/inbox?after={after}&limit={PAGE}");
        let page = super::read(client, node, &path, &agent.key).await;
        let items: Vec<Value> = page["items"].as_array().cloned().unwrap_or_default();
        for item in &items {
            let text = [&item["body"]["text"], &item["body"]["envelope"]["original_text"]];
            let text = text.into_iter().chain([&item["body"]["original_text"]]);
            let text = text.filter_map(Value::as_str).next().unwrap_or_default();
            after = item["position"].as_u64().expect("a position");
            inbox.insert(after, text.to_owned());
        }
        if items.is_empty() {
            return inbox;
        }
    }
}

fn check_inbox(
    inbox: &str,
    content: &BTreeMap<u64, String>,
    commands: &BTreeMap<String, CommandHistory>,
    reads: &[Read],
) -> Vec<String> {
    let mut found = Vec::new();
    if !content.keys().copied().eq(1..=content.len() as u64) {
        found.push(format!("{inbox} has gaps: {:?}", content.keys()));
    }
    let mut positions: HashMap<&str, Vec<u64>> = HashMap::new();
    for (position, text) in content {
        positions.entry(text).or_default().push(*position);
        if !commands.contains_key(text) {
            found.push(format!("{inbox}: nobody sent {text:?}, which is at {position}"));
        }
    }
    let mut observations = Vec::new();
    for (key, command) in commands {
        if command.operation != (Operation::Send { inbox: inbox.to_owned() }) {
            continue;
        }
        let there = positions.get(key.as_str()).map(Vec::as_slice).unwrap_or_default();
        let told = command.done();
        match (told, there) {
            (Some(answer), [position]) => {
                let answer: Value = serde_json::from_str(answer).unwrap_or_default();
                let said = answer["position"].as_u64();
                if said.is_some_and(|said| said != *position) {
                    found.push(format!("{inbox}: {key} is at {position}, not {said:?}"));
                }
                if let Some(end) = command.end {
                    let (begin, version, by) = (command.begin, *position, format!("send {key}"));
                    observations.push(Observation { begin, end, version, by });
                }
            }
            (Some(_), []) => found.push(format!("{inbox}: {key} was acknowledged and is lost")),
            (Some(_), _) => {
                found.push(format!("{inbox}: {key} was acknowledged and is at {there:?}"))
            }
            (None, []) => {}
            (None, _) if command.is_refused() => {
                found.push(format!("{inbox}: {key} was refused and is at {there:?}"));
            }
            (None, [_]) => {}
            (None, _) => found.push(format!("{inbox}: {key} without an answer is at {there:?}")),
        }
    }
    for read in reads {
        let Seen::Inbox { agent, head } = &read.seen else { continue };
        if agent != inbox {
            continue;
        }
        let (begin, end, version) = (read.begin, read.end, *head);
        let by = format!("client {} at node {}", read.client, read.node);
        // What is shown was sent before.
        if let Some(text) = content.get(head)
            && let Some(command) = commands.get(text)
            && command.begin > end
        {
            found.push(format!("{inbox}: {by} saw {head} before it was sent"));
        }
        observations.push(Observation { begin, end, version, by });
    }
    found.extend(find_regressions(inbox, &observations));
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::history::Outcome;

    fn send(at: u64, outcome: Option<Outcome>) -> CommandHistory {
        let (begin, end) = (Duration::from_millis(at), Duration::from_millis(at + 1));
        CommandHistory {
            operation: Operation::Send { inbox: "a".to_owned() },
            begin,
            end: outcome.as_ref().map(|_| end),
            attempts: 1,
            answers: outcome.into_iter().map(|outcome| (0, outcome)).collect(),
        }
    }

    fn done(position: u64) -> Option<Outcome> {
        Some(Outcome::Done(format!("{{\"position\":{position}}}")))
    }

    fn found(sent: &[(&str, CommandHistory)], inbox: &[(u64, &str)], reads: &[Read]) -> usize {
        let sent = sent.iter().map(|(key, command)| ((*key).to_owned(), command.clone())).collect();
        let inbox = inbox.iter().map(|(position, text)| (*position, (*text).to_owned())).collect();
        check_inbox("a", &inbox, &sent, reads).len()
    }

    #[test]
    fn a_lost_a_doubled_and_a_refused_message_are_found() {
        let (x, y) = (("x", send(1, done(1))), ("y", send(5, done(2))));
        let both = [x.clone(), y.clone()];
        assert_eq!(found(&both, &[(1, "x"), (2, "y")], &[]), 0);
        assert_eq!(found(&both, &[(1, "x")], &[]), 1, "lost");
        assert_eq!(found(&both, &[(1, "x"), (2, "y"), (3, "y")], &[]), 1, "doubled");
        // Each is elsewhere than its answer says, and they are in the wrong order.
        assert_eq!(found(&both, &[(1, "y"), (2, "x")], &[]), 3, "swapped");
        assert_eq!(found(&both, &[(1, "x"), (3, "y")], &[]), 2, "a gap, and elsewhere");
        let refused = ("y", send(5, Some(Outcome::Refused(404, String::new()))));
        assert_eq!(found(&[x.clone(), refused], &[(1, "x"), (2, "y")], &[]), 1, "refused");
        let open = ("y", send(5, None));
        assert_eq!(found(&[x.clone(), open.clone()], &[(1, "x"), (2, "y")], &[]), 0);
        assert_eq!(found(&[x.clone(), open.clone()], &[(1, "x")], &[]), 0);
        assert_eq!(found(&[x, open], &[(1, "x"), (2, "y"), (3, "y")], &[]), 1, "twice");
    }

    #[test]
    fn a_read_that_shows_too_little_or_too_much_is_found() {
        let sent = [("x", send(1, done(1))), ("y", send(5, done(2)))];
        let inbox = [(1, "x"), (2, "y")];
        let read = |at: u64, head: u64| {
            let seen = Seen::Inbox { agent: "a".to_owned(), head };
            let (begin, end) = (Duration::from_millis(at), Duration::from_millis(at + 1));
            [Read { client: 1, node: 0, begin, end, seen }]
        };
        assert_eq!(found(&sent, &inbox, &read(7, 2)), 0);
        assert_eq!(found(&sent, &inbox, &read(7, 1)), 1, "too old");
        assert_eq!(found(&sent, &inbox, &read(3, 2)), 1, "before it was sent");
    }
}
