//! Runs one step of a job: from a REQUEST to an offer or a result, or from an ACCEPT to a result.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::wire::responses::RequestView;
use rialto_protocols::agora::wire::status::RequestState;

use crate::agora::agent::Agent;
use crate::agora::handler::{Handler, Job, Progress, Terms, WorkError};
use crate::call::CallError;

/// How long a free offer is valid.
const FREE_TTL: Duration = Duration::from_secs(60);

/// How a step ended.
#[derive(Debug)]
pub(super) enum RunOutcome {
    /// Nothing is left to do.
    Finished,
    /// An offer was made that is valid for this long.
    Offered { offer_id: String, ttl: Duration },
    /// The answer could not be sent.
    NotSent(CallError),
}

/// Answers a REQUEST. One from before the start of this program may already be answered.
pub(super) async fn answer_request<H: Handler>(
    agent: Agent,
    handler: Arc<H>,
    job: Job,
    from_before: bool,
) -> RunOutcome {
    if from_before
        && let Ok(thread) = agent.thread(&job.request_id).await
        && let Some(thread) = thread.for_requester(&job.requester.did())
        && let Some(known) = request_progress(&thread, agent.identity().did())
    {
        return match known {
            RequestProgress::Accepted => run_job(agent, handler, job).await,
            RequestProgress::Offered(offer_id) => RunOutcome::Offered { offer_id, ttl: FREE_TTL },
            RequestProgress::Finished => RunOutcome::Finished,
        };
    }
    let offer = match handler.terms(&job).await {
        Terms::Work if job.may_skip_offer => return run_job(agent, handler, job).await,
        Terms::Work => (Credits::from_micros(0), FREE_TTL, Duration::ZERO),
        Terms::Offer { cost, ttl, eta } => (cost, ttl, eta),
        Terms::Decline(why) => return send_failure(&agent, &job, why).await,
    };
    let (cost, ttl, eta) = offer;
    let sent =
        agent.send_offer(job.requester, &job.request_id, cost, millis(ttl), millis(eta)).await;
    match sent {
        Ok(offer_id) => RunOutcome::Offered { offer_id, ttl },
        Err(error) => RunOutcome::NotSent(error),
    }
}

/// Does the work and delivers it.
pub(super) async fn run_job<H: Handler>(agent: Agent, handler: Arc<H>, job: Job) -> RunOutcome {
    let progress = Progress::new(&agent, &job);
    let sent = match handler.work(job.clone(), progress).await {
        Ok(data) => agent.send_result(job.requester, &job.request_id, &data).await,
        Err(why) => return send_failure(&agent, &job, why).await,
    };
    match sent {
        Ok(_) => RunOutcome::Finished,
        // The handler's output is not an object: report that to the requester as a failure.
        Err(CallError::Refused { status: 400, code, message, .. }) if code.is_empty() => {
            let why = WorkError::new(rialto_protocols::agora::Code::Internal, message);
            send_failure(&agent, &job, why).await
        }
        Err(error) => RunOutcome::NotSent(error),
    }
}

/// Reports that the work will not be done.
pub(super) async fn send_failure(agent: &Agent, job: &Job, why: WorkError) -> RunOutcome {
    let (to, id) = (Some(job.requester), Some(job.request_id.as_str()));
    match agent.send_error(to, id, why.code, &why.message).await {
        Ok(_) => RunOutcome::Finished,
        Err(error) => RunOutcome::NotSent(error),
    }
}

/// The progress of a request from before the start.
#[derive(Debug, PartialEq, Eq)]
enum RequestProgress {
    Accepted,
    Offered(String),
    Finished,
}

fn request_progress(thread: &RequestView, me: &str) -> Option<RequestProgress> {
    let mine = || thread.offers.iter().rfind(|offer| offer.provider == me);
    match thread.state {
        RequestState::Pending => None,
        RequestState::Negotiating => {
            mine().map(|offer| RequestProgress::Offered(offer.offer_id.clone()))
        }
        RequestState::Processing if thread.provider.as_deref() == Some(me) => {
            Some(RequestProgress::Accepted)
        }
        RequestState::Processing | RequestState::Completed | RequestState::Failed => {
            Some(RequestProgress::Finished)
        }
    }
}

fn millis(duration: Duration) -> Millis {
    Millis(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_came_to_before_decides_what_is_done_now() {
        let thread = |state: &str, provider: &str| {
            let offers = r#"[{"offer_id":"o-1","provider":"me","cost":1,"eta":0,"expires_at":""},
                {"offer_id":"o-2","provider":"you","cost":1,"eta":0,"expires_at":""}]"#;
            let text = format!(
                r#"{{"request_id":"r","state":"{state}","provider":{provider},"offers":{offers},"deadline":null}}"#
            );
            serde_json::from_str::<RequestView>(&text).expect("a thread")
        };
        for (state, provider, wanted) in [
            ("PENDING", "null", None),
            ("NEGOTIATING", "null", Some(RequestProgress::Offered("o-1".to_owned()))),
            ("PROCESSING", "\"me\"", Some(RequestProgress::Accepted)),
            ("PROCESSING", "\"you\"", Some(RequestProgress::Finished)),
            ("COMPLETED", "\"me\"", Some(RequestProgress::Finished)),
            ("FAILED", "\"me\"", Some(RequestProgress::Finished)),
        ] {
            assert_eq!(
                request_progress(&thread(state, provider), "me"),
                wanted,
                "{state} {provider}"
            );
        }
    }
}
