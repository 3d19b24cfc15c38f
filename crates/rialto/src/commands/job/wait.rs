//! How a command that waits for a job ends: with the output, an error, or a timeout.

use std::time::Duration;

use rialto_client::{CallError, Hub};
use rialto_core::time::Millis;
use serde_json::json;
use tokio::time::Instant;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::agent_name_cache::AgentNameCache;
use super::follow::{FollowOptions, FollowOutcome, follow_job};
use super::logs;
use super::pretty::pretty;
use super::progress::Progress;
use super::view::JobView;
use crate::exit::Exit;

/// How long to wait, and what is printed meanwhile.
pub struct JobWait {
    pub time: Option<Millis>,
    pub progress: Option<Progress>,
    /// Whether the hub has answered before.
    pub hub_is_known: bool,
}

impl JobWait {
    /// Waits for the end and prints it.
    pub async fn run(mut self, access: &HubOptions, hub: &Hub, id: &str) -> Result<Exit, CliError> {
        let until = self.time.and_then(|time| {
            let length = Duration::from_millis(u64::try_from(time.0).unwrap_or(0));
            // A time beyond the clock's range means no limit.
            Instant::now().checked_add(length)
        });
        let wanted = FollowOptions { id, until, hub_is_known: self.hub_is_known };
        let followed = follow_job(hub, &wanted, self.progress.as_mut()).await?;
        let watched = self.progress.take().is_some();
        match followed {
            FollowOutcome::TimedOut(why) => Ok(report_timeout(access, id, why)),
            FollowOutcome::Ended(text, job) => {
                let worker = AgentNameCache::default().get_optional(hub, job.worker).await;
                let ending = job.describe_end(worker.as_deref());
                print_end(access, &text, &job, &ending, watched)
            }
        }
    }
}

fn print_end(
    access: &HubOptions,
    text: &str,
    job: &JobView,
    ending: &str,
    watched: bool,
) -> Result<Exit, CliError> {
    if access.json {
        if watched {
            output::print_stderr(ending);
        }
        // A failed job is a valid answer: the document says how and why.
        let _ = output::print_line(text);
        return Ok(if job.is_completed() { Exit::Ok } else { Exit::Failed });
    }
    if !job.is_completed() {
        // The log on this machine says more than the hub knows.
        let verb = if logs::has_any(&job.id) { "log" } else { "show" };
        let next = format!("`rialto job {verb} {}` shows more", job.id);
        return Err(CliError::failed(format!("job {} {ending}", job.id), next));
    }
    let _ = output::print_line(&pretty(job.output().map_or("null", |output| output.get())));
    output::print_stderr(ending);
    Ok(Exit::Ok)
}

/// Reports the timeout. The job continues; only the waiting ends.
fn report_timeout(access: &HubOptions, id: &str, why: Option<CallError>) -> Exit {
    let id = output::escape_line(id);
    let error = match why {
        Some(why) => output::escape_line(&format!("timed out waiting for job {id}: {why}")),
        None => format!("timed out waiting for job {id}; it is still running"),
    };
    let next = format!("`rialto job show {id}` shows it, `rialto job watch {id}` keeps waiting");
    match access.json {
        true => {
            let _ =
                output::print_line(&json!({"error": error, "next": next, "id": id}).to_string());
        }
        false => output::print_stderr(&format!("rialto: {error}; {next}")),
    }
    Exit::TimedOut
}
