//! Limits of keys: how much of its owner's credits one key may spend.
//!
//! A limit is checked and counted in the command that moves the credits, so it binds whichever
//! protocol the key is used in. A job keeps the key it was requested with: what is held for it
//! later counts against that key, and what is released of it counts no more.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::key::{Holder, KeyHash};
use super::registration;
use super::{AgentState, Liveness};
use crate::answer::Answer;
use crate::command::{Command, IssueLimitedKey};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, KeyId, OwnerId};
use crate::job::{Job, Requester};
use crate::money::Credits;
use crate::refusal::{Refusal, SpendingLimit};
use crate::time::{Timestamp, UtcDay};
use crate::world::World;

/// Keys with a record one agent may have: one for each of its programs, and no unbounded list.
pub const KEY_RECORDS_MAX: usize = 64;

/// How precisely the last use of a key is recorded.
pub const LAST_USE_STEP: crate::time::Millis = crate::time::Millis::minutes(1);

/// What a key may do with the credits of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLimits {
    /// The most that one hold or one transfer may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_job: Option<Credits>,
    /// The most that holds and transfers of one day (UTC) may be together, less what was released
    /// of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Credits>,
    /// Whether it may transfer credits.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub transfers: bool,
}

fn yes() -> bool {
    true
}

fn is_zero(amount: &Credits) -> bool {
    amount.is_zero()
}

fn is_yes(flag: &bool) -> bool {
    *flag
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self::NONE
    }
}

impl KeyLimits {
    /// No limits.
    pub const NONE: Self = Self { per_job: None, per_day: None, transfers: true };

    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Whether amounts are limited.
    fn has_amounts(&self) -> bool {
        self.per_job.is_some() || self.per_day.is_some()
    }
}

/// The key that a command was sent with. It proves the author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    pub agent: AgentId,
    pub key: KeyId,
    /// Whether the hub's default limits bind the key if it has no limits of its own.
    pub by_default: bool,
}

/// The key that a job was requested with, if the hub counts what it spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendingKey {
    pub key: KeyId,
    /// The hub's default limits bind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_default: bool,
    /// The day that the newest hold counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<UtcDay>,
}

/// What the hub records of a key besides its hash: of keys that were issued with a label or limits,
/// and of those that spent something under the default limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub key: KeyId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "KeyLimits::is_none")]
    pub limits: KeyLimits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "DaySpending::is_none")]
    pub spending: DaySpending,
}

/// What a key spent on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaySpending {
    pub day: UtcDay,
    /// All of it. Counted for keys that were issued with a label or limits.
    pub amount: Credits,
    /// What was spent under the default limits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_default: Credits,
}

impl DaySpending {
    /// What was spent on the day of `now`. A clock that is set back does not begin the day again.
    fn on_day_of(self, now: Timestamp) -> Self {
        if self.day >= now.utc_day() {
            self
        } else {
            Self { day: now.utc_day(), ..Self::default() }
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl KeyRecord {
    /// Whether it was issued with a label or limits, so that all it spends is counted.
    fn is_issued(&self) -> bool {
        self.issued_at.is_some()
    }

    /// What it spent on the day of `now`, as far as it is counted.
    pub fn spent_on_day_of(&self, now: Timestamp) -> Credits {
        let spent = self.spending.on_day_of(now);
        if self.is_issued() { spent.amount } else { spent.by_default }
    }

    /// Counts an amount, and returns the day it counts for.
    fn count(&mut self, now: Timestamp, amount: Credits, by_default: bool) -> UtcDay {
        let add = |sum: Credits| sum.checked_add(amount).unwrap_or(Credits::from_micros(i64::MAX));
        self.spending = self.spending.on_day_of(now);
        if self.is_issued() {
            self.spending.amount = add(self.spending.amount);
        }
        if by_default {
            self.spending.by_default = add(self.spending.by_default);
        }
        self.spending.day
    }

    /// What was counted for that day counts no more. Another day gets no room by it.
    fn uncount(&mut self, day: UtcDay, amount: Credits, by_default: bool) {
        let subtract = |sum: Credits| sum.checked_pay(amount).unwrap_or(Credits::ZERO);
        if self.spending.day == day {
            self.spending.amount = subtract(self.spending.amount);
        }
        if self.spending.day == day && by_default {
            self.spending.by_default = subtract(self.spending.by_default);
        }
    }
}

/// The limits that bind a key, and what is left of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAllowance {
    pub limits: KeyLimits,
    /// What it may still spend today; `None` without a limit per day.
    pub left_today: Option<Credits>,
}

impl AgentState {
    /// The records of its keys.
    pub fn key_records(&self) -> &[KeyRecord] {
        self.keys.as_deref().map_or(&[], Vec::as_slice)
    }

    pub fn key_record(&self, key: KeyId) -> Option<&KeyRecord> {
        self.key_records().iter().find(|record| record.key == key)
    }
}

impl World {
    /// Whether the key has limits of its own.
    pub fn is_limited_key(&self, agent: AgentId, key: KeyId) -> bool {
        let record = self.agent_state(agent).and_then(|state| state.key_record(key));
        record.is_some_and(|record| !record.limits.is_none())
    }

    /// The limits that bind a key now.
    pub fn key_allowance(&self, used: KeyUse, now: Timestamp) -> KeyAllowance {
        let record = self.agent_state(used.agent).and_then(|state| state.key_record(used.key));
        allowance(record, used.by_default.then_some(self.rules.default_key_limits), now)
    }

    /// Whether the limits of a key allow a transfer now.
    pub fn check_transfer(
        &self,
        used: KeyUse,
        amount: Credits,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let record = self.agent_state(used.agent).and_then(|state| state.key_record(used.key));
        let allowance = self.key_allowance(used, now);
        check_transfers(allowance)?;
        check_amount(record, allowance, amount)
    }
}

fn check_transfers(KeyAllowance { limits, left_today: left }: KeyAllowance) -> Result<(), Refusal> {
    match limits.transfers {
        true => Ok(()),
        false => {
            let limit = SpendingLimit::Transfers;
            Err(Refusal::OverLimit { limit, left, by_default: false })
        }
    }
}

fn check_amount(
    record: Option<&KeyRecord>,
    KeyAllowance { limits, left_today: left }: KeyAllowance,
    amount: Credits,
) -> Result<(), Refusal> {
    let by_default = record.is_none_or(|own| !own.limits.has_amounts());
    let over = |limit| Err(Refusal::OverLimit { limit, left, by_default });
    match (limits.per_job, limits.per_day) {
        (Some(per_job), _) if amount > per_job => over(SpendingLimit::PerJob(per_job)),
        (_, Some(per_day)) if left.is_some_and(|left| amount > left) => {
            over(SpendingLimit::PerDay(per_day))
        }
        _ => Ok(()),
    }
}

/// The limits of a record, or the default ones if it does not limit amounts, and what is left.
fn allowance(
    record: Option<&KeyRecord>,
    default: Option<KeyLimits>,
    now: Timestamp,
) -> KeyAllowance {
    let own = record.map_or(KeyLimits::NONE, |record| record.limits);
    let spent = record.map(|record| record.spending.on_day_of(now)).unwrap_or_default();
    let (limits, spent) = match default {
        Some(default) if !own.has_amounts() => {
            (KeyLimits { transfers: own.transfers, ..default }, spent.by_default)
        }
        _ => (own, spent.amount),
    };
    let left = |per_day: Credits| per_day.checked_pay(spent).unwrap_or(Credits::ZERO);
    KeyAllowance { limits, left_today: limits.per_day.map(left) }
}

/// Refuses what a limited key must not do: with another key, or as another agent of its owner, it
/// would have no limits.
pub fn check_authority(draft: &Draft<'_>, used: KeyUse, command: &Command) -> Result<(), Refusal> {
    if !draft.world.is_limited_key(used.agent, used.key) {
        return Ok(());
    }
    let is_allowed = match command {
        // Its own agent may change what it registered.
        Command::Register(order) => {
            let known = draft.world.agent_by_alias(order.home, &order.native_id);
            let known = known.and_then(|id| draft.agent(id));
            let is_own = known.is_some_and(|known| known.id == used.agent && known.active);
            // The answer to a registration with an endpoint has the webhook secret.
            is_own && !order.rotate_key && order.liveness != Liveness::ByEndpoint
        }
        Command::Remove { .. }
        | Command::IssueKey { .. }
        | Command::IssueLimitedKey(_)
        | Command::RevokeKeys { .. }
        | Command::RevokeKey { .. }
        | Command::RenewSecret { .. } => false,
        _ => true,
    };
    if is_allowed { Ok(()) } else { Err(Refusal::LimitedKey) }
}

/// The key a new hold of an agent's job counts against; `None` if nothing is counted for it.
pub fn spending_key(draft: &Draft<'_>, agent: AgentId) -> Option<SpendingKey> {
    let used = KeyUse { agent, ..draft.key_use? };
    // With a key that was revoked meanwhile, or is another agent's, nothing can be held.
    let is_counted = ensure_valid(draft, used).is_err() || is_counted(draft, used);
    let by_default = is_by_default(draft, used);
    is_counted.then_some(SpendingKey { key: used.key, by_default, day: None })
}

/// Whether the limits of the job's key allow a hold.
pub fn check_hold(draft: &Draft<'_>, job: &Job, amount: Credits) -> Result<(), Refusal> {
    match key_of_job(job) {
        Some(used) => check(draft, used, amount),
        None => Ok(()),
    }
}

/// Counts a hold that was just made.
pub fn count_hold(draft: &mut Draft<'_>, job: &mut Job, amount: Credits) {
    let Some(used) = key_of_job(job).filter(|_| !amount.is_zero()) else { return };
    let day = count(draft, used, amount);
    if let Some(key) = &mut job.payment.key {
        key.day = Some(day);
    }
}

/// What is released of a hold counts no more, if it was held on the day that is counted.
pub fn count_release(draft: &mut Draft<'_>, job: &Job, released: Credits) {
    let day = job.payment.key.and_then(|key| key.day);
    let (Some(used), Some(day)) = (key_of_job(job), day) else { return };
    let known = record_in(draft, used).is_some_and(|known| known.spending.day == day);
    if known && !released.is_zero() {
        record_mut(draft, used.agent, used.key).uncount(day, released, used.by_default);
    }
}

/// The key that a transfer counts against, if its limits allow it.
pub fn check_transfer(
    draft: &Draft<'_>,
    from: OwnerId,
    amount: Credits,
) -> Result<Option<KeyUse>, Refusal> {
    let Some(used) = draft.key_use else { return Ok(None) };
    if draft.agent(used.agent).is_none_or(|agent| agent.owner != from) {
        return Err(Refusal::NotAuthenticated);
    }
    ensure_valid(draft, used)?;
    let allowance = allowance_in(draft, used);
    check_transfers(allowance)?;
    check(draft, used, amount)?;
    Ok(is_counted(draft, used).then_some(used))
}

/// Counts a transfer that was just made.
pub fn count_transfer(draft: &mut Draft<'_>, used: Option<KeyUse>, amount: Credits) {
    if let Some(used) = used {
        count(draft, used, amount);
    }
}

/// The key of a job, as it was used.
fn key_of_job(job: &Job) -> Option<KeyUse> {
    match (job.payment.key, &job.request.requester) {
        (Some(SpendingKey { key, by_default, .. }), Requester::Agent(agent)) => {
            Some(KeyUse { agent: *agent, key, by_default })
        }
        _ => None,
    }
}

fn check(draft: &Draft<'_>, used: KeyUse, amount: Credits) -> Result<(), Refusal> {
    if amount.is_zero() {
        return Ok(());
    }
    // The key may have been revoked since its job was requested, and its limits with it.
    ensure_valid(draft, used)?;
    check_amount(record_in(draft, used), allowance_in(draft, used), amount)
}

fn count(draft: &mut Draft<'_>, used: KeyUse, amount: Credits) -> UtcDay {
    let (now, by_default) = (draft.now, is_by_default(draft, used));
    record_mut(draft, used.agent, used.key).count(now, amount, by_default)
}

/// Whether what the key spends is counted.
fn is_counted(draft: &Draft<'_>, used: KeyUse) -> bool {
    is_by_default(draft, used) || record_in(draft, used).is_some_and(KeyRecord::is_issued)
}

/// Whether the default limits bind the key.
fn is_by_default(draft: &Draft<'_>, used: KeyUse) -> bool {
    let has_own = record_in(draft, used).is_some_and(|record| record.limits.has_amounts());
    used.by_default && !has_own && draft.world.rules.default_key_limits.has_amounts()
}

fn record_in<'d>(draft: &'d Draft<'_>, used: KeyUse) -> Option<&'d KeyRecord> {
    draft.agent_state(used.agent)?.key_record(used.key)
}

fn allowance_in(draft: &Draft<'_>, used: KeyUse) -> KeyAllowance {
    let record = record_in(draft, used);
    let default = used.by_default.then_some(draft.world.rules.default_key_limits);
    allowance(record, default, draft.now)
}

/// Refuses a key that was revoked while its command was on the way.
fn ensure_valid(draft: &Draft<'_>, used: KeyUse) -> Result<(), Refusal> {
    let mut keys = draft.world.keys_of(used.agent);
    let is_valid = keys.any(|key| key.id == used.key && key.is_valid(draft.now));
    if is_valid { Ok(()) } else { Err(Refusal::NotAuthenticated) }
}

/// The record of a key, for changing. A new one takes the place of those of keys that are gone.
fn record_mut<'d>(draft: &'d mut Draft<'_>, agent: AgentId, key: KeyId) -> &'d mut KeyRecord {
    let world = draft.world;
    let records = Arc::make_mut(draft.agent_state_mut(agent).keys.get_or_insert_default());
    if let Some(at) = records.iter().position(|record| record.key == key) {
        return &mut records[at];
    }
    records.retain(|record| world.keys_of(agent).any(|key| key.id == record.key));
    records.push(KeyRecord {
        key,
        label: None,
        limits: KeyLimits::NONE,
        issued_at: None,
        last_used: None,
        spending: DaySpending::default(),
    });
    let at = records.len() - 1;
    &mut records[at]
}

/// Issues one more key of an agent, with a label and limits.
pub fn issue(draft: &mut Draft<'_>, order: IssueLimitedKey) -> Result<Answer, Refusal> {
    let IssueLimitedKey { agent, hash, label, limits } = order;
    if draft.agent(agent).is_none_or(|agent| !agent.active) {
        return Err(Refusal::NoSuchAgent);
    }
    let now = draft.now;
    let recorded = draft.world.agent_state(agent).map_or(&[][..], |state| state.key_records());
    let is_live = |record: &&KeyRecord| {
        draft.world.keys_of(agent).any(|key| key.id == record.key && key.is_valid(now))
    };
    if recorded.iter().filter(is_live).count() >= KEY_RECORDS_MAX {
        return Err(Refusal::TooManyKeys { max: KEY_RECORDS_MAX });
    }
    let id = add_key(draft, agent, hash);
    let record = record_mut(draft, agent, id);
    (record.label, record.limits, record.issued_at) = (label, limits, Some(now));
    Ok(Answer::Key { id })
}

fn add_key(draft: &mut Draft<'_>, agent: AgentId, hash: KeyHash) -> KeyId {
    let id = draft.next.key;
    registration::issue_key(draft, Holder::Agent(agent), hash, false);
    id
}

/// Revokes one key of an agent.
pub fn revoke(draft: &mut Draft<'_>, agent: AgentId, key: KeyId) -> Result<Answer, Refusal> {
    let now = draft.now;
    let mut keys = draft.world.keys_of(agent);
    let found = keys.find(|one| one.id == key && one.is_valid(now)).ok_or(Refusal::NotFound)?;
    let ended = super::key::Key { valid_until: Some(now), ..super::key::Key::clone(found) };
    draft.put_key(ended);
    forget(draft, agent, |record| record.key == key);
    draft.add_event(Event::KeyRevoked { agent });
    Ok(Answer::Key { id: key })
}

/// Drops records of keys that were revoked.
pub fn forget(draft: &mut Draft<'_>, agent: AgentId, is_gone: impl Fn(&KeyRecord) -> bool) {
    let known = draft.agent_state(agent).map_or(&[][..], |state| state.key_records());
    if !known.iter().any(&is_gone) {
        return;
    }
    let keys = &mut draft.agent_state_mut(agent).keys;
    if let Some(records) = keys {
        Arc::make_mut(records).retain(|record| !is_gone(record));
    }
    *keys = keys.take().filter(|records| !records.is_empty());
}

/// Records that a key was used. Keys without a record have no time of their last use.
pub fn record_use(draft: &mut Draft<'_>, agent: AgentId, key: KeyId) {
    let now = draft.now;
    let known = draft.agent_state(agent).and_then(|state| state.key_record(key));
    if known.is_some_and(|known| is_use_news(known, now)) {
        record_mut(draft, agent, key).last_used = Some(now);
    }
}

/// Whether a use is worth recording.
pub fn is_use_news(known: &KeyRecord, now: Timestamp) -> bool {
    known.last_used.is_none_or(|last| now.since(last) >= LAST_USE_STEP)
}
