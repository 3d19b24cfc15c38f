//! `rialto job show`: shows one job.

use rialto_client::Hub;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::uri::encode_part;
use super::super::views::{get_text, parse_json};
use super::agent_name_cache::AgentNameCache;
use super::pretty::pretty;
use super::view::JobView;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job show f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job show f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --json | jq .result.output\n\nOnly the requester and the worker can see a job. The --json document is the hub's answer."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own
    id: String,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let path = format!("/v1/jobs/{}", encode_part(&args.id));
    let text =
        get_text(&hub, &path).await.map_err(|error| super::job_error(error, super::HINT_OWN))?;
    let shown = match access.json {
        true => text,
        false => describe(&hub, &parse_json(&text)?).await,
    };
    let _ = output::print_line(&shown);
    Ok(Exit::Ok)
}

async fn describe(hub: &Hub, job: &JobView) -> String {
    let mut names = AgentNameCache::default();
    let requester = names.get_optional(hub, job.requester).await.or(job.guest.clone());
    let worker = names.get_optional(hub, job.worker).await;
    // For a cancelled job the cause only repeats the state.
    let cause = job.cause.as_deref().filter(|cause| *cause != job.state);
    let cause = cause.map(|cause| format!(": {}", escape_line(cause)));
    let mut lines = vec![
        format!("job        {} {}{}", job.id, job.state, cause.unwrap_or_default()),
        format!("skill      {}", escape_line(&job.skill)),
        format!("requester  {}", escape_line(requester.as_deref().unwrap_or("-"))),
        format!("worker     {}", escape_line(worker.as_deref().unwrap_or("none"))),
        format!("money      {}", money(job)),
    ];
    let times = [
        ("opened", Some(job.opened_at.as_str())),
        ("assigned", job.assigned_at.as_deref()),
        ("deadline", job.deadline.as_deref().filter(|_| !job.has_ended())),
        ("ended", job.ended_at.as_deref()),
    ];
    for (name, time) in times.into_iter().filter_map(|(name, time)| Some((name, time?))) {
        lines.push(format!("{name:10} {}", escape_line(time)));
    }
    if let Some(text) = job.result.as_ref().and_then(|result| result.text.as_deref()) {
        lines.push(format!("message    {}", escape_line(text)));
    }
    let contents = [("input", job.input.as_deref()), ("output", job.output())];
    for (name, json) in contents.into_iter().filter_map(|(name, json)| Some((name, json?))) {
        lines.push(format!("{name}\n{}", pretty(json.get())));
    }
    lines.join("\n")
}

fn money(job: &JobView) -> String {
    let parts = [("budget", &job.budget), ("price", &job.price), ("paid", &job.paid)];
    let known = parts.into_iter().filter_map(|(name, amount)| Some((name, amount.as_deref()?)));
    let known: Vec<String> =
        known.map(|(name, amount): (_, &RawValue)| format!("{name} {}", amount.get())).collect();
    known.join(", ")
}
