//! `rialto job ls`: lists the caller's jobs.

use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::views::{Pages, parse_json};
use super::agent_name_cache::AgentNameCache;
use super::view::JobView;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job ls\n  rialto job ls --worked --state ended --limit 5\n  rialto job ls --state live --json | jq -r '.[].id'\n\nOne line per job: id, state, skill, other party, credits, when it was opened. Live jobs come\nfirst, oldest first; then ended jobs, newest first. The --json document is a list of jobs as the\nhub shows them."
)]
pub struct Args {
    /// Jobs you posted (the default)
    #[arg(long, conflicts_with = "worked")]
    asked: bool,
    /// Jobs you work on or worked on
    #[arg(long)]
    worked: bool,
    /// Live jobs, ended jobs, or both
    #[arg(long, value_name = "WHICH", value_parser = ["live", "ended", "all"], default_value = "all")]
    state: String,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let side = if args.worked { "worked" } else { "asked" };
    let stages: &[&str] = match args.state.as_str() {
        "live" => &["live"],
        "ended" => &["ended"],
        _ => &["live", "ended"],
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut jobs = Vec::new();
    for stage in stages {
        let which = vec![("side", Some(side.to_owned())), ("state", Some((*stage).to_owned()))];
        let mut pages = Pages::new(&hub, "/v1/jobs", which);
        while jobs.len() < limit {
            match pages.next_page(limit - jobs.len()).await? {
                Some(more) => jobs.extend(more),
                None => break,
            }
        }
    }
    if access.json {
        let texts: Vec<&str> = jobs.iter().map(|job| job.get()).collect();
        let _ = output::print_line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    let mut table = table(if args.worked { "FOR" } else { "BY" });
    let mut names = AgentNameCache::default();
    for job in &jobs {
        let job: JobView = parse_json(job.get())?;
        let other = match args.worked {
            true => names.get_optional(&hub, job.requester).await.or(job.guest.clone()),
            false => names.get_optional(&hub, job.worker).await,
        };
        row(&mut table, &job, other.as_deref());
    }
    table.print();
    Ok(Exit::Ok)
}

/// Other commands need the id, so it is never cut; `rialto job show` has the rest.
fn table(other: &'static str) -> Table {
    Table::new([
        Column::text("ID"),
        Column::text("STATE"),
        Column::flexible("SKILL"),
        Column::flexible(other).droppable(2),
        Column::number("CREDITS").droppable(3),
        Column::time("OPENED").droppable(1),
    ])
}

fn row(table: &mut Table, job: &JobView, other: Option<&str>) {
    let credits = [&job.paid, &job.price, &job.budget].into_iter().find_map(Option::as_deref);
    let credits = credits.map_or("", RawValue::get);
    let other = other.unwrap_or_default();
    table.push_row([&*job.id, &job.state, &job.skill, other, credits, &job.opened_at]);
}

#[cfg(test)]
mod tests {
    use super::super::super::table::assert_fits;
    use super::*;

    #[test]
    fn jobs_fit_a_terminal_with_their_ids_whole() {
        let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        let text = format!(
            r#"{{"id":"{id}","skill":"summarize_and_translate","state":"negotiating","requester":1,"worker":2,
            "epoch":1,"budget":100.00,"opened_at":"2026-02-11T14:15:09.123Z"}}"#
        );
        let mut table = table("BY");
        row(&mut table, &parse_json(&text).expect("a job"), Some("a worker with a long name"));
        assert_fits(&table, "ID STATE SKILL BY CREDITS");
        assert!(table.lines(Some(80))[1].starts_with(id));
    }
}
