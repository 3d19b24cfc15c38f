//! Prints the progress of a job.

use rialto_client::{CallError, Hub};

use super::super::live_line::LiveLine;
use super::super::output::escape_line;
use super::agent_name_cache::AgentNameCache;
use super::logs::{self, Log};
use super::view::JobView;

/// The progress display of a job.
pub struct Progress {
    live: LiveLine,
    names: AgentNameCache,
    /// The steps reached at the last poll.
    steps: Vec<String>,
    /// The error of the last request, if it failed.
    last_error: Option<String>,
    /// Logs on this machine, if they are shown.
    logs: Option<Vec<Log>>,
}

impl Progress {
    /// Shows only the hub's state.
    pub fn new() -> Self {
        let (live, names) = (LiveLine::new(), AgentNameCache::default());
        Self { live, names, steps: Vec::new(), last_error: None, logs: None }
    }

    /// Also shows the worker's log on this machine.
    pub fn with_logs() -> Self {
        Self { logs: Some(Vec::new()), ..Self::new() }
    }

    /// Shows the job's new state.
    pub async fn update(&mut self, hub: &Hub, job: &JobView) {
        let worker = self.names.get_optional(hub, job.worker).await;
        let steps = steps(job, worker.as_deref());
        let back = self.last_error.take().is_some();
        let latest = steps.len() - 1;
        for (at, step) in steps.iter().enumerate() {
            // After an outage the current line shows the error, so the latest step is printed
            // again.
            if !self.steps.contains(step) || back && at == latest {
                self.live.replace(step);
            }
        }
        self.steps = steps;
        self.read_logs(&job.id, job.has_ended());
    }

    /// Shows that the hub could not be reached.
    pub fn hub_unavailable(&mut self, error: &CallError) {
        let why = format!("{error}; retrying");
        if self.last_error.as_ref() != Some(&why) {
            self.live.replace(&why);
            self.last_error = Some(why);
        }
    }

    /// Logs are optional: an unreadable log is skipped.
    fn read_logs(&mut self, id: &str, is_over: bool) {
        let Some(known) = &mut self.logs else { return };
        for found in logs::find_logs(id).unwrap_or_default() {
            if known.iter().all(|log| log.path != found.path) {
                known.push(found);
            }
        }
        for log in known {
            loop {
                let mut lines = log.new_lines().unwrap_or_default();
                let more = is_over && !lines.is_empty();
                if is_over && !more {
                    lines.extend(log.last_line());
                }
                for line in &lines {
                    self.live.print_above(&format!("log: {}", escape_line(line)));
                }
                if !more {
                    break;
                }
            }
        }
    }
}

/// The steps a job has reached, in order. The waiting command prints the end.
fn steps(job: &JobView, worker: Option<&str>) -> Vec<String> {
    let mut steps = vec!["opened".to_owned()];
    if let Some(name) = worker.filter(|_| job.assigned_at.is_some()) {
        steps.push(format!("assigned to {name}"));
    }
    match job.state.as_str() {
        "queued" => steps.push("queued: no worker is free".to_owned()),
        "negotiating" => steps.push("waiting for offers".to_owned()),
        "deferred" => steps.push("deferred by its worker".to_owned()),
        "running" => steps.push("running".to_owned()),
        _ => {}
    }
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
        for (more, worker, wanted) in [
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
        ] {
            assert_eq!(steps(&job(&more), worker), wanted, "{more}");
        }
    }
}
