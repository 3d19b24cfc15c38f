//! Limits of keys: what a key spent on a day is what was held and transferred with it that day, less
//! what was released, and never more than its limits.

use std::collections::BTreeMap;

use crate::agent::key_limits::KeyRecord;
use crate::changes::Changes;
use crate::id::{AgentId, JobId, KeyId};
use crate::job::{Job, Requester};
use crate::money::Credits;
use crate::time::UtcDay;
use crate::world::World;

type KeyDay = (AgentId, KeyId, UtcDay);

/// What is held and paid, in millionths: all of it, and what counts against the default limits.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Spent {
    all: i64,
    by_default: i64,
}

/// What was spent with keys, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct KeySpendingChecks {
    /// What each job holds and has paid, for the key and the day of its newest hold.
    jobs: BTreeMap<JobId, (KeyDay, Spent)>,
    by_jobs: BTreeMap<KeyDay, Spent>,
    by_transfers: BTreeMap<KeyDay, Spent>,
    /// The day that is counted for each key.
    days: BTreeMap<(AgentId, KeyId), UtcDay>,
}

impl KeySpendingChecks {
    pub fn check(&mut self, changes: &Changes, world: &World) {
        for job in changes.jobs.values() {
            self.job(job, world);
        }
        for state in changes.agent_states.values() {
            let known: Vec<KeyId> = state.key_records().iter().map(|record| record.key).collect();
            self.days.retain(|(agent, key), _| *agent != state.agent || known.contains(key));
            for record in state.key_records() {
                self.record(state.agent, record, changes, world);
            }
        }
    }

    fn job(&mut self, job: &Job, world: &World) {
        let Requester::Agent(agent) = job.request.requester else { return };
        if let Some((key, spent)) = self.jobs.remove(&job.id) {
            let sum = self.by_jobs.entry(key).or_default();
            (sum.all, sum.by_default) = (sum.all - spent.all, sum.by_default - spent.by_default);
        }
        let Some(key) = job.payment.key else { return };
        let held = job.payment.held;
        let Some(day) = key.day else {
            assert!(held.is_zero(), "held for a key, and not counted: {job:?}");
            return;
        };
        let paid = job.result.as_ref().map_or(Credits::ZERO, |result| result.paid);
        let all = held.micros() + paid.micros();
        let spent = Spent { all, by_default: if key.by_default { all } else { 0 } };
        let of_day = (agent, key.key, day);
        self.jobs.insert(job.id, (of_day, spent));
        let sum = self.by_jobs.entry(of_day).or_default();
        (sum.all, sum.by_default) = (sum.all + spent.all, sum.by_default + spent.by_default);
        let record = world.agent_state(agent).and_then(|state| state.key_record(key.key));
        let most = match key.by_default {
            true => world.rules.default_key_limits.per_job,
            false => record.and_then(|record| record.limits.per_job),
        };
        assert!(most.is_none_or(|most| held <= most), "held above the limit of its key: {job:?}");
    }

    fn record(&mut self, agent: AgentId, record: &KeyRecord, changes: &Changes, world: &World) {
        let spending = record.spending;
        let of_day = (agent, record.key, spending.day);
        let jobs = self.by_jobs.get(&of_day).copied().unwrap_or_default();
        let transferred = self.by_transfers.entry(of_day).or_default();
        // All is counted only for keys that were issued with a label or limits.
        let all = match record.issued_at {
            Some(_) => spending.amount.micros() - jobs.all - transferred.all,
            None => spending.amount.micros(),
        };
        let by_default = spending.by_default.micros() - jobs.by_default - transferred.by_default;
        let owner = world.agent(agent).map(|agent| agent.owner);
        let is_paid = |more: i64| {
            more == 0
                || changes.transfers.iter().any(|transfer| {
                    let moves = !transfer.settled_by_hold && Some(transfer.from) == owner;
                    moves && transfer.amount.micros() == more
                })
        };
        assert!(is_paid(all) && is_paid(by_default), "counted, but not spent: {record:?}");
        transferred.all += all;
        transferred.by_default += by_default;
        let before = self.days.insert((agent, record.key), spending.day);
        assert!(before.is_none_or(|day| day <= spending.day), "the day went back: {record:?}");
        let own = record.limits.per_day;
        assert!(own.is_none_or(|most| spending.amount <= most), "above its limit: {record:?}");
        let most = world.rules.default_key_limits.per_day;
        assert!(most.is_none_or(|most| spending.by_default <= most), "above the hub's: {record:?}");
    }
}
