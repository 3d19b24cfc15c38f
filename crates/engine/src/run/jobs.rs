//! Reading jobs by any of their ids, live or finished, and waiting for their end.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::alias::{Digest, Target, claim};
use rialto_core::command::JobRef;
use rialto_core::id::JobId;
use rialto_core::job::{Job, State};

use super::{Engine, Failure};
use crate::store::{Key, Row};

impl Engine {
    /// A job by our id, live or finished.
    pub async fn job(&self, id: JobId) -> Result<Option<Arc<Job>>, Failure> {
        if let Some(job) = self.look(|world| world.job(id).cloned()) {
            return Ok(Some(job));
        }
        Ok(match self.row(Key::Job(id)).await? {
            Some(Row::Job(job)) => Some(job),
            _ => None,
        })
    }

    /// A job by any id the caller knows.
    pub async fn find_job(&self, wanted: &JobRef) -> Result<Option<Arc<Job>>, Failure> {
        let digest = match wanted {
            JobRef::Id(id) => return self.job(*id).await,
            JobRef::Uuid(uuid) => {
                if let Some(job) = self.look(|world| world.job_by_uuid(*uuid).cloned()) {
                    return Ok(Some(job));
                }
                claim::job_uuid(*uuid)
            }
            JobRef::Foreign { origin, id } => {
                if let Some(job) = self.look(|world| world.job_by_name(*origin, id).cloned()) {
                    return Ok(Some(job));
                }
                claim::job(*origin, id)
            }
        };
        let Some(Target::Job(id)) = self.claim(digest).await? else { return Ok(None) };
        Ok(self.job(id).await?.filter(|job| job.state != State::Withdrawn))
    }

    /// What an id was used for, if anything.
    pub async fn claim(&self, digest: Digest) -> Result<Option<Target>, Failure> {
        Ok(match self.row(Key::Claim(digest)).await? {
            Some(Row::Claim(found)) => Some(found.target),
            _ => None,
        })
    }

    /// Waits until the job has ended or is known to take longer, at most this long. Returns the job
    /// as it then is.
    pub async fn ended(&self, id: JobId, at_most: Duration) -> Result<Option<Arc<Job>>, Failure> {
        let end = self.inner.wake.job(id);
        // Subscribed before the read, so an end in between is not missed.
        let live = self.look(|world| world.job(id).cloned());
        let told = match &live {
            Some(job) if !job.pending => tokio::time::timeout(at_most, end).await.ok(),
            _ => {
                drop(end);
                None
            }
        };
        if let Some(Ok(job)) = told {
            return Ok(Some(job));
        }
        self.inner.wake.nobody_waits(id);
        Ok(self.job(id).await?.or(live))
    }

    /// Waits until the job has ended, even if it is known to take longer, at most this long.
    /// Returns the job as it then is.
    pub async fn over(&self, id: JobId, at_most: Duration) -> Result<Option<Arc<Job>>, Failure> {
        let until = tokio::time::Instant::now() + at_most;
        loop {
            let end = self.inner.wake.job(id);
            // Subscribed before the read, so an end in between is not missed.
            let live = self.look(|world| world.job(id).cloned());
            if live.is_none_or(|job| job.state.is_final()) {
                break;
            }
            match tokio::time::timeout_at(until, end).await {
                Ok(Ok(job)) if job.state.is_final() => return Ok(Some(job)),
                // It takes longer, and this caller waits for the end.
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        self.inner.wake.nobody_waits(id);
        self.job(id).await
    }
}
