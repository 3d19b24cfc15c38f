//! Random signed orders: every kind, about existing and missing jobs.

use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::steps::{AMOUNTS, PRICES, SKILLS, agent_at, pick};
use crate::agent::Liveness;
use crate::agent::presence::Availability;
use crate::alias::Digest;
use crate::command::{
    Command, ExternalRef, JobRequest, PaymentBinding, ProfileUpdate, Registration, RequestTarget,
};
use crate::envelope::{Envelope, Signature};
use crate::id::AgentId;
use crate::job::{Cause, Job, Requester, Selection};
use crate::price_step::PriceStep;
use crate::testkit::signed_orders::{
    abandon, accept_named, invited_offer, profile_update, signed_result, signer_registration,
};
use crate::testkit::{AWAY, TestHub, credits, skill};
use crate::time::Millis;

/// Few enough that they often interact.
const VOICES: u8 = 5;
const STANCES: [Availability; 6] = [
    Availability::Idle,
    Availability::Idle,
    Availability::Busy,
    Availability::Error,
    Availability::Maintenance,
    Availability::Offline,
];

/// One random order. The numbers are choices, taken modulo the available options.
#[derive(Clone, Debug)]
pub struct Voice {
    pub kind: Kind,
    who: u8,
    job: u8,
    /// A signer that is not the expected one.
    stray: Option<u8>,
    /// The counterparty it names.
    with: Option<u8>,
    /// An id from a small pool, so that ids are used twice.
    id: Option<u8>,
    amount: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Ask,
    Offer,
    Accept,
    Result,
    Part,
    Fail,
    Refuse,
    Write,
    Introduce,
    Nothing,
}

pub const KINDS: [Kind; 10] = [
    Kind::Ask,
    Kind::Offer,
    Kind::Accept,
    Kind::Result,
    Kind::Part,
    Kind::Fail,
    Kind::Refuse,
    Kind::Write,
    Kind::Introduce,
    Kind::Nothing,
];

/// Orders in useful proportions.
pub fn voice() -> impl Strategy<Value = Voice> {
    let n = || any::<u8>();
    let rarely = |weight| prop::option::weighted(weight, any::<u8>());
    let kind = prop_oneof![
        12 => Just(Kind::Ask),
        9 => Just(Kind::Offer),
        6 => Just(Kind::Accept),
        5 => Just(Kind::Result),
        4 => Just(Kind::Part),
        2 => Just(Kind::Fail),
        3 => Just(Kind::Refuse),
        1 => Just(Kind::Write),
        4 => Just(Kind::Introduce),
        1 => Just(Kind::Nothing),
    ];
    let all = (kind, n(), n(), rarely(0.1), rarely(0.25), rarely(0.2), n());
    all.prop_map(|(kind, who, job, stray, with, id, amount)| Voice {
        kind,
        who,
        job,
        stray,
        with,
        id,
        amount,
    })
}

/// The first orders of two workers and one requester.
pub fn opening() -> impl Iterator<Item = Voice> {
    let introduced = |who| Voice {
        kind: Kind::Introduce,
        who,
        job: who,
        stray: None,
        with: None,
        id: None,
        amount: who,
    };
    (0..4).map(introduced)
}

fn native(who: u8) -> String {
    format!("key-{}", who % VOICES)
}

/// Mostly a job from a signed request, mostly a live one, and sometimes any other.
fn job_at(scene: &TestHub, at: u8) -> Option<Arc<Job>> {
    let jobs = scene.store.rows.jobs.values();
    let asked = |job: &&Arc<Job>| matches!(job.selection, Selection::Invited { .. });
    let live = |job: &&Arc<Job>| !job.state.is_final();
    let some: Vec<&Arc<Job>> = match at {
        0..180 => jobs.filter(asked).filter(live).collect(),
        180..220 => jobs.filter(asked).collect(),
        _ => jobs.filter(live).collect(),
    };
    (!some.is_empty()).then(|| pick(&some, at).clone())
}

/// The parties' id of a job: the requester's, or the hub's own for a job of another protocol.
fn called(scene: &TestHub, job: &Job) -> String {
    let Requester::Agent(requester) = job.request.requester else { return job.uuid.to_string() };
    let native = scene.world.agent(requester).map(|agent| agent.native_id.as_str());
    let own =
        native.and_then(|native| job.request.foreign_id.strip_prefix(native)?.strip_prefix('/'));
    own.map_or_else(|| job.uuid.to_string(), str::to_owned)
}

impl Voice {
    /// The order, if there is anything to refer to.
    pub fn envelope(&self, scene: &TestHub) -> Option<Envelope> {
        let job = job_at(scene, self.job);
        let about_a_job = !matches!(self.kind, Kind::Write | Kind::Introduce | Kind::Nothing);
        if job.is_none() && about_a_job && self.kind != Kind::Ask && self.stray.is_none() {
            // Without any job, a request comes first.
            return Self { kind: Kind::Ask, ..self.clone() }.envelope(scene);
        }
        let speaker = self.speaker(scene, job.as_deref());
        let command = self.command(scene, job.as_deref());
        let made = scene.world.next.claim.0;
        let (id, content) = match self.id {
            Some(id) => (format!("m-{}", id % 4), Digest::of(&[&[id % 8]])),
            // Independent requesters often use the same ids.
            None if self.kind == Kind::Ask && self.who.is_multiple_of(3) => {
                (format!("m-{}", self.job % 2), Digest::of(&[&[self.who, self.job]]))
            }
            None => (format!("order-{made}"), Digest::of(&[&made.to_be_bytes()])),
        };
        let known = scene.world.agent_by_alias(AWAY, &speaker).is_some();
        let enrolled = || {
            // One of them belongs to an owner with other agents.
            let owner = if speaker == "key-3" { "north" } else { &speaker };
            let liveness =
                if self.who.is_multiple_of(2) { Liveness::Always } else { Liveness::ByPolling };
            Registration { owner: owner.to_owned(), liveness, ..signer_registration(&speaker) }
        };
        let signature = Signature {
            home: AWAY,
            registration: (!known).then(|| Box::new(enrolled())),
            native_id: speaker,
            id,
            content,
            body: "words".to_owned(),
        };
        Some(Envelope::signed(signature, command))
    }

    /// The expected signer, or another one.
    fn speaker(&self, scene: &TestHub, job: Option<&Job>) -> String {
        if let Some(stray) = self.stray {
            // Also under an alias that the hub gave to an agent.
            return if stray < 30 { "alias-1".to_owned() } else { native(stray) };
        }
        let signs = |agent: &AgentId| scene.world.agent(*agent).is_some_and(|a| a.home == AWAY);
        let asked = |job: &Job| {
            let able: Vec<AgentId> = job.candidates.invited.iter().copied().filter(signs).collect();
            if able.is_empty() { job.worker() } else { Some(pick(&able, self.who)) }
        };
        let requester = |job: &Job| match job.request.requester {
            Requester::Agent(agent) => Some(agent),
            Requester::Guest(_) => None,
        };
        let party = job.and_then(|job| match self.kind {
            Kind::Offer | Kind::Refuse => asked(job),
            Kind::Accept => requester(job),
            Kind::Result | Kind::Part => job.worker().or_else(|| asked(job)),
            Kind::Fail if self.who.is_multiple_of(2) => requester(job),
            Kind::Fail => job.worker().or_else(|| asked(job)),
            _ => None,
        });
        let name = party.and_then(|agent| scene.world.alias_of(agent, AWAY));
        let own = party.is_some_and(|agent| signs(&agent));
        name.filter(|_| own).map_or_else(|| native(self.who), str::to_owned)
    }

    fn command(&self, scene: &TestHub, job: Option<&Job>) -> Command {
        let id = job.map(|job| called(scene, job));
        let id = id.filter(|_| self.amount < 240).unwrap_or_else(|| format!("m-{}", self.who % 4));
        let with = self.with.map(|at| self.other(scene, job, at));
        let request = ExternalRef { id, counterparty: with };
        match self.kind {
            Kind::Ask => Command::RequestJob(Box::new(self.ask(scene))),
            Kind::Offer => {
                let seconds = [0, 5, 600, 600][usize::from(self.who % 4)];
                let (valid_for, eta) = (Millis::seconds(seconds), Millis(1));
                let dear = self.who % 4 == 3;
                let price = credits(if dear { "40" } else { pick(&PRICES, self.amount) });
                invited_offer(request, price, valid_for, eta)
            }
            Kind::Accept => {
                let offers = job.map(|job| &job.candidates.offers[..]).unwrap_or_default();
                let name = (!offers.is_empty()).then(|| pick_ref(offers, self.who).name.clone());
                let offer = ExternalRef { id: name.unwrap_or(request.id), counterparty: with };
                let binding = match self.who % 3 {
                    0 => PaymentBinding::ReadUpTo(u64::from(self.amount % 8)),
                    _ => PaymentBinding::NamesHub,
                };
                accept_named(offer, binding)
            }
            Kind::Result => signed_result(request, true),
            Kind::Part => signed_result(request, false),
            Kind::Fail | Kind::Refuse => {
                let refused = self.kind == Kind::Refuse;
                let causes =
                    [Cause::Execution, Cause::TimedOut, Cause::BudgetTooLow, Cause::Offline];
                abandon(request, pick(&causes, self.amount), refused, "no")
            }
            Kind::Write => Command::Forward { to: self.other(scene, None, self.job) },
            Kind::Introduce => profile_update(self.profile()),
            Kind::Nothing => Command::RecordOnly,
        }
    }

    /// Mostly the other party of a job, sometimes any agent, even an unregistered one.
    fn other(&self, scene: &TestHub, job: Option<&Job>, at: u8) -> AgentId {
        let requester = job.map(|job| &job.request.requester);
        match (at % 4, requester) {
            (0 | 1, Some(Requester::Agent(agent))) if self.kind != Kind::Accept => *agent,
            (2, _) => agent_at(scene, at / 4),
            _ => {
                let named = scene.world.agent_by_alias(AWAY, &native(at / 4));
                named.unwrap_or(AgentId(u64::from(at) + 100))
            }
        }
    }

    fn ask(&self, scene: &TestHub) -> JobRequest {
        let to = match self.job % 8 {
            0 => RequestTarget::Best { max: 6 },
            1 => RequestTarget::Best { max: 1 },
            2 => RequestTarget::Agent(agent_at(scene, self.job / 8)),
            _ => {
                let voice = scene.world.agent_by_alias(AWAY, &native(self.job / 8));
                RequestTarget::Agent(voice.unwrap_or(AgentId(99)))
            }
        };
        let budget = (!self.amount.is_multiple_of(3)).then(|| credits(pick(&AMOUNTS, self.amount)));
        JobRequest {
            by: AgentId(0),
            id: String::new(),
            uuid: Uuid::from_u128(u128::from(scene.world.next.job.0) << 64),
            skill: pick(&SKILLS, self.who / 8).to_owned(),
            input: "{}".to_owned(),
            to,
            budget,
            price_step: PriceStep::FINEST,
            unfit_agents: Vec::new(),
            other_currency: self.amount % 64 == 63,
            timeout: Millis::seconds(i64::from(self.amount / 8) * 32),
            meta: "{}".to_owned(),
            is_bound: !self.who.is_multiple_of(3),
        }
    }

    fn profile(&self) -> ProfileUpdate {
        let mut skills = Vec::new();
        for (at, name) in SKILLS.iter().enumerate().filter(|(at, _)| self.job >> at & 1 == 0) {
            let mut one = skill(name, pick(&PRICES, self.amount.wrapping_add(at as u8)));
            one.by_offer = self.amount % 5 == 4;
            skills.push(one);
        }
        ProfileUpdate {
            name: self.amount.is_multiple_of(3).then(|| "renamed".to_owned()),
            skills: (self.amount % 4 < 3).then_some(skills),
            endpoint: (self.amount % 7 == 1).then(|| "https://key.example".to_owned()),
            availability: self.job.is_multiple_of(3).then(|| pick(&STANCES, self.amount)),
        }
    }
}

fn pick_ref<T>(from: &[T], at: u8) -> &T {
    &from[usize::from(at) % from.len()]
}
