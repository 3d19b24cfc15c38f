//! Messages between agents, and answers that are saved for repeats.

use rialto_core::alias::Digest;
use rialto_core::command::{Command, MessageIdentity, SendMessage};
use rialto_core::id::AgentId;
use rialto_core::idempotency::{Principal, SavedAnswer};
use rialto_core::testkit::TestHub;
use rialto_core::time::Millis;
use rialto_engine::Idempotency;

use crate::cast::{RELAY, SPOKEN, digest, somebody, somebody_of};
use crate::dice::Dice;

/// Keys that callers use; few, so that some are used again for another request.
const SCOPES: u64 = 2_000;
/// Callers that use them.
const CALLERS: u64 = 8;

pub fn next(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    Some(match dice.roll(20) {
        0 => {
            let (agent, whom) = (somebody(dice, scene), somebody(dice, scene));
            Command::SetBlocked { agent, other: whom, blocked: dice.chance(60) }
        }
        1 => {
            let once = once(dice);
            let kept = SavedAnswer::Answer { status: 200, body: "{}".to_owned() };
            once.save(kept)
        }
        _ => Command::SendMessage(Box::new(envelope(dice, scene))),
    })
}

/// What makes a request repeatable.
pub fn once(dice: &mut Dice) -> Idempotency {
    let key = dice.roll(SCOPES);
    let scope = Digest::of(&[b"scope", &key.to_be_bytes()]);
    // A key belongs to one caller.
    let principal = match key % CALLERS {
        0 => Principal::Operator,
        1 => Principal::Anonymous(digest(1)),
        agent => Principal::Agent(AgentId(agent)),
    };
    Idempotency { scope, request: digest(dice.roll(2)), principal }
}

fn envelope(dice: &mut Dice, scene: &TestHub) -> SendMessage {
    let made = dice.any();
    // In most cases a new message id; sometimes one of a few used ones, with the same text or
    // another.
    let (from, to, turn) = match dice.roll(100) {
        0..20 => {
            let [from, to] = [(); 2].map(|()| somebody_of(dice, scene, RELAY));
            let (number, content) = (dice.roll(3), digest(dice.roll(2)));
            (from, to, Some(MessageIdentity { conversation: "talk".to_owned(), number, content }))
        }
        roll => {
            let (from, to) = (somebody(dice, scene), somebody(dice, scene));
            let (conversation, number) = (format!("{made:x}"), dice.roll(9));
            let turn = MessageIdentity { conversation, number, content: digest(made) };
            (from, to, Some(turn).filter(|_| roll < 60))
        }
    };
    SendMessage {
        from: (!dice.chance(5)).then_some(from),
        to,
        protocol: dice.of(SPOKEN),
        body: format!("{made:016x}"),
        url: dice.chance(30).then(|| "https://elsewhere.example/in".to_owned()),
        first_try: Millis(if dice.chance(50) { 0 } else { 10_000 }),
        identity: turn,
        by_operator: dice.chance(8),
    }
}
