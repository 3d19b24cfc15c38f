//! `submit_result` and `decline_job`: what a worker reports about a job it took.

use rialto_core::job::Cause;
use rialto_protocols::adapter::fidelity::state_name;
use rialto_protocols::kit::object::ObjectWriter;

use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::v1::jobs::result::{self, FailureReport, WorkReport};

/// Decimals that an amount has at least.
const DECIMALS: usize = 2;

/// The final report about a job.
pub async fn submit(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let (id, report) = (job_id(&arguments), read_report(&arguments)?);
    let context = call.context;
    let done = detached(async move {
        result::report_work(&context, by, &id, report).await.map_err(ToolError::from)
    });
    let done = done.await?;
    let output = ObjectWriter::new()
        .uuid("job_id", done.job.uuid)
        .text("state", state_name(done.job.state))
        .text("paid", &done.paid.to_text(DECIMALS));
    let output = if done.repeated { output.flag("repeated", true) } else { output };
    Ok(ToolOutput::new(output.finish()))
}

/// Hands a job back.
pub async fn decline(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let (id, epoch) = (job_id(&arguments), read_epoch(&arguments)?);
    let reason = arguments.text("reason").filter(|text| !text.is_empty()).map(str::to_owned);
    let context = call.context;
    let declined = detached(async move {
        result::decline(&context, by, &id, Some(epoch), reason).await.map_err(ToolError::from)
    });
    let job = declined.await?;
    let output = ObjectWriter::new().uuid("job_id", job.uuid).text("state", state_name(job.state));
    Ok(ToolOutput::new(output.finish()))
}

fn job_id(arguments: &Arguments) -> String {
    arguments.text("job_id").unwrap_or_default().to_owned()
}

/// The epoch of the assignment, without which a report could count for a later one.
fn read_epoch(arguments: &Arguments) -> Result<u32, ToolError> {
    let epoch = arguments.integer("epoch").and_then(|epoch| u32::try_from(epoch).ok());
    epoch.ok_or_else(|| ToolError::malformed("/epoch", "must be the epoch that next_job gave"))
}

fn read_report(arguments: &Arguments) -> Result<WorkReport, ToolError> {
    let epoch = Some(read_epoch(arguments)?);
    let outcome = match (arguments.raw("output"), arguments.text("error")) {
        (Some(output), None) => {
            if arguments.text("cause").is_some() {
                return Err(ToolError::malformed("/cause", "goes with error only"));
            }
            Ok(output.to_owned())
        }
        (None, Some(text)) => Err(FailureReport {
            cause: match arguments.text("cause") {
                Some("invalid_input") => Cause::Policy,
                _ => Cause::Execution,
            },
            text: text.to_owned(),
        }),
        (Some(_), Some(_)) => {
            return Err(ToolError::malformed("/error", "must be left out if output is given"));
        }
        (None, None) => {
            return Err(ToolError::malformed("/output", "is missing; or give error"));
        }
    };
    Ok(WorkReport { epoch, outcome, cost: None, took: None })
}

#[cfg(test)]
mod tests {
    use rialto_protocols::kit::ijson;

    use super::*;

    fn read(rest: &str) -> Result<WorkReport, ToolError> {
        let json = format!(r#"{{"job_id":"x","epoch":"1",{rest}}}"#);
        let json = ijson::read(json.as_bytes()).expect("JSON");
        read_report(&Arguments::read("submit_result", &json)?)
    }

    #[test]
    fn a_report_is_an_output_or_an_error() {
        let done = read(r#""output":{"a":1.50}"#).expect("it is fine");
        assert_eq!((done.epoch, done.outcome.ok().as_deref()), (Some(1), Some(r#"{"a":1.50}"#)));
        let failed = |rest| read(rest).expect("it is fine").outcome.expect_err("failed").cause;
        assert_eq!(failed(r#""error":"broke""#), Cause::Execution);
        assert_eq!(failed(r#""error":"no","cause":"execution""#), Cause::Execution);
        assert_eq!(failed(r#""error":"no","cause":"invalid_input""#), Cause::Policy);
        let field = |rest| read(rest).err().and_then(|error| error.field);
        assert_eq!(field(r#""output":{},"error":"x""#).as_deref(), Some("/error"));
        assert_eq!(field(r#""output":{},"cause":"execution""#).as_deref(), Some("/cause"));
        assert_eq!(field(r#""cause":"execution""#).as_deref(), Some("/output"));
    }
}
