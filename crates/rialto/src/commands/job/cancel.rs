//! `rialto job cancel`: cancels a job.

use rialto_client::Method;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::uri::encode_part;
use super::{HINT_ASKED, JobState, job_error};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job cancel f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job cancel f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --reason 'found it myself'\n\nOnly the requester can cancel a job, and only before a worker has started it. The credits held for\nit are returned. A started job ends when its worker finishes, declines, or times out."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own
    id: String,
    /// Reason; the worker may read it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let path = format!("/v1/jobs/{}/cancel", encode_part(&args.id));
    let body = match &args.reason {
        Some(reason) => json!({"reason": reason}),
        None => json!({}),
    };
    let sent = hub.call_text(Method::POST, &path, Some(body.to_string())).await;
    let (_, text) = sent.map_err(|error| {
        let next = format!(
            "the job can no longer be cancelled; `rialto job watch {}` follows it to its end",
            args.id
        );
        job_error(error, HINT_ASKED).with_hint_on(Exit::Conflict, next)
    })?;
    JobState::print(access, &text)
}
