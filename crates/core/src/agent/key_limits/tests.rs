//! What a limited key may spend, and what it must not touch.

use proptest::prelude::*;

use super::*;
use crate::agent::{Liveness, registration::OLD_KEY_TTL};
use crate::command::{Actor, Canceller, JobRef, OfferRef, OfferTerms, OpenJob, Pay, Registration};
use crate::envelope::{Envelope, Proof};
use crate::id::JobId;
use crate::job::{Policy, Selection, State};
use crate::testkit::{
    TestHub, credits, job_in, jobs_in, registration, registration_with_endpoint, transfer_in,
};
use crate::time::Millis;
use crate::world::Rules;

const DAY: Millis = Millis::hours(24);

fn limits(per_job: &str, per_day: &str) -> KeyLimits {
    let (per_job, per_day) = (Some(credits(per_job)), Some(credits(per_day)));
    KeyLimits { per_job, per_day, transfers: true }
}

/// A hub with a rich requester and a worker, and a key of the requester with limits.
struct Scene {
    hub: TestHub,
    rich: AgentId,
    key: KeyUse,
}

impl Scene {
    fn new(limits: KeyLimits) -> Self {
        Self::with_rules(limits, Rules::default())
    }

    fn with_rules(limits: KeyLimits, rules: Rules) -> Self {
        let mut hub = TestHub::new(rules);
        hub.grant("rich", "100.00");
        let order = Registration { key: Some([1; 32]), ..registration("ann", "rich", &[]) };
        let rich = hub.register(order).unwrap();
        hub.register_worker("ada", "acme", &[("sum", "0")]);
        let key = issue_to(&mut hub, rich, [2; 32], limits);
        Self { hub, rich, key: KeyUse { agent: rich, key, by_default: false } }
    }

    /// Runs a command with the limited key.
    fn run(&mut self, command: Command) -> Result<Answer, Refusal> {
        self.run_with(self.key, command)
    }

    fn run_with(&mut self, key: KeyUse, command: Command) -> Result<Answer, Refusal> {
        self.hub.run(with_key(key, command))
    }

    /// The key that the agent got when it registered. It has no limits.
    fn first_key(&self) -> KeyUse {
        let mut keys = self.hub.world.keys_of(self.rich);
        let first = keys.find(|key| key.hash == [1; 32]).expect("it is still there");
        KeyUse { key: first.id, ..self.key }
    }

    fn order(&mut self, budget: &str) -> OpenJob {
        self.hub.job_order(self.rich, "sum", budget)
    }

    fn open(&mut self, budget: &str) -> Result<JobId, Refusal> {
        let order = self.order(budget);
        self.run(Command::OpenJob(Box::new(order))).map(|answer| job_in(answer).id)
    }

    fn pay(&mut self, amount: &str) -> Result<Answer, Refusal> {
        let order = self.hub.payment("rich", "acme", amount);
        self.run(Command::Pay(Box::new(order)))
    }

    fn left(&self) -> String {
        let left = self.hub.world.key_allowance(self.key, self.hub.now).left_today;
        left.expect("the key has a limit per day").to_text(2)
    }

    fn spent(&self) -> Credits {
        let record = self.hub.agent_state(self.rich).key_record(self.key.key);
        record.map_or(Credits::ZERO, |record| record.spent_on_day_of(self.hub.now))
    }
}

fn with_key(key: KeyUse, command: Command) -> Envelope {
    Envelope { proof: Proof::Key(key), idempotency: None, command }
}

fn issue_to(hub: &mut TestHub, agent: AgentId, hash: KeyHash, limits: KeyLimits) -> KeyId {
    let label = Some("laptop".to_owned());
    let order = IssueLimitedKey { agent, hash, label, limits };
    match hub.run(Command::IssueLimitedKey(Box::new(order))).unwrap() {
        Answer::Key { id } => id,
        other => panic!("expected a key, got {other:?}"),
    }
}

/// The refusal of a job that costs more than one job may.
fn over_job(per_job: &str, left: &str) -> Refusal {
    let limit = SpendingLimit::PerJob(credits(per_job));
    Refusal::OverLimit { limit, left: Some(credits(left)), by_default: false }
}

fn over_day(per_day: &str, left: &str) -> Refusal {
    let limit = SpendingLimit::PerDay(credits(per_day));
    Refusal::OverLimit { limit, left: Some(credits(left)), by_default: false }
}

#[test]
fn what_was_released_may_be_spent_again_as_in_the_worked_values() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    scene.hub.register_worker("bob", "acme", &[("dig", "0.40")]);
    let dig = |scene: &mut Scene| {
        let order = scene.hub.job_order(scene.rich, "dig", "1.00");
        scene.run(Command::OpenJob(Box::new(order))).map(|answer| job_in(answer).id)
    };
    let paid = dig(&mut scene).unwrap();
    scene.hub.succeed(paid, "0.40");
    assert_eq!(scene.left(), "1.60");
    let failed = dig(&mut scene).unwrap();
    scene.hub.fail(failed);
    assert_eq!(scene.left(), "1.60");
    let _running = dig(&mut scene).unwrap();
    assert_eq!(scene.left(), "0.60");
    assert_eq!(scene.open("0.61").unwrap_err(), over_day("2.00", "0.60"));
    assert_eq!(scene.open("1.01").unwrap_err(), over_job("1.00", "0.60"));
    scene.hub.advance_without_timers(DAY);
    assert_eq!(scene.open("1.01").unwrap_err(), over_job("1.00", "2.00"));
}

#[test]
fn a_limit_is_told_with_what_is_left_and_who_may_raise_it() {
    assert_eq!(
        over_day("2.00", "0.60").to_string(),
        "this key may spend at most 2.00 a day, and 0.60 is left of what it may spend today (UTC); a \
         key of this agent without limits may issue one with higher limits"
    );
    let limit = SpendingLimit::PerJob(credits("10"));
    let by_default = Refusal::OverLimit { limit, left: None, by_default: true };
    assert_eq!(
        by_default.to_string(),
        "a key without limits of its own may spend at most 10.00 on one job or transfer; ask the \
         operator to raise this limit of the hub, or issue a key with higher limits"
    );
}

#[test]
fn a_hold_of_yesterday_gives_today_no_more_room() {
    let mut scene = Scene::new(limits("2.00", "2.00"));
    let yesterdays = scene.open("2.00").unwrap();
    scene.hub.advance_without_timers(Millis::hours(23));
    let old = scene.hub.now.utc_day();
    scene.hub.now = Timestamp((old.0 + 1) * DAY.0);
    assert_eq!(scene.left(), "2.00");
    scene.open("1.50").unwrap();
    scene.hub.fail(yesterdays);
    assert_eq!(scene.left(), "0.50");
    assert_eq!(scene.open("0.51").unwrap_err(), over_day("2.00", "0.50"));
}

#[test]
fn a_clock_that_is_set_back_does_not_begin_the_day_again() {
    let mut scene = Scene::new(limits("2.00", "2.00"));
    scene.open("1.50").unwrap();
    scene.hub.now = Timestamp(scene.hub.now.0 - DAY.0);
    assert_eq!(scene.left(), "0.50");
    scene.open("0.50").unwrap();
    scene.hub.now = scene.hub.now.plus(DAY);
    assert_eq!(scene.left(), "0.00");
}

#[test]
fn transfers_count_like_jobs_and_may_be_forbidden() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    scene.pay("0.75").unwrap();
    assert_eq!(scene.left(), "1.25");
    assert_eq!(scene.pay("1.01").unwrap_err(), over_job("1.00", "1.25"));
    // A repeat moves nothing, and counts nothing.
    let order = scene.hub.payment("rich", "acme", "1.00");
    let again = Command::Pay(Box::new(order));
    scene.run(again.clone()).unwrap();
    assert!(transfer_in(scene.run(again).unwrap()).1);
    assert_eq!(scene.left(), "0.25");

    let mut scene = Scene::new(KeyLimits { transfers: false, ..KeyLimits::NONE });
    let limit = SpendingLimit::Transfers;
    let refused = Refusal::OverLimit { limit, left: None, by_default: false };
    assert_eq!(scene.pay("0.01").unwrap_err(), refused);
    scene.open("50.00").unwrap();
}

#[test]
fn a_repeated_order_counts_once() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    let order = scene.order("1.00");
    for repeated in [false, true] {
        let answer = scene.run(Command::OpenJob(Box::new(order.clone()))).unwrap();
        assert!(matches!(answer, Answer::Job { repeated: said, .. } if said == repeated));
        assert_eq!(scene.left(), "1.00");
    }
}

#[test]
fn each_job_of_a_broadcast_counts() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    for (name, price) in [("a", "0.90"), ("b", "0.90"), ("c", "0.90")] {
        scene.hub.register_worker(name, "acme", &[("dig", price)]);
    }
    let order = |scene: &mut Scene| OpenJob {
        selection: Selection::Broadcast,
        ..scene.hub.job_order(scene.rich, "dig", "1.00")
    };
    let all = order(&mut scene);
    let refused = scene.run(Command::OpenJob(Box::new(all))).unwrap_err();
    assert_eq!(refused, over_day("2.00", "0.20"));
    assert_eq!((scene.left(), scene.hub.balance_text("rich").1), ("2.00".into(), "0.00".into()));
    let third = scene.hub.world.agent_by_alias(crate::testkit::HOME, "c").unwrap();
    scene.hub.remove(third);
    let two = order(&mut scene);
    assert_eq!(jobs_in(scene.run(Command::OpenJob(Box::new(two))).unwrap()).len(), 2);
    assert_eq!(scene.left(), "0.20");
}

#[test]
fn what_is_held_later_counts_against_the_key_that_asked() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    // Its owner pays only once the worker is back.
    let away = registration("eve", "acme", &[("dig", "0.90")]);
    let eve = scene.hub.register(Registration { liveness: Liveness::ByPolling, ..away }).unwrap();
    scene.hub.advance(Millis::minutes(5));
    let mut order = scene.hub.job_order(scene.rich, "dig", "1.00");
    order.selection = Selection::Direct(eve);
    order.policy = Policy::default();
    order.policy.requester.answered_at_once = true;
    order.policy.named_worker.may_be_offline = true;
    order.policy.queueing.when_unmatched = true;
    let job = job_in(scene.run(Command::OpenJob(Box::new(order))).unwrap());
    let held = scene.hub.job(job.id).payment.held;
    assert_eq!(scene.spent(), held);
    // Another key of another agent brings the worker back; the requester's key pays.
    let worker_key = issue_to(&mut scene.hub, eve, [9; 32], limits("0", "0"));
    let eves = KeyUse { agent: eve, key: worker_key, by_default: false };
    scene.run_with(eves, Command::Heartbeat { agent: eve }).unwrap();
    assert_eq!(scene.hub.job(job.id).payment.held, scene.spent());
    let by = Canceller::Operator;
    let _ = scene.hub.run(Command::Cancel { job: JobRef::Id(job.id), by, reason: None });
    assert_eq!(scene.spent(), scene.hub.job(job.id).payment.held);
}

#[test]
fn the_default_limits_bind_only_keys_without_amounts_of_their_own() {
    let default_key_limits = limits("3.00", "4.00");
    let rules = Rules { default_key_limits, ..Rules::default() };
    let mut scene = Scene::with_rules(limits("5.00", "9.00"), rules);
    let own = KeyUse { by_default: true, ..scene.key };
    let first = KeyUse { by_default: true, ..scene.first_key() };
    let open = |scene: &mut Scene, key, budget| {
        let order = scene.order(budget);
        scene.run_with(key, Command::OpenJob(Box::new(order))).map(drop)
    };
    open(&mut scene, own, "5.00").unwrap();
    open(&mut scene, first, "3.00").unwrap();
    let over = |limit, left| Refusal::OverLimit { limit, left: Some(left), by_default: true };
    let per_job = over(SpendingLimit::PerJob(credits("3.00")), credits("1.00"));
    assert_eq!(open(&mut scene, first, "3.01").unwrap_err(), per_job);
    let per_day = over(SpendingLimit::PerDay(credits("4.00")), credits("1.00"));
    assert_eq!(open(&mut scene, first, "1.01").unwrap_err(), per_day);
    // Elsewhere the same key is free, and what it spends there does not count.
    let elsewhere = KeyUse { by_default: false, ..first };
    open(&mut scene, elsewhere, "20.00").unwrap();
    open(&mut scene, first, "1.00").unwrap();
    // A key that must not transfer has no amounts of its own.
    let limits = KeyLimits { transfers: false, ..KeyLimits::NONE };
    let third = issue_to(&mut scene.hub, scene.rich, [3; 32], limits);
    let third = KeyUse { key: third, ..first };
    assert_eq!(
        scene.hub.world.key_allowance(third, scene.hub.now).limits,
        KeyLimits { transfers: false, ..default_key_limits }
    );
    open(&mut scene, third, "3.01").unwrap_err();
    // All that such a key spends is shown, and only what counts against the default limits binds it.
    open(&mut scene, KeyUse { by_default: false, ..third }, "20.00").unwrap();
    open(&mut scene, third, "3.00").unwrap();
    let record = scene.hub.agent_state(scene.rich).key_record(third.key).unwrap();
    assert_eq!(record.spent_on_day_of(scene.hub.now), credits("23.00"));
    assert_eq!(
        scene.hub.world.key_allowance(third, scene.hub.now).left_today,
        Some(credits("1.00"))
    );
}

#[test]
fn an_accepted_offer_counts_against_the_key_that_asked_for_offers() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    let order = OpenJob { selection: Selection::Offers, ..scene.order("1.00") };
    let job = job_in(scene.run(Command::OpenJob(Box::new(order))).unwrap()).id;
    assert_eq!(scene.left(), "1.00");
    let by = scene.hub.world.agent_by_alias(crate::testkit::HOME, "ada").unwrap();
    let (named, valid_for) = (JobRef::Id(job), Millis::minutes(5));
    let terms = OfferTerms::Open { valid_for };
    let price = credits("0.30");
    scene.hub.run(Command::Offer { job: named.clone(), by, price, terms }).unwrap();
    let accept = Command::accept_offer(named, scene.rich, OfferRef::Only { by });
    scene.run_with(scene.first_key(), accept).unwrap();
    assert_eq!(scene.left(), "1.00");
    scene.hub.succeed(job, "0.30");
    assert_eq!(scene.left(), "1.70");
}

#[test]
fn a_limited_key_touches_no_key_no_secret_and_no_registration_but_its_own() {
    let mut scene = Scene::new(KeyLimits { transfers: false, ..KeyLimits::NONE });
    let (agent, key) = (scene.rich, scene.first_key().key);
    let holder = Holder::Agent(agent);
    let hash = [7; 32];
    let own = |order: Registration| Registration { actor: Actor::Agent(agent), ..order };
    let limits = KeyLimits::NONE;
    let forbidden = [
        Command::IssueKey { holder, hash, retire_others: true, by_operator: false },
        Command::IssueLimitedKey(Box::new(IssueLimitedKey { agent, hash, label: None, limits })),
        Command::RevokeKeys { agent, by_operator: false },
        Command::RevokeKey { agent, key },
        Command::RenewSecret { agent },
        Command::Remove { agent, by_operator: false },
        // Another agent of its owner would have a key without limits.
        Command::Register(Box::new(own(registration("another", "rich", &[])))),
        Command::Register(Box::new(Registration {
            rotate_key: true,
            key: Some(hash),
            ..own(registration("ann", "rich", &[]))
        })),
        // The answer shows the webhook secret.
        Command::Register(Box::new(own(registration_with_endpoint("ann", "rich", &[])))),
    ];
    for command in forbidden {
        let refused = scene.run(command.clone()).unwrap_err();
        assert_eq!(refused, Refusal::LimitedKey, "{command:?}");
        scene.hub.world.agent(agent).filter(|agent| agent.active).expect("it is still there");
    }
    let profile = own(registration("ann", "rich", &[("sum", "1.00")]));
    scene.run(Command::Register(Box::new(profile))).unwrap();
    let unlimited = scene.first_key();
    scene.run_with(unlimited, Command::RevokeKey { agent, key: scene.key.key }).unwrap();
    assert!(scene.hub.agent_state(agent).key_records().is_empty());
}

#[test]
fn a_key_that_was_revoked_on_the_way_issues_and_touches_no_key() {
    let mut scene = Scene::new(limits("1.00", "1.00"));
    let (agent, limited) = (scene.rich, scene.key);
    let unlimited =
        KeyUse { key: issue_to(&mut scene.hub, agent, [3; 32], KeyLimits::NONE), ..limited };
    for used in [limited, unlimited] {
        let by = scene.first_key();
        scene.run_with(by, Command::RevokeKey { agent, key: used.key }).unwrap();
        let holder = Holder::Agent(agent);
        let (hash, label, limits) = ([7; 32], None, KeyLimits::NONE);
        let order = Registration { actor: Actor::Agent(agent), ..registration("ann", "rich", &[]) };
        for command in [
            Command::IssueLimitedKey(Box::new(IssueLimitedKey { agent, hash, label, limits })),
            Command::IssueKey { holder, hash, retire_others: true, by_operator: false },
            Command::RevokeKeys { agent, by_operator: false },
            Command::RevokeKey { agent, key: by.key },
            Command::RenewSecret { agent },
            Command::Remove { agent, by_operator: false },
            Command::Register(Box::new(Registration {
                rotate_key: true,
                key: Some(hash),
                ..order
            })),
        ] {
            let refused = scene.run_with(used, command.clone()).unwrap_err();
            assert_eq!(refused, Refusal::NotAuthenticated, "{command:?}");
        }
        assert_eq!(scene.first_key(), by, "it is the agent's as before");
    }
}

#[test]
fn a_revoked_key_holds_nothing_more_and_no_other_key_is_touched() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    let before = scene.open("1.00").unwrap();
    let (agent, key) = (scene.rich, scene.key.key);
    scene.hub.run(Command::RevokeKey { agent, key }).unwrap();
    assert_eq!(scene.open("0.01").unwrap_err(), Refusal::NotAuthenticated);
    assert_eq!(scene.pay("0.01").unwrap_err(), Refusal::NotAuthenticated);
    scene.open("0").unwrap();
    assert_eq!(scene.hub.run(Command::RevokeKey { agent, key }).unwrap_err(), Refusal::NotFound);
    let hashes: Vec<_> =
        scene.hub.world.keys_of(agent).map(|key| key.is_valid(scene.hub.now)).collect();
    assert_eq!(hashes, [true, false]);
    // What runs is paid all the same.
    scene.hub.succeed(before, "0");
    assert_eq!(scene.hub.state(before), State::Completed);
}

#[test]
fn another_agents_key_spends_nothing() {
    let mut scene = Scene::new(limits("1.00", "2.00"));
    let poor = scene.hub.register_worker("poor", "poor", &[]);
    let key = issue_to(&mut scene.hub, poor, [8; 32], limits("9.00", "9.00"));
    let theirs = KeyUse { agent: poor, key, by_default: false };
    let order = scene.order("0.50");
    let refused = scene.run_with(theirs, Command::OpenJob(Box::new(order))).unwrap_err();
    assert_eq!(refused, Refusal::NotAuthenticated);
    let order: Pay = scene.hub.payment("rich", "acme", "0.50");
    let refused = scene.run_with(theirs, Command::Pay(Box::new(order))).unwrap_err();
    assert_eq!(refused, Refusal::NotAuthenticated);
}

#[test]
fn an_agent_has_few_keys_with_labels_and_a_revoked_one_makes_room() {
    let mut scene = Scene::new(KeyLimits::NONE);
    let agent = scene.rich;
    let mut issue = |n: u8| {
        let order = IssueLimitedKey { agent, hash: [n; 32], label: None, limits: KeyLimits::NONE };
        scene.hub.run(Command::IssueLimitedKey(Box::new(order)))
    };
    for n in 1..KEY_RECORDS_MAX {
        issue(10 + n as u8).unwrap();
    }
    assert_eq!(issue(9).unwrap_err(), Refusal::TooManyKeys { max: KEY_RECORDS_MAX });
    scene.hub.run(Command::RevokeKey { agent, key: scene.key.key }).unwrap();
    issue_to(&mut scene.hub, agent, [9; 32], KeyLimits::NONE);
    // After a rotation the keys expire together, and so do their records.
    let (holder, hash) = (Holder::Agent(agent), [5; 32]);
    let order = Command::IssueKey { holder, hash, retire_others: true, by_operator: false };
    scene.hub.run(order).unwrap();
    scene.hub.advance(OLD_KEY_TTL);
    issue_to(&mut scene.hub, agent, [4; 32], KeyLimits::NONE);
}

#[test]
fn the_last_use_is_recorded_to_the_minute_for_keys_with_a_record() {
    let mut scene = Scene::new(KeyLimits::NONE);
    let (agent, key) = (scene.rich, scene.key.key);
    let use_key = |scene: &mut Scene, key| {
        scene.hub.run(Command::RecordKeyUse { agent, key }).unwrap();
        let record = scene.hub.agent_state(agent).key_record(key);
        record.map(|record| record.last_used)
    };
    let first = scene.hub.now;
    assert_eq!(use_key(&mut scene, key), Some(Some(first)));
    scene.hub.now = first.plus(Millis::seconds(59));
    assert_eq!(use_key(&mut scene, key), Some(Some(first)));
    scene.hub.now = first.plus(Millis::seconds(60));
    assert_eq!(use_key(&mut scene, key), Some(Some(scene.hub.now)));
    let unlabelled = scene.first_key().key;
    assert_eq!(use_key(&mut scene, unlabelled), None);
}

/// One step of the walk below.
#[derive(Clone, Debug)]
enum Move {
    Hold(u8),
    Capture(u8, u8),
    Release(u8),
    Transfer(u8),
    Wait(u16),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let amount = || 0..30_u8;
    let one = prop_oneof![
        6 => amount().prop_map(Move::Hold),
        4 => (any::<u8>(), 0..12_u8).prop_map(|(job, paid)| Move::Capture(job, paid)),
        3 => any::<u8>().prop_map(Move::Release),
        3 => amount().prop_map(Move::Transfer),
        2 => (0..900_u16).prop_map(Move::Wait),
    ];
    prop::collection::vec(one, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The key never spends more in a day than it may, what it spent is what it held less what was
    /// released, and no credit is lost. The hub's invariants are checked after each step, too.
    #[test]
    fn over_any_days_a_key_spends_what_its_limits_allow(moves in moves()) {
        let mut scene = Scene::new(limits("1.20", "2.50"));
        scene.hub.register_worker("bob", "acme", &[("dig", "0.50")]);
        // Each running job with its budget and its day, and what each day's holds and transfers are.
        let mut running: Vec<(JobId, Credits, UtcDay)> = Vec::new();
        let mut spent = std::collections::BTreeMap::<UtcDay, i64>::new();
        for one in moves {
            let today = scene.hub.now.utc_day();
            let tenths = |tenths: u8| Credits::from_micros(i64::from(tenths) * 100_000);
            let before = *spent.entry(today).or_default();
            let fits = |amount: Credits| {
                amount <= credits("1.20") && before + amount.micros() <= credits("2.50").micros()
            };
            match one {
                Move::Hold(amount) => {
                    let amount = tenths(amount).max(credits("0.50"));
                    let order = scene.hub.job_order(scene.rich, "dig", &amount.to_text(2));
                    let opened = scene.run(Command::OpenJob(Box::new(order)));
                    prop_assert_eq!(opened.is_ok(), fits(amount));
                    if let Ok(answer) = opened {
                        running.push((job_in(answer).id, amount, today));
                        *spent.entry(today).or_default() += amount.micros();
                    }
                }
                Move::Capture(..) | Move::Release(_) if running.is_empty() => {}
                Move::Capture(job, paid) => {
                    let (job, held, day) = running.remove(usize::from(job) % running.len());
                    let ended = scene.hub.succeed(job, &tenths(paid).to_text(2));
                    let paid = ended.result.as_ref().map_or(Credits::ZERO, |result| result.paid);
                    *spent.entry(day).or_default() -= held.micros() - paid.micros();
                }
                Move::Release(job) => {
                    let (job, held, day) = running.remove(usize::from(job) % running.len());
                    scene.hub.fail(job);
                    *spent.entry(day).or_default() -= held.micros();
                }
                Move::Transfer(amount) => {
                    let amount = tenths(amount).max(credits("0.10"));
                    let paid = scene.pay(&amount.to_text(2));
                    prop_assert_eq!(paid.is_ok(), fits(amount));
                    if paid.is_ok() {
                        *spent.entry(today).or_default() += amount.micros();
                    }
                }
                Move::Wait(minutes) => {
                    scene.hub.advance_without_timers(Millis::minutes(i64::from(minutes)));
                }
            }
            let today = scene.hub.now.utc_day();
            let counted = spent.get(&today).copied().unwrap_or_default();
            prop_assert_eq!(scene.spent().micros(), counted);
            prop_assert!(spent.values().all(|amount| *amount <= credits("2.50").micros()));
            let owner = scene.hub.owner("rich");
            let gone = scene.hub.owner("acme").available;
            let all = owner.available.micros() + owner.held.micros() + gone.micros();
            prop_assert_eq!(all, credits("100.00").micros());
        }
        let rebuilt = scene.hub.store.rebuild_world(scene.hub.world.rules);
        let record = |world: &World| {
            let state = world.agent_state(scene.rich).cloned();
            state.and_then(|state| state.key_record(scene.key.key).cloned())
        };
        prop_assert_eq!(record(&rebuilt), record(&scene.hub.world));
    }
}

#[test]
fn rows_without_keys_are_as_before_and_a_record_leaves_out_what_it_lacks() {
    let state = AgentState::new(AgentId(1), Timestamp(0));
    assert!(!serde_json::to_string(&state).unwrap().contains("keys"));
    let record = KeyRecord {
        key: KeyId(4),
        label: None,
        limits: KeyLimits::NONE,
        issued_at: None,
        last_used: None,
        spending: DaySpending::default(),
    };
    assert_eq!(serde_json::to_string(&record).unwrap(), r#"{"key":4}"#);
    assert_eq!(serde_json::from_str::<KeyRecord>(r#"{"key":4}"#).unwrap(), record);
    let limited = KeyRecord { limits: limits("1.00", "2.00"), ..record };
    let text = r#"{"key":4,"limits":{"per_job":1000000,"per_day":2000000}}"#;
    assert_eq!(serde_json::to_string(&limited).unwrap(), text);
}
