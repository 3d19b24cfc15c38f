//! `rialto rep`: shows an agent's reputation, and recomputes its scores.

use clap::Subcommand;
use rialto_client::CallError;
use rialto_core::money::Credits;
use rialto_core::reputation::Score;
use serde_json::json;

use super::agent_names::resolve_agent;
use super::v1::{OpenclawScore, RegistryScore, Reputation, ScoreStep, parse_millionths};
use super::{Answer, CliError, CliResult, Exit, HubOptions, escape_line, output};

/// 1.0 in millionths.
const ONE: i64 = 1_000_000;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Show an agent's scores
    Show {
        /// Number or any name of the agent [default: your own]
        agent: Option<String>,
    },
    /// Show how the scores are computed, recomputed on this machine
    Explain {
        /// Number or any name of the agent [default: your own]
        agent: Option<String>,
    },
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

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    match &args.verb {
        Verb::Show { agent } => options.run(async {
            let answer = fetch(options, agent.as_deref()).await?;
            // Also checked if it is printed as it is.
            answer.parse()?;
            output::print_answer(options.json, &answer, describe)
        }),
        Verb::Explain { agent } => options.run(explain(options, agent.as_deref())),
    }
}

/// Fetches an agent's reputation, by default the caller's.
async fn fetch(options: &HubOptions, agent: Option<&str>) -> CliResult<Answer<Reputation>> {
    let (api, name) = match agent {
        Some(agent) => {
            let (api, _) = options.client()?;
            let name = resolve_agent(options, &api, agent).await?;
            (api, name)
        }
        None => {
            let (api, _) = options.client_with_key()?;
            let name = api.me().await?.agent.id.to_string();
            (api, name)
        }
    };
    api.reputation(&name).await.map_err(|error| {
        CliError::from(error).with_hint_on(Exit::NotFound, "`rialto agent search` lists agents")
    })
}

fn describe(reputation: Reputation) -> String {
    let Reputation { agent, registry, openclaw } = reputation;
    let recent = match &openclaw.score {
        Some(score) => format!("{} of 1 over the newest {}", score.get(), openclaw.counted),
        None => "none before the first job".to_owned(),
    };
    let RegistryScore { score, successes, failures, .. } = registry;
    format!(
        "agent     {agent}\nregistry  {} of 100, {successes} done, {failures} failed\nopenclaw  {recent}",
        score.get(),
    )
}

async fn explain(options: &HubOptions, agent: Option<&str>) -> CliResult {
    let reputation = fetch(options, agent).await?.parse()?;
    let checks = score_checks(&reputation)?;
    let sums: Vec<_> = checks.iter().map(ScoreCheck::to_json).collect();
    output::print(options.json, json!({"agent": reputation.agent, "sums": sums}), || {
        let lines: Vec<String> = checks.iter().map(ScoreCheck::describe).collect();
        format!("agent {}\n{}", reputation.agent, lines.join("\n"))
    });
    Ok(if checks.iter().all(ScoreCheck::is_consistent) { Exit::Ok } else { Exit::Failed })
}

fn score_checks(reputation: &Reputation) -> Result<[ScoreCheck; 2], CallError> {
    Ok([registry_check(&reputation.registry)?, openclaw_check(&reputation.openclaw)?])
}

/// The newest step, computed from the score before it.
fn registry_check(score: &RegistryScore) -> Result<ScoreCheck, CallError> {
    let shown = Some(parse_millionths(&score.score)?);
    let Some(step) = &score.last else {
        // An old last step is not shown, and then there is nothing to recompute.
        let is_new = score.successes + score.failures == 0;
        return Ok(ScoreCheck {
            protocol: "registry",
            formula: "every agent starts at 50.0".to_owned(),
            formula_with_values: None,
            result: if is_new { Some(Score::START.millionths()) } else { shown },
            shown,
        });
    };
    let ScoreStep { before, hirer, ok, after, formula } = step;
    let old = Score::from_millionths(parse_millionths(before)?);
    let hirer_score = Score::from_millionths(parse_millionths(hirer)?);
    let (result, filled) = if *ok {
        let filled = format!("{} + 2.0 × {}/100", before.get(), hirer.get());
        (old.after_success(hirer_score), filled)
    } else {
        (old.after_failure(), format!("{} − 3.0 × 1.5", before.get()))
    };
    Ok(ScoreCheck {
        protocol: "registry",
        formula: format!("{formula}, never below 0 or above 100"),
        formula_with_values: Some(filled),
        result: Some(result.millionths()),
        // Both the step and the score after it must match what the hub shows.
        shown: shown.filter(|shown| parse_millionths(after).is_ok_and(|after| after == *shown)),
    })
}

/// Weighted shares of the newest jobs.
fn openclaw_check(score: &OpenclawScore) -> Result<ScoreCheck, CallError> {
    let rates = score.success_rate.as_deref().zip(score.on_time_completion_rate.as_deref());
    let (filled, result) = match rates.zip(score.average_response_time_ms) {
        None => (None, None),
        Some(((success, on_time), average)) => {
            let scale = score.response_scale_ms;
            let rates = [parse_millionths(success)?, parse_millionths(on_time)?];
            let (success, on_time) = (success.get(), on_time.get());
            let filled =
                format!("0.6 × {success} + 0.3 × {on_time} + 0.1 × (1 − {average}/{scale})");
            (Some(filled), Some(weighted_score(rates, average, scale)))
        }
    };
    Ok(ScoreCheck {
        protocol: "openclaw",
        formula: score.formula.clone(),
        formula_with_values: filled,
        result,
        shown: score.score.as_deref().map(parse_millionths).transpose()?,
    })
}

/// The weighted sum in millionths, truncated at each step as the formula requires.
fn weighted_score([success, on_time]: [i64; 2], average_ms: i64, scale_ms: i64) -> i64 {
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
        let filled = self.formula_with_values.as_deref();
        let filled = filled.map_or("no finished job yet:".to_owned(), |text| format!("{text} ="));
        let verdict = if self.is_consistent() {
            "matches the hub".to_owned()
        } else {
            format!("MISMATCH: the hub shows {}", score(self.shown))
        };
        let (formula, result) = (escape_line(&self.formula), score(self.result));
        format!("{}\n  {formula}\n  {filled} {result}  {verdict}", self.protocol)
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
    Credits::from_micros(millionths).to_text(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reputation(last: &str, score: &str, recent: &str) -> Reputation {
        let done = u8::from(last != "null");
        let text = format!(
            r#"{{"agent":7,"registry":{{"score":{score},"successes":{done},"failures":0,"last":{last}}},
            "openclaw":{{"score":{recent},"success_rate":1.0,"on_time_completion_rate":0.5,
            "average_response_time_ms":5000,"response_scale_ms":10000,"counted":2,"formula":"weighed"}}}}"#
        );
        serde_json::from_str(&text).expect("a reputation")
    }

    #[test]
    fn what_comes_out_is_compared_to_the_digit() {
        let step = r#"{"before":50.0,"hirer":50.0,"ok":true,"after":51.0,"formula":"old + 2.0 × contractor/100"}"#;
        let right = score_checks(&reputation(step, "51.0", "0.8")).expect("numbers");
        assert!(right.iter().all(ScoreCheck::is_consistent));
        assert!(right[0].describe().contains("50.0 + 2.0 × 50.0/100 = 51.0  matches the hub"));
        assert!(
            right[1].describe().contains("0.6 × 1.0 + 0.3 × 0.5 + 0.1 × (1 − 5000/10000) = 0.8")
        );
        let wrong = score_checks(&reputation(step, "51.1", "0.800001")).expect("numbers");
        assert!(
            wrong.iter().all(|sum| !sum.is_consistent() && sum.describe().contains("MISMATCH"))
        );
    }

    #[test]
    fn failures_and_beginnings_are_explained_too() {
        let failed = r#"{"before":2.0,"hirer":50.0,"ok":false,"after":0.0,"formula":"old − 4.5"}"#;
        let checks = |last: &str, score: &str| {
            score_checks(&reputation(last, score, "0.8")).expect("numbers")
        };
        assert!(checks(failed, "0.0")[0].is_consistent(), "never below zero");
        assert!(checks("null", "50.0")[0].is_consistent());
        assert!(!checks("null", "51.0")[0].is_consistent());
    }
}
