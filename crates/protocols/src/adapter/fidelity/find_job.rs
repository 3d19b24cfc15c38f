//! Finds a job by any id that one of its parties knows it by.

use std::sync::Arc;

use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_engine::Failure;
use uuid::Uuid;

use crate::adapter::HubContext;

/// The job with this public id, or with this id in any protocol as seen by `by`, if `by` is a party
/// of the job.
pub async fn find_job(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Option<Arc<Job>>, Failure> {
    let is_party = |job: &Arc<Job>| job.is_requested_by(by) || job.worker() == Some(by);
    if let Ok(uuid) = id.parse::<uuid::fmt::Hyphenated>().map(Uuid::from) {
        let job = context.engine.find_job(&JobRef::Uuid(uuid)).await?;
        if let Some(job) = job.filter(is_party) {
            return Ok(Some(job));
        }
    }
    for protocol in &context.protocols {
        let job = protocol.clone().job_messages(context).find_job(by, id).await?;
        if let Some(job) = job.filter(is_party) {
            return Ok(Some(job));
        }
    }
    Ok(None)
}
