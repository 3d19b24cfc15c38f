//! The memory of agents that do nothing, measured as the resident memory of this process: the test
//! has a process of its own.

#![cfg(target_os = "linux")]

use rialto_core::agent::{Liveness, Skill, Terms};
use rialto_core::alias::{Digest, Protocol};
use rialto_core::command::{Actor, Command, Registration};
use rialto_core::decide;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_core::world::footprint::MemoryLimits;
use rialto_core::world::{Rules, World};

const AGENTS: u64 = 100_000;
/// Owners of these agents.
const OWNERS: u64 = 16;
/// What one agent may take in both copies of the world together, with its rows.
const BYTES_MAX: u64 = 1_536;

#[expect(clippy::disallowed_methods, reason = "core does no I/O; its test reads one figure")]
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).expect("the second number is the resident pages");
    pages.parse::<u64>().expect("it is a number") * 4_096
}

/// An agent with one skill, one alias and one key, of one of a few owners.
fn registration(number: u64) -> Registration {
    let half = |part: u64| Digest::of(&[&number.to_be_bytes(), &part.to_be_bytes()]).0;
    let mut key = [0; 32];
    key[..16].copy_from_slice(&half(0));
    key[16..].copy_from_slice(&half(1));
    Registration {
        actor: Actor::Operator,
        home: Protocol::new("home"),
        native_id: format!("agent-{number:08}"),
        aliases: Vec::new(),
        owner: format!("owner-{}", number % OWNERS),
        name: format!("Agent {number}"),
        endpoint: None,
        liveness: Liveness::ByPolling,
        skills: vec![Skill {
            name: "summarize".to_owned(),
            price: Credits::from_micros(100_000),
            by_offer: false,
            expected_duration: None,
            needs_approval: false,
            description: String::new(),
            category: None,
            native_name: None,
            input: String::new(),
            output: String::new(),
        }],
        terms: Terms::default(),
        status: None,
        card: "{}".to_owned(),
        key: Some(key),
        rotate_key: false,
    }
}

#[test]
fn an_idle_agent_takes_little_memory() {
    let rules = Rules { memory: MemoryLimits::NONE, ..Rules::default() };
    let (mut working, mut published) = (World::new(rules), World::new(rules));
    let before = resident_bytes();
    for number in 0..AGENTS {
        let command = Command::Register(Box::new(registration(number)));
        let (changes, _) = decide(&working, command, Timestamp(1)).expect("ids are new");
        working.apply(&changes);
        working.drop_cold_rows();
        published.apply_batch(&changes);
    }
    let grown = resident_bytes().saturating_sub(before);
    assert_eq!(published.agents().len() as u64, AGENTS);
    assert!(grown <= AGENTS * BYTES_MAX, "{} bytes per agent", grown / AGENTS);
}
