//! Random steps: small numbers that become commands once the existing agents and jobs are known.

use std::sync::Arc;

use proptest::prelude::*;

use crate::agent::key::Holder;
use crate::agent::key_limits::{KeyLimits, KeyUse};
use crate::agent::{Capacity, JobIntake};
use crate::agent::{Liveness, Terms};
use crate::alias::Digest;
use crate::command::{
    Actor, AnswerQuestion, AskQuestion, Command, DeliveryResult, HandoverStage, IssueLimitedKey,
    JobRef, MessageIdentity, OfferRef, OfferTerms, OriginalReport, Pay, RecordHandover,
    Registration, RemoveJobWebhook, ReportOriginal, ReportProgress, ReportResult, SendToWorker,
    SetJobWebhook, SuspensionTarget, Timer, UpdateCard, WorkerReport,
};
use crate::envelope::{Envelope, Proof};
use crate::id::{AgentId, NoticeId};
use crate::idempotency::{Idempotency, Principal, Receipt, SavedAnswer};
use crate::job::progress::{Fraction, ProgressLimits, ProgressUpdate, ResultPart};
use crate::job::{Cause, Job, JobWebhook, Requester};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::testkit::{AWAY, HOME, TestHub, credits, message, registration, skill};
use crate::time::Millis;
use crate::world::Rules;

use super::posts::{Posted, posted};
use super::voices::{self, Voice, voice};
use super::wishes::{Wish, wish};
use super::words::{self, Word, word};

pub const SKILLS: [&str; 2] = ["sum", "dig"];
const OWNERS: [&str; 4] = ["north", "east", "south", "west"];
/// Payers, including an unknown one and the issue account, which must not be used.
const PAYERS: [&str; 6] = ["north", "east", "south", "west", "unknown", Owner::ISSUANCE_NAME];
/// Few enough that they often interact.
pub const AGENTS: u8 = 8;
pub const PRICES: [&str; 5] = ["0", "0.10", "0.20", "0.20", "1.50"];
pub const AMOUNTS: [&str; 5] = ["0", "0.10", "0.25", "2.00", "40.00"];

/// One random step. The numbers are choices, taken modulo the available options.
#[derive(Clone, Debug)]
pub enum Step {
    Enrol { who: u8, actor: u8, liveness: u8, skills: u8, price: u8, terms: u8, stray: bool },
    Remove { who: u8 },
    Beat { who: u8 },
    Poll { who: u8 },
    Grant { owner: u8, amount: u8 },
    Burn { owner: u8, amount: u8 },
    Pay { from: u8, to: u8, amount: u8, name: u8, job: Option<u8>, open: bool },
    Open(Wish),
    Offer { job: u8, by: u8, price: u8, short: bool },
    Accept { job: u8, by: u8, from: u8 },
    Report { job: u8, stray: Option<u8>, ok: bool, cost: u8, cause: u8 },
    Start { job: u8 },
    Progress { job: u8, stray: Option<u8>, how: u8 },
    Ask { job: u8, stray: Option<u8>, how: u8 },
    Answer { job: u8, stray: Option<u8>, how: u8 },
    HandOver { job: u8, stray: Option<u8>, how: u8 },
    Own { job: u8, stray: Option<u8>, how: u8 },
    Card { who: u8, how: u8 },
    Decline { job: u8, stray: Option<u8> },
    Defer { job: u8, seconds: u16 },
    MarkPending { job: u8 },
    Unreachable { job: u8, stale: bool },
    Requeue { job: u8 },
    Send { from: u8, to: u8 },
    Ack { who: u8, up_to: u8 },
    Pushed { which: u8, how: u8 },
    Remember { scope: u8, done: bool },
    Keys { who: u8, hash: u8, how: u8 },
    Suspend { who: u8, owner: bool, suspended: bool },
    Restore,
    Tick { job: u8 },
    Word(Word),
    Say(Voice),
    Post(Posted),
    Wait { seconds: u16 },
    Sleep { seconds: u16 },
}

/// Steps in useful proportions.
pub fn step() -> impl Strategy<Value = Step> {
    let n = || any::<u8>();
    let rarely = || prop::option::weighted(0.15, any::<u8>());
    let seldom = || prop::bool::weighted(0.1);
    let pause = || prop_oneof![4 => 0..30_u16, 2 => 30..200_u16, 1 => 200..9_000_u16];
    let report = || {
        (n(), rarely(), prop::bool::weighted(0.7), n(), n())
            .prop_map(|(job, stray, ok, cost, cause)| Step::Report { job, stray, ok, cost, cause })
    };
    let market = prop_oneof![
        10 => wish().prop_map(Step::Open),
        8 => report(),
        4 => (n(), n(), n(), seldom())
            .prop_map(|(job, by, price, short)| Step::Offer { job, by, price, short }),
        1 => (n(), n(), n()).prop_map(|(job, by, from)| Step::Accept { job, by, from }),
        2 => n().prop_map(|job| Step::Start { job }),
        1 => (n(), rarely(), n())
            .prop_map(|(job, stray, how)| Step::Progress { job, stray, how }),
        2 => (n(), rarely(), n()).prop_map(|(job, stray, how)| Step::Ask { job, stray, how }),
        2 => (n(), rarely(), n()).prop_map(|(job, stray, how)| Step::Answer { job, stray, how }),
        1 => (n(), rarely(), n())
            .prop_map(|(job, stray, how)| Step::HandOver { job, stray, how }),
        1 => (n(), rarely(), n()).prop_map(|(job, stray, how)| Step::Own { job, stray, how }),
        4 => (n(), rarely()).prop_map(|(job, stray)| Step::Decline { job, stray }),
        2 => (n(), pause()).prop_map(|(job, seconds)| Step::Defer { job, seconds }),
        1 => n().prop_map(|job| Step::MarkPending { job }),
        5 => (n(), seldom()).prop_map(|(job, stale)| Step::Unreachable { job, stale }),
        1 => n().prop_map(|job| Step::Requeue { job }),
        1 => n().prop_map(|job| Step::Tick { job }),
    ];
    let enrol = || {
        (n(), n(), n(), n(), n(), n(), seldom()).prop_map(
            |(who, actor, liveness, skills, price, terms, stray)| Step::Enrol {
                who,
                actor,
                liveness,
                skills,
                price,
                terms,
                stray,
            },
        )
    };
    let people = prop_oneof![
        6 => enrol(),
        2 => n().prop_map(|who| Step::Remove { who }),
        2 => (n(), seldom(), prop::bool::weighted(0.4))
            .prop_map(|(who, owner, suspended)| Step::Suspend { who, owner, suspended }),
        1 => Just(Step::Restore),
        1 => (n(), n()).prop_map(|(who, how)| Step::Card { who, how }),
        1 => n().prop_map(|who| Step::Beat { who }),
        3 => n().prop_map(|who| Step::Poll { who }),
        2 => (n(), n()).prop_map(|(from, to)| Step::Send { from, to }),
        1 => (n(), n()).prop_map(|(who, up_to)| Step::Ack { who, up_to }),
        2 => (n(), n()).prop_map(|(which, how)| Step::Pushed { which, how }),
        1 => (n(), any::<bool>()).prop_map(|(scope, done)| Step::Remember { scope, done }),
        1 => (n(), n(), n()).prop_map(|(who, hash, how)| Step::Keys { who, hash, how }),
    ];
    let money = prop_oneof![
        4 => (n(), n(), n(), n(), prop::option::of(n()), any::<bool>()).prop_map(
            |(from, to, amount, name, job, open)| {
                Step::Pay { from, to, amount, name, job, open }
            }
        ),
        2 => (n(), n()).prop_map(|(owner, amount)| Step::Grant { owner, amount }),
        1 => (n(), n()).prop_map(|(owner, amount)| Step::Burn { owner, amount }),
    ];
    let time = prop_oneof![
        3 => pause().prop_map(|seconds| Step::Wait { seconds }),
        1 => pause().prop_map(|seconds| Step::Sleep { seconds }),
    ];
    let said = voice().prop_map(Step::Say);
    let words = word(pause()).prop_map(Step::Word);
    let posts = posted(prop_oneof![enrol(), report()]).prop_map(Step::Post);
    prop_oneof![
        13 => market, 4 => people, 6 => words, 3 => money, 2 => time, 12 => said, 7 => posts
    ]
}

/// All agents registered, two of the owners with credits, and short leases.
pub fn opening() -> TestHub {
    let (attempts_max, inbox_messages_max) = (4, 4);
    let welcome_grant = credits("3.00");
    let rules = Rules {
        attempts_max,
        assignments_before_backoff: 1,
        probation_period: Some(Millis::minutes(10)),
        welcome_grant,
        default_key_limits: KeyLimits {
            per_job: Some(credits("2.00")),
            per_day: Some(credits("4.00")),
            ..KeyLimits::NONE
        },
        inbox_messages_max,
        answer_timeout: Millis::minutes(2),
        progress: ProgressLimits { reports: 4, questions: 3, ..ProgressLimits::default() },
        ..Rules::default()
    };
    let mut scene = TestHub::with_market(rules, HOME);
    for who in 0..6 {
        let (actor, skills, stray) = (0, 3, false);
        // Two of them have terms, and one of those confirms jobs itself.
        let terms = [0, 0, 0, 0, 9, 6][usize::from(who)];
        let step = Step::Enrol { who, actor, liveness: who, skills, price: who, terms, stray };
        step.perform(&mut scene).expect("every agent is new");
    }
    for voice in voices::opening() {
        Step::Say(voice).perform(&mut scene).expect("every agent is new");
    }
    scene
}

pub fn pick<T: Copy>(from: &[T], at: u8) -> T {
    from[usize::from(at) % from.len()]
}

/// Mostly a live job, sometimes any job there ever was.
pub fn job_at(scene: &TestHub, at: u8) -> Option<Arc<Job>> {
    let jobs = &scene.store.rows.jobs;
    let live: Vec<&Arc<Job>> = jobs.values().filter(|job| !job.state.is_final()).collect();
    if at < 230 && !live.is_empty() {
        return Some(pick(&live, at).clone());
    }
    let all: Vec<&Arc<Job>> = jobs.values().collect();
    (!all.is_empty()).then(|| pick(&all, at).clone())
}

/// A job by one of its ids: the hub's two, its requester's, and its worker's if there is one.
pub fn name_of(job: &Job, at: u8) -> JobRef {
    match at % 3 {
        0 => job.acceptance.worker_job_id.map_or(JobRef::Id(job.id), JobRef::Uuid),
        1 => JobRef::Uuid(job.uuid),
        _ => JobRef::Foreign { origin: job.request.origin, id: job.request.foreign_id.clone() },
    }
}

/// Mostly a job that waits for an answer, sometimes any other.
fn waiting_job_at(scene: &TestHub, at: u8) -> Option<Arc<Job>> {
    let waits = |job: &&Arc<Job>| job.open_question().is_some();
    let waiting: Vec<&Arc<Job>> = scene.world.live_jobs().filter(waits).collect();
    match waiting.is_empty() || at > 230 {
        true => job_at(scene, at),
        false => Some(pick(&waiting, at).clone()),
    }
}

fn requester_of(job: &Job) -> Option<AgentId> {
    match job.request.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    }
}

pub fn agent_at(scene: &TestHub, who: u8) -> AgentId {
    let native = format!("agent-{}", who % AGENTS);
    // An unregistered agent is worth trying, too.
    scene.world.agent_by_alias(HOME, &native).unwrap_or(AgentId(u64::from(who) + 100))
}

/// A command that spends, with one of the keys of its author: mostly the newest, sometimes under the
/// default limits.
fn with_key(scene: &TestHub, command: Command) -> Envelope {
    let (author, choice) = match &command {
        Command::OpenJob(order) => match order.requester {
            Requester::Agent(agent) => (Some(agent), order.uuid.as_u128()),
            Requester::Guest(_) => (None, 0),
        },
        Command::AcceptOffer(order) => (Some(order.by), u128::from(order.by.0)),
        Command::Pay(order) => {
            let owner = scene.world.owner_by_name(&order.from);
            let agent = owner.and_then(|owner| scene.world.agents_of(owner).next());
            (agent, order.foreign_id.bytes().map(u128::from).sum())
        }
        _ => (None, 0),
    };
    let now = scene.now;
    let keys = author.map(|agent| scene.world.keys_of(agent).filter(|key| key.is_valid(now)));
    let newest = keys.and_then(|keys| keys.map(|key| key.id).max());
    match (author, newest) {
        (Some(agent), Some(key)) if choice % 4 != 0 => {
            let proof = Proof::Key(KeyUse { agent, key, by_default: choice % 2 == 0 });
            Envelope { proof, idempotency: None, command }
        }
        _ => command.into(),
    }
}

impl Step {
    /// Performs the step, if the agents and jobs for it exist.
    pub fn perform(&self, scene: &mut TestHub) -> Result<(), Refusal> {
        if let Step::Wait { seconds } = self {
            scene.advance(Millis::seconds(i64::from(*seconds)));
            return Ok(());
        }
        if let Step::Sleep { seconds } = self {
            scene.advance_without_timers(Millis::seconds(i64::from(*seconds)));
            return Ok(());
        }
        if let Step::Post(posted) = self {
            return posted.perform(scene);
        }
        let envelope = match self {
            Step::Say(voice) => voice.envelope(scene),
            step => step.command(scene).map(|command| with_key(scene, command)),
        };
        envelope.map_or(Ok(()), |envelope| scene.run(envelope).map(drop))
    }

    pub fn command(&self, scene: &mut TestHub) -> Option<Command> {
        let amount = |at: u8| credits(pick(&AMOUNTS, at));
        let price = |at: u8| credits(pick(&PRICES, at));
        Some(match *self {
            Step::Enrol { .. } => self.enrol(scene),
            Step::Remove { who } => {
                Command::Remove { agent: agent_at(scene, who), by_operator: who % 2 == 0 }
            }
            Step::Beat { who } => Command::Heartbeat { agent: agent_at(scene, who) },
            Step::Poll { who } => {
                let agent = agent_at(scene, who);
                let mut jobs: Vec<_> = scene.world.assigned_jobs(agent).map(|job| job.id).collect();
                jobs.extend(job_at(scene, who).map(|job| job.id));
                match jobs.len() % 2 {
                    0 => Command::MarkShown { agent, jobs },
                    _ => Command::HandOver { agent, jobs },
                }
            }
            Step::Grant { owner, amount: at } => {
                Command::Grant { name: pick(&PAYERS, owner).to_owned(), amount: amount(at) }
            }
            Step::Burn { owner, amount: at } => {
                Command::Burn { name: pick(&PAYERS, owner).to_owned(), amount: amount(at) }
            }
            Step::Pay { .. } => self.pay(scene),
            Step::Open(ref wish) => wish.command(scene),
            Step::Offer { job, by, price: at, short } => {
                let valid_for = if short { Millis(0) } else { Millis::minutes(30) };
                let job = name_of(&*job_at(scene, job)?, job);
                Command::Offer {
                    job,
                    by: agent_at(scene, by),
                    price: price(at),
                    terms: OfferTerms::Open { valid_for },
                }
            }
            Step::Accept { job, by, from } => {
                let job = name_of(&*job_at(scene, job)?, job);
                let maker = agent_at(scene, from);
                let offer = match from % 3 {
                    0 => OfferRef::Index(u32::from(from / 3)),
                    1 => OfferRef::Price { by: maker, price: credits("0.10") },
                    _ => OfferRef::Only { by: maker },
                };
                Command::accept_offer(job, agent_at(scene, by), offer)
            }
            Step::Report { .. } => self.report(scene)?,
            Step::Start { job } => {
                let found = job_at(scene, job)?;
                Command::Start { job: name_of(&found, job), by: found.worker()? }
            }
            Step::Progress { job, stray, how } => {
                let found = job_at(scene, job)?;
                let by = stray.map(|who| agent_at(scene, who)).or(found.worker())?;
                let epoch =
                    (how % 4 == 0).then_some(found.epoch.saturating_sub(u32::from(how / 64)));
                let part =
                    ResultPart { content: "{}".repeat(usize::from(how % 8)), append: how % 5 == 0 };
                let update = ProgressUpdate {
                    fraction: Fraction::from_millionths(u32::from(how) * 5_000),
                    text: (how % 3 == 0).then(|| "half done".to_owned()),
                    part: (how % 2 == 0).then_some(part),
                };
                let job = name_of(&found, job);
                Command::ReportProgress(Box::new(ReportProgress { job, by, epoch, update }))
            }
            Step::Ask { job, stray, how } => {
                let found = job_at(scene, job)?;
                let by = stray.map(|who| agent_at(scene, who)).or(found.worker())?;
                let epoch =
                    (how % 8 == 0).then_some(found.epoch.saturating_sub(u32::from(how / 64)));
                let (text, schema) =
                    ("which city?".to_owned(), (how % 3 == 0).then(|| "{}".to_owned()));
                let job = name_of(&found, job);
                let order = Box::new(AskQuestion { job, by, epoch, text, schema });
                match how % 16 {
                    5 => Command::AskToSignIn(order),
                    _ => Command::AskQuestion(order),
                }
            }
            Step::Answer { job, stray, how } => {
                let found = waiting_job_at(scene, job)?;
                let by = stray.map(|who| agent_at(scene, who)).or(requester_of(&found))?;
                let question = (how % 4 == 0).then_some(u32::from(how / 64));
                let (job, input) = (name_of(&found, job), format!("{{\"n\":{}}}", how % 2));
                let url = "https://webhook.example".to_owned();
                match how % 8 {
                    5 => {
                        let body = input.clone();
                        Command::SendToWorker(Box::new(SendToWorker { job, by, body, input }))
                    }
                    6 => {
                        let webhook =
                            JobWebhook { id: (how / 16).to_string(), url, meta: "{}".to_owned() };
                        Command::SetJobWebhook(Box::new(SetJobWebhook { job, by, webhook }))
                    }
                    7 => {
                        let id = (how / 16).to_string();
                        Command::RemoveJobWebhook(Box::new(RemoveJobWebhook { job, by, id }))
                    }
                    _ => {
                        let answer = AnswerQuestion { job, by, question, input };
                        Command::AnswerQuestion(Box::new(answer))
                    }
                }
            }
            Step::HandOver { job, stray, how } => {
                let found = job_at(scene, job)?;
                let by = stray.map(|who| agent_at(scene, who)).or(found.worker())?;
                let stages =
                    [HandoverStage::Sending, HandoverStage::Received, HandoverStage::Working];
                Command::RecordHandover(Box::new(RecordHandover {
                    job: name_of(&found, job),
                    by,
                    epoch: found.epoch.saturating_sub(u32::from(how / 200)),
                    state: (how % 5 > 0).then(|| format!("{{\"n\":{how}}}")),
                    stage: pick(&stages, how),
                    conversation: (how % 4 == 0).then(|| Digest::of(&[b"talk", &[how % 3]])),
                }))
            }
            Step::Own { job, stray, how } => {
                let step = match how % 4 {
                    0 => Step::Ask { job, stray, how },
                    1 => Step::Report { job, stray, ok: how < 170, cost: how, cause: how },
                    2 => Step::Decline { job, stray },
                    _ => Step::Progress { job, stray, how },
                };
                let report = match step.command(scene)? {
                    Command::ReportProgress(order) => OriginalReport::Progress(*order),
                    Command::AskQuestion(order) => OriginalReport::Question(*order),
                    Command::AskToSignIn(order) => OriginalReport::SignIn(*order),
                    Command::ReportResult(order) => OriginalReport::Result(*order),
                    Command::Decline { job, by, epoch, reason } => {
                        OriginalReport::Decline { job, by, epoch, reason }
                    }
                    _ => return None,
                };
                let original = "{\"own\":1}".to_owned();
                Command::ReportOriginal(Box::new(ReportOriginal { report, original }))
            }
            Step::Card { who, how } => {
                let agent = agent_at(scene, who);
                let row = scene.world.agent(agent)?;
                let known = if how % 5 == 0 { "{\"old\":1}" } else { &row.card };
                let mut skills = row.skills.clone();
                skills.iter_mut().for_each(|one| one.price = price(how));
                Command::UpdateCard(Box::new(UpdateCard {
                    agent,
                    known: Digest::of(&[known.as_bytes()]),
                    name: row.name.clone(),
                    skills,
                    card: format!("{{\"n\":{how}}}"),
                    is_changed: how % 2 == 0,
                    is_reached: how % 3 == 0,
                }))
            }
            Step::Decline { job, stray } => {
                let found = job_at(scene, job)?;
                let by = stray.map(|who| agent_at(scene, who)).or(found.worker())?;
                Command::Decline { job: name_of(&found, job), by, epoch: None, reason: None }
            }
            Step::Defer { job, seconds } => {
                let found = job_at(scene, job)?;
                let until = scene.now.plus(Millis::seconds(i64::from(seconds)));
                Command::Defer { job: name_of(&found, job), by: found.worker()?, until }
            }
            Step::MarkPending { job } => Command::MarkPending { job: job_at(scene, job)?.id },
            Step::Unreachable { job, stale } => {
                let found = job_at(scene, job)?;
                let epoch = found.epoch.saturating_sub(u32::from(stale));
                Command::MarkUnreachable { job: found.id, epoch }
            }
            Step::Requeue { job } => Command::Requeue { job: name_of(&*job_at(scene, job)?, job) },
            Step::Send { from, to } => {
                let mut order = message(agent_at(scene, from), agent_at(scene, to), "hello");
                // A third of them are messages of one conversation, so that some are repeats.
                let content = Digest::of(&[&[from % 2]]);
                let turn = MessageIdentity { conversation: "c".to_owned(), number: 1, content };
                order.identity = (from % 3 == 0).then_some(turn);
                Command::SendMessage(Box::new(order))
            }
            Step::Ack { who, up_to } => {
                Command::Ack { agent: agent_at(scene, who), up_to: u64::from(up_to) }
            }
            Step::Pushed { which, how } => self.pushed(scene, which, how)?,
            Step::Remember { scope, done } => {
                let scope = Digest::of(&[b"scope", &[scope % 4]]);
                let answer = SavedAnswer::Answer { status: 200, body: "{}".to_owned() };
                let kept = if done { answer } else { SavedAnswer::Done(Receipt::Nothing) };
                let principal = Principal::Agent(AgentId(1));
                Idempotency { scope, request: scope, principal }.save(kept)
            }
            Step::Keys { who, hash, how } => {
                let agent = agent_at(scene, who);
                let holder = Holder::Agent(agent);
                let newest = scene.world.keys_of(agent).map(|key| key.id).max().unwrap_or_default();
                match how % 8 {
                    0 => Command::RevokeKeys { agent, by_operator: false },
                    1 => Command::RevokeKey { agent, key: newest },
                    2 => Command::RecordKeyUse { agent, key: newest },
                    3..6 => {
                        let amount =
                            |at: u8| (!at.is_multiple_of(4)).then(|| credits(pick(&AMOUNTS, at)));
                        let limits = KeyLimits {
                            per_job: amount(hash),
                            per_day: amount(hash / 4),
                            transfers: hash % 8 != 0,
                        };
                        let (hash, label) = ([hash; 32], Some("walk".to_owned()));
                        let order = IssueLimitedKey { agent, hash, label, limits };
                        Command::IssueLimitedKey(Box::new(order))
                    }
                    _ => {
                        let retire_others = how % 8 == 6;
                        Command::IssueKey {
                            holder,
                            hash: [hash; 32],
                            retire_others,
                            by_operator: false,
                        }
                    }
                }
            }
            Step::Suspend { who, owner, suspended } => {
                let agent = agent_at(scene, who);
                let row = scene.world.agent(agent).filter(|_| owner);
                let subject = row.map_or(SuspensionTarget::Agent(agent), |row| {
                    SuspensionTarget::Owner(row.owner)
                });
                Command::SetSuspended { subject, suspended }
            }
            Step::Restore => Command::BeginEpoch,
            Step::Tick { job } => Command::FireTimer(Timer::Job(job_at(scene, job)?.id)),
            Step::Word(ref word) => word.command(scene)?,
            Step::Say(_) | Step::Post(_) | Step::Wait { .. } | Step::Sleep { .. } => return None,
        })
    }

    fn enrol(&self, scene: &TestHub) -> Command {
        let Step::Enrol { who, actor, liveness, skills, price, terms, stray } = *self else {
            unreachable!()
        };
        let who = who % AGENTS;
        let owner = match (stray, who % 2) {
            (false, _) => pick(&OWNERS, who),
            (true, 0) => pick(&OWNERS, who + 1),
            (true, _) => Owner::ISSUANCE_NAME,
        };
        let mut order: Registration = registration(&format!("agent-{who}"), owner, &[]);
        order.aliases = vec![(AWAY, format!("alias-{who}"))];
        for (at, name) in SKILLS.iter().enumerate().filter(|(at, _)| skills >> at & 1 == 1) {
            let mut one = skill(name, pick(&PRICES, price.wrapping_add(at as u8)));
            one.needs_approval = terms % 8 == 1;
            one.expected_duration = (terms % 5 == 4).then_some(Millis::seconds(30));
            order.skills.push(one);
        }
        order.terms = Terms {
            capacity: Capacity {
                max_concurrent_jobs: (terms % 3 == 0 && terms > 0)
                    .then_some(1 + u32::from(terms % 2)),
                max_starts_per_minute: (terms % 7 == 2).then_some(2),
            },
            intake: JobIntake {
                confirms_jobs: terms % 4 == 2,
                strict_input: terms % 11 == 5,
                urgent_first: terms % 5 == 3,
            },
        };
        (order.liveness, order.endpoint) = match liveness % 5 {
            0 | 3 => (Liveness::Always, None),
            1 => (Liveness::ByEndpoint, Some(format!("https://agent-{who}.example"))),
            // Its protocol calls it.
            4 => (Liveness::ByEndpoint, None),
            _ => (Liveness::ByPolling, None),
        };
        order.actor = match actor % 6 {
            0..=2 => Actor::OpenRegistration,
            3 => Actor::Agent(agent_at(scene, who)),
            4 => Actor::Agent(agent_at(scene, actor / 6)),
            _ => Actor::Anonymous,
        };
        let says = || words::condition(scene, skills, u16::from(skills), Some(price));
        order.status = (actor % 5 == 4).then(says);
        order.key = Some([actor; 32]);
        order.rotate_key = actor % 7 == 0;
        Command::Register(Box::new(order))
    }

    fn pay(&self, scene: &mut TestHub) -> Command {
        let Step::Pay { from, to, amount, name, job, open } = *self else { unreachable!() };
        let job = job.and_then(|at| job_at(scene, at));
        let mut order: Pay =
            scene.payment(pick(&PAYERS, from), pick(&PAYERS, to), pick(&AMOUNTS, amount));
        if let (Some(job), true) = (&job, name % 2 == 0) {
            // Sometimes exactly the paid amount, between exactly the two owners.
            let owner = |id| scene.world.owner(id).map(|owner| owner.name.clone());
            let payer = job.payment.payer.and_then(owner);
            let payee = job.assignment.and_then(|turn| owner(turn.owner));
            if let (Some(payer), Some(payee), Some(report)) = (payer, payee, &job.result) {
                (order.from, order.to, order.amount) = (payer, payee, report.paid);
            }
        }
        order.job = job.map(|job| job.request.foreign_id.clone());
        if name % 5 == 0 {
            order.job = Some(format!("elsewhere-{}", name % 3));
        }
        order.id_given = name % 7 != 0;
        if order.id_given && name % 3 == 0 {
            // An id from a small pool, with content that may or may not be the same.
            order.foreign_id = format!("shared-{}", name % 4);
            order.content = Digest::of(&[&[name % 2]]);
        }
        order.open_payee = open;
        Command::Pay(Box::new(order))
    }

    fn report(&self, scene: &TestHub) -> Option<Command> {
        let Step::Report { job, stray, ok, cost, cause } = *self else { unreachable!() };
        let found = job_at(scene, job)?;
        let by = stray.map(|who| agent_at(scene, who)).or(found.worker())?;
        let causes =
            [None, Some(Cause::Execution), Some(Cause::NoSuchSkill), Some(Cause::Unusable)];
        let word = scene.job_report(found.id, ok, pick(&AMOUNTS, cost));
        let words = (cause > 127).then(|| "{}".to_owned());
        let cost = if cost == 255 { Credits::from_micros(-1) } else { word.cost };
        // Half of the unusable answers are endpoints that refused the request.
        let silent = !ok && cause % 8 == 7;
        let cause = pick(&causes, cause);
        let job = name_of(&found, job);
        let said = ReportResult { job, by, no_response: silent, cost, cause, meta: words, ..word };
        Some(Command::ReportResult(Box::new(said)))
    }

    fn pushed(&self, scene: &TestHub, which: u8, how: u8) -> Option<Command> {
        let mut pushes: Vec<_> = scene.world.deliveries().map(|push| push.notice).collect();
        pushes.sort();
        let notice = (!pushes.is_empty()).then(|| pick(&pushes, which))?;
        let ended = match how % 4 {
            0 | 1 => DeliveryResult::Delivered { reply: None },
            2 => {
                let next_try = (how % 8 == 2).then(|| scene.now.plus(Millis::seconds(5)));
                DeliveryResult::Failed { why: "refused".to_owned(), next_try }
            }
            _ => DeliveryResult::EndpointGone,
        };
        let report = (how > 230).then(|| reported(scene, notice, how)).flatten();
        Some(Command::RecordDelivery { notice, result: ended, report })
    }
}

/// What an endpoint says about the job that was delivered to it.
fn reported(scene: &TestHub, notice: NoticeId, how: u8) -> Option<WorkerReport> {
    let push = scene.world.delivery(notice)?;
    let (NoticeKind::Assigned { job: id, epoch }, Some(by)) = (&push.kind, push.to) else {
        return None;
    };
    let job = JobRef::Id(*id);
    Some(match how % 5 {
        0 => WorkerReport::Started { job, by },
        1 => WorkerReport::Declined { job, by },
        2 => WorkerReport::Unreachable { job: *id, epoch: *epoch },
        ok => {
            let report = scene.job_report(*id, ok == 3, "0.10");
            WorkerReport::Result(Box::new(ReportResult { by, ..report }))
        }
    })
}
