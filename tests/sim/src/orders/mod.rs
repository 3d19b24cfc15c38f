//! Random commands to a hub, as each protocol really sends them.
//!
//! Every choice follows from the random numbers of one step and the state when it runs, so a step
//! keeps its meaning when others are left out.

mod a2a;
mod adversary;
pub mod agora;
mod clara;
pub mod keys;
mod money;
mod openclaw;
mod people;
mod registry;
mod relay;
mod talk;
pub mod work;

use rialto_core::alias::Protocol;
use rialto_core::command::{Command, OpenJob, Registration};
use rialto_core::id::AgentId;
use rialto_core::job::{DEFAULT_PRIORITY, Policy, Requester, Selection};
use rialto_core::price_step::PriceStep;
use rialto_core::testkit::TestHub;
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use crate::ask::Ask;
use crate::cast::{SKILLS, amount, digest, price, somebody};
use crate::dice::Dice;

pub use people::opening;

/// The next command.
pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Ask> {
    let mut ask: Ask = match dice.roll(100) {
        0..10 => people::next(dice, scene, now)?.into(),
        10..16 => money::next(dice, scene)?.into(),
        16..26 => talk::next(dice, scene)?.into(),
        26..34 => registry::next(dice, scene, now)?.into(),
        34..38 => relay::next(dice, scene, now)?.into(),
        38..44 => openclaw::next(dice, scene, now)?.into(),
        44..56 => clara::next(dice, scene, now)?.into(),
        56..72 => agora::next(dice, scene).into(),
        72..78 => adversary::next(dice, scene, now)?.into(),
        78..83 => a2a::next(dice, scene, now)?.into(),
        _ => work::next(dice, scene, now)?.into(),
    };
    keys::with_key(dice, scene, &mut ask.0);
    // The hub itself saves answers under a key; no caller does that under another key.
    if dice.chance(25) && !matches!(ask.command(), Command::SaveAnswer(_)) {
        ask.0.idempotency = Some(talk::once(dice));
    }
    Some(ask)
}

/// A job request, with defaults for everything that is the same in all protocols.
fn wish(dice: &mut Dice, scene: &TestHub, origin: Protocol, now: Timestamp) -> OpenJob {
    let made = dice.any();
    let requester = match dice.chance(6) {
        true => Requester::Guest("somebody".to_owned()),
        false => Requester::Agent(somebody(dice, scene)),
    };
    // Ids from a small pool repeat, with the same content or another.
    let (foreign, content) = match dice.chance(12) {
        true => (format!("shared-{}", dice.roll(6)), digest(dice.roll(2))),
        false => (format!("job-{made:016x}"), digest(made)),
    };
    OpenJob {
        uuid: Uuid::from_u128(u128::from(made) << 64 | u128::from(dice.any())),
        origin,
        foreign_id: foreign,
        content,
        requester,
        skill: dice.of(SKILLS).to_owned(),
        alternative_skills: Vec::new(),
        input: "{}".to_owned(),
        budget: amount(dice),
        price_step: PriceStep::FINEST,
        selection: Selection::BestReputation,
        unfit_agents: Vec::new(),
        policy: Policy::default(),
        deadline: now.plus(Millis(dice.within_seconds(3_000))),
        lease: Millis(20_000 + dice.within_seconds(200)),
        wanted_by: None,
        priority: DEFAULT_PRIORITY,
        callback: None,
        input_error: None,
        meta: "{}".to_owned(),
        hops: if dice.chance(2) { 9 } else { 0 },
        // From a small pool, so that requesters use the same one.
        request_id: dice.chance(12).then(|| format!("request-{}", dice.roll(6))),
    }
}

/// The agent it is for, as named in the protocol: in most cases one of the protocol's own.
fn whom(dice: &mut Dice, scene: &TestHub, home: Protocol) -> AgentId {
    match dice.chance(60) {
        true => crate::cast::somebody_of(dice, scene, home),
        false => somebody(dice, scene),
    }
}

/// A registration with defaults for everything that is the same in all protocols.
fn enrolment(dice: &mut Dice, home: Protocol, n: u64) -> Registration {
    use crate::cast::{SPOKEN, native, owner_of};
    let native = native(home, n);
    let elsewhere = SPOKEN.into_iter().filter(|protocol| *protocol != home);
    let mut skills = Vec::new();
    for (at, name) in SKILLS.into_iter().enumerate() {
        if dice.chance(if at == 0 { 85 } else { 50 }) {
            let mut skill = rialto_core::testkit::skill(name, "0");
            skill.price = price(dice);
            skills.push(skill);
        }
    }
    Registration {
        actor: rialto_core::command::Actor::OpenRegistration,
        home,
        aliases: elsewhere.map(|protocol| (protocol, format!("{protocol}-of-{native}"))).collect(),
        owner: owner_of(home, n),
        name: native.clone(),
        native_id: native,
        endpoint: None,
        liveness: rialto_core::agent::Liveness::ByPolling,
        skills,
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: Some(key(dice)),
        rotate_key: dice.chance(15),
    }
}

fn key(dice: &mut Dice) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&dice.any().to_be_bytes());
    hash
}

fn opened(order: OpenJob) -> Option<Command> {
    Some(Command::OpenJob(Box::new(order)))
}
