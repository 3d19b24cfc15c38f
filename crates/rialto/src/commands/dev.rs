//! `rialto dev`: a temporary hub for development, with two demo agents and hints what to do next.

use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rialto_client::Agent;
use rialto_client::agent::{Job, Outcome, Skill, SkillError};
use rialto_engine::Engine;
use rialto_hub::config::Profile;
use rialto_hub::v1::HistoryReader;
use serde_json::{Value, json};

use super::context::DEFAULT_HUB;
use super::{Exit, init, output, print_error, serve};

/// Lines of the history read at once.
const PAGE: usize = 256;

#[derive(clap::Args)]
pub struct Args {
    /// Address and port to listen on
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Public URL of the hub, if it differs from that address
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Do not print events
    #[arg(long, short)]
    quiet: bool,
    /// Keep the data in this directory instead of removing it
    #[arg(long)]
    data: Option<PathBuf>,
    /// Other settings, as key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(args: Args) -> Exit {
    // Removed when the command ends, unless --data is given.
    let scratch = match tempfile::Builder::new().prefix("rialto-dev-").tempdir() {
        Ok(scratch) => scratch,
        Err(error) => return print_error(error),
    };
    let own = args.data.is_none().then(|| scratch.path().to_owned());
    let address = (args.listen, args.public_url);
    let flags = match serve::settings_from_flags(address, args.data.as_ref(), &args.set) {
        Ok(flags) => flags,
        Err(exit) => return exit,
    };
    let data = args.data.or_else(|| own.clone()).unwrap_or_default();
    let source = serve::ConfigSource { profile: Profile::Dev, file: None, flags, scratch: own };
    serve::run_hub(&source, false, |hub| {
        let (url, address) = (hub.url.clone(), hub.address);
        // The hub keeps running if standard output is closed.
        output::print_data(greeting(&url, hub.new_operator_key.as_deref()));
        if !args.quiet {
            tokio::spawn(print_history(hub.engine.clone()));
        }
        tokio::spawn(run_demo_agents(format!("http://{address}"), data.clone()));
    })
}

/// The addresses, and what to do next.
fn greeting(url: &str, new_operator_key: Option<&str>) -> String {
    let protocols: Vec<_> = rialto_protocols::ALL
        .iter()
        .map(|adapter| format!("{0} at {url}/{0}", adapter.id()))
        .collect();
    let mut lines = vec![
        format!("rialto {} dev hub at {url}", env!("CARGO_PKG_VERSION")),
        format!("protocols: {}, and at the root", protocols.join(", ")),
        format!("Rialto API: {url}/v1"),
        match new_operator_key {
            Some(key) => format!("operator key (shown only once): {key}"),
            None => "operator key: the one shown at the first start, or yours".to_owned(),
        },
        "two demo agents are running: word-counter (count_words, 0.05) and echo (echo, free)"
            .to_owned(),
        format!("\ntry:\n  curl '{url}/discover?skill=count_words'"),
        format!(
            "  curl -d '{{\"agent_name\":\"me\",\"owner_id\":\"me\",\"skills\":[]}}' {url}/registry/register"
        ),
        format!(
            "  curl -d '{{\"orchestrator_id\":\"guest\",\"skill_name\":\"echo\",\"input_data\":{{\"hello\":\"world\"}},\"budget\":0}}' {url}/jobs"
        ),
        format!(
            "  curl -d '{{\"message\":{{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"count words\"}}]}}}}' {url}/a2a/message:send"
        ),
        "\nconnect a model by MCP:\n  rialto connect claude-code --apply".to_owned(),
        "\nrun your own agent, in an empty folder:".to_owned(),
    ];
    if url != DEFAULT_HUB {
        lines.push(format!("  export RIALTO_HUB={url}"));
    }
    lines.extend(
        ["rialto init agent --lang python --plain", "rialto agent run", init::POST_JOB_EXAMPLE]
            .map(|line| format!("  {line}")),
    );
    lines.join("\n")
}

/// Registers both demo agents and serves jobs until the hub stops. They work like any others: over
/// HTTP, with their own keys, which are kept in the hub's data directory so that a restarted hub finds
/// them again.
async fn run_demo_agents(hub_url: String, data: impl AsRef<Path>) {
    let (counter, echo) = match build_agents(&hub_url, data.as_ref()) {
        Ok(both) => both,
        Err(error) => return tracing::error!(%error, "cannot create the demo agents"),
    };
    // If one ends, the other continues.
    tokio::join!(run_agent(counter, "word-counter"), run_agent(echo, "echo"));
}

async fn run_agent(agent: Agent, name: &str) {
    if let Err(error) = agent.run(pending()).await {
        tracing::warn!(%error, agent = name, "a demo agent stopped; restart the hub to bring it back");
    }
}

fn build_agents(hub_url: &str, data: &Path) -> Result<(Agent, Agent), SkillError> {
    let state_dir = |name: &str| data.join("demo-agents").join(name);
    let counting = Skill::new("count_words", "0.05")?.description("Counts the words of a text");
    let echoing = Skill::new("echo", "0")?.description("Returns its input");
    let counter = Agent::new("word-counter")
        .owner("rialto-demo-counter")
        .skill(counting, count_words)
        .state_path(state_dir("word-counter"))
        .hub(hub_url);
    let echo = Agent::new("echo")
        .owner("rialto-demo-echo")
        .skill(echoing, |job: Job| async { Outcome::Done(job.input) })
        .state_path(state_dir("echo"))
        .hub(hub_url);
    Ok((counter, echo))
}

async fn count_words(job: Job) -> Outcome {
    let input: Value = job.input().unwrap_or_default();
    match input.get("text").and_then(Value::as_str) {
        Some(text) => Outcome::from_output(&json!({"words": text.split_whitespace().count()})),
        None => Outcome::Failed("the input needs a text: {\"text\":\"one two three\"}".to_owned()),
    }
}

/// Prints events from now on, until the reader closes the pipe or the hub stops.
async fn print_history(engine: Engine) {
    let mut history = HistoryReader::from_now(engine);
    while let Ok(lines) = history.next_lines(PAGE).await {
        for line in &lines {
            for text in describe(line) {
                if output::print_line(&text).is_err() {
                    return;
                }
            }
        }
    }
}

/// The facts of one history line, one text each: time, event and details.
fn describe(line: &str) -> Vec<String> {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    let at = line["at"].as_str().and_then(|at| at.get(11..19)).unwrap_or_default();
    let facts = line["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let describe_fact = |fact: &Value| {
        let name = fact["event"].as_str().unwrap_or_default().replace('_', " ");
        let members = fact.as_object().into_iter().flatten();
        let members = members.filter(|(name, value)| *name != "event" && !value.is_null());
        let text = |value: &Value| match value {
            Value::String(text) => output::escape_line(text),
            other => other.to_string(),
        };
        members.fold(format!("{at}  {name}"), |line, (name, value)| {
            format!("{line}  {name}={}", text(value))
        })
    };
    facts.iter().map(describe_fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_of_a_line_is_told_on_a_line_of_its_own() {
        let line = r#"{"line":7,"at":"2026-02-11T14:15:09.123Z","events":[
            {"event":"job_opened","job":"f81d"},
            {"event":"job_assigned","job":"f81d","worker":3,"cause":null},
            {"event":"granted","owner":"a\u001bb","amount":1.50}]}"#;
        let expected = [
            "14:15:09  job opened  job=f81d",
            "14:15:09  job assigned  job=f81d  worker=3",
            "14:15:09  granted  amount=1.5  owner=a\\u{1b}b",
        ];
        let mut lines = describe(line);
        for line in &mut lines {
            // Members come in no particular order.
            let mut parts: Vec<&str> = line.split("  ").collect();
            parts[2..].sort_unstable();
            *line = parts.join("  ");
        }
        assert_eq!(lines, expected);
        assert!(describe("nonsense").is_empty());
    }
}
