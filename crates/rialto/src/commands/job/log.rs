//! `rialto job log`.

use std::io;

use serde_json::json;

use super::super::access::Access;
use super::super::context::home::unreadable;
use super::super::say::{self, one_line};
use super::super::trouble::Trouble;
use super::super::uri::part;
use super::super::views::{get, read};
use super::logs::{self, Log};
use super::view::Job;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto job log f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job log f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --json | jq -r .logs[0].text\n\nWhat the worker's program wrote to its standard error, if it ran on this machine. Needs no hub and\nno key, except for an id of your own. Several agents may have worked on one job: each has its own log."
)]
pub struct Args {
    /// The hub's id of the job, or your own as given with --id
    id: String,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let mut logs = logs::find(&args.id)?;
    if logs.is_empty()
        && let Some(id) = hub_id(access, &args.id).await
    {
        logs = logs::find(&id)?;
    }
    if logs.is_empty() {
        let message = format!("there is no log of job {} on this machine", args.id);
        let next = "logs are kept where `rialto agent run` ran, under the hub's id of the job; `rialto job ls` shows it";
        return Err(Trouble::not_found(message, next));
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
        let _ = say::line(&json!({"id": args.id, "logs": documents}).to_string());
        return Ok(Exit::Ok);
    }
    let several = logs.len() > 1;
    for log in &mut logs {
        if several {
            let _ = say::line(&format!("==> {} <==", log.agent));
        }
        each_line(log, |line| say::line(&one_line(line)))?;
    }
    Ok(Exit::Ok)
}

/// The hub's id of a job that its requester names by an id of its own; `None` if that cannot be
/// asked, since logs are shown without a hub, too.
async fn hub_id(access: &Access, id: &str) -> Option<String> {
    let (hub, _) = access.me().ok()?;
    let text = get(&hub, &format!("/v1/jobs/{}", part(id))).await.ok()?;
    read::<Job>(&text).ok().map(|job| job.id)
}

/// Gives out the log line by line, until nobody wants more.
fn each_line(log: &mut Log, mut told: impl FnMut(&str) -> io::Result<()>) -> Result<(), Trouble> {
    loop {
        let mut lines = log.new_lines().map_err(|error| unreadable(&log.path, &error))?;
        let at_end = lines.is_empty();
        if at_end {
            lines.extend(log.last_line());
        }
        // Whoever reads only the first lines has what they wanted.
        if lines.iter().try_for_each(|line| told(line)).is_err() || at_end {
            return Ok(());
        }
    }
}
