//! Follows a job to its end, across hub outages. Shows progress, and ends with the output, an error or
//! a timeout.

use std::future::Future;
use std::time::Duration;

use rialto_client::{CallError, RetryPolicy};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::dialogue::{describe_answered, describe_part, describe_progress, describe_question};
use super::logs::{self, Log};
use super::{HINT_OWN, job_error};
use crate::commands::agent_names::AgentNameCache;
use crate::commands::output::{self, LiveLine, pretty};
use crate::commands::v1::JobView;
use crate::commands::{Answer, CliError, CliResult, Exit, HubOptions, V1, escape_line};

/// How long the hub holds each request, in seconds: when only the end matters,
const WAIT_S: u64 = 30;
/// and when progress is shown.
const PROGRESS_WAIT_S: u64 = 1;
/// Minimum time between requests, for a hub that answers at once although asked to wait.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(250);
/// The same while the worker waits for the requester.
const QUESTION_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts at a hub that has never answered: it may be the wrong one.
const TRIES_MAX: u32 = 4;
/// Retry policy for a hub that is temporarily unreachable.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(250),
    max_delay: Duration::from_secs(10),
};

/// A job to wait for, and what is printed meanwhile.
pub struct JobWait<'a> {
    pub id: &'a str,
    pub until: Option<Instant>,
    pub progress: Option<Progress>,
    /// Whether the hub has answered before: then an outage is expected to end.
    pub hub_is_known: bool,
    /// The number of the last question that was shown.
    pub told_question: u32,
}

/// How following a job ended.
enum FollowOutcome {
    /// The job has ended: the hub's document, and its parsed form.
    Ended(Answer<JobView>, Box<JobView>),
    /// The time limit passed. Holds the last error, if the last request failed.
    TimedOut(Option<CallError>),
}

impl JobWait<'_> {
    /// Waits for the end and prints it.
    pub async fn run(mut self, options: &HubOptions, api: &V1) -> CliResult {
        let outcome = self.follow(api).await?;
        // Its line is cleared before anything else is printed.
        let has_progress = self.progress.take().is_some();
        match outcome {
            FollowOutcome::TimedOut(why) => Ok(report_timeout(options, self.id, why)),
            FollowOutcome::Ended(answer, job) => {
                let worker = AgentNameCache::default().get(api, job.worker).await;
                let ending = job.describe_end(worker.as_deref());
                print_end(options, &answer, &job, &ending, has_progress)
            }
        }
    }

    /// Polls until the job ends or the time limit passes. Permanent errors end it at once.
    async fn follow(&mut self, api: &V1) -> CliResult<FollowOutcome> {
        let wait = if self.progress.is_some() { PROGRESS_WAIT_S } else { WAIT_S };
        let (mut failures, mut last) = (0, None);
        loop {
            let start = Instant::now();
            let Some(answer) = within(self.until, api.job(self.id, Some(wait))).await else {
                return Ok(FollowOutcome::TimedOut(last));
            };
            let pause = match answer {
                Ok(answer) => {
                    (failures, last, self.hub_is_known) = (0, None, true);
                    let job = answer.parse()?;
                    if let Some(progress) = &mut self.progress {
                        progress.update(api, &job).await;
                    }
                    if job.has_ended() {
                        return Ok(FollowOutcome::Ended(answer, Box::new(job)));
                    }
                    // The hub answers at once while the job waits for its requester.
                    let is_asked = job.question.is_some();
                    if self.progress.is_none() {
                        self.tell_question(&job);
                    }
                    let pause = if is_asked { QUESTION_INTERVAL } else { POLL_INTERVAL_MIN };
                    pause.saturating_sub(start.elapsed())
                }
                Err(error) => {
                    failures += 1;
                    let may_retry = self.hub_is_known || failures < TRIES_MAX;
                    let pause = RETRY.delay_after(&error, failures).filter(|_| may_retry);
                    let Some(pause) = pause else { return Err(job_error(error, HINT_OWN)) };
                    if let Some(progress) = &mut self.progress {
                        progress.hub_unavailable(&error);
                    }
                    last = Some(error);
                    pause
                }
            };
            if within(self.until, sleep(pause)).await.is_none() {
                return Ok(FollowOutcome::TimedOut(last));
            }
        }
    }
}

impl JobWait<'_> {
    /// Says once what the worker asks.
    fn tell_question(&mut self, job: &JobView) {
        let number = job.question.as_ref().map_or(0, |question| question.number);
        if let Some(question) = describe_question(job).filter(|_| number > self.told_question) {
            output::print_stderr(&escape_line(&format!("the worker {question}")));
            self.told_question = number;
        }
    }
}

/// Waits for a future until a time limit.
async fn within<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => timeout_at(until, work).await.ok(),
        None => Some(work.await),
    }
}

fn print_end(
    options: &HubOptions,
    answer: &Answer<JobView>,
    job: &JobView,
    ending: &str,
    has_progress: bool,
) -> CliResult {
    if options.json {
        if has_progress {
            output::print_stderr(ending);
        }
        // A failed job is a valid answer: the document says how and why.
        output::print_data(&answer.text);
        return Ok(if job.is_completed() { Exit::Ok } else { Exit::Failed });
    }
    if !job.is_completed() {
        // The log on this machine says more than the hub knows.
        let verb = if logs::has_any(&job.id) { "log" } else { "show" };
        let next = format!("`rialto job {verb} {}` shows more", job.id);
        return Err(CliError::failed(format!("job {} {ending}", job.id), next));
    }
    output::print_data(pretty(job.output().map_or("null", |output| output.get())));
    output::print_stderr(ending);
    Ok(Exit::Ok)
}

/// Reports the timeout. The job continues; only the waiting ends.
fn report_timeout(options: &HubOptions, id: &str, why: Option<CallError>) -> Exit {
    let id = escape_line(id);
    let error = match why {
        Some(why) => escape_line(&format!("timed out waiting for job {id}: {why}")),
        None => format!("timed out waiting for job {id}; it is still running"),
    };
    let next = format!("`rialto job show {id}` shows it, `rialto job watch {id}` keeps waiting");
    if options.json {
        output::print_data(json!({"error": error, "next": next, "id": id}));
    } else {
        output::print_stderr(&format!("rialto: {error}; {next}"));
    }
    Exit::TimedOut
}

/// The progress display of a job.
pub struct Progress {
    line: LiveLine,
    names: AgentNameCache,
    /// The steps reached at the last poll.
    steps: Vec<String>,
    /// The error of the last request, if it failed.
    last_error: Option<String>,
    /// The number of the last part that was shown.
    last_part: u32,
    /// Logs on this machine, if they are shown.
    logs: Option<Vec<Log>>,
}

impl Progress {
    /// Shows only the hub's state.
    pub fn new() -> Self {
        let (line, names) = (LiveLine::new(), AgentNameCache::default());
        Self { line, names, steps: Vec::new(), last_error: None, last_part: 0, logs: None }
    }

    /// Also shows the worker's log on this machine.
    pub fn with_logs() -> Self {
        Self { logs: Some(Vec::new()), ..Self::new() }
    }

    /// Shows the job's new state.
    async fn update(&mut self, api: &V1, job: &JobView) {
        let worker = self.names.get(api, job.worker).await;
        let steps = steps(job, worker.as_deref());
        let is_back = self.last_error.take().is_some();
        let latest = steps.len() - 1;
        for (at, step) in steps.iter().enumerate() {
            // After an outage the current line shows the error, so the latest step is printed
            // again.
            if !self.steps.contains(step) || is_back && at == latest {
                self.line.replace(step);
            }
        }
        self.steps = steps;
        for part in job.parts.iter().filter(|part| part.number > self.last_part) {
            self.line.print_above(&format!("part: {}", describe_part(&part.artifact)));
        }
        self.last_part = job.parts.last().map_or(self.last_part, |part| part.number);
        self.read_logs(&job.id, job.has_ended());
    }

    /// Shows that the hub could not be reached.
    fn hub_unavailable(&mut self, error: &CallError) {
        let why = format!("{error}; retrying");
        if self.last_error.as_ref() != Some(&why) {
            self.line.replace(&why);
            self.last_error = Some(why);
        }
    }

    /// Logs are optional: an unreadable log is skipped.
    fn read_logs(&mut self, id: &str, is_over: bool) {
        let Some(known) = &mut self.logs else { return };
        for log in logs::find_logs(id).unwrap_or_default() {
            if known.iter().all(|known| known.path != log.path) {
                known.push(log);
            }
        }
        for log in known {
            let _ = log.read_lines(is_over, |line| {
                self.line.print_above(&format!("log: {}", escape_line(line)));
                Ok(())
            });
        }
    }
}

/// The steps a job has reached, in order. The waiting command prints the end.
fn steps(job: &JobView, worker: Option<&str>) -> Vec<String> {
    let mut steps = vec!["opened".to_owned()];
    if let Some(name) = worker.filter(|_| job.assigned_at.is_some()) {
        steps.push(format!("assigned to {name}"));
    }
    let state = match job.state.as_str() {
        "queued" => Some("queued: no worker is free"),
        "negotiating" => Some("waiting for offers"),
        "deferred" => Some("deferred by its worker"),
        "running" => Some("running"),
        _ => None,
    };
    steps.extend(state.map(str::to_owned));
    steps.extend(describe_progress(job).filter(|_| !job.has_ended()));
    for asked in job.questions.iter().filter(|asked| asked.answer.is_some()) {
        steps.push(format!("answered: {}", describe_answered(asked)));
    }
    steps.extend(describe_question(job));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_come_to_what_its_state_and_worker_say() {
        let job = |more: &str| -> JobView {
            let text = format!(
                r#"{{"id":"j","skill":"sum","epoch":1,"opened_at":"2026-01-01T00:00:00Z",{more}}}"#
            );
            serde_json::from_str(&text).expect("a job")
        };
        let assigned = r#""assigned_at":"2026-01-01T00:00:00Z""#;
        for (more, worker, expected) in [
            (r#""state":"open""#.to_owned(), None, &["opened"][..]),
            (r#""state":"queued""#.to_owned(), None, &["opened", "queued: no worker is free"]),
            (r#""state":"negotiating""#.to_owned(), None, &["opened", "waiting for offers"]),
            (format!(r#""state":"assigned",{assigned}"#), Some("a"), &["opened", "assigned to a"]),
            (
                format!(r#""state":"running",{assigned}"#),
                Some("a"),
                &["opened", "assigned to a", "running"],
            ),
            (format!(r#""state":"completed",{assigned}"#), Some("a"), &["opened", "assigned to a"]),
            (
                format!(
                    r#""state":"asking",{assigned},"progress":{{"fraction":0.25,"text":"reading"}},
                    "question":{{"number":2,"text":"when?"}},
                    "questions":[{{"number":1,"text":"where?","answer":{{"text":"Lugano"}}}},
                        {{"number":2,"text":"when?"}}]"#
                ),
                Some("a"),
                &[
                    "opened",
                    "assigned to a",
                    "25 %, reading",
                    "answered: where? -> {\"text\":\"Lugano\"}",
                    "asks: when? (`rialto job answer j TEXT`)",
                ],
            ),
        ] {
            assert_eq!(steps(&job(&more), worker), expected, "{more}");
        }
    }
}
