//! Prints the events of a running agent: one line each, as text or as JSON.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rialto_client::agent::Outcome;
use rialto_client::agent::hub::AgentEvent;
use rialto_client::agent::mcp::ServerEvent;
use serde_json::{Value, json};

use crate::commands::output;

/// Prints events.
pub struct EventPrinter {
    as_json: bool,
    /// Problems that were reported and still persist: each kind is reported once.
    reported_problems: Mutex<BTreeSet<&'static str>>,
}

/// The hub is unreachable.
const WAITING: &str = "waiting";
/// The operator has suspended the agent.
const SUSPENDED: &str = "suspended";

impl EventPrinter {
    pub fn new(as_json: bool) -> Self {
        Self { as_json, reported_problems: Mutex::default() }
    }

    /// Prints a line of a job's log.
    pub fn print_log_line(&self, job: &str, line: &str) {
        if self.as_json {
            return self.print(&json!({"event": "log", "job": job, "line": line}));
        }
        let short: String = job.chars().take(8).collect();
        eprintln!("[{}] {}", output::escape_line(&short), output::escape_line(line));
    }

    /// Prints a line of the log of an MCP server.
    pub fn print_server_line(&self, line: &str) {
        if self.as_json {
            return self.print(&json!({"event": "log", "job": null, "line": line}));
        }
        eprintln!("[mcp] {}", output::escape_line(line));
    }

    /// Prints an event of an MCP server.
    pub fn print_server_event(&self, event: &ServerEvent) {
        let (document, text) = match event {
            ServerEvent::Ended { why, retry_in } => {
                let seconds = retry_in.map(|delay| delay.as_secs());
                let text = match seconds {
                    Some(seconds) => format!("{why}; trying again in {seconds} s"),
                    None => format!("{why}; giving up"),
                };
                (json!({"event": "server_ended", "why": why, "retry_in_seconds": seconds}), text)
            }
            ServerEvent::Connected => {
                let text = "the MCP server is connected again".to_owned();
                (json!({"event": "server_connected"}), text)
            }
            ServerEvent::Unlisted { why } => (
                json!({"event": "tools_unreadable", "why": why}),
                format!("the changed list of tools cannot be read: {why}"),
            ),
        };
        match self.as_json {
            true => self.print(&document),
            false => eprintln!("{}", output::escape_lines(&text)),
        }
    }

    /// Prints an event about its jobs or its hub.
    pub fn print_event(&self, event: &AgentEvent) {
        let is_new = match event {
            AgentEvent::Started { .. } | AgentEvent::Recovered => {
                self.lock().clear();
                true
            }
            AgentEvent::WaitingForHub { .. } => self.lock().insert(WAITING),
            AgentEvent::Retrying { action, .. } => self.lock().insert(action),
            AgentEvent::Suspended => self.lock().insert(SUSPENDED),
            _ => true,
        };
        if !is_new {
            return;
        }
        let (document, text) = describe(event);
        if self.as_json {
            self.print(&document);
        } else {
            eprintln!("{}", output::escape_line(&text));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.reported_problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A closed pipe is not an error: the reader has seen enough.
    fn print(&self, event: &Value) {
        output::print_data(event);
    }
}

/// An event as JSON and as a line.
fn describe(event: &AgentEvent) -> (Value, String) {
    match event {
        AgentEvent::Started { agent, agent_id, owner, hub } => (
            json!({"event": "at_work", "agent": agent, "agent_id": agent_id, "owner": owner, "hub": hub}),
            format!("{agent} is online at {hub} as {agent_id}; earnings go to {owner}"),
        ),
        AgentEvent::ServingPeers { agent, url } => (
            json!({"event": "serves_peers", "agent": agent, "url": url}),
            format!("{agent} serves peers at {url}/jobs, /receive, /openclaw and /agora"),
        ),
        AgentEvent::WaitingForHub { hub } => (
            json!({"event": "waiting", "hub": hub}),
            format!("cannot reach {hub}, retrying; `rialto dev` starts a local hub"),
        ),
        AgentEvent::Reregistering => (
            json!({"event": "forgotten"}),
            "the hub does not know this agent's key; registering again".to_owned(),
        ),
        AgentEvent::SkillsChanged { skills } => (
            json!({"event": "skills_changed", "skills": skills}),
            format!("registered with changed skills: {}", skills.join(", ")),
        ),
        AgentEvent::Retrying { action, why } => (
            json!({"event": "trouble", "what": action, "why": why}),
            format!("{action}: {why}; retrying"),
        ),
        AgentEvent::Suspended => {
            let text = "the hub's operator has suspended this agent; it keeps retrying and continues when resumed";
            (json!({"event": "suspended"}), text.to_owned())
        }
        AgentEvent::JobError { job, what, why } => (
            json!({"event": "mishap", "job": job, "what": what, "why": why}),
            format!("{job} {what}: {why}"),
        ),
        AgentEvent::Recovered => {
            (json!({"event": "back"}), "connection to the hub restored".to_owned())
        }
        AgentEvent::JobStarted { job, skill } => {
            (json!({"event": "took", "job": job, "skill": skill}), format!("{job} {skill}"))
        }
        AgentEvent::QuestionAsked { job, question } => (
            json!({"event": "asked", "job": job, "question": question}),
            format!("{job} asks its requester: {question}"),
        ),
        AgentEvent::OfferSent { job, price } => (
            json!({"event": "offered", "job": job, "price": price}),
            format!("{job} offered for {price}"),
        ),
        AgentEvent::JobCancelled { job } => {
            (json!({"event": "called_off", "job": job}), format!("{job} cancelled"))
        }
        AgentEvent::ResultRefused { job, reason } => (
            json!({"event": "refused", "job": job, "why": reason}),
            format!("{job} result refused by the hub: {reason}"),
        ),
        AgentEvent::JobEnded { job, outcome, paid, repeated } => {
            describe_end(job, outcome, paid.as_deref(), *repeated)
        }
    }
}

/// The event and the line for a job that ended.
fn describe_end(
    job: &str,
    outcome: &Outcome,
    paid: Option<&str>,
    repeated: bool,
) -> (Value, String) {
    let (state, why) = match outcome {
        Outcome::Done(_) => ("done", None),
        Outcome::Failed(why) => ("failed", Some(why)),
        Outcome::Declined(why) => ("declined", Some(why)),
        Outcome::InvalidInput(why) => ("unfit", Some(why)),
        Outcome::Refused(why) => ("refused", Some(why)),
    };
    let event = json!({"event": "ended", "job": job, "outcome": state, "why": why, "paid": paid, "repeated": repeated});
    let rest = match (why, paid) {
        // A repeated report was paid the first time.
        _ if repeated => ", already reported".to_owned(),
        (Some(why), _) if state == "failed" => {
            format!(": {why}; `rialto job log {job}` shows its output")
        }
        (Some(why), _) => format!(": {why}"),
        (None, Some(paid)) => format!(", paid {paid}"),
        (None, None) => String::new(),
    };
    (event, format!("{job} {state}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_before_is_not_said_to_be_paid_again() {
        let done = Outcome::Done("{}".to_owned());
        let line = |repeated: bool| describe_end("j", &done, Some("0.05"), repeated).1;
        assert_eq!(
            (line(false), line(true)),
            ("j done, paid 0.05".into(), "j done, already reported".into())
        );
    }

    #[test]
    fn a_job_that_failed_leads_to_its_log() {
        let failed = Outcome::Failed("the program ended with status 1".to_owned());
        let (event, text) = describe_end("j", &failed, None, false);
        assert!(text.ends_with("; `rialto job log j` shows its output"), "{text}");
        assert_eq!(event["why"], "the program ended with status 1");
        let declined = describe_end("j", &Outcome::Declined("no".to_owned()), None, false).1;
        assert_eq!(declined, "j declined: no");
    }

    #[test]
    fn each_kind_of_trouble_is_told_once_until_it_is_over() {
        let printer = EventPrinter::new(false);
        let error = |what: &'static str| {
            let before = printer.lock().clone();
            printer
                .print_event(&AgentEvent::Retrying { action: what, why: "timed out".to_owned() });
            *printer.lock() != before
        };
        assert_eq!([error("one"), error("two"), error("one")], [true, true, false]);
        printer.print_event(&AgentEvent::Recovered);
        assert!(error("one"));
    }
}
