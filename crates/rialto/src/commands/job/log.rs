//! `rialto job log`: prints the log of a job that ran on this machine.

use std::io;

use serde_json::json;

use super::super::context::home::read_error;
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::uri::encode_part;
use super::super::views::{get_text, parse_json};
use super::logs::{self, Log};
use super::view::JobView;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job log f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job log f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --json | jq -r .logs[0].text\n\nPrints what the worker's program wrote to standard error, if it ran on this machine. Needs no hub and\nno key, unless you use your own id of the job. If several agents worked on a job, each has a log."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own as given with --id
    id: String,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let mut logs = logs::find_logs(&args.id)?;
    if logs.is_empty()
        && let Some(id) = hub_id(access, &args.id).await
    {
        logs = logs::find_logs(&id)?;
    }
    if logs.is_empty() {
        let message = format!("there is no log of job {} on this machine", args.id);
        let next = "logs are stored where `rialto agent run` ran, under the hub's id of the job; `rialto job ls` shows the id";
        return Err(CliError::not_found(message, next));
    }
    if access.json {
        let mut documents = Vec::new();
        for log in &mut logs {
            let mut text = String::new();
            each_line(log, |line| {
                text.push_str(line);
                text.push('\n');
                Ok(())
            })?;
            documents.push(json!({"agent": log.agent, "path": log.path, "text": text}));
        }
        let _ = output::print_line(&json!({"id": args.id, "logs": documents}).to_string());
        return Ok(Exit::Ok);
    }
    let several = logs.len() > 1;
    for log in &mut logs {
        if several {
            let _ = output::print_line(&format!("==> {} <==", log.agent));
        }
        each_line(log, |line| output::print_line(&escape_line(line)))?;
    }
    Ok(Exit::Ok)
}

/// The hub's id of a job given by the requester's own id; `None` if the hub cannot be asked, since
/// logs are also shown without a hub.
async fn hub_id(access: &HubOptions, id: &str) -> Option<String> {
    let (hub, _) = access.client_with_key().ok()?;
    let text = get_text(&hub, &format!("/v1/jobs/{}", encode_part(id))).await.ok()?;
    parse_json::<JobView>(&text).ok().map(|job| job.id)
}

/// Passes the log to a callback line by line, until the reader closes the pipe.
fn each_line(log: &mut Log, mut told: impl FnMut(&str) -> io::Result<()>) -> Result<(), CliError> {
    loop {
        let mut lines = log.new_lines().map_err(|error| read_error(&log.path, &error))?;
        let at_end = lines.is_empty();
        if at_end {
            lines.extend(log.last_line());
        }
        // A closed pipe is not an error: the reader has seen enough.
        if lines.iter().try_for_each(|line| told(line)).is_err() || at_end {
            return Ok(());
        }
    }
}
