//! The result body of a job (section 2.4 of the protocol's book).

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;
use rialto_protocols::registry::wire::DECIMALS;
use uuid::Uuid;

use crate::agent::Outcome;
use crate::clock;

/// Maximum length of an error text; a reader may refuse more.
const TEXT_MAX: usize = 4_096;

/// The job's id, and its agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRef {
    pub(super) job_id: Uuid,
    pub(super) agent_id: Uuid,
}

impl JobRef {
    /// The result: at its price if it succeeded, and free otherwise. A declined job is a matter of
    /// the agent's own policy, which this protocol calls an execution error.
    pub(super) fn result(self, outcome: &Outcome, price: Credits, took: Duration) -> String {
        let (output, why) = match outcome {
            Outcome::Done(output) => (Some(output.as_str()), None),
            Outcome::Failed(why) | Outcome::Declined(why) | Outcome::InvalidInput(why) => {
                (None, Some(reason(why)))
            }
        };
        let status = if why.is_none() { "SUCCESS" } else { "FAILURE" };
        let cost = if why.is_none() { price } else { Credits::ZERO };
        let code = why.as_ref().map(|_| "EXECUTION_ERROR");
        self.body(status, output, cost, took, why.as_deref().zip(code))
    }

    /// The body for a job without a result yet.
    pub(super) fn pending(self) -> String {
        self.body("PENDING", None, Credits::ZERO, Duration::ZERO, None)
    }

    fn body(
        self,
        status: &str,
        output: Option<&str>,
        cost: Credits,
        took: Duration,
        error: Option<(&str, &str)>,
    ) -> String {
        let body = ObjectWriter::new()
            .uuid("job_id", self.job_id)
            .uuid("agent_id", self.agent_id)
            .text("status", status)
            .raw("output_data", output.unwrap_or("null"))
            .raw("execution_cost", &cost.to_text(DECIMALS))
            .integer("execution_time_ms", i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
        let body = match error {
            Some((message, code)) => body.text("error_message", message).text("error_code", code),
            None => body.raw("error_message", "null").raw("error_code", "null"),
        };
        body.text("timestamp_utc", &rfc3339::format_seconds(clock::now())).finish()
    }
}

/// A reason that is not empty and not too long.
fn reason(why: &str) -> String {
    match why.is_empty() {
        true => "the agent gave no error message".to_owned(),
        false => why.chars().take(TEXT_MAX).collect(),
    }
}
