//! Adversaries: requesters that let jobs expire unseen or fill inboxes, workers that attract with a
//! price and then raise it, and owners that work for each other in fractions too small for other
//! protocols.
//!
//! Their commands are allowed. The economic invariants bound what they gain.

use rialto_core::agent::Agent;
use rialto_core::command::{
    Actor, Canceller, Command, JobRef, OfferTerms, Registration, WorkerResponse,
};
use rialto_core::id::AgentId;
use rialto_core::job::Reassignment;
use rialto_core::job::{Job, Policy, Requester, Selection, State};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::testkit::TestHub;
use rialto_core::time::{Millis, Timestamp};

use super::{opened, wish};
use crate::cast::{OPENCLAW, REGISTRY, requester, some_job, somebody};
use crate::dice::Dice;

/// The price step of a colluding requester.
const COARSE: PriceStep = PriceStep { decimals: 1, minimum: Credits::ZERO };
/// Less than any protocol's price step, and not a multiple of it.
const FRACTION: Credits = Credits::from_micros(333_333);

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    match dice.roll(12) {
        0..=2 => rush(dice, scene, now),
        3..=7 => switch(dice, scene, now),
        8 | 9 => crowd(dice, scene, now),
        _ => collude(dice, scene, now),
    }
}

/// A job that ends before its worker could have done it.
fn rush(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let origin = dice.of([REGISTRY, OPENCLAW]);
    let mut order = wish(dice, scene, origin, now);
    let time = Millis(1 + i64::try_from(dice.roll(3_000)).unwrap_or_default());
    (order.deadline, order.lease) = (now.plus(time), time);
    order.selection = Selection::Direct(somebody(dice, scene));
    order.policy = Policy {
        reassignment: Reassignment { when_failed: dice.chance(30), ..Reassignment::default() },
        ..Policy::default()
    };
    opened(order)
}

/// A worker that was chosen for its price, or offered one, asks for more.
fn switch(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let chosen = |job: &Job| job.intended_worker().is_some() || !job.candidates.offers.is_empty();
    let job = some_job(dice, scene, chosen)?;
    let offered = job.candidates.offers.last().map(|offer| offer.by);
    let by = job.intended_worker().or(offered)?;
    let wanted = JobRef::Id(job.id);
    let until = now.plus(Millis(1 + dice.within_seconds(60)));
    Some(match (dice.roll(3), job.state) {
        (0, State::Negotiating) => {
            let price = job.candidates.offers.last().map_or(FRACTION, |offer| raised(offer.price));
            let terms = OfferTerms::Open { valid_for: Millis::minutes(1) };
            Command::Offer { job: wanted, by, price, terms }
        }
        (0, State::Assigned) if job.acceptance.accepted_at.is_none() => {
            Command::Respond { job: wanted, by, response: WorkerResponse::Defer { until } }
        }
        (0, _) => Command::Defer { job: wanted, by, until },
        _ => Command::Register(Box::new(dearer(scene, by)?)),
    })
}

/// The same agent at higher prices.
fn dearer(scene: &TestHub, agent: AgentId) -> Option<Registration> {
    let known: Agent = Agent::clone(scene.world.agent(agent)?);
    let owner = scene.world.owner(known.owner)?.name.clone();
    let mut skills = known.skills;
    for skill in &mut skills {
        skill.price = raised(skill.price);
    }
    Some(Registration {
        actor: Actor::Agent(agent),
        home: known.home,
        native_id: known.native_id,
        aliases: Vec::new(),
        owner,
        name: known.name,
        endpoint: known.endpoint,
        liveness: known.liveness,
        skills,
        terms: known.terms,
        status: None,
        card: known.card,
        key: None,
        rotate_key: false,
    })
}

/// More than before, up to a limit.
fn raised(price: Credits) -> Credits {
    let twice = price.checked_add(price).unwrap_or(price);
    if twice > Credits::from_micros(30_000_000) { FRACTION } else { twice.max(FRACTION) }
}

/// A requester that asks all agents for a price, or one for free work, and cancels again.
fn crowd(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    if dice.chance(30) {
        let job = some_job(dice, scene, |job| job.state == State::Negotiating)?;
        let by = Canceller::Agent(requester(&job)?);
        return Some(Command::Cancel { job: JobRef::Id(job.id), by, reason: None });
    }
    let mut order = wish(dice, scene, REGISTRY, now);
    order.selection = Selection::Offers;
    if dice.chance(40) {
        order.budget = Credits::ZERO;
        order.selection = Selection::Direct(somebody(dice, scene));
    }
    opened(order)
}

/// Two agents that hire each other across protocols, where prices are rounded.
fn collude(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
    let mut order = wish(dice, scene, REGISTRY, now);
    let (one, other) = (somebody(dice, scene), somebody(dice, scene));
    order.requester = Requester::Agent(one);
    order.selection = Selection::Direct(other);
    (order.price_step, order.budget) = (COARSE, Credits::from_micros(2_000_000));
    opened(order)
}
