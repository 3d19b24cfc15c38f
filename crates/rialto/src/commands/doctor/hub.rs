//! Checks the hub: it answers, accepts writes, and its clock agrees.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::{Client, Response};
use rialto_client::call::root_cause;
use serde_json::Value;

use super::check::HealthCheck;

/// Time limit for a healthy hub.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Differences below this are harmless: the header has whole seconds, and answers take time.
const SKEW_FINE: SignedDuration = SignedDuration::from_secs(5);
/// From here on signed messages, which are valid for a minute, are sometimes refused.
const SKEW_MAX: SignedDuration = SignedDuration::from_secs(30);

pub async fn checks(base: &str) -> Vec<HealthCheck> {
    let client = Client::builder().timeout(TIMEOUT).no_proxy().build();
    let asked = match client {
        Ok(client) => client.get(format!("{base}/livez")).send().await.map(|live| (client, live)),
        Err(error) => Err(error),
    };
    let start = "start a hub with `rialto dev`, or choose another with --hub, RIALTO_HUB or `rialto context use`";
    let (client, live) = match asked {
        Ok(both) => both,
        Err(error) => {
            let what = format!("cannot reach {base}: {}", root_cause(&error.without_url()));
            return vec![HealthCheck::fail("hub", what, start)];
        }
    };
    if !live.status().is_success() {
        let what = format!("{base} answers, but is not a Rialto hub ({})", live.status());
        return vec![HealthCheck::fail("hub", what, start)];
    }
    vec![hub(&client, base).await, clock(&live, Timestamp::now())]
}

/// Whether it accepts writes, and its version.
async fn hub(client: &Client, base: &str) -> HealthCheck {
    let version = version(client, base).await;
    let told = version.as_ref().map_or(String::new(), |version| format!(", version {version}"));
    match client.get(format!("{base}/readyz")).send().await {
        Ok(ready) if ready.status().is_success() => {
            let own = env!("CARGO_PKG_VERSION");
            match version.filter(|version| version != own) {
                None => HealthCheck::ok("hub", format!("{base}{told}")),
                Some(_) => HealthCheck::warn(
                    "hub",
                    format!("{base}{told}; this command line has {own}"),
                    "use the same version on both sides if requests are refused",
                ),
            }
        }
        Ok(_) => HealthCheck::fail(
            "hub",
            format!("{base}{told} does not accept writes"),
            "check the hub's log",
        ),
        Err(error) => {
            let what = format!("{base}/readyz: {}", root_cause(&error.without_url()));
            HealthCheck::fail("hub", what, "check the hub's log")
        }
    }
}

async fn version(client: &Client, base: &str) -> Option<String> {
    let answer = client.get(format!("{base}/health")).send().await.ok()?;
    let health: Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
    health.pointer("/data/version").and_then(Value::as_str).map(str::to_owned)
}

/// How far this machine's clock is from the hub's.
fn clock(answer: &Response, now: Timestamp) -> HealthCheck {
    let header = answer.headers().get("date").and_then(|date| date.to_str().ok());
    let there = header.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    match there {
        Some(there) => skew(now.duration_since(there.timestamp())),
        None => HealthCheck::warn(
            "clock",
            "the hub does not send its time",
            "compare the clocks by hand",
        ),
    }
}

fn skew(ahead: SignedDuration) -> HealthCheck {
    let seconds = ahead.abs().as_secs();
    let way = if ahead.is_negative() { "behind" } else { "ahead of" };
    let what = format!("{seconds} s {way} the hub's");
    let next = "set the clock, preferably with NTP";
    match ahead.abs() {
        fine if fine <= SKEW_FINE => HealthCheck::ok("clock", "same as the hub's"),
        some if some <= SKEW_MAX => HealthCheck::warn("clock", what, next),
        _ => HealthCheck::fail("clock", what, next),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckStatus;
    use super::*;

    #[test]
    fn a_clock_may_be_off_by_little() {
        for (seconds, verdict) in [
            (0, CheckStatus::Ok),
            (-5, CheckStatus::Ok),
            (6, CheckStatus::Warn),
            (-30, CheckStatus::Warn),
            (31, CheckStatus::Fail),
            (-3_600, CheckStatus::Fail),
        ] {
            let check = skew(SignedDuration::from_secs(seconds));
            assert_eq!(check.status, verdict, "{seconds}");
        }
        assert!(skew(SignedDuration::from_secs(-60)).finding.contains("60 s behind"));
    }

    #[test]
    fn the_time_of_a_header_is_understood() {
        let there = jiff::fmt::rfc2822::parse("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        assert_eq!(there.timestamp().as_second(), 784_111_777);
    }
}
