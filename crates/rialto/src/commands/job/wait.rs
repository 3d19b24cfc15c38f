//! How a command that waits for a job ends: with the output, an error, or a timeout.

use std::time::Duration;

use rialto_client::{CallError, Hub};
use rialto_core::time::Millis;
use serde_json::json;
use tokio::time::Instant;

use super::super::hub_options::Access;
use super::super::output;
use super::super::error::Trouble;
use super::follow::{Followed, Wanted, follow};
use super::logs;
use super::agent_name_cache::Names;
use super::pretty::pretty;
use super::progress::Progress;
use super::view::Job;
use crate::exit::Exit;

/// How long to wait, and what is printed meanwhile.
pub struct Waiting {
    pub time: Option<Millis>,
    pub progress: Option<Progress>,
    /// Whether the hub has answered before.
    pub hub_is_known: bool,
}

impl Waiting {
    /// Waits for the end and prints it.
    pub async fn run(mut self, access: &Access, hub: &Hub, id: &str) -> Result<Exit, Trouble> {
        let until = self.time.and_then(|time| {
            let length = Duration::from_millis(u64::try_from(time.0).unwrap_or(0));
            // A time beyond the clock's range means no limit.
            Instant::now().checked_add(length)
        });
        let wanted = Wanted { id, until, hub_is_known: self.hub_is_known };
        let followed = follow(hub, &wanted, self.progress.as_mut()).await?;
        let watched = self.progress.take().is_some();
        match followed {
            Followed::TimeOver(why) => Ok(time_over(access, id, why)),
            Followed::Over(text, job) => {
                let worker = Names::default().of_any(hub, job.worker).await;
                let ending = job.ending(worker.as_deref());
                tell(access, &text, &job, &ending, watched)
            }
        }
    }
}

fn tell(
    access: &Access,
    text: &str,
    job: &Job,
    ending: &str,
    watched: bool,
) -> Result<Exit, Trouble> {
    if access.json {
        if watched {
            output::aside(ending);
        }
        // A failed job is a valid answer: the document says how and why.
        let _ = output::line(text);
        return Ok(if job.is_done() { Exit::Ok } else { Exit::Failed });
    }
    if !job.is_done() {
        // The log on this machine says more than the hub knows.
        let verb = if logs::has_any(&job.id) { "log" } else { "show" };
        let next = format!("`rialto job {verb} {}` shows more", job.id);
        return Err(Trouble::failed(format!("job {} {ending}", job.id), next));
    }
    let _ = output::line(&pretty(job.output().map_or("null", |output| output.get())));
    output::aside(ending);
    Ok(Exit::Ok)
}

/// Reports the timeout. The job continues; only the waiting ends.
fn time_over(access: &Access, id: &str, why: Option<CallError>) -> Exit {
    let id = output::one_line(id);
    let error = match why {
        Some(why) => output::one_line(&format!("timed out waiting for job {id}: {why}")),
        None => format!("timed out waiting for job {id}; it is still running"),
    };
    let next = format!("`rialto job show {id}` shows it, `rialto job watch {id}` keeps waiting");
    match access.json {
        true => {
            let _ = output::line(&json!({"error": error, "next": next, "id": id}).to_string());
        }
        false => output::aside(&format!("rialto: {error}; {next}")),
    }
    Exit::TimedOut
}
