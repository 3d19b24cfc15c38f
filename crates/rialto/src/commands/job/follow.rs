//! Follows a job to its end, across hub outages.

use std::future::Future;
use std::time::Duration;

use rialto_client::{CallError, Hub, Method, RetryPolicy};
use tokio::time::{Instant, sleep, timeout_at};

use super::super::error::CliError;
use super::super::uri::encode_part;
use super::super::views::parse_json;
use super::progress::Progress;
use super::view::JobView;

/// How long the hub holds each request, in seconds: when only the end matters,
const WAIT_S: u64 = 30;
/// and when progress is shown.
const PROGRESS_WAIT_S: u64 = 1;
/// Minimum time between requests, for a hub that answers at once although asked to wait.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(250);
/// Attempts at a hub that has never answered: it may be the wrong one.
const TRIES_MAX: u32 = 4;
/// Retry policy for a hub that is temporarily unreachable.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(250),
    max_delay: Duration::from_secs(10),
};

/// How following a job ended.
pub enum FollowOutcome {
    /// The job has ended: the hub's document, and its parsed form.
    Ended(String, Box<JobView>),
    /// The time limit passed. Holds the last error, if the last request failed.
    TimedOut(Option<CallError>),
}

/// The job to follow.
pub struct FollowOptions<'a> {
    pub id: &'a str,
    pub until: Option<Instant>,
    /// Whether the hub has answered before: then an outage is expected to end.
    pub hub_is_known: bool,
}

/// Polls until the job ends or the time limit passes. Permanent errors end it at once.
pub async fn follow_job(
    hub: &Hub,
    wanted: &FollowOptions<'_>,
    mut progress: Option<&mut Progress>,
) -> Result<FollowOutcome, CliError> {
    let wait = if progress.is_some() { PROGRESS_WAIT_S } else { WAIT_S };
    let path = format!("/v1/jobs/{}?wait={wait}", encode_part(wanted.id));
    let (until, mut known) = (wanted.until, wanted.hub_is_known);
    let (mut failures, mut last) = (0, None);
    loop {
        let asked = Instant::now();
        let Some(answer) = within(until, hub.call_text(Method::GET, &path, None)).await else {
            return Ok(FollowOutcome::TimedOut(last));
        };
        let pause = match answer {
            Ok((_, text)) => {
                (failures, last, known) = (0, None, true);
                let job: JobView = parse_json(&text)?;
                if let Some(progress) = progress.as_deref_mut() {
                    progress.update(hub, &job).await;
                }
                if job.has_ended() {
                    return Ok(FollowOutcome::Ended(text, Box::new(job)));
                }
                POLL_INTERVAL_MIN.saturating_sub(asked.elapsed())
            }
            Err(error) => {
                failures += 1;
                let pause = RETRY.delay_after(&error, failures);
                let Some(pause) = pause.filter(|_| known || failures < TRIES_MAX) else {
                    return Err(super::job_error(error, super::HINT_OWN));
                };
                report_missed(progress.as_deref_mut(), &error);
                last = Some(error);
                pause
            }
        };
        if within(until, sleep(pause)).await.is_none() {
            return Ok(FollowOutcome::TimedOut(last));
        }
    }
}

fn report_missed(progress: Option<&mut Progress>, error: &CallError) {
    if let Some(progress) = progress {
        progress.hub_unavailable(error);
    }
}

/// Waits for a future until a time limit.
async fn within<T>(until: Option<Instant>, what: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, what).await.ok(),
        None => Some(what.await),
    }
}
