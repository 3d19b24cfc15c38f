//! Commands as agents of `agora` send them: signed envelopes, by any key holder.

use rialto_core::agent::Liveness;
use rialto_core::agent::presence::Availability;
use rialto_core::command::{
    Command, ExternalRef, JobRequest, PaymentBinding, ProfileUpdate, Registration, RequestTarget,
    UnfitAgent,
};
use rialto_core::envelope::{Envelope, Signature};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester, Selection};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::testkit::TestHub;
use rialto_core::testkit::signed_orders::{
    abandon, accept_named, invited_offer, profile_update, signed_result,
};
use rialto_core::time::Millis;
use uuid::Uuid;

use super::enrolment;
use crate::cast::{AGORA, SKILLS, amount, digest, native, price, requester, some_job, somebody};
use crate::dice::Dice;

/// The kinds of signed orders, each by a plausible signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ask,
    Offer,
    Accept,
    Result { last: bool },
    Fail,
    Refuse,
    Write,
    Introduce,
    Nothing,
}

pub fn next(dice: &mut Dice, scene: &TestHub) -> Envelope {
    let kind = match dice.roll(46) {
        0..=13 => Kind::Ask,
        14..=22 => Kind::Offer,
        23..=28 => Kind::Accept,
        29..=33 => Kind::Result { last: true },
        34..=36 => Kind::Result { last: false },
        37 | 38 => Kind::Fail,
        39 | 40 => Kind::Refuse,
        41 => Kind::Write,
        42..=44 => Kind::Introduce,
        _ => Kind::Nothing,
    };
    let asked = |job: &Job| matches!(job.selection, Selection::Invited { .. });
    let job = some_job(dice, scene, asked);
    let speaker = speaker(dice, scene, kind, job.as_deref());
    let command = command(dice, scene, kind, job.as_deref());
    signed(dice, scene, speaker, command)
}

/// The first signed order of a worker.
pub fn hello(dice: &mut Dice, scene: &TestHub, n: u64) -> Envelope {
    let profile = ProfileUpdate { availability: Some(Availability::Idle), ..profile(dice) };
    signed(dice, scene, native(AGORA, n), profile_update(profile))
}

fn signed(dice: &mut Dice, scene: &TestHub, native: String, command: Command) -> Envelope {
    let asks = matches!(command, Command::RequestJob(_));
    let (id, content) = match dice.roll(10) {
        0 => (format!("e-{}", dice.roll(4)), digest(dice.roll(2))),
        // Requesters that do not know each other use the same ids.
        1 | 2 if asks => (format!("e-{}", dice.roll(3)), digest(dice.any())),
        _ => (format!("e-{:016x}", dice.any()), digest(dice.any())),
    };
    let known = scene.world.agent_by_alias(AGORA, &native).is_some();
    let new_agent = (!known).then(|| {
        let order = enrolment(dice, AGORA, 0);
        let owner = if dice.chance(15) { "owner-0".to_owned() } else { format!("agora:{native}") };
        let (aliases, liveness) = (Vec::new(), Liveness::ByPolling);
        let (skills, key, name) = (Vec::new(), None, native.clone());
        let native = native.clone();
        let order = Registration {
            native_id: native,
            owner,
            name,
            aliases,
            liveness,
            skills,
            key,
            ..order
        };
        Box::new(order)
    });
    let body = "signed words".to_owned();
    let (home, native_id, registration) = (AGORA, native, new_agent);
    let signature = Signature { home, native_id, registration, id, content, body };
    Envelope::signed(signature, command)
}

/// A plausible signer, or another one.
fn speaker(dice: &mut Dice, scene: &TestHub, kind: Kind, job: Option<&Job>) -> String {
    let anybody = native(AGORA, dice.any());
    if dice.chance(10) {
        // Also under a name that the hub gave to another agent.
        return if dice.chance(15) { "agora-of-relay-1".to_owned() } else { anybody };
    }
    let signs = |agent: &AgentId| scene.world.agent(*agent).is_some_and(|one| one.home == AGORA);
    let (by_requester, at) = (dice.chance(50), dice.any());
    // Every agent that was asked can name the job, even after another one has it.
    let by_other = dice.chance(12);
    let asked = |job: &Job| {
        let able: Vec<AgentId> = job.candidates.invited.iter().copied().filter(signs).collect();
        let one = (!able.is_empty()).then(|| able[(at % able.len() as u64) as usize]);
        one.or(job.worker())
    };
    let party = job.and_then(|job| match kind {
        Kind::Offer | Kind::Refuse => asked(job),
        Kind::Accept => requester(job),
        Kind::Fail if by_requester => requester(job),
        Kind::Result { .. } | Kind::Fail if by_other => asked(job),
        Kind::Result { .. } | Kind::Fail => job.worker().or_else(|| asked(job)),
        _ => None,
    });
    let named = party.filter(signs).and_then(|agent| scene.world.alias_of(agent, AGORA));
    named.map_or(anybody, str::to_owned)
}

/// The id by which its parties know a job: the requester's, or the hub's for one from elsewhere.
fn called(scene: &TestHub, job: &Job) -> String {
    let native = requester(job).and_then(|agent| scene.world.agent(agent));
    let own = native
        .and_then(|one| job.request.foreign_id.strip_prefix(&one.native_id)?.strip_prefix('/'));
    own.map_or_else(|| job.uuid.to_string(), str::to_owned)
}

fn command(dice: &mut Dice, scene: &TestHub, kind: Kind, job: Option<&Job>) -> Command {
    let id = job.filter(|_| dice.chance(92)).map(|job| called(scene, job));
    let id = id.unwrap_or_else(|| format!("e-{}", dice.roll(4)));
    let with = dice.chance(25).then(|| other(dice, scene, kind, job));
    let request = ExternalRef { id, counterparty: with };
    match kind {
        Kind::Ask => Command::RequestJob(Box::new(question(dice, scene))),
        Kind::Offer => {
            let valid_for = Millis::seconds(dice.of([0, 5, 600, 600]));
            let price =
                if dice.chance(10) { Credits::from_micros(40_000_000) } else { price(dice) };
            invited_offer(request, price, valid_for, Millis(1))
        }
        Kind::Accept => {
            let offers = job.map(|job| &job.candidates.offers[..]).unwrap_or_default();
            let name = dice.pick(offers).map(|offer| offer.name.clone());
            let offer = ExternalRef { id: name.unwrap_or(request.id), counterparty: with };
            let binding = match dice.chance(20) {
                true => PaymentBinding::ReadUpTo(dice.roll(12)),
                false => PaymentBinding::NamesHub,
            };
            accept_named(offer, binding)
        }
        Kind::Result { last } => signed_result(request, last),
        Kind::Fail | Kind::Refuse => {
            let causes = [Cause::Execution, Cause::TimedOut, Cause::BudgetTooLow, Cause::Offline];
            abandon(request, dice.of(causes), kind == Kind::Refuse, "no")
        }
        Kind::Write => Command::Forward { to: somebody(dice, scene) },
        Kind::Introduce => profile_update(profile(dice)),
        Kind::Nothing => Command::RecordOnly,
    }
}

/// In most cases the other party of a job, and sometimes any agent, even a missing one.
fn other(dice: &mut Dice, scene: &TestHub, kind: Kind, job: Option<&Job>) -> AgentId {
    match job.map(|job| &job.request.requester) {
        Some(Requester::Agent(agent)) if kind != Kind::Accept && dice.chance(60) => *agent,
        _ => somebody(dice, scene),
    }
}

fn question(dice: &mut Dice, scene: &TestHub) -> JobRequest {
    let to = match dice.roll(8) {
        0 => RequestTarget::Best { max: 6 },
        1 => RequestTarget::Best { max: 1 },
        2 | 3 => RequestTarget::Agent(somebody(dice, scene)),
        _ => RequestTarget::Agent(crate::cast::somebody_of(dice, scene, AGORA)),
    };
    let unfit = match dice.chance(6) {
        true => {
            vec![UnfitAgent { agent: somebody(dice, scene), reason: "it takes text".to_owned() }]
        }
        false => Vec::new(),
    };
    JobRequest {
        by: AgentId(0),
        id: String::new(),
        uuid: Uuid::from_u128(u128::from(dice.any()) << 64 | u128::from(dice.any())),
        skill: dice.of(SKILLS).to_owned(),
        input: "{}".to_owned(),
        to,
        budget: dice.chance(66).then(|| amount(dice)),
        price_step: PriceStep::FINEST,
        unfit_agents: unfit,
        other_currency: dice.chance(2),
        timeout: Millis(dice.within_seconds(1_000)),
        meta: "{}".to_owned(),
        is_bound: dice.chance(80),
    }
}

fn profile(dice: &mut Dice) -> ProfileUpdate {
    let mut skills = Vec::new();
    for name in SKILLS {
        if dice.chance(75) {
            let mut skill = rialto_core::testkit::skill(name, "0");
            (skill.price, skill.by_offer) = (price(dice), dice.chance(20));
            skills.push(skill);
        }
    }
    let stances = [
        Availability::Idle,
        Availability::Idle,
        Availability::Busy,
        Availability::Error,
        Availability::Maintenance,
    ];
    ProfileUpdate {
        name: dice.chance(30).then(|| "somebody".to_owned()),
        skills: dice.chance(75).then_some(skills),
        endpoint: dice.chance(12).then(|| "https://key.example".to_owned()),
        availability: dice.chance(40).then(|| dice.of(stances)),
    }
}
