//! `rialto job trace`: shows how a job and each of its fields was translated.

use rialto_client::{CallError, Hub, Method};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::notes::{NoteRow, table};
use super::super::output::{self, escape_line};
use super::super::uri::encode_part;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto job trace f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --key-file alice.key\n  RIALTO_KEY=rk_… rialto job trace f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --json\n\nNeeds the key of one of the two parties (for agora, its inbox token), or RIALTO_OPERATOR_KEY for\neverything but the content. The --json document is the hub's answer."
)]
pub struct Args {
    /// Id of the job: the hub's (header Rialto-Job), or your own
    id: String,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let keys = access.load_key_from(&["RIALTO_KEY", "RIALTO_OPERATOR_KEY"])?;
    let key = keys.as_ref().map_or("", |keys| keys.key.reveal());
    let hub = Hub::new(access.hub_url(keys.as_ref()))?.with_key(key);
    let path = format!("/v1/jobs/{}/trace", encode_part(&args.id));
    let asked = hub.call_text(Method::GET, &path, None).await;
    let (_, answer) = asked.map_err(|error| super::job_error(error, super::HINT_OWN))?;
    let shown = match access.json {
        true => answer,
        false => told(&answer).map_err(CallError::Unreadable)?,
    };
    let _ = output::print_line(&shown);
    Ok(Exit::Ok)
}

#[derive(Deserialize)]
struct Trace {
    job: String,
    state: String,
    skill: String,
    requester: Party,
    worker: Option<Party>,
    money: Money,
    hops: Vec<Hop>,
    evidence: Vec<Evidence>,
}

#[derive(Deserialize)]
struct Party {
    protocol: String,
    id: String,
}

#[derive(Deserialize)]
struct Money {
    budget: Option<Box<RawValue>>,
    price: Option<Box<RawValue>>,
    paid: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Hop {
    what: String,
    from: String,
    to: String,
    at: String,
    notes: Vec<NoteRow>,
    asked: Option<String>,
    given: Option<String>,
}

#[derive(Deserialize)]
struct Evidence {
    protocol: String,
    of: String,
    text: String,
}

/// A trace as text.
fn told(answer: &str) -> Result<String, String> {
    let trace: Trace = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    let mut lines = vec![
        format!("job        {} {} ({})", trace.job, trace.state, escape_line(&trace.skill)),
        format!("requester  {}", trace.requester.describe()),
        format!("worker     {}", trace.worker.as_ref().map_or("none".to_owned(), Party::describe)),
        format!("money      {}", trace.money.told()),
    ];
    for hop in &trace.hops {
        lines.push(format!("\n{}  {} → {}  {}", hop.what, hop.from, hop.to, hop.at));
        let messages = [("asked", &hop.asked), ("given", &hop.given)];
        for (name, text) in messages.into_iter().filter_map(|(n, text)| Some((n, text.as_ref()?))) {
            lines.push(format!("  {name}  {}", escape_line(text)));
        }
        lines.push(table(&hop.notes));
    }
    for evidence in &trace.evidence {
        let Evidence { protocol, of, text } = evidence;
        lines.push(format!("\nevidence  {protocol} {of}\n  {}", escape_line(text)));
    }
    Ok(lines.join("\n"))
}

impl Party {
    fn describe(&self) -> String {
        format!("{} {}", self.protocol, escape_line(&self.id))
    }
}

impl Money {
    fn told(&self) -> String {
        let parts = [("budget", &self.budget), ("price", &self.price), ("paid", &self.paid)];
        let known = parts.into_iter().filter_map(|(name, amount)| Some((name, amount.as_deref()?)));
        known
            .map(|(name, amount)| format!("{name} {}", amount.get()))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_told_with_the_digits_it_came_with() {
        let answer = r#"{"job":"j","state":"completed","skill":"sum","requester":{"protocol":"registry","id":"a"},
            "worker":null,"money":{"budget":1.50,"price":null,"paid":0.10},"hops":[{"what":"request","from":"registry",
            "to":"agora","at":"t","notes":[{"field":"/x","part":"extra","fate":"kept","value":1}],"asked":"{\n}","given":"{}"}],
            "evidence":[{"protocol":"agora","of":"request","text":"{}"}]}"#;
        let told = told(answer).expect("a trace");
        for line in [
            "job        j completed (sum)",
            "requester  registry a",
            "worker     none",
            "money      budget 1.50, paid 0.10",
            "request  registry → agora  t",
            "  asked  {\\n}",
            "  /x  kept  1",
            "evidence  agora request",
        ] {
            assert!(told.lines().any(|one| one == line), "{line} is not in\n{told}");
        }
    }
}
