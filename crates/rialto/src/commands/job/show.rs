//! `rialto job show`: shows one job.

use rialto_client::Hub;
use serde_json::value::RawValue;

use super::super::hub_options::Access;
use super::super::output::{self, one_line};
use super::super::error::Trouble;
use super::super::uri::part;
use super::super::views::{get, read};
use super::agent_name_cache::Names;
use super::pretty::pretty;
use super::view::Job;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto job show f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto job show f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --json | jq .result.output\n\nOnly the requester and the worker can see a job. The --json document is the hub's answer."
)]
pub struct Args {
    /// Id of the job: the hub's, or your own
    id: String,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let path = format!("/v1/jobs/{}", part(&args.id));
    let text = get(&hub, &path).await.map_err(|error| super::refused(error, super::YOURS))?;
    let shown = match access.json {
        true => text,
        false => told(&hub, &read(&text)?).await,
    };
    let _ = output::line(&shown);
    Ok(Exit::Ok)
}

async fn told(hub: &Hub, job: &Job) -> String {
    let mut names = Names::default();
    let requester = names.of_any(hub, job.requester).await.or(job.guest.clone());
    let worker = names.of_any(hub, job.worker).await;
    // For a cancelled job the cause only repeats the state.
    let cause = job.cause.as_deref().filter(|cause| *cause != job.state);
    let cause = cause.map(|cause| format!(": {}", one_line(cause)));
    let mut lines = vec![
        format!("job        {} {}{}", job.id, job.state, cause.unwrap_or_default()),
        format!("skill      {}", one_line(&job.skill)),
        format!("requester  {}", one_line(requester.as_deref().unwrap_or("-"))),
        format!("worker     {}", one_line(worker.as_deref().unwrap_or("none"))),
        format!("money      {}", money(job)),
    ];
    let times = [
        ("opened", Some(job.opened_at.as_str())),
        ("assigned", job.assigned_at.as_deref()),
        ("deadline", job.deadline.as_deref().filter(|_| !job.is_over())),
        ("ended", job.ended_at.as_deref()),
    ];
    for (name, time) in times.into_iter().filter_map(|(name, time)| Some((name, time?))) {
        lines.push(format!("{name:10} {}", one_line(time)));
    }
    if let Some(text) = job.result.as_ref().and_then(|result| result.text.as_deref()) {
        lines.push(format!("message    {}", one_line(text)));
    }
    let contents = [("input", job.input.as_deref()), ("output", job.output())];
    for (name, json) in contents.into_iter().filter_map(|(name, json)| Some((name, json?))) {
        lines.push(format!("{name}\n{}", pretty(json.get())));
    }
    lines.join("\n")
}

fn money(job: &Job) -> String {
    let parts = [("budget", &job.budget), ("price", &job.price), ("paid", &job.paid)];
    let known = parts.into_iter().filter_map(|(name, amount)| Some((name, amount.as_deref()?)));
    let known: Vec<String> =
        known.map(|(name, amount): (_, &RawValue)| format!("{name} {}", amount.get())).collect();
    known.join(", ")
}
