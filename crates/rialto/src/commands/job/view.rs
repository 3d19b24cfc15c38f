//! A job as the hub shows it, and its text for people.

use rialto_protocols::kit::rfc3339;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::output::escape_line;

/// A job as the hub shows it to one of its parties. Amounts keep their digits.
#[derive(Debug, Deserialize)]
pub struct JobView {
    pub id: String,
    pub skill: String,
    pub state: String,
    /// The hub's number of the requester.
    pub requester: Option<u64>,
    /// The name of a requester without registration.
    pub guest: Option<String>,
    /// The hub's number of the current or last worker.
    pub worker: Option<u64>,
    pub epoch: u32,
    pub budget: Option<Box<RawValue>>,
    pub price: Option<Box<RawValue>>,
    pub paid: Option<Box<RawValue>>,
    pub cause: Option<String>,
    pub opened_at: String,
    pub assigned_at: Option<String>,
    pub deadline: Option<String>,
    pub ended_at: Option<String>,
    pub input: Option<Box<RawValue>>,
    pub result: Option<JobResult>,
}

/// The job's result.
#[derive(Debug, Deserialize)]
pub struct JobResult {
    pub output: Option<Box<RawValue>>,
    pub text: Option<String>,
}

impl JobView {
    /// Whether the job has ended.
    pub fn has_ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether it was completed.
    pub fn is_completed(&self) -> bool {
        self.state == "completed"
    }

    /// The worker's output.
    pub fn output(&self) -> Option<&RawValue> {
        self.result.as_ref()?.output.as_deref()
    }

    /// How it ended, on one line; `worker` is the name of the last worker.
    pub fn describe_end(&self, worker: Option<&str>) -> String {
        let by = worker.map(|name| format!(" by {name}")).unwrap_or_default();
        let text = self.result.as_ref().and_then(|result| result.text.as_deref());
        let line = match self.is_completed() {
            true => {
                let paid = self.paid.as_deref().map_or("nothing", RawValue::get);
                format!("done{by}{}, paid {paid}", self.took())
            }
            false => {
                let why = [text.map(str::to_owned), self.cause.as_deref().map(cause_text)];
                match why.into_iter().flatten().next() {
                    Some(why) => format!("{}{by}: {why}", self.state),
                    None => format!("{}{by}", self.state),
                }
            }
        };
        escape_line(&line)
    }

    /// The time from posting to the end.
    fn took(&self) -> String {
        let at = |text: &str| rfc3339::parse(text).ok();
        let end = self.ended_at.as_deref().and_then(at);
        match end.zip(at(&self.opened_at)) {
            Some((end, start)) => {
                let tenths = end.since(start).0.max(0).unsigned_abs().div_ceil(100);
                format!(" in {}.{} s", tenths / 10, tenths % 10)
            }
            None => String::new(),
        }
    }
}

/// Text for a cause, if the worker gave none.
fn cause_text(cause: &str) -> String {
    let known = match cause {
        "no_such_skill" => "no agent has this skill",
        "budget_too_low" => "no agent accepts this budget",
        "offline" => "the worker is offline",
        "timed_out" => "the deadline passed",
        "worker_left" => "the worker unregistered",
        "cancelled" => "it was cancelled",
        "nobody_left" => "no other worker is available",
        "payment" => "it could not be paid",
        "unusable" => "the result was unusable",
        other => other,
    };
    known.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(more: &str) -> JobView {
        let text = format!(
            r#"{{"id":"j","protocol":"registry","foreign_id":"f","skill":"sum","requester":1,"worker":2,"epoch":1,
            "opened_at":"2026-01-01T00:00:00.000Z","deadline":"2026-01-01T00:01:00.000Z",{more}}}"#
        );
        serde_json::from_str(&text).expect("a job")
    }

    #[test]
    fn an_ending_is_told_on_one_line() {
        let ended = r#""ended_at":"2026-01-01T00:00:00.350Z""#;
        let done = job(&format!(
            r#""state":"completed","paid":0.05,{ended},"result":{{"ok":true,"output":{{"n":0.50}}}}"#
        ));
        assert_eq!(done.describe_end(Some("shout")), "done by shout in 0.4 s, paid 0.05");
        assert_eq!(done.output().expect("an output").get(), r#"{"n":0.50}"#);
        let failed = job(&format!(
            r#""state":"failed","cause":"execution",{ended},"result":{{"ok":false,"output":null,"text":"it\nbroke"}}"#
        ));
        assert_eq!(failed.describe_end(Some("shout")), "failed by shout: it\\nbroke");
        let alone = job(&format!(r#""state":"expired","cause":"timed_out",{ended}"#));
        assert_eq!(alone.describe_end(None), "expired: the deadline passed");
        assert!(alone.has_ended() && !alone.is_completed());
        assert!(!job(r#""state":"open""#).has_ended());
    }
}
