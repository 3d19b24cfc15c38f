//! `rialto agent ls`, `search` and `show`: list agents, find them and show one.

use std::collections::BTreeMap;

use rialto_client::CallError;
use rialto_client::relay::{AgentFilter, ListedAgent};
use serde_json::value::RawValue;

use crate::commands::agent_names::resolve_agent;
use crate::commands::v1::{
    AgentView, OwnInterface, OwnServer, Pages, SkillView, millionths, parse_json, unreadable,
};
use crate::commands::{
    Answer, CliResult, Column, Exit, HubOptions, Table, V1, escape_line, output,
};

/// Pages of the hub's list read for one search.
const PAGES_MAX: usize = 50;
/// The protocol whose agents a relay server knows.
const RELAY: &str = "relay";

#[derive(clap::Args)]
pub struct Args {
    /// Only agents of this culture
    #[arg(long, value_name = "TAG")]
    culture: Option<String>,
    /// Only agents that understand this language
    #[arg(long, value_name = "TAG")]
    language: Option<String>,
    /// Only agents that are online
    #[arg(long)]
    online: bool,
    /// Only agents of this protocol
    #[arg(long)]
    protocol: Option<String>,
    /// Only agents whose record contains this text
    #[arg(short, value_name = "TEXT")]
    query: Option<String>,
}

#[derive(clap::Args)]
pub struct SearchArgs {
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

pub async fn list(options: &HubOptions, args: &Args) -> CliResult {
    let filter = AgentFilter {
        culture: args.culture.clone(),
        language: args.language.clone(),
        online: args.online.then_some(true),
        protocol: args.protocol.clone(),
        q: args.query.clone(),
    };
    let agents = options.relay_server().await?.agents(&filter).await?;
    if options.json {
        return Ok(output::print_list(agents.iter().map(|agent| agent.raw().get())));
    }
    // A closed pipe is not an error: the reader has seen enough.
    let _ = agents.iter().try_for_each(|agent| output::print_line(&agent_line(agent)));
    Ok(Exit::Ok)
}

/// An agent of a relay server on one line.
fn agent_line(agent: &ListedAgent) -> String {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { escape_line(text) };
    let online = agent.online.map_or("-", |online| if online { "online" } else { "offline" });
    let words = [
        escape_line(&agent.agent_id),
        or_dash(agent.culture.as_deref().unwrap_or_default()),
        or_dash(&agent.languages.join(",")),
        online.to_owned(),
        or_dash(agent.protocol.as_deref().unwrap_or_default()),
    ];
    words.join("  ")
}

pub async fn search(options: &HubOptions, args: &SearchArgs) -> CliResult {
    let (api, _) = options.client()?;
    let values = vec![
        ("q", args.query.clone()),
        ("skill", args.skill.clone()),
        ("online", args.online.then(|| "true".to_owned())),
    ];
    let (agents, is_complete) = find_matches(api.agents(values), args).await?;
    if options.json {
        return Ok(output::print_list(agents.iter().map(|(answer, _)| answer.text.as_str())));
    }
    if agents.is_empty() {
        output::print_stderr(
            "no agent matches; `rialto agent search` without arguments lists all agents",
        );
        return Ok(Exit::Ok);
    }
    table(agents.iter().map(|(_, agent)| agent), args.skill.as_deref()).print();
    if !is_complete {
        output::print_stderr("there may be more; raise --limit or narrow the search");
    }
    Ok(Exit::Ok)
}

/// Matching agents, and whether these are all.
async fn find_matches(
    mut pages: Pages<AgentView>,
    args: &SearchArgs,
) -> Result<(Vec<(Answer<AgentView>, AgentView)>, bool), CallError> {
    let limit = usize::from(args.limit);
    let mut matches = Vec::new();
    for _ in 0..PAGES_MAX {
        let Some(items) = pages.next_page(limit).await? else { break };
        for item in items {
            let agent = item.parse()?;
            if !args.matches(&agent) {
                continue;
            }
            if matches.len() == limit {
                return Ok((matches, false));
            }
            matches.push((item, agent));
        }
    }
    Ok((matches, !pages.has_more()))
}

impl SearchArgs {
    /// The filters that the hub does not apply.
    fn matches(&self, agent: &AgentView) -> bool {
        let score = millionths(agent.score.get());
        let is_good = self.min_score.is_none_or(|least| score.is_some_and(|score| score >= least));
        is_good && self.max_price.is_none_or(|most| self.has_price_within(agent, most))
    }

    fn has_price_within(&self, agent: &AgentView, most: i64) -> bool {
        let is_named = |name: &str| self.skill.as_deref().is_none_or(|skill| skill == name);
        // A price by offer has no limit.
        let priced = agent.skills.iter().filter(|skill| is_named(&skill.name) && !skill.by_offer);
        let mut prices = priced.filter_map(|skill| millionths(skill.price.get()));
        prices.any(|price| price <= most)
    }
}

impl SkillView {
    /// The price as text.
    fn price_text(&self) -> &str {
        if self.by_offer { "by offer" } else { self.price.get() }
    }
}

impl AgentView {
    fn state(&self) -> &'static str {
        if self.online { "online" } else { "offline" }
    }

    /// How it ranks and why, if the hub shows it.
    fn rank_text(&self) -> Option<String> {
        let (score, paid) = (self.rank_score.as_ref()?, self.credits_paid.as_ref()?);
        let (owners, failures) = (self.counterparties?, self.owner_failures?);
        let rank = format!("ranks as {}: {owners} other owners paid {}", score.get(), paid.get());
        Some(match failures {
            0 => rank,
            _ => format!("{rank}, its owner's other agents failed {failures} times"),
        })
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
    let agents: Vec<&AgentView> = agents.collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for agent in &agents {
        *counts.entry(&agent.name).or_default() += 1;
    }
    for agent in &agents {
        let shown = agent.skills.iter().filter(|one| skill.is_none_or(|skill| skill == one.name));
        let skills: Vec<String> =
            shown.map(|skill| format!("{} {}", skill.name, skill.price_text())).collect();
        let (id, jobs) = (agent.id.to_string(), agent.jobs_settled.to_string());
        let AgentView { name, names, protocol, score, .. } = *agent;
        // Several agents may have one display name, but only one has this.
        let unique = names.get(protocol).filter(|unique| *unique != name && counts[&**name] > 1);
        let name = unique.map_or_else(|| name.clone(), |unique| format!("{unique} ({name})"));
        let skills = skills.join(", ");
        table.push_row([&id, &name, protocol, &skills, score.get(), &jobs, agent.state()]);
    }
    table
}

/// An agent's record at the hub, and at the relay if it is a relay agent.
struct AgentDetails {
    known: Option<Answer<AgentView>>,
    record: Option<ListedAgent>,
}

pub async fn show(options: &HubOptions, name: &str) -> CliResult {
    let (api, _) = options.client()?;
    let id = resolve_agent(options, &api, name).await?;
    let details = fetch_details(options, &api, &id).await?;
    let text = if options.json { details.document()? } else { details.describe()? };
    Ok(output::print_data(text))
}

/// By any name first. A relay server may know more about its own agents, and may not be a hub.
async fn fetch_details(options: &HubOptions, api: &V1, id: &str) -> CliResult<AgentDetails> {
    let known = fetch_agent(api, id).await?;
    let agent = known.as_ref().map(Answer::parse).transpose()?;
    if agent.as_ref().is_some_and(|agent| agent.protocol != RELAY) {
        return Ok(AgentDetails { known, record: None });
    }
    let name = agent.as_ref().and_then(|agent| agent.names.get(RELAY));
    let server = options.relay_server().await?;
    let record = server.agent(name.map_or(id, |name| name)).await?;
    let known = match known {
        Some(known) => Some(known),
        None => fetch_agent(api, &format!("{RELAY}:{}", record.agent_id)).await?,
    };
    Ok(AgentDetails { known, record: Some(record) })
}

async fn fetch_agent(api: &V1, id: &str) -> Result<Option<Answer<AgentView>>, CallError> {
    match api.agent(id).await {
        Err(CallError::Refused { status: 404, .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

impl AgentDetails {
    /// One document: the relay's record and what the hub adds to it.
    fn document(&self) -> Result<String, CallError> {
        let texts = self.known.iter().map(|answer| answer.text.as_str());
        let records = self.record.iter().map(|record| record.raw().get());
        let mut whole = BTreeMap::new();
        for text in texts.chain(records) {
            let members: BTreeMap<String, Box<RawValue>> = parse_json(text)?;
            whole.extend(members);
        }
        serde_json::to_string(&whole).map_err(unreadable)
    }

    fn describe(&self) -> Result<String, CallError> {
        let mut lines = Vec::new();
        if let Some(record) = &self.record {
            let registered = record.registered_at.as_deref();
            let details = [("registered", registered), ("endpoint", record.endpoint.as_deref())];
            lines.push(agent_line(record));
            let details = details.into_iter().filter_map(|(name, value)| Some((name, value?)));
            lines.extend(details.map(|(name, value)| format!("{name} {}", escape_line(value))));
        }
        if let Some(answer) = &self.known {
            lines.extend(describe_agent(&answer.parse()?, self.record.is_none()));
        }
        Ok(lines.join("\n"))
    }
}

/// The hub's record as lines. The first line is left out if the relay's record is shown above.
fn describe_agent(agent: &AgentView, is_alone: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_alone {
        let (name, owner) = (escape_line(&agent.name), escape_line(&agent.owner));
        lines.push(format!("{name}  {}  {}  owner {owner}", agent.protocol, agent.state()));
        lines.push(format!("registered {}", escape_line(&agent.registered_at)));
    }
    lines.push(format!("number {}", agent.id));
    lines.push(format!("score {} after {} jobs", agent.score.get(), agent.jobs_settled));
    lines.extend(agent.rank_text());
    let names = agent.names.iter();
    lines.extend(names.map(|(protocol, name)| format!("name {protocol}:{}", escape_line(name))));
    lines.extend(agent.server.iter().flat_map(describe_server));
    for skill in &agent.skills {
        let about = if skill.description.is_empty() { "" } else { "  " };
        let (name, price) = (escape_line(&skill.name), skill.price_text());
        lines.push(format!("skill {name}  {price}{about}{}", escape_line(&skill.description)));
        for (name, schema) in [("input", &skill.input_schema), ("output", &skill.output_schema)] {
            let schema = schema.as_deref().map(RawValue::get).filter(|schema| *schema != "{}");
            lines.extend(schema.map(|schema| format!("  {name} {}", escape_line(schema))));
        }
    }
    lines
}

/// An agent's own server as lines.
fn describe_server(server: &OwnServer) -> Vec<String> {
    let OwnServer { card_url, interface, signature, proven, fetched_at, problem } = server;
    let OwnInterface { url, binding, version } = interface;
    let owner = if *proven { "proven" } else { "not proven" };
    let mut lines = vec![
        format!("server {} {}", escape_line(url), escape_line(&format!("{binding} {version}"))),
        format!("card at {}", escape_line(card_url)),
        format!("card {signature}, owner {owner}, fetched {}", escape_line(fetched_at)),
    ];
    lines.extend(problem.as_ref().map(|problem| {
        format!("card not fetched {}: {}", escape_line(&problem.at), escape_line(&problem.text))
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::assert_fits;

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

    #[test]
    fn agents_of_one_display_name_are_told_apart() {
        let agent = |id: u32, name: &str| -> AgentView {
            let text = format!(
                r#"{{"id":{id},"name":"{name}","owner":"o","protocol":"a2a","names":{{"a2a":"geo-{id}"}},
                "score":50.0,"jobs_settled":0,"online":true,"registered_at":"t","skills":[]}}"#
            );
            parse_json(&text).expect("an agent")
        };
        let agents = [agent(1, "Geo"), agent(2, "Geo"), agent(3, "Alone")];
        let shown = table(agents.iter(), None).lines(None).join("\n");
        for name in ["geo-1 (Geo)", "geo-2 (Geo)", " Alone "] {
            assert!(shown.contains(name), "{name} is not in\n{shown}");
        }
    }

    fn args(max_price: Option<i64>, min_score: Option<i64>, skill: Option<&str>) -> SearchArgs {
        let skill = skill.map(str::to_owned);
        SearchArgs { query: None, skill, max_price, min_score, online: false, limit: 1 }
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
