//! Limits of keys: what a key spent on a day is what was held and transferred with it that day, less
//! what was released, and never more than its limits.

use std::collections::BTreeMap;

use crate::agent::key_limits::{KeyLimits, KeyRecord};
use crate::changes::Changes;
use crate::id::{AgentId, JobId, KeyId};
use crate::job::{Job, Requester};
use crate::money::Credits;
use crate::time::UtcDay;
use crate::world::World;

type KeyDay = (AgentId, KeyId, UtcDay);

/// What was spent with keys, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct KeySpendingChecks {
    /// What each job holds and has paid, for the key and the day of its newest hold.
    jobs: BTreeMap<JobId, (KeyDay, i64)>,
    by_jobs: BTreeMap<KeyDay, i64>,
    by_transfers: BTreeMap<KeyDay, i64>,
    /// What was counted for each key after the last command.
    counted: BTreeMap<(AgentId, KeyId), (UtcDay, i64)>,
}

impl KeySpendingChecks {
    pub fn check(&mut self, changes: &Changes, world: &World) {
        for job in changes.jobs.values() {
            self.job(job, world);
        }
        for state in changes.agent_states.values() {
            let known: Vec<KeyId> = state.key_records().iter().map(|record| record.key).collect();
            self.counted.retain(|(agent, key), _| *agent != state.agent || known.contains(key));
            for record in state.key_records() {
                self.record(state.agent, record, changes, world);
            }
        }
    }

    fn job(&mut self, job: &Job, world: &World) {
        let Requester::Agent(agent) = job.request.requester else { return };
        if let Some((key, amount)) = self.jobs.remove(&job.id) {
            *self.by_jobs.entry(key).or_default() -= amount;
        }
        let Some(key) = job.payment.key else { return };
        let held = job.payment.held;
        let Some(day) = key.day else {
            assert!(held.is_zero(), "held for a limited key, and not counted: {job:?}");
            return;
        };
        let paid = job.result.as_ref().map_or(Credits::ZERO, |result| result.paid);
        let amount = held.micros() + paid.micros();
        let of_day = (agent, key.key, day);
        self.jobs.insert(job.id, (of_day, amount));
        *self.by_jobs.entry(of_day).or_default() += amount;
        let record = world.agent_state(agent).and_then(|state| state.key_record(key.key));
        let most = record.and_then(|record| limits_of(record, world).per_job);
        assert!(most.is_none_or(|most| held <= most), "held above the limit of its key: {job:?}");
    }

    fn record(&mut self, agent: AgentId, record: &KeyRecord, changes: &Changes, world: &World) {
        let spending = record.spending;
        let of_day = (agent, record.key, spending.day);
        let amount = spending.amount.micros();
        let by_jobs = self.by_jobs.get(&of_day).copied().unwrap_or_default();
        let transferred = self.by_transfers.entry(of_day).or_default();
        let more = amount - by_jobs - *transferred;
        let owner = world.agent(agent).map(|agent| agent.owner);
        let is_paid = changes.transfers.iter().any(|transfer| {
            let moves = !transfer.settled_by_hold && Some(transfer.from) == owner;
            moves && transfer.amount.micros() == more
        });
        assert!(more == 0 || is_paid, "counted {more} that was not spent: {record:?}");
        *transferred += more;
        let before = self.counted.insert((agent, record.key), (spending.day, amount));
        assert!(before.is_none_or(|(day, _)| day <= spending.day), "the day went back: {record:?}");
        let most = limits_of(record, world).per_day;
        assert!(most.is_none_or(|most| spending.amount <= most), "above its limit: {record:?}");
    }
}

/// The key's own limits, or the default ones if it has no amounts: only those can have counted then.
fn limits_of(record: &KeyRecord, world: &World) -> KeyLimits {
    match record.limits {
        KeyLimits { per_job: None, per_day: None, .. } => world.rules.default_key_limits,
        own => own,
    }
}
