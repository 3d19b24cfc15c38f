//! Reports the outcome of a job to the hub, with retries.

use std::time::Duration;

use reqwest::Method;
use rialto_protocols::kit::raw_json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::backoff;
use super::event::{AgentEvent, EventCallback};
use crate::agent::outcome::Outcome;
use crate::agent::record::{AssignmentRef, FinishedJob};
use crate::call::{CallError, Hub};

/// The longest wait a hub can ask for, so that a wrong value does not keep an agent away.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct ResultRequest<'a> {
    epoch: u32,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    took_ms: u64,
}

#[derive(Serialize)]
struct DeclineRequest<'a> {
    epoch: u32,
    reason: &'a str,
}

/// The hub's response.
#[derive(Clone, Debug, Default, Deserialize)]
struct ResultResponse {
    paid: Option<Box<RawValue>>,
    #[serde(default)]
    repeated: bool,
}

/// The outcome that was reported, and the hub's response to it.
#[derive(Debug)]
pub(super) struct ReportReceipt {
    pub(super) outcome: Outcome,
    /// As decimal text.
    pub(super) paid: Option<String>,
    /// The hub already had this result.
    pub(super) repeated: bool,
}

/// Reports an outcome to the hub, with retries.
pub(super) async fn report_result(
    hub: &Hub,
    turn: &AssignmentRef,
    ended: &FinishedJob,
    tell: &EventCallback,
) -> Result<ReportReceipt, CallError> {
    match (&ended.outcome, report_with_retry(hub, turn, ended, tell).await) {
        // The requester waits, so an unusable output is reported as a failure.
        (Outcome::Done(_), Err(CallError::Refused { status: 400 | 413 | 422, message, .. })) => {
            let outcome = Outcome::Failed(format!("the hub did not accept the output: {message}"));
            report_with_retry(hub, turn, &FinishedJob { outcome, ..ended.clone() }, tell).await
        }
        (_, heard) => heard,
    }
}

async fn report_with_retry(
    hub: &Hub,
    turn: &AssignmentRef,
    ended: &FinishedJob,
    tell: &EventCallback,
) -> Result<ReportReceipt, CallError> {
    let mut failures = 0;
    loop {
        match report_once(hub, turn, ended).await {
            Err(error) if is_retryable(&error) => {
                failures += 1;
                tell(AgentEvent::from_error("cannot report a result", &error));
                sleep(retry_delay(&error, failures)).await;
            }
            heard => return heard,
        }
    }
}

/// Reports an outcome to the hub, once.
pub(super) async fn report_once(
    hub: &Hub,
    turn: &AssignmentRef,
    ended: &FinishedJob,
) -> Result<ReportReceipt, CallError> {
    let (verb, body) = request_body(turn, ended)?;
    let path = format!("/v1/jobs/{}/{verb}", turn.id);
    let (_, text) = hub.call_text(Method::POST, &path, Some(body)).await?;
    let answer = serde_json::from_str::<ResultResponse>(&text).unwrap_or_default();
    let paid = answer.paid.map(|paid| paid.get().to_owned());
    Ok(ReportReceipt { outcome: ended.outcome.clone(), paid, repeated: answer.repeated })
}

fn request_body(
    turn: &AssignmentRef,
    ended: &FinishedJob,
) -> Result<(&'static str, String), CallError> {
    let (epoch, took_ms) = (turn.epoch, ended.took_ms);
    let failed = |message, cause| {
        let cause = Some(cause);
        ResultRequest { epoch, ok: false, output: None, message: Some(message), cause, took_ms }
    };
    let result = match &ended.outcome {
        Outcome::Declined(reason) => {
            let body = serde_json::to_string(&DeclineRequest { epoch, reason });
            return Ok(("decline", body.map_err(unwritable)?));
        }
        Outcome::Done(output) => {
            let output = Some(raw_json::verbatim(output));
            ResultRequest { epoch, ok: true, output, message: None, cause: None, took_ms }
        }
        Outcome::Failed(why) => failed(why, "execution"),
        Outcome::InvalidInput(why) => failed(why, "invalid_input"),
    };
    Ok(("result", serde_json::to_string(&result).map_err(unwritable)?))
}

fn unwritable(error: serde_json::Error) -> CallError {
    CallError::invalid(error.to_string(), None)
}

/// Whether a retry may succeed.
pub(in crate::agent) fn is_retryable(error: &CallError) -> bool {
    match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => true,
        CallError::Refused { status, retryable, .. } => {
            *retryable || *status == 429 || *status >= 500 || error.is_suspended()
        }
        CallError::Unreadable(_) => false,
    }
}

/// The delay before the next attempt: what the hub asks for, within limits, or a growing backoff.
pub(in crate::agent) fn retry_delay(error: &CallError, failures: u32) -> Duration {
    match error {
        CallError::Refused { retry_after: Some(after), .. } => (*after).min(RETRY_DELAY_MAX),
        _ => backoff(failures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_may_ask_for_patience_within_reason() {
        let told = |seconds: u64| CallError::Refused {
            status: 429,
            code: "rate_limited".to_owned(),
            message: String::new(),
            retryable: true,
            hint: None,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(retry_delay(&told(7), 1), Duration::from_secs(7));
        assert_eq!(retry_delay(&told(u64::MAX), 1), RETRY_DELAY_MAX);
    }
}
