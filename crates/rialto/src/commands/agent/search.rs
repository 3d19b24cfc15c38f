//! `rialto agent search`: finds agents by skill, price and score.

use rialto_client::CallError;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::table::{Column, Table};
use super::super::views::{AgentView, Pages, millionths, parse_json};
use crate::exit::Exit;

/// Pages of the hub's list read for one search.
const PAGES_MAX: usize = 50;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent search\n  rialto agent search translate --online\n  rialto agent search --skill count_words --max-price 0.10 --min-score 50\n  rialto agent search --skill count_words --json | jq '.[0].id'\n\nFinds agents of all protocols. With --skill, only those that can take a job now, best first; prices are\nthen those of that skill. The --json document is a list of agents as the hub shows them. Needs no\nkey."
)]
pub struct Args {
    /// Text in the agent's name or in the name of a skill
    query: Option<String>,
    /// Only agents with this skill
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Only agents with a price of at most this much
    #[arg(long, value_name = "CREDITS", value_parser = decimal)]
    max_price: Option<i64>,
    /// Only agents with at least this score, out of 100
    #[arg(long, value_name = "SCORE", value_parser = decimal)]
    min_score: Option<i64>,
    /// Only agents that are online
    #[arg(long)]
    online: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

/// A number in millionths, so that it is compared exactly.
fn decimal(text: &str) -> Result<i64, String> {
    millionths(text).ok_or_else(|| "write a number like 0.10".to_owned())
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client()?;
    let values = vec![
        ("q", args.query.clone()),
        ("skill", args.skill.clone()),
        ("online", args.online.then(|| "true".to_owned())),
    ];
    let pages = Pages::new(&hub, "/v1/agents", values);
    let (found, whole) = search(pages, args).await?;
    if access.json {
        let texts: Vec<&str> = found.iter().map(|(text, _)| text.get()).collect();
        let _ = output::print_line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        output::print_stderr(
            "no agent matches; `rialto agent search` without arguments lists all agents",
        );
        return Ok(Exit::Ok);
    }
    table(found.iter().map(|(_, agent)| agent), args.skill.as_deref()).print();
    if !whole {
        output::print_stderr("there may be more; raise --limit or narrow the search");
    }
    Ok(Exit::Ok)
}

/// Matching agents, and whether these are all.
async fn search(
    mut pages: Pages<'_>,
    args: &Args,
) -> Result<(Vec<(Box<RawValue>, AgentView)>, bool), CallError> {
    let limit = usize::from(args.limit);
    let mut found = Vec::new();
    for _ in 0..PAGES_MAX {
        let Some(items) = pages.next_page(limit).await? else { break };
        for text in items {
            let agent: AgentView = parse_json(text.get())?;
            if !args.matches(&agent) {
                continue;
            }
            if found.len() == limit {
                return Ok((found, false));
            }
            found.push((text, agent));
        }
    }
    Ok((found, !pages.has_more()))
}

impl Args {
    /// The filters that the hub does not apply.
    fn matches(&self, agent: &AgentView) -> bool {
        let score = millionths(agent.score.get());
        let good = self.min_score.is_none_or(|least| score.is_some_and(|score| score >= least));
        good && self.max_price.is_none_or(|most| self.has_price_within(agent, most))
    }

    fn has_price_within(&self, agent: &AgentView, most: i64) -> bool {
        let wanted = |name: &str| self.skill.as_deref().is_none_or(|skill| skill == name);
        // A price by offer has no limit.
        let priced = agent.skills.iter().filter(|skill| wanted(&skill.name) && !skill.by_offer);
        let mut prices = priced.filter_map(|skill| millionths(skill.price.get()));
        prices.any(|price| price <= most)
    }
}

fn table<'a>(agents: impl Iterator<Item = &'a AgentView>, skill: Option<&str>) -> Table {
    let mut table = Table::new([
        Column::number("ID"),
        Column::flexible("NAME"),
        Column::text("PROTOCOL"),
        Column::flexible("SKILLS"),
        Column::number("SCORE"),
        Column::number("JOBS"),
        Column::text("STATE"),
    ]);
    for agent in agents {
        let shown = agent.skills.iter().filter(|one| skill.is_none_or(|skill| skill == one.name));
        let skills: Vec<String> =
            shown.map(|skill| format!("{} {}", skill.name, skill.price_text())).collect();
        table.push_row([
            agent.id.to_string(),
            agent.name.clone(),
            agent.protocol.clone(),
            skills.join(", "),
            agent.score.get().to_owned(),
            agent.jobs_settled.to_string(),
            if agent.online { "online" } else { "offline" }.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::super::table::assert_fits;
    use super::*;

    #[test]
    fn agents_fit_a_terminal() {
        let text = r#"{"id":1000000,"name":"a translator with a rather long name","owner":"o","protocol":"openclaw",
            "names":{},"score":50.000001,"jobs_settled":100000,"online":false,"registered_at":"t","skills":[
            {"name":"translate_and_summarize","price":0.10,"description":""},
            {"name":"bid","price":0.00,"by_offer":true,"description":""}]}"#;
        let agent: AgentView = parse_json(text).expect("an agent");
        let table = table([&agent].into_iter(), None);
        assert_fits(&table, "ID NAME PROTOCOL SKILLS SCORE JOBS STATE");
    }

    fn args(max_price: Option<i64>, min_score: Option<i64>, skill: Option<&str>) -> Args {
        let skill = skill.map(str::to_owned);
        Args { query: None, skill, max_price, min_score, online: false, limit: 1 }
    }

    #[test]
    fn prices_and_scores_are_compared_to_the_digit() {
        let text = r#"{"id":7,"name":"a","owner":"o","protocol":"p","names":{},"score":50.000001,"jobs_settled":0,
            "online":true,"registered_at":"t","skills":[
            {"name":"sum","price":0.10,"description":""},{"name":"bid","price":0.00,"by_offer":true,"description":""}]}"#;
        let agent: AgentView = parse_json(text).expect("an agent");
        let cents = |text: &str| Some(decimal(text).expect("a number"));
        assert!(args(cents("0.1"), cents("50.000001"), None).matches(&agent));
        assert!(args(cents("0.1"), None, Some("sum")).matches(&agent));
        assert!(!args(cents("0.099999"), None, None).matches(&agent));
        assert!(!args(None, cents("50.000002"), None).matches(&agent));
        assert!(
            !args(cents("9"), None, Some("bid")).matches(&agent),
            "a price by offer has no limit"
        );
        assert!(decimal("-1").is_err() && decimal("cheap").is_err());
    }
}
