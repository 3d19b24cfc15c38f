//! Reading jobs by any of their ids, live or finished, and waiting for their end.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::alias::{ClaimTarget, Digest, claim};
use rialto_core::command::JobRef;
use rialto_core::id::JobId;
use rialto_core::job::{Job, State};

use super::{Engine, Failure};
use crate::store::{Row, RowKey};

impl Engine {
    /// A job by our id, live or finished.
    pub async fn load_job(&self, id: JobId) -> Result<Option<Arc<Job>>, Failure> {
        if let Some(job) = self.with_world(|world| world.job(id).cloned()) {
            return Ok(Some(job));
        }
        Ok(match self.load_row(RowKey::Job(id)).await? {
            Some(Row::Job(job)) => Some(job),
            _ => None,
        })
    }

    /// A job by any id the caller knows.
    pub async fn find_job(&self, wanted: &JobRef) -> Result<Option<Arc<Job>>, Failure> {
        let digest = match wanted {
            JobRef::Id(id) => return self.load_job(*id).await,
            JobRef::Uuid(uuid) => {
                if let Some(job) = self.with_world(|world| world.job_by_uuid(*uuid).cloned()) {
                    return Ok(Some(job));
                }
                claim::job_uuid(*uuid)
            }
            JobRef::Foreign { origin, id } => {
                if let Some(job) = self.with_world(|world| world.job_by_name(*origin, id).cloned())
                {
                    return Ok(Some(job));
                }
                claim::job(*origin, id)
            }
            JobRef::Named(_) => return Ok(None),
        };
        let Some(ClaimTarget::Job(id)) = self.claim_target(digest).await? else { return Ok(None) };
        Ok(self.load_job(id).await?.filter(|job| job.state != State::Withdrawn))
    }

    /// What an id was used for, if anything.
    pub async fn claim_target(&self, digest: Digest) -> Result<Option<ClaimTarget>, Failure> {
        Ok(match self.load_row(RowKey::Claim(digest)).await? {
            Some(Row::Claim(found)) => Some(found.target),
            _ => None,
        })
    }

    /// Waits until the job has ended or is known to take longer, at most this long. Returns the job
    /// as it then is. Ends early when this node ceases to be current.
    pub async fn wait_until_ended_or_pending(
        &self,
        id: JobId,
        at_most: Duration,
    ) -> Result<Option<Arc<Job>>, Failure> {
        let end = self.inner.notifier.subscribe_job(id);
        // Subscribed before the read, so an end in between is not missed.
        let live = self.with_world(|world| world.job(id).cloned());
        let told = match &live {
            Some(job) if !job.pending => tokio::select! {
                told = tokio::time::timeout(at_most, end) => told.ok(),
                () = self.until_stale() => None,
            },
            _ => {
                drop(end);
                None
            }
        };
        if let Some(Ok(job)) = told {
            return Ok(Some(job));
        }
        self.inner.notifier.drop_closed_waiters(id);
        Ok(self.load_job(id).await?.or(live))
    }

    /// Waits until the job has ended or waits for its requester's answer, even if it is known to take
    /// longer, at most this long. Returns the job as it then is. Ends early when this node ceases to
    /// be current.
    pub async fn wait_until_ended(
        &self,
        id: JobId,
        at_most: Duration,
    ) -> Result<Option<Arc<Job>>, Failure> {
        let until = tokio::time::Instant::now() + at_most;
        loop {
            let end = self.inner.notifier.subscribe_job(id);
            // Subscribed before the read, so an end in between is not missed.
            let live = self.with_world(|world| world.job(id).cloned());
            if live.is_none_or(|job| is_over(&job)) {
                break;
            }
            let told = tokio::select! {
                told = tokio::time::timeout_at(until, end) => told,
                () = self.until_stale() => break,
            };
            match told {
                Ok(Ok(job)) if is_over(&job) => return Ok(Some(job)),
                // It takes longer, and this caller waits for the end.
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.inner.notifier.drop_closed_waiters(id);
        self.load_job(id).await
    }
}

/// Whether waiting longer does not help.
fn is_over(job: &Job) -> bool {
    job.state.is_final() || job.open_question().is_some()
}
