//! Runs one step of a job: from a REQUEST to an offer or a result, or from an ACCEPT to a result.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::thread::{State, Thread};

use crate::agora::agent::Agent;
use crate::agora::handler::{Broken, Handler, Job, Progress, Terms};
use crate::call::CallError;

/// How long a free offer is valid.
const FREE_TTL: Duration = Duration::from_secs(60);

/// How a step ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// Nothing is left to do.
    Finished,
    /// An offer was made that is valid for this long.
    Offered { offer_id: String, ttl: Duration },
    /// The answer could not be sent.
    Unsent(CallError),
}

/// Answers a REQUEST. One from before the start of this program may already be answered.
pub(super) async fn answer<H: Handler>(
    agent: Agent,
    handler: Arc<H>,
    job: Job,
    from_before: bool,
) -> Ended {
    if from_before
        && let Ok(thread) = agent.thread(&job.request_id).await
        && let Some(thread) = thread.of(&job.requester.did())
        && let Some(known) = known(&thread, agent.identity().did())
    {
        return match known {
            Known::Accepted => work(agent, handler, job).await,
            Known::Offered(offer_id) => Ended::Offered { offer_id, ttl: FREE_TTL },
            Known::Over => Ended::Finished,
        };
    }
    let offer = match handler.terms(&job).await {
        Terms::Work if job.direct => return work(agent, handler, job).await,
        Terms::Work => (Credits::from_micros(0), FREE_TTL, Duration::ZERO),
        Terms::Offer { cost, ttl, eta } => (cost, ttl, eta),
        Terms::Decline(why) => return fail(&agent, &job, why).await,
    };
    let (cost, ttl, eta) = offer;
    let sent = agent.offer(job.requester, &job.request_id, cost, millis(ttl), millis(eta)).await;
    match sent {
        Ok(offer_id) => Ended::Offered { offer_id, ttl },
        Err(error) => Ended::Unsent(error),
    }
}

/// Does the work and delivers it.
pub(super) async fn work<H: Handler>(agent: Agent, handler: Arc<H>, job: Job) -> Ended {
    let progress = Progress::to(&agent, &job);
    let sent = match handler.work(job.clone(), progress).await {
        Ok(data) => agent.result(job.requester, &job.request_id, &data).await,
        Err(why) => return fail(&agent, &job, why).await,
    };
    match sent {
        Ok(_) => Ended::Finished,
        // The handler's output is not an object: report that to the requester as a failure.
        Err(CallError::Refused { status: 400, code, message, .. }) if code.is_empty() => {
            let why = Broken::new(rialto_protocols::agora::Code::Internal, message);
            fail(&agent, &job, why).await
        }
        Err(error) => Ended::Unsent(error),
    }
}

/// Reports that the work will not be done.
pub(super) async fn fail(agent: &Agent, job: &Job, why: Broken) -> Ended {
    let (to, id) = (Some(job.requester), Some(job.request_id.as_str()));
    match agent.error(to, id, why.code, &why.message).await {
        Ok(_) => Ended::Finished,
        Err(error) => Ended::Unsent(error),
    }
}

/// The progress of a request from before the start.
#[derive(Debug, PartialEq, Eq)]
enum Known {
    Accepted,
    Offered(String),
    Over,
}

fn known(thread: &Thread, me: &str) -> Option<Known> {
    let mine = || thread.offers.iter().rfind(|offer| offer.provider == me);
    match thread.state {
        State::Pending => None,
        State::Negotiating => mine().map(|offer| Known::Offered(offer.offer_id.clone())),
        State::Processing if thread.provider.as_deref() == Some(me) => Some(Known::Accepted),
        State::Processing | State::Completed | State::Failed => Some(Known::Over),
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
            serde_json::from_str::<Thread>(&text).expect("a thread")
        };
        for (state, provider, wanted) in [
            ("PENDING", "null", None),
            ("NEGOTIATING", "null", Some(Known::Offered("o-1".to_owned()))),
            ("PROCESSING", "\"me\"", Some(Known::Accepted)),
            ("PROCESSING", "\"you\"", Some(Known::Over)),
            ("COMPLETED", "\"me\"", Some(Known::Over)),
            ("FAILED", "\"me\"", Some(Known::Over)),
        ] {
            assert_eq!(known(&thread(state, provider), "me"), wanted, "{state} {provider}");
        }
    }
}
