//! Rules: limits and time spans that decisions depend on.

use super::footprint::MemoryLimits;
use crate::agent::key_limits::KeyLimits;
use crate::confusables::Confusables;
use crate::idempotency::SavedSize;
use crate::job::progress::ProgressLimits;
use crate::money::Credits;
use crate::time::Millis;

/// Settings that decisions depend on.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long an activity keeps an agent online.
    pub presence_ttl: Millis,
    /// What binds a key without limits of its own, where the caller says so.
    pub default_key_limits: KeyLimits,
    /// What every new owner is granted.
    pub welcome_grant: Credits,
    /// Notices that may wait in one inbox; 0 for no limit.
    pub inbox_messages_max: u64,
    /// Assignments a job may have before it fails.
    pub attempts_max: u32,
    /// Failed assignments that follow each other at once, for a job that could otherwise loop for
    /// ever.
    pub assignments_before_backoff: u32,
    /// How long an agent that registered without proof may stay without any activity.
    pub probation_period: Option<Millis>,
    /// Agents one owner may have.
    pub agents_per_owner_max: usize,
    /// Unfinished jobs one agent may have requested, and the bytes of their input.
    pub open_jobs_max: usize,
    pub open_bytes_max: usize,
    /// Saved answers for repeated requests, per caller and in total.
    pub saved_per_principal: SavedSize,
    pub saved_total: SavedSize,
    /// Open invitations of one requester: agents invited to make an offer that have not answered.
    pub invitations_max: usize,
    /// How long an agent that confirms jobs itself may take to answer.
    pub acceptance_timeout: Millis,
    /// How long an approval may take.
    pub approval_timeout: Millis,
    /// How long a requester may take to answer a worker's question.
    pub answer_timeout: Millis,
    /// What may be reported and asked about one job before its result.
    pub progress: ProgressLimits,
    /// How long, at least, a worker must have had a job before a missing response counts against
    /// it.
    pub grace_period: Millis,
    /// Which names are confusable.
    pub confusables: Confusables,
    /// How much memory rows may take.
    pub memory: MemoryLimits,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            presence_ttl: Millis::seconds(90),
            default_key_limits: KeyLimits::NONE,
            welcome_grant: Credits::ZERO,
            inbox_messages_max: 10_000,
            attempts_max: 16,
            assignments_before_backoff: 8,
            probation_period: None,
            agents_per_owner_max: 100_000,
            open_jobs_max: 10_000,
            open_bytes_max: 32 << 20,
            saved_per_principal: SavedSize { answers: 50_000, bytes: 32 << 20 },
            saved_total: SavedSize { answers: 500_000, bytes: 512 << 20 },
            invitations_max: 10_000,
            acceptance_timeout: Millis::seconds(9),
            approval_timeout: Millis::hours(1),
            answer_timeout: Millis::hours(1),
            progress: ProgressLimits::default(),
            grace_period: Millis::seconds(30),
            confusables: Confusables::default(),
            memory: MemoryLimits::default(),
        }
    }
}
