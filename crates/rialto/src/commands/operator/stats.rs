//! `rialto operator stats`.

use serde_json::Value;

use super::super::access::Access;
use super::super::say;
use super::super::trouble::Trouble;
use super::super::views::{get, read};
use super::caller;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator stats\n  rialto operator stats --json | jq .live_jobs\n\nOne number per line. /metrics has more, for Prometheus."
)]
pub struct Args {}

pub async fn run(access: &Access, _: &Args) -> Result<Exit, Trouble> {
    let answer = get(&caller(access)?, "/v1/operator/stats").await?;
    if access.json {
        let _ = say::line(&answer);
        return Ok(Exit::Ok);
    }
    // Raw, so that amounts keep the digits they came with.
    type Members = serde_json::Map<String, Value>;
    let raw: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> = read(&answer)?;
    for (name, value) in &raw {
        let nested: Option<Members> = serde_json::from_str(value.get()).ok();
        let shown = match &nested {
            Some(counts) if counts.is_empty() => "none".to_owned(),
            Some(counts) => {
                let each = counts.iter().map(|(state, count)| format!("{count} {state}"));
                each.collect::<Vec<_>>().join(", ")
            }
            None => value.get().to_owned(),
        };
        if say::line(&format!("{}: {shown}", name.replace('_', " "))).is_err() {
            break;
        }
    }
    Ok(Exit::Ok)
}
