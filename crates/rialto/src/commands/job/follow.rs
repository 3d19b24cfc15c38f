//! Follows a job to its end, across hub outages.

use std::future::Future;
use std::time::Duration;

use rialto_client::{CallError, Hub, Method, Retry};
use tokio::time::{Instant, sleep, timeout_at};

use super::super::error::Trouble;
use super::super::uri::part;
use super::super::views::read;
use super::progress::Progress;
use super::view::Job;

/// How long the hub holds each request, in seconds: when only the end matters,
const WAIT_S: u64 = 30;
/// and when progress is shown.
const LOOK_S: u64 = 1;
/// Minimum time between requests, for a hub that answers at once although asked to wait.
const BREATH: Duration = Duration::from_millis(250);
/// Attempts at a hub that has never answered: it may be the wrong one.
const TRIES_MAX: u32 = 4;
/// Retry policy for a hub that is temporarily unreachable.
const PATIENCE: Retry = Retry {
    tries_max: u32::MAX,
    first: Duration::from_millis(250),
    longest: Duration::from_secs(10),
};

/// How following a job ended.
pub enum Followed {
    /// The job has ended: the hub's document, and its parsed form.
    Over(String, Box<Job>),
    /// The time limit passed. Holds the last error, if the last request failed.
    TimeOver(Option<CallError>),
}

/// The job to follow.
pub struct Wanted<'a> {
    pub id: &'a str,
    pub until: Option<Instant>,
    /// Whether the hub has answered before: then an outage is expected to end.
    pub hub_is_known: bool,
}

/// Polls until the job ends or the time limit passes. Permanent errors end it at once.
pub async fn follow(
    hub: &Hub,
    wanted: &Wanted<'_>,
    mut progress: Option<&mut Progress>,
) -> Result<Followed, Trouble> {
    let wait = if progress.is_some() { LOOK_S } else { WAIT_S };
    let path = format!("/v1/jobs/{}?wait={wait}", part(wanted.id));
    let (until, mut known) = (wanted.until, wanted.hub_is_known);
    let (mut failures, mut last) = (0, None);
    loop {
        let asked = Instant::now();
        let Some(answer) = within(until, hub.call_text(Method::GET, &path, None)).await else {
            return Ok(Followed::TimeOver(last));
        };
        let pause = match answer {
            Ok((_, text)) => {
                (failures, last, known) = (0, None, true);
                let job: Job = read(&text)?;
                if let Some(progress) = progress.as_deref_mut() {
                    progress.saw(hub, &job).await;
                }
                if job.is_over() {
                    return Ok(Followed::Over(text, Box::new(job)));
                }
                BREATH.saturating_sub(asked.elapsed())
            }
            Err(error) => {
                failures += 1;
                let pause = PATIENCE.pause_after(&error, failures);
                let Some(pause) = pause.filter(|_| known || failures < TRIES_MAX) else {
                    return Err(super::refused(error, super::YOURS));
                };
                missed(progress.as_deref_mut(), &error);
                last = Some(error);
                pause
            }
        };
        if within(until, sleep(pause)).await.is_none() {
            return Ok(Followed::TimeOver(last));
        }
    }
}

fn missed(progress: Option<&mut Progress>, error: &CallError) {
    if let Some(progress) = progress {
        progress.missed(error);
    }
}

/// Waits for a future until a time limit.
async fn within<T>(until: Option<Instant>, what: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, what).await.ok(),
        None => Some(what.await),
    }
}
