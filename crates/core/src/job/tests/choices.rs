//! What a choice costs, and that the index chooses as the definitions do.
//!
//! Every choice in these tests is compared with the definition of its strategy, and every waiting
//! job that is not tried is shown to have no worker (`select::oracle`).

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::PATIENT;
use crate::agent::presence::Availability;
use crate::agent::{Agent, AgentState, Capacity, Liveness, Skill, Terms};
use crate::changes::Changes;
use crate::command::{Command, JobRef, OpenJob, ProfileUpdate, Registration, SuspensionTarget};
use crate::id::{AgentId, JobId, OwnerId};
use crate::job::{Job, NamedWorker, Policy, Selection, State};
use crate::money::Credits;
use crate::price_step::PriceStep;
use crate::refusal::Refusal;
use crate::testkit::{START, TestHub, registration, skill};
use crate::time::Millis;
use crate::world::sorted_merge::visits;

const SKILLS: [&str; 3] = ["sum", "add", "dig"];
const AGENTS: usize = 14;

/// One step of a random walk. Numbers are reduced to what exists.
#[derive(Clone, Debug)]
enum Step {
    Register { agent: usize, skills: Vec<(usize, i64, u8)>, terms: u8, liveness: u8 },
    Update { agent: usize, skills: Vec<(usize, i64, u8)> },
    Remove { agent: usize },
    Seen { agent: usize },
    Available { agent: usize, available: bool },
    Suspend { agent: usize, suspended: bool },
    Block { agent: usize, blocked: bool },
    Open { by: usize, skill: usize, also: Option<usize>, selection: u8, terms: (i64, u8, u8) },
    Succeed { job: usize },
    Decline { job: usize },
    Wait { seconds: i64 },
}

fn offered() -> impl Strategy<Value = Vec<(usize, i64, u8)>> {
    // Prices that are equal, and prices that are equal when rounded to cents.
    let price = prop_oneof![Just(0), Just(100_000), Just(100_001), Just(109_999), Just(200_000)];
    prop::collection::vec((0..SKILLS.len(), price, 0..12_u8), 1..3)
}

fn step() -> impl Strategy<Value = Step> {
    let agent = 0..AGENTS;
    let opened = (agent.clone(), 0..SKILLS.len(), prop::option::weighted(0.3, 0..SKILLS.len()));
    let terms = (prop_oneof![Just(0), Just(105_000), Just(500_000)], 0..3_u8, 0..4_u8);
    prop_oneof![
        5 => (agent.clone(), offered(), 0..6_u8, 0..4_u8).prop_map(
            |(agent, skills, terms, liveness)| Step::Register { agent, skills, terms, liveness }),
        1 => (agent.clone(), offered()).prop_map(|(agent, skills)| Step::Update { agent, skills }),
        1 => agent.clone().prop_map(|agent| Step::Remove { agent }),
        2 => agent.clone().prop_map(|agent| Step::Seen { agent }),
        1 => (agent.clone(), any::<bool>())
            .prop_map(|(agent, available)| Step::Available { agent, available }),
        1 => (agent.clone(), any::<bool>())
            .prop_map(|(agent, suspended)| Step::Suspend { agent, suspended }),
        1 => (agent, any::<bool>()).prop_map(|(agent, blocked)| Step::Block { agent, blocked }),
        12 => (opened, 0..8_u8, terms).prop_map(|((by, skill, also), selection, terms)| {
            Step::Open { by, skill, also, selection, terms }
        }),
        4 => (0..40_usize).prop_map(|job| Step::Succeed { job }),
        3 => (0..40_usize).prop_map(|job| Step::Decline { job }),
        1 => (1..100_i64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

fn skills(of: &[(usize, i64, u8)]) -> Vec<Skill> {
    let mut names = std::collections::BTreeSet::new();
    let first = of.iter().filter(|(name, _, _)| names.insert(*name));
    let one = |(name, price, kind): &(usize, i64, u8)| Skill {
        price: Credits::from_micros(*price),
        by_offer: kind % 4 == 1,
        needs_approval: kind % 6 == 2,
        expected_duration: (kind % 6 == 4).then_some(Millis::hours(100)),
        ..skill(SKILLS[*name], "0")
    };
    first.map(one).collect()
}

fn agent(scene: &TestHub, number: usize) -> Option<AgentId> {
    scene.world.agent_by_alias(crate::testkit::HOME, &format!("agent-{number}"))
}

impl Step {
    fn command(&self, scene: &mut TestHub) -> Option<Command> {
        let job_at = |scene: &TestHub, at: usize| {
            let held = |job: &&Arc<Job>| job.active_worker().is_some();
            let mut held: Vec<JobId> =
                scene.world.live_jobs().filter(held).map(|job| job.id).collect();
            held.sort();
            held.get(at % held.len().max(1)).copied()
        };
        Some(match self {
            Self::Register { agent, skills: of, terms, liveness } => {
                let owner = format!("owner-{}", agent % 5);
                let capacity = Capacity {
                    max_concurrent_jobs: (*terms < 3).then_some(u32::from(*terms)),
                    max_starts_per_minute: (*terms == 3).then_some(2),
                };
                let liveness = if *liveness == 0 { Liveness::ByPolling } else { Liveness::Always };
                Command::Register(Box::new(Registration {
                    skills: skills(of),
                    terms: Terms { capacity, ..Terms::default() },
                    liveness,
                    ..registration(&format!("agent-{agent}"), &owner, &[])
                }))
            }
            Self::Update { agent: number, skills: of } => Command::UpdateProfile {
                agent: agent(scene, *number)?,
                profile: Box::new(ProfileUpdate {
                    name: None,
                    skills: Some(skills(of)),
                    endpoint: None,
                    availability: None,
                }),
            },
            Self::Remove { agent: number } => {
                Command::Remove { agent: agent(scene, *number)?, by_operator: false }
            }
            Self::Seen { agent: number } => {
                Command::RecordActivity { agent: agent(scene, *number)? }
            }
            Self::Available { agent: number, available } => Command::UpdateProfile {
                agent: agent(scene, *number)?,
                profile: Box::new(ProfileUpdate {
                    name: None,
                    skills: None,
                    endpoint: None,
                    availability: Some(match available {
                        true => Availability::Idle,
                        false => Availability::Offline,
                    }),
                }),
            },
            Self::Suspend { agent: number, suspended } => {
                let id = agent(scene, *number)?;
                let owner = scene.agent(id).owner;
                let subject = match number % 2 {
                    0 => SuspensionTarget::Agent(id),
                    _ => SuspensionTarget::Owner(owner),
                };
                Command::SetSuspended { subject, suspended: *suspended }
            }
            Self::Block { agent: number, blocked } => Command::SetBlocked {
                agent: agent(scene, *number)?,
                other: agent(scene, (number + 1) % AGENTS)?,
                blocked: *blocked,
            },
            Self::Open { by, skill, also, selection, terms: (budget, step, policy) } => {
                let by = agent(scene, *by)?;
                let named = agent(scene, *skill)?;
                let selection = match selection {
                    0 => Selection::BestReputation,
                    1 | 2 => Selection::RoundRobin,
                    3 | 4 => Selection::Cheapest,
                    5 => Selection::Direct(named),
                    6 => Selection::Auction { closes: scene.now.plus(Millis::seconds(20)) },
                    _ => Selection::LeastOccupied,
                };
                let order = scene.job_order(by, SKILLS[*skill], "0");
                let price_step = match step {
                    0 => PriceStep { decimals: 2, minimum: Credits::ZERO },
                    1 => PriceStep { decimals: 1, minimum: Credits::from_micros(1) },
                    _ => PriceStep::FINEST,
                };
                let named_worker =
                    NamedWorker { may_be_offline: *policy == 0, ..NamedWorker::default() };
                Command::OpenJob(Box::new(OpenJob {
                    alternative_skills: also
                        .map(|also| SKILLS[also].to_owned())
                        .into_iter()
                        .collect(),
                    budget: Credits::from_micros(*budget),
                    price_step,
                    selection,
                    policy: Policy { named_worker, ..PATIENT },
                    ..order
                }))
            }
            Self::Succeed { job } => {
                let job = job_at(scene, *job)?;
                Command::ReportResult(Box::new(scene.job_report(job, true, "0")))
            }
            Self::Decline { job } => {
                let job = scene.job(job_at(scene, *job)?);
                let by = job.worker()?;
                Command::Decline { job: JobRef::Id(job.id), by, epoch: None, reason: None }
            }
            Self::Wait { seconds } => {
                scene.advance(Millis::seconds(*seconds));
                return None;
            }
        })
    }
}

/// A hub with all agents, each with one skill, and owners that can pay.
fn opening() -> TestHub {
    let mut scene = TestHub::default();
    for number in 0..AGENTS {
        let owner = format!("owner-{}", number % 5);
        scene.grant(&owner, "1000");
        scene.register_worker(&format!("agent-{number}"), &owner, &[(SKILLS[number % 3], "0.1")]);
    }
    scene
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_index_chooses_as_the_definitions_do(steps in prop::collection::vec(step(), 120)) {
        let mut scene = opening();
        for step in steps {
            if let Some(command) = step.command(&mut scene) {
                let _: Result<_, Refusal> = scene.run(command);
            }
        }
    }
}

/// The walks are only useful if every strategy finds workers, and jobs leave the queue.
#[test]
fn random_choices_use_every_strategy_and_the_queue() {
    let mut runner = TestRunner::deterministic();
    let walks = prop::collection::vec(step(), 120);
    let mut assigned: BTreeMap<String, usize> = BTreeMap::new();
    let (mut queued, mut served) = (0, 0);
    for _ in 0..24 {
        let steps = walks.new_tree(&mut runner).expect("steps can be made").current();
        let mut scene = opening();
        scene.checks_invariants = false;
        for step in &steps {
            let before: Vec<JobId> = scene.world.queued_jobs().map(|job| job.id).collect();
            let Some(command) = step.command(&mut scene) else { continue };
            if let Ok((changes, _)) = scene.run_with_changes(command) {
                for job in changes.jobs.values().filter(|job| job.state == State::Assigned) {
                    let strategy = format!("{:?}", job.selection);
                    let strategy = strategy.split(['(', ' ']).next().unwrap_or_default();
                    *assigned.entry(strategy.to_owned()).or_default() += 1;
                    served += usize::from(before.contains(&job.id));
                }
                queued += changes.jobs.values().filter(|job| job.state == State::Queued).count();
            }
        }
    }
    for strategy in ["BestReputation", "RoundRobin", "Cheapest", "LeastOccupied", "Direct"] {
        assert!(assigned.get(strategy).is_some_and(|count| *count > 20), "{assigned:?}");
    }
    assert!(queued > 50 && served > 50, "{queued} queued, {served} served from the queue");
}

/// A hub with that many agents of one skill at ten prices, of which every third is at capacity.
fn crowd(agents: u64) -> (TestHub, AgentId) {
    let mut scene = TestHub::default();
    (scene.checks_invariants, scene.encodes) = (false, false);
    let client = scene.register_client("client", "rich", "1000");
    let model = scene.register_worker("model", "models", &[("sum", "0.10")]);
    let model = scene.agent(model).clone();
    let mut rows = Changes::default();
    for number in 0..agents {
        let id = AgentId(10 + number);
        let mut offered = skill("sum", "0");
        offered.price = Credits::from_micros(100_000 + i64::try_from(number % 10).unwrap());
        let full = (number % 3 == 0).then_some(0);
        let capacity = Capacity { max_concurrent_jobs: full, ..Capacity::default() };
        let row = Agent {
            id,
            owner: OwnerId(100 + number / 2),
            skills: vec![offered],
            terms: Terms { capacity, ..Terms::default() },
            native_id: id.to_string(),
            ..model.clone()
        };
        rows.agents.insert(id, Arc::new(row));
        rows.agent_states.insert(id, Arc::new(AgentState::new(id, START)));
    }
    scene.world.apply(&rows);
    (scene, client)
}

/// Entries of the index read for one choice.
fn cost(scene: &mut TestHub, client: AgentId, selection: Selection) -> usize {
    let order = OpenJob { selection, ..scene.job_order(client, "sum", "1.00") };
    assert!(scene.open_job(order).worker().is_some());
    visits::take()
}

#[test]
fn a_choice_costs_the_same_among_a_hundred_agents_and_a_hundred_thousand() {
    let (mut small, mut large) = (crowd(100), crowd(100_000));
    let strategies = [
        Selection::BestReputation,
        Selection::RoundRobin,
        Selection::Cheapest,
        Selection::LeastOccupied,
    ];
    for selection in strategies {
        let few = cost(&mut small.0, small.1, selection);
        let many = cost(&mut large.0, large.1, selection);
        assert!(few > 0 && many <= few + 2, "{selection:?}: {many} entries instead of {few}");
    }
}

#[test]
fn an_agent_that_registers_is_compared_only_with_jobs_it_could_take() {
    let (mut scene, client) = super::market();
    (scene.checks_invariants, scene.encodes) = (false, false);
    let other = scene.register_client("other", "others", "1.00");
    let order = OpenJob { policy: PATIENT, ..scene.job_order(other, "dig", "0") };
    let model = scene.open_job(order);
    assert_eq!(model.state, State::Queued);
    let mut rows = Changes::default();
    for number in 0..100_000 {
        let mut job = Job::clone(&model);
        job.id = JobId(1_000 + number);
        job.uuid = uuid::Uuid::from_u128(u128::from(job.id.0));
        job.request.foreign_id = job.id.to_string();
        rows.jobs.insert(job.id, Arc::new(job));
    }
    scene.world.apply(&rows);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let own = scene.open_job(order).id;
    assert_eq!(scene.world.servable_jobs().count(), 0, "no agent digs or sums");

    let waiting_for = |scene: &TestHub, skills: &[(&str, &str)]| {
        let mut agent = scene.agent(client).clone();
        agent.skills = skills.iter().map(|(name, price)| skill(name, price)).collect();
        scene.world.waiting_jobs_for(&agent).collect::<Vec<_>>()
    };
    assert_eq!(waiting_for(&scene, &[("sum", "0.10")]), [own]);
    assert_eq!(waiting_for(&scene, &[("other", "0.10")]), []);
    assert!(!scene.world.has_jobs_to_dispatch(client), "the client has no skill");
    let worker = scene.register_worker("sums", "sums", &[("sum", "0.10")]);
    assert_eq!(scene.job(own).worker(), Some(worker));
}

#[test]
fn a_job_that_cannot_pay_any_online_agent_is_not_tried_again() {
    let (mut scene, client) = super::market();
    scene.register_worker("dear", "dear", &[("sum", "5.00")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.job(job).state, State::Queued);
    assert_eq!(scene.world.servable_jobs().count(), 0);
    let cheap = scene.register_worker("cheap", "cheap", &[("sum", "0.50")]);
    assert_eq!(scene.job(job).worker(), Some(cheap));
}

/// A worker that finishes a job is not looked for a waiting one; the next dispatch finds it, even
/// if the agent that causes it has other skills.
#[test]
fn a_waiting_job_goes_to_an_agent_that_was_freed_before() {
    let (mut scene, client) = super::market();
    let capacity = Capacity { max_concurrent_jobs: Some(1), ..Capacity::default() };
    let worker = super::keeps(&mut scene, "one", Terms { capacity, ..Terms::default() });
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let first = scene.open_job(order).id;
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let second = scene.open_job(order).id;
    assert_eq!(scene.job(second).state, State::Queued);
    assert_eq!(scene.world.servable_jobs().count(), 0, "its only worker is at capacity");
    scene.succeed(first, "0.10");
    assert!(scene.world.servable_jobs().eq([second]));
    scene.register_worker("digs", "digs", &[("dig", "0.10")]);
    assert_eq!(scene.job(second).worker(), Some(worker));
}
