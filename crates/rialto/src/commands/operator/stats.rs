//! `rialto operator stats`: shows statistics of the hub.

use serde::Deserialize;
use serde_json::Value;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::views::{get_text, parse_json};
use super::operator_client;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator stats\n  rialto operator stats --json | jq .live_jobs\n\nOne number per line. /metrics has more, for Prometheus."
)]
pub struct Args {}

/// Memory used by rows, in bytes.
#[derive(Deserialize)]
struct MemoryUse {
    used: u64,
    limit: u64,
    limit_per_owner: u64,
}

impl MemoryUse {
    fn describe(&self) -> String {
        let [used, limit, one] = [self.used, self.limit, self.limit_per_owner].map(format_bytes);
        format!("{used} of {limit} used, at most {one} by one owner; --json lists the owners")
    }
}

/// A number of bytes as text.
fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut tenths, mut unit) = (bytes.saturating_mul(10), "B");
    for larger in UNITS {
        if tenths < 10 * 1_024 {
            break;
        }
        (tenths, unit) = (tenths / 1_024, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

pub async fn run(access: &HubOptions, _: &Args) -> Result<Exit, CliError> {
    let answer = get_text(&operator_client(access)?, "/v1/operator/stats").await?;
    if access.json {
        let _ = output::print_line(&answer);
        return Ok(Exit::Ok);
    }
    // Raw, so that amounts keep their digits.
    type Members = serde_json::Map<String, Value>;
    let raw: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
        parse_json(&answer)?;
    for (name, value) in &raw {
        if name == "memory" {
            let memory: MemoryUse = parse_json(value.get())?;
            if output::print_line(&format!("memory: {}", memory.describe())).is_err() {
                break;
            }
            continue;
        }
        let nested: Option<Members> = serde_json::from_str(value.get()).ok();
        let shown = match &nested {
            Some(counts) if counts.is_empty() => "none".to_owned(),
            Some(counts) => {
                let each = counts.iter().map(|(state, count)| format!("{count} {state}"));
                each.collect::<Vec<_>>().join(", ")
            }
            None => value.get().to_owned(),
        };
        if output::print_line(&format!("{}: {shown}", name.replace('_', " "))).is_err() {
            break;
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        let told = [0, 1_023, 1_536, 512 << 20, u64::MAX].map(format_bytes);
        assert_eq!(told, ["0 B", "1023 B", "1.5 KiB", "512.0 MiB", "1677721.5 TiB"]);
    }
}
