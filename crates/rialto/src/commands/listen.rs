//! `rialto listen`: forwards an agent's notices to a program on this machine.
//!
//! The program is called the way the hub calls an endpoint, so that it can be developed and tested
//! where the hub cannot reach it. A notice is acknowledged once the program has accepted it. Until
//! then the next ones wait, so nothing is lost or reordered.

use std::time::Duration;

use reqwest::Client;
use reqwest::redirect::Policy;
use rialto_client::call::root_cause;
use rialto_client::{CallError, Notice, NoticeStream, RetryPolicy};
use rialto_engine::delivery::egress::USER_AGENT;
use rialto_engine::delivery::signature::{ID_HEADER, WebhookSecret, sign};
use serde_json::{Value, json};

use super::time::now;
use super::v1::DeliveryRequest;
use super::{CliError, CliResult, Exit, HubOptions, KeyFile, V1, escape_line, output};

/// Retry policy for a program that did not accept a notice.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(500),
    max_delay: Duration::from_secs(30),
};
/// Time limit of the program for one notice.
const TIME_MAX: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub struct Args {
    /// URL to post the notices to
    #[arg(long, value_name = "URL", required_unless_present = "print")]
    forward_to: Option<String>,
    /// Print the notices instead, one JSON document per line
    #[arg(long, conflicts_with = "forward_to")]
    print: bool,
    /// Sign with this secret, whsec_… [default: the agent's own]
    #[arg(long, env = "RIALTO_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET", value_parser = secret)]
    secret: Option<WebhookSecret>,
    /// Stop after this many notices
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    options: HubOptions,
}

pub fn run(args: &Args) -> Exit {
    args.options.run(listen(args))
}

async fn listen(args: &Args) -> CliResult {
    let (api, KeyFile { webhook_secret: known, .. }) = args.options.client_with_key()?;
    let target = match &args.forward_to {
        Some(url) => {
            let target = Target::new(url, args.secret.clone())?;
            // Also checks that the key is valid.
            api.me().await?;
            let secret = match (&args.secret, known) {
                (Some(secret), _) => secret.to_text(),
                (None, Some(known)) => known.reveal(),
                (None, None) => {
                    "the agent's own secret; `rialto webhook rotate` creates and shows a new one"
                        .to_owned()
                }
            };
            output::print_stderr(&format!(
                "forwarding to {}; signing with {secret}",
                escape_line(url)
            ));
            Some(target)
        }
        None => None,
    };
    let mut events = NoticeStream::open(&api.0).await?;
    let mut count = 0;
    while args.count.is_none_or(|most| count < most) {
        let notice = ForwardedNotice::from(events.next().await?);
        let line = match &target {
            None => notice.data.clone(),
            Some(target) => {
                let status = deliver(&api, target, &notice).await?;
                events.ack(notice.position).await?;
                notice.line(status, args.options.json)
            }
        };
        if output::print_line(&line).is_err() {
            // The reader has closed the pipe.
            return Ok(Exit::Ok);
        }
        count += 1;
    }
    Ok(Exit::Ok)
}

/// Posts a notice until it is accepted, however long that takes. Returns the status, or `None` for
/// a notice that endpoints do not get.
async fn deliver(api: &V1, target: &Target, notice: &ForwardedNotice) -> CliResult<Option<u16>> {
    let mut failures = 0;
    loop {
        let why = match target.post(api, notice.position).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(status))) => return Ok(Some(status)),
            Ok(Some(Err(why))) => why,
            // The hub may come back; the notice stays unacknowledged until then.
            Err(error) if error.min_retry_delay().is_some() => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        failures += 1;
        let pause = RETRY.delay(failures);
        let what = format!("{} {} not accepted: {why}", notice.kind, notice.position);
        let (what, seconds) = (escape_line(&what), pause.as_secs_f32());
        output::print_stderr(&format!("rialto: {what}; retrying in {seconds:.1} s"));
        tokio::time::sleep(pause).await;
    }
}

fn secret(text: &str) -> Result<WebhookSecret, String> {
    let wrong = || "must be whsec_ and the base64 of 24 to 64 bytes".to_owned();
    WebhookSecret::parse(text).ok_or_else(wrong)
}

/// One notice and what is printed about it.
struct ForwardedNotice {
    position: u64,
    kind: String,
    /// The JSON text as it was received.
    data: String,
    at: String,
    job: Option<String>,
}

impl From<Notice> for ForwardedNotice {
    fn from(notice: Notice) -> Self {
        let Notice { position, kind, data } = notice;
        let members: Value = serde_json::from_str(&data).unwrap_or_default();
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { position, kind, at: text("at").unwrap_or_default(), job: text("job"), data }
    }
}

impl ForwardedNotice {
    /// Time, kind and status. Without a status, it is a notice that endpoints do not get.
    fn line(&self, status: Option<u16>, as_json: bool) -> String {
        let Self { position, kind, at, job, .. } = self;
        if as_json {
            let document =
                json!({"position": position, "kind": kind, "at": at, "job": job, "status": status});
            return document.to_string();
        }
        let job = job.as_ref().map(|job| format!("  {job}")).unwrap_or_default();
        let status = status.map_or("not sent".to_owned(), |status| status.to_string());
        escape_line(&format!("{at}  {kind}  {status}{job}"))
    }
}

/// The target of notices.
struct Target {
    http: Client,
    url: String,
    /// A secret to sign with instead of the agent's own.
    secret: Option<WebhookSecret>,
}

/// The status with which the program accepted a notice, or why it did not.
type DeliveryResult = Result<u16, String>;

impl Target {
    /// A program at a URL.
    fn new(url: &str, secret: Option<WebhookSecret>) -> CliResult<Self> {
        let wrong = |why: String| {
            CliError::usage(why, "write it like --forward-to http://127.0.0.1:3000/hook")
        };
        let parsed = reqwest::Url::parse(url).ok();
        let fits = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        parsed.filter(fits).ok_or_else(|| wrong(format!("{url:?} is not an http or https URL")))?;
        let client = Client::builder().user_agent(USER_AGENT).timeout(TIME_MAX);
        let built = client.redirect(Policy::none()).no_proxy().build();
        let http = built.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { http, url: url.to_owned(), secret })
    }

    /// Posts a notice once, in the hub's current format; `None` if the hub would not send it.
    async fn post(&self, api: &V1, position: u64) -> Result<Option<DeliveryResult>, CallError> {
        let Some(delivery) = api.notice_delivery(position, &self.url).await? else {
            return Ok(None);
        };
        let mut request = self.http.post(&delivery.url);
        for (name, value) in self.signed_headers(&delivery) {
            request = request.header(name, value);
        }
        Ok(Some(match request.body(delivery.body).send().await {
            Ok(answer) if answer.status().is_success() => Ok(answer.status().as_u16()),
            Ok(answer) => Err(format!("answered {}", answer.status().as_u16())),
            Err(error) if error.is_timeout() => Err("timed out".to_owned()),
            Err(error) => Err(root_cause(&error.without_url())),
        }))
    }

    /// The hub's headers, signed again if another secret is given.
    fn signed_headers(&self, delivery: &DeliveryRequest) -> Vec<(String, String)> {
        let mut headers = delivery.headers.clone();
        let id = headers.iter().find(|(name, _)| name == ID_HEADER).map(|(_, id)| id.clone());
        if let Some((secret, id)) = self.secret.as_ref().zip(id) {
            let fresh = sign(secret, &id, now(), delivery.body.as_bytes());
            headers.retain(|(name, _)| fresh.iter().all(|(other, _)| other != name));
            headers.extend(fresh);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_one_line_or_one_document() {
        let data = r#"{"position":4,"kind":"ended","at":"2026-01-01T00:00:00Z","job":"j"}"#;
        let notice = Notice { position: 4, kind: "ended".to_owned(), data: data.to_owned() };
        let notice = ForwardedNotice::from(notice);
        assert_eq!(notice.line(Some(204), false), "2026-01-01T00:00:00Z  ended  204  j");
        let document: Value = serde_json::from_str(&notice.line(Some(204), true)).expect("JSON");
        assert_eq!((&document["position"], &document["status"]), (&json!(4), &json!(204)));
        assert_eq!(notice.line(None, false), "2026-01-01T00:00:00Z  ended  not sent  j");
        assert_eq!(notice.data, data);
    }
}
