//! What a running agent says: one line for each thing that happens, on the terminal or as JSON.

use std::sync::atomic::{AtomicBool, Ordering};

use rialto_client::agent::Outcome;
use rialto_client::agent::post::Told;
use serde_json::{Value, json};

use super::super::super::say;

/// Tells what happens.
pub struct Teller {
    as_json: bool,
    /// Trouble that was told and is not over; it is told once.
    troubled: AtomicBool,
}

impl Teller {
    pub fn new(as_json: bool) -> Self {
        Self { as_json, troubled: AtomicBool::new(false) }
    }

    /// A line of a job's log.
    pub fn log(&self, job: &str, line: &str) {
        if self.as_json {
            return self.print(&json!({"event": "log", "job": job, "line": line}));
        }
        let short: String = job.chars().take(8).collect();
        eprintln!("[{}] {}", say::one_line(&short), say::one_line(line));
    }

    /// Whatever happens around its jobs and its hub.
    pub fn tell(&self, told: &Told) {
        match told {
            Told::AtWork { agent, agent_id, owner, hub } => {
                self.troubled.store(false, Ordering::Relaxed);
                let event = json!({"event": "at_work", "agent": agent, "agent_id": agent_id, "owner": owner, "hub": hub});
                let text =
                    format!("{agent} is at work at {hub} as {agent_id}; earnings go to {owner}");
                self.say(event, &text);
            }
            Told::ServesPeers { agent, url } => {
                let event = json!({"event": "serves_peers", "agent": agent, "url": url});
                let text =
                    format!("{agent} answers peers at {url}/jobs, /receive, /openclaw and /agora");
                self.say(event, &text);
            }
            Told::Waiting { hub } => {
                if !self.troubled.swap(true, Ordering::Relaxed) {
                    let event = json!({"event": "waiting", "hub": hub});
                    self.say(
                        event,
                        &format!("waiting for {hub}; `rialto dev` starts a hub to try"),
                    );
                }
            }
            Told::Forgotten => {
                let event = json!({"event": "forgotten"});
                self.say(event, "the hub does not know this agent's key; registering again");
            }
            Told::Trouble { what, why } => {
                if !self.troubled.swap(true, Ordering::Relaxed) {
                    let event = json!({"event": "trouble", "what": what, "why": why});
                    self.say(event, &format!("{what}: {why}; trying again"));
                }
            }
            Told::Back => {
                self.troubled.store(false, Ordering::Relaxed);
                self.say(json!({"event": "back"}), "the hub is back");
            }
            Told::Took { job, skill } => {
                let event = json!({"event": "took", "job": job, "skill": skill});
                self.say(event, &format!("{job} {skill}"));
            }
            Told::Offered { job, price } => {
                let event = json!({"event": "offered", "job": job, "price": price});
                self.say(event, &format!("{job} offered for {price}"));
            }
            Told::CalledOff { job } => {
                self.say(json!({"event": "called_off", "job": job}), &format!("{job} called off"));
            }
            Told::Refused { job, why } => {
                let event = json!({"event": "refused", "job": job, "why": why});
                self.say(event, &format!("{job} not taken: {why}"));
            }
            Told::Ended { job, outcome, paid } => self.ended(job, outcome, paid.as_deref()),
        }
    }

    fn ended(&self, job: &str, outcome: &Outcome, paid: Option<&str>) {
        let (state, why) = match outcome {
            Outcome::Done(_) => ("done", None),
            Outcome::Failed(why) => ("failed", Some(why)),
            Outcome::Declined(why) => ("declined", Some(why)),
            Outcome::Unfit(why) => ("unfit", Some(why)),
        };
        let event =
            json!({"event": "ended", "job": job, "outcome": state, "why": why, "paid": paid});
        let rest = match (why, paid) {
            (Some(why), _) => format!(": {why}"),
            (None, Some(paid)) => format!(", paid {paid}"),
            (None, None) => String::new(),
        };
        self.say(event, &format!("{job} {state}{rest}"));
    }

    fn say(&self, event: Value, text: &str) {
        match self.as_json {
            true => self.print(&event),
            false => eprintln!("{}", say::one_line(text)),
        }
    }

    /// Whoever stopped reading does not want to know.
    fn print(&self, event: &Value) {
        let _ = say::line(&event.to_string());
    }
}
