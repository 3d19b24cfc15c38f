//! Deliveries to agents: jobs to their endpoint, results to a requester's callback.

use rialto_core::command::{JobRef, WorkerReport};
use rialto_core::job::Job;
use rialto_core::notice::{Delivery, NoticeKind};
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{
    AttemptResult, AttemptStatus, DeliveryEncoder, JOB_RESPONSE_BYTES_MAX, OutboundRequest,
    RESPONSE_BYTES_MAX,
};

use super::RegistryContext;
use super::translate::{self, UnusableAnswer};
use super::wire::ResultPost;
use crate::adapter::delivery_result::is_refusal_status;

/// Encodes deliveries for agents of this protocol.
pub struct RegistryEncoder {
    pub context: RegistryContext,
}

impl DeliveryEncoder for RegistryEncoder {
    fn encode(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        let job = job?;
        match push.kind {
            NoticeKind::Assigned { epoch, .. } => {
                let still_theirs = job.epoch == epoch && !job.state.is_final();
                let body =
                    engine.with_world(|world| translate::forward_job(&self.context, world, job));
                still_theirs.then(|| OutboundRequest {
                    url: jobs_url(&push.url),
                    body: serde_json::to_vec(&body).unwrap_or_default().into(),
                    id: format!("{}-{epoch}", job.uuid),
                    headers: Vec::new(),
                    response_max: JOB_RESPONSE_BYTES_MAX,
                })
            }
            NoticeKind::Ended { .. } => {
                let body = engine
                    .with_world(|world| serde_json::to_vec(&translate::result_body(world, job)));
                Some(OutboundRequest {
                    url: push.url.clone(),
                    body: body.unwrap_or_default().into(),
                    id: format!("{}-ended", job.uuid),
                    headers: Vec::new(),
                    response_max: RESPONSE_BYTES_MAX,
                })
            }
            _ => None,
        }
    }

    fn interpret_response(
        &self,
        _engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult {
        match (&push.kind, job) {
            (NoticeKind::Assigned { epoch, .. }, Some(job)) => {
                interpret_job_response(job, *epoch, answer)
            }
            _ => interpret_callback_response(answer),
        }
    }
}

/// A worker's endpoint, with `/jobs` exactly once.
pub fn jobs_url(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with("/jobs") { base.to_owned() } else { format!("{base}/jobs") }
}

/// Reads a worker's answer to a job. The job decides what follows; the delivery itself ends either
/// way.
fn interpret_job_response(
    job: &Job,
    epoch: u32,
    answer: &Result<HttpResponse, SendError>,
) -> AttemptResult {
    let delivered = AttemptStatus::Delivered { reply: None };
    let Some(worker) = job.worker() else {
        return AttemptResult { status: delivered, report: None };
    };
    let named = JobRef::Id(job.id);
    let unusable = |silent, why| UnusableAnswer { silent, why };
    let (status, report) = match answer {
        Ok(answer) => {
            let report = match read_result(job, answer) {
                Ok(result) => translate::report_result(result, named, worker),
                Err(why) => {
                    let answer = unusable(is_refusal_status(answer.status), why);
                    translate::report_unusable_answer(named, worker, answer)
                }
            };
            // Whatever this job's result, an endpoint that answers 410 gets no further deliveries.
            let is_gone = answer.status == 410;
            (if is_gone { AttemptStatus::EndpointGone } else { delivered }, Some(report))
        }
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            let report = WorkerReport::Unreachable { job: job.id, epoch };
            (AttemptStatus::Obsolete, Some(report))
        }
        // The worker has the job and may still answer by its callback URL until the lease ends.
        Err(SendError::TimedOut) => (delivered, None),
        Err(SendError::InvalidResponse(_)) => {
            let answer = unusable(true, "the agent's answer could not be read".into());
            (delivered, Some(translate::report_unusable_answer(named, worker, answer)))
        }
    };
    AttemptResult { status, report }
}

/// The result in an answer, or why there is none.
fn read_result(job: &Job, answer: &HttpResponse) -> Result<ResultPost, String> {
    // Statuses below 500 may carry a result: some agents report their own failures with 4xx. A 4xx
    // without a result refuses the request.
    if answer.status >= 500 || (300..400).contains(&answer.status) {
        return Err(format!("the agent answered HTTP {}", answer.status));
    }
    let result = ResultPost::read(&answer.body)
        .map_err(|malformed| format!("the agent's response is not a valid result: {malformed}"))?;
    let own = [job.request.foreign_id.as_str(), &job.uuid.to_string()];
    match result.job_id {
        Some(id) if !own.contains(&id.to_string().as_str()) => {
            Err("the agent's response names a different job".to_owned())
        }
        _ => Ok(result),
    }
}

/// A callback is delivered when it is answered 2xx.
fn interpret_callback_response(answer: &Result<HttpResponse, SendError>) -> AttemptResult {
    let arrived = match answer {
        Ok(answer) if (200..300).contains(&answer.status) => {
            AttemptStatus::Delivered { reply: None }
        }
        Ok(answer) if answer.status == 410 => AttemptStatus::EndpointGone,
        Ok(answer) => AttemptStatus::Failed(format!("answered HTTP {}", answer.status)),
        Err(SendError::TimedOut) => AttemptStatus::Failed("no answer in time".to_owned()),
        Err(SendError::InvalidResponse(_)) => {
            AttemptStatus::Failed("the answer could not be read".to_owned())
        }
        // One text for both errors, so that callers cannot probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            AttemptStatus::Failed("could not connect".to_owned())
        }
    };
    AttemptResult { status: arrived, report: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_path_is_appended_once() {
        assert_eq!(jobs_url("http://a:8010"), "http://a:8010/jobs");
        assert_eq!(jobs_url("https://a/jobs"), "https://a/jobs");
        assert_eq!(jobs_url("https://a/x/"), "https://a/x/jobs");
    }
}
