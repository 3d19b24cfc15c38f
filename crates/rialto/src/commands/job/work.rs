//! `rialto job submit` and `rialto job decline`: do a worker's part by hand.

use rialto_client::{CallError, Hub, Method, RetryPolicy};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::uri::encode_part;
use super::super::views::{get_text, parse_json};
use super::view::JobView;
use super::{HINT_WORKED, JobState, job_error, json_input};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job submit f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --output '{\"text\":\"HELLO\"}'\n  rialto job submit f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --output @out.json --as shout\n  rialto job submit f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --failed 'the input is empty'\n\nOnly the assigned worker can submit. Submitting the same result twice has no further effect."
)]
pub struct SubmitArgs {
    /// The hub's id of the job
    id: String,
    /// Result: a JSON object as text, @FILE, or - for standard input
    #[arg(
        long,
        value_name = "JSON",
        required_unless_present = "failed",
        conflicts_with = "failed"
    )]
    output: Option<String>,
    /// Error message for a failed job; the requester reads it
    #[arg(long, value_name = "MESSAGE")]
    failed: Option<String>,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job decline f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --reason 'too busy'\n  rialto job decline f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --as shout\n\nOnly the assigned worker can decline. The job goes to another worker if the hub chose this one, and\nends if the requester did."
)]
pub struct DeclineArgs {
    /// The hub's id of the job
    id: String,
    /// Reason; the requester may read it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// A worker's reply to one assignment of the job.
#[derive(Serialize)]
struct WorkerReply<'a> {
    epoch: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

pub async fn submit(access: &HubOptions, args: &SubmitArgs) -> Result<Exit, CliError> {
    let output =
        args.output.as_deref().map(|given| json_input::read_json("--output", given)).transpose()?;
    let (hub, _) = access.client_with_key()?;
    let epoch = current_epoch(&hub, &args.id).await?;
    let word = WorkerReply {
        epoch,
        ok: Some(output.is_some()),
        output: output.as_deref(),
        message: args.failed.as_deref(),
        reason: None,
    };
    let path = format!("/v1/jobs/{}/result", encode_part(&args.id));
    // Safe to retry: the reply names the assignment, and the hub recognizes a repeat.
    let text =
        send_reply(&hub, &path, &word, RetryPolicy::default()).await.map_err(|cli_error| {
            let next = "write it like --output '{\"text\":\"hello\"}'";
            cli_error
                .with_hint_on(Exit::Usage, next)
                .with_hint_on(Exit::Conflict, hint_show(&args.id))
        })?;
    JobState::print(access, &text)
}

pub async fn decline(access: &HubOptions, args: &DeclineArgs) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let epoch = current_epoch(&hub, &args.id).await?;
    let reason = args.reason.as_deref();
    let word = WorkerReply { epoch, ok: None, output: None, message: None, reason };
    let path = format!("/v1/jobs/{}/decline", encode_part(&args.id));
    let once = RetryPolicy { max_attempts: 1, ..RetryPolicy::default() };
    let text = send_reply(&hub, &path, &word, once).await;
    let text =
        text.map_err(|cli_error| cli_error.with_hint_on(Exit::Conflict, hint_show(&args.id)))?;
    JobState::print(access, &text)
}

/// Hint for a job that has already ended.
fn hint_show(id: &str) -> String {
    format!("`rialto job show {id}` shows its state")
}

/// The job's current assignment, so that a late reply is never applied to another one.
async fn current_epoch(hub: &Hub, id: &str) -> Result<u32, CliError> {
    let path = format!("/v1/jobs/{}", encode_part(id));
    let job: JobView =
        parse_json(&get_text(hub, &path).await.map_err(|error| job_error(error, HINT_WORKED))?)?;
    Ok(job.epoch)
}

async fn send_reply(
    hub: &Hub,
    path: &str,
    word: &WorkerReply<'_>,
    retry: RetryPolicy,
) -> Result<String, CliError> {
    let body = serde_json::to_string(word);
    let body = body.map_err(|error| CallError::Unreadable(error.to_string()))?;
    let send = async || hub.call_text(Method::POST, path, Some(body.clone())).await;
    let (_, text) = retry.call(send).await.map_err(|error| job_error(error, HINT_WORKED))?;
    Ok(text)
}
