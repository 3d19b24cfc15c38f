//! `rialto rep explain`: shows each score's formula with its numbers, and recomputes it.

use rialto_client::CallError;
use rialto_core::reputation::Score;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::views::parse_millionths;
use super::reputation::{self, OpenclawScore, RegistryScore, Reputation, ScoreStep};
use crate::exit::Exit;

/// 1.0 in millionths.
const ONE: i64 = 1_000_000;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto rep explain\n  rialto rep explain alice@chorus\n  rialto rep explain 7 --json\n\nShows the formula of each protocol with the agent's numbers and recomputes it on this machine. A\nresult that differs from the hub's is marked, and the command exits with 1."
)]
pub struct Args {
    /// Number or any name of the agent [default: your own]
    agent: Option<String>,
}

/// A score and its recomputation.
struct ScoreCheck {
    protocol: &'static str,
    formula: String,
    /// The formula with numbers; `None` before the first job.
    formula_with_values: Option<String>,
    /// The recomputed score and the hub's, in millionths.
    result: Option<i64>,
    shown: Option<i64>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (_, facts) = reputation::fetch(access, args.agent.as_deref()).await?;
    let sums = score_checks(&facts)?;
    let _ = match access.json {
        true => {
            let sums: Vec<_> = sums.iter().map(ScoreCheck::to_json).collect();
            output::print_line(&json!({"agent": facts.agent, "sums": sums}).to_string())
        }
        false => {
            let lines: Vec<String> = sums.iter().map(ScoreCheck::describe).collect();
            output::print_line(&format!("agent {}\n{}", facts.agent, lines.join("\n")))
        }
    };
    Ok(if sums.iter().all(ScoreCheck::is_consistent) { Exit::Ok } else { Exit::Failed })
}

fn score_checks(facts: &Reputation) -> Result<[ScoreCheck; 2], CallError> {
    Ok([registry_check(&facts.registry)?, openclaw_check(&facts.openclaw)?])
}

/// The newest step, computed from the score before it.
fn registry_check(facts: &RegistryScore) -> Result<ScoreCheck, CallError> {
    let shown = Some(parse_millionths(&facts.score)?);
    let Some(step) = &facts.last else {
        let formula = "every agent starts at 50.0".to_owned();
        // An old last step is not shown, and then there is nothing to recompute.
        let fresh = facts.successes + facts.failures == 0;
        let result = if fresh { Some(Score::START.millionths()) } else { shown };
        return Ok(ScoreCheck {
            protocol: "registry",
            formula,
            formula_with_values: None,
            result,
            shown,
        });
    };
    let ScoreStep { before, hirer, ok, after, formula } = step;
    let (old, by) = (
        Score::from_millionths(parse_millionths(before)?),
        Score::from_millionths(parse_millionths(hirer)?),
    );
    let result = if *ok { old.after_success(by) } else { old.after_failure() };
    let filled = match ok {
        true => format!("{} + 2.0 × {}/100", before.get(), hirer.get()),
        false => format!("{} − 3.0 × 1.5", before.get()),
    };
    // Both the step and the score after it must match what the hub shows.
    let shown = shown.filter(|shown| parse_millionths(after).is_ok_and(|after| after == *shown));
    let formula = format!("{formula}, never below 0 or above 100");
    Ok(ScoreCheck {
        protocol: "registry",
        formula,
        formula_with_values: Some(filled),
        result: Some(result.millionths()),
        shown,
    })
}

/// Weighted shares of the newest jobs.
fn openclaw_check(facts: &OpenclawScore) -> Result<ScoreCheck, CallError> {
    let shown = facts.score.as_deref().map(parse_millionths).transpose()?;
    let OpenclawScore { success_rate, on_time_completion_rate, average_response_time_ms, .. } =
        facts;
    let rates = success_rate.as_deref().zip(on_time_completion_rate.as_deref());
    let (filled, result) = match rates.zip(*average_response_time_ms) {
        None => (None, None),
        Some(((success, on_time), average)) => {
            let scale = facts.response_scale_ms;
            let result = weighted_score(
                parse_millionths(success)?,
                parse_millionths(on_time)?,
                average,
                scale,
            );
            let (success, on_time) = (success.get(), on_time.get());
            let swift = format!("(1 − {average}/{scale})");
            let filled = format!("0.6 × {success} + 0.3 × {on_time} + 0.1 × {swift}");
            (Some(filled), Some(result))
        }
    };
    Ok(ScoreCheck {
        protocol: "openclaw",
        formula: facts.formula.clone(),
        formula_with_values: filled,
        result,
        shown,
    })
}

/// The weighted sum in millionths, truncated at each step as the formula requires.
fn weighted_score(success: i64, on_time: i64, average_ms: i64, scale_ms: i64) -> i64 {
    let slow = average_ms.saturating_mul(ONE) / scale_ms.max(1);
    let swift = ONE.saturating_sub(slow).clamp(0, ONE);
    (success * 6 + on_time * 3 + swift) / 10
}

impl ScoreCheck {
    fn is_consistent(&self) -> bool {
        self.result == self.shown
    }

    fn describe(&self) -> String {
        let score = |score: Option<i64>| score.map_or("none".to_owned(), decimal);
        let filled = match &self.formula_with_values {
            Some(filled) => format!("\n  {filled} = {}", score(self.result)),
            None => format!("\n  no finished job yet: {}", score(self.result)),
        };
        let verdict = match self.is_consistent() {
            true => "  matches the hub".to_owned(),
            false => format!("  MISMATCH: the hub shows {}", score(self.shown)),
        };
        format!("{}\n  {}{}{verdict}", self.protocol, escape_line(&self.formula), filled)
    }

    fn to_json(&self) -> serde_json::Value {
        let number = |score: Option<i64>| score.map(decimal);
        json!({
            "protocol": self.protocol, "formula": self.formula, "filled": self.formula_with_values,
            "computed": number(self.result), "hub": number(self.shown), "agrees": self.is_consistent(),
        })
    }
}

/// Millionths as a decimal number with at least one decimal.
fn decimal(millionths: i64) -> String {
    rialto_core::money::Credits::from_micros(millionths).to_text(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(last: &str, score: &str, recent: &str) -> Reputation {
        let done = u8::from(last != "null");
        let text = format!(
            r#"{{"agent":7,"registry":{{"score":{score},"successes":{done},"failures":0,"last":{last}}},
            "openclaw":{{"score":{recent},"success_rate":1.0,"on_time_completion_rate":0.5,
            "average_response_time_ms":5000,"response_scale_ms":10000,"counted":2,"formula":"weighed"}}}}"#
        );
        serde_json::from_str(&text).expect("facts")
    }

    #[test]
    fn what_comes_out_is_compared_to_the_digit() {
        let step = r#"{"before":50.0,"hirer":50.0,"ok":true,"after":51.0,"formula":"old + 2.0 × contractor/100"}"#;
        let right = score_checks(&facts(step, "51.0", "0.8")).expect("numbers");
        assert!(right.iter().all(ScoreCheck::is_consistent));
        assert!(right[0].describe().contains("50.0 + 2.0 × 50.0/100 = 51.0  matches the hub"));
        assert!(
            right[1].describe().contains("0.6 × 1.0 + 0.3 × 0.5 + 0.1 × (1 − 5000/10000) = 0.8")
        );
        let wrong = score_checks(&facts(step, "51.1", "0.800001")).expect("numbers");
        assert!(
            wrong.iter().all(|sum| !sum.is_consistent() && sum.describe().contains("MISMATCH"))
        );
    }

    #[test]
    fn failures_and_beginnings_are_explained_too() {
        let failed = r#"{"before":2.0,"hirer":50.0,"ok":false,"after":0.0,"formula":"old − 4.5"}"#;
        let sums_of =
            |last: &str, score: &str| score_checks(&facts(last, score, "0.8")).expect("numbers");
        assert!(sums_of(failed, "0.0")[0].is_consistent(), "never below zero");
        assert!(sums_of("null", "50.0")[0].is_consistent());
        assert!(!sums_of("null", "51.0")[0].is_consistent());
    }
}
