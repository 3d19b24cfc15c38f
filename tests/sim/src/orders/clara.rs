//! Commands as agents of `clara` send them: signed items submitted to a market that publishes every
//! step.

use rialto_core::agent::Liveness;
use rialto_core::command::{Actor, Command, JobRef, OfferTerms, Registration, UnfitAgent};
use rialto_core::envelope::Envelope;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Policy, Requester, Selection, State};
use rialto_core::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::testkit::TestHub;
use rialto_core::testkit::market::market_order;
use rialto_core::time::{Millis, Timestamp};

use super::{enrolment, whom, wish, work};
use crate::cast::{CLARA, some_job, somebody, somebody_of};
use crate::dice::Dice;

/// This market has whole credits only, and no price below one.
const PRICE_STEP: PriceStep = PriceStep { decimals: 0, minimum: WHOLE };
const WHOLE: Credits = Credits::from_micros(1_000_000);

fn whole(dice: &mut Dice) -> Credits {
    Credits::from_micros(dice.of([1, 1, 2, 5]) * WHOLE.micros())
}

pub fn enrol(dice: &mut Dice, n: u64) -> Registration {
    let mut order = enrolment(dice, CLARA, n);
    order.skills.iter_mut().for_each(|skill| skill.price = whole(dice));
    Registration {
        actor: Actor::Owner,
        liveness: Liveness::Always,
        key: None,
        rotate_key: false,
        ..order
    }
}

pub fn next(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Envelope> {
    let mut new_agent = None;
    let command = match dice.roll(24) {
        0 | 1 => {
            let n = dice.any();
            Command::Register(Box::new(enrol(dice, n)))
        }
        2..=9 => {
            let command;
            (command, new_agent) = open(dice, scene, now);
            command
        }
        10..=13 => Command::ReportResult(Box::new(work::word(dice, scene, ours)?)),
        14 | 15 => {
            let job = some_job(dice, scene, ours)?;
            Command::Pass { by: concerned(dice, scene, &job), job: JobRef::Id(job.id) }
        }
        16..=20 => {
            let job = some_job(dice, scene, auction)?;
            let price = whole(dice);
            let (by, job) = (concerned(dice, scene, &job), JobRef::Id(job.id));
            Command::Offer { by, job, price, terms: OfferTerms::Bid }
        }
        21 => Command::AckUnread { agent: somebody_of(dice, scene, CLARA), up_to: dice.roll(30) },
        22 => Command::DispatchQueue,
        _ => Command::RecordOnly,
    };
    let id = match dice.chance(10) {
        true => format!("item-{}", dice.roll(6)),
        false => format!("item-{:016x}", dice.any()),
    };
    Some(market_order(CLARA, &id, new_agent, command))
}

fn open(dice: &mut Dice, scene: &TestHub, now: Timestamp) -> (Command, Option<Registration>) {
    let mut order = wish(dice, scene, CLARA, now);
    (order.price_step, order.budget) = (PRICE_STEP, whole(dice));
    order.selection = match dice.roll(10) {
        0 | 1 => Selection::Direct(whom(dice, scene, CLARA)),
        2 => Selection::Broadcast,
        3 => Selection::BroadcastToProtocol,
        4 => Selection::Cheapest,
        5 => Selection::LeastOccupied,
        6..=8 => Selection::Auction { closes: now.plus(Millis(dice.within_seconds(60))) },
        _ => Selection::RoundRobin,
    };
    let named = matches!(order.selection, Selection::Direct(_));
    let all = matches!(order.selection, Selection::Broadcast | Selection::BroadcastToProtocol);
    let goes_on = !named && !all;
    order.policy = Policy {
        reassignment: Reassignment {
            when_declined: goes_on,
            when_failed: goes_on,
            ..Reassignment::default()
        },
        queueing: Queueing { when_unmatched: goes_on && dice.chance(70), after_failure: goes_on },
        named_worker: NamedWorker { may_be_offline: named, ..NamedWorker::default() },
        requester: RequesterOptions { unpaid: dice.chance(35), ..RequesterOptions::default() },
    };
    if !named && dice.chance(30) {
        order.alternative_skills.push("dig".to_owned());
    }
    if dice.chance(8) {
        let agent = somebody(dice, scene);
        order.unfit_agents.push(UnfitAgent { agent, reason: "it takes a list".to_owned() });
    }
    let new_agent = dice.chance(12).then(|| {
        let n = dice.any();
        let stranger = enrolment(dice, CLARA, 0);
        let native = format!("wallet-{}", n % 4);
        order.requester = Requester::Guest(native.clone());
        let aliases = Vec::new();
        let (actor, liveness) = (Actor::Owner, Liveness::Always);
        let owner = native.clone();
        Registration {
            actor,
            native_id: native,
            owner,
            aliases,
            liveness,
            skills: Vec::new(),
            key: None,
            ..stranger
        }
    });
    (Command::OpenJob(Box::new(order)), new_agent)
}

fn ours(job: &Job) -> bool {
    job.request.origin == CLARA && job.assignment.is_some()
}

fn auction(job: &Job) -> bool {
    matches!(job.selection, Selection::Auction { .. }) && job.state == State::Negotiating
}

/// In most cases the agent that has the job or was asked for it.
fn concerned(dice: &mut Dice, scene: &TestHub, job: &Job) -> AgentId {
    match job.worker() {
        Some(worker) if dice.chance(85) => worker,
        None if dice.chance(85) => dice.pick(&job.candidates.invited).copied().unwrap_or_default(),
        _ => somebody(dice, scene),
    }
}
