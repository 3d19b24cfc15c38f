//! Signed orders, by agents that have only their key; native to `KEYS`.

use rialto_core::alias::{Digest, Protocol};
use rialto_core::command::{Command, Enrol};
use rialto_core::job::{Cause, Job, Requester, Selection};
use rialto_core::money::Credits;
use rialto_core::signed::*;
use rialto_core::time::Millis;
use rialto_core::world::World;
use uuid::Uuid;

use super::{Dice, credits, enrol};

/// The protocol of the signers.
pub const KEYS: Protocol = Protocol::new("keys");
/// How long a request may take.
const LIFE: Millis = Millis::minutes(10);

/// An order as its signer would send it.
pub fn sign(native: &str, id: &str, deed: Deed) -> Command {
    let newcomer = Enrol { home: KEYS, ..enrol(native, native, &[]) };
    Command::Signed(Box::new(Signed {
        home: KEYS,
        native: native.to_owned(),
        newcomer: Some(Box::new(newcomer)),
        id: id.to_owned(),
        content: Digest::of(&[native.as_bytes(), id.as_bytes()]),
        body: format!("{{\"says\":\"{id}\"}}"),
        deed,
    }))
}

/// A signer's skills and their prices.
pub fn offers(skills: &[(&str, &str)]) -> Deed {
    let skills = Some(enrol("", "", skills).skills);
    Deed::Introduce(Box::new(Profile { skills, ..Profile::default() }))
}

/// A request to the best agents with a skill; the number makes its public id.
pub fn ask(n: u64, skill: &str, max: usize, budget: Option<&str>) -> Deed {
    Deed::Ask(Box::new(Ask {
        uuid: Uuid::from_u128(u128::from(n) << 32),
        skill: skill.to_owned(),
        input: "{}".to_owned(),
        to: Whom::Best { max },
        budget: budget.map(credits),
        grain: rialto_core::grain::Grain::FINE,
        unfit: Vec::new(),
        other_currency: false,
        timeout: LIFE,
        meta: "{}".to_owned(),
        is_bound: true,
    }))
}

fn named(id: &str) -> Named {
    Named { id: id.to_owned(), with: None }
}

pub fn offer(request: &str, price: Credits) -> Deed {
    let (valid_for, eta) = (Millis::minutes(1), Millis::seconds(1));
    Deed::Offer(MakeOffer { request: named(request), price, valid_for, eta })
}

pub fn accept(offer: &str) -> Deed {
    let payment_proof = Some("paid".to_owned());
    Deed::Accept(TakeOffer { offer: named(offer), payment_proof, binding: Binding::Named })
}

pub fn result(request: &str, last: bool) -> Deed {
    let (request, output) = (named(request), "{\"done\":true}".to_owned());
    Deed::Result(GiveResult { request, output, last })
}

pub fn give_up(request: &str, refused: bool) -> Deed {
    let (request, text) = (named(request), "no".to_owned());
    Deed::Fail(GiveUp { request, cause: Cause::Execution, refused, text })
}

/// A negotiated job and a direct one, each completed and each in progress, and ids that two signers
/// use.
pub fn trades() -> Vec<Command> {
    let price = credits("1.5");
    vec![
        sign("seller", "hello", offers(&[("trade", "2"), ("carve", "1")])),
        sign("rival", "hello", offers(&[("trade", "3")])),
        sign("buyer", "hello", offers(&[])),
        // Negotiated: two are asked, both offer a price, one offer is accepted.
        sign("buyer", "ask-1", ask(1_001, "trade", 8, Some("5"))),
        sign("seller", "offer", offer("ask-1", price)),
        sign("rival", "offer", offer("ask-1", price)),
        sign("rival", "better", offer("ask-1", credits("1.25"))),
        sign("buyer", "accept-1", accept("better")),
        sign("rival", "part-1", result("ask-1", false)),
        sign("rival", "result-1", result("ask-1", true)),
        // Direct: only one can do it, and does.
        sign("buyer", "ask-2", ask(1_002, "carve", 8, Some("5"))),
        sign("seller", "result-2", result("ask-2", true)),
        // Another price instead of the listed one, so that two holds are made.
        sign("buyer", "ask-3", ask(1_003, "carve", 1, Some("5"))),
        sign("seller", "offer-3", offer("ask-3", price)),
        sign("buyer", "accept-3", accept("offer-3")),
        // One agent declines, and one requester cancels.
        sign("buyer", "ask-4", ask(1_004, "carve", 1, Some("5"))),
        sign("seller", "no-4", give_up("ask-4", true)),
        sign("buyer", "ask-5", ask(1_005, "trade", 8, None)),
        sign("rival", "no-5", give_up("ask-5", true)),
        sign("buyer", "back-5", give_up("ask-5", false)),
        // Still open, one with its price held; and another signer's under the same id.
        sign("buyer", "ask-6", ask(1_006, "carve", 1, Some("5"))),
        sign("rival", "ask-6", ask(1_007, "carve", 1, None)),
        sign("buyer", "ask-7", ask(1_008, "trade", 8, Some("5"))),
        sign("seller", "offer-7", offer("ask-7", price)),
    ]
}

/// A random signed order, in most cases a valid one.
pub fn chance(dice: &mut Dice, n: u64, world: &World) -> Command {
    let mut jobs: Vec<_> = world.live_jobs().filter(|job| asked(job)).collect();
    jobs.sort_by_key(|job| job.id);
    let job = jobs.get(dice.roll(jobs.len().max(1) as u64) as usize);
    let stranger = format!("key-{}", dice.roll(5));
    // Some ids repeat.
    let id = if dice.roll(6) == 0 { format!("id-{}", dice.roll(6)) } else { format!("said-{n}") };
    let price = ["0", "0.5", "1", "2.25"][dice.roll(4) as usize];
    let skill = ["sum", "translate", "draw"][dice.roll(3) as usize];
    let Some(job) = job.filter(|_| dice.roll(4) > 0) else {
        let deed = match dice.roll(3) {
            0 => offers(&[(skill, price)]),
            _ => ask(n, skill, 1 + dice.roll(4) as usize, Some(price)),
        };
        return sign(&stranger, &id, deed);
    };
    let Requester::Agent(requester) = job.requester else {
        return sign(&stranger, &id, Deed::Nothing);
    };
    let native = |agent| world.agent(agent).map(|agent| agent.native.clone());
    let buyer = native(requester).unwrap_or_default();
    let request = job.foreign.strip_prefix(&format!("{buyer}/")).unwrap_or_default();
    let provider = job.asked.get(dice.roll(job.asked.len().max(1) as u64) as usize).copied();
    let provider = job.worker().or(provider).and_then(native).unwrap_or(stranger);
    match (dice.roll(8), job.offers.last()) {
        (0..3, Some(made)) => sign(&buyer, &id, accept(&made.name)),
        (0..3, None) => sign(&provider, &id, offer(request, credits(price))),
        (3..5, _) => sign(&provider, &id, result(request, true)),
        (5, _) => sign(&provider, &id, result(request, false)),
        (6, _) => sign(&provider, &id, give_up(request, dice.roll(2) == 0)),
        _ => sign(&buyer, &id, give_up(request, false)),
    }
}

fn asked(job: &Job) -> bool {
    matches!(job.selection, Selection::Asked { .. })
}
