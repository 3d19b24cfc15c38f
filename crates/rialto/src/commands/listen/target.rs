//! The program on this machine that notices are forwarded to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Client;
use reqwest::redirect::Policy;
use rialto_client::call::root_cause;
use rialto_client::{CallError, Hub, RetryPolicy};
use rialto_core::time::Timestamp;
use rialto_engine::delivery::egress::USER_AGENT;
use rialto_engine::delivery::signature::{ID_HEADER, WebhookSecret, sign};
use serde::Deserialize;

use super::super::error::CliError;
use super::super::uri;
use super::super::views::{get_text, parse_json};

/// Retry policy for a program that did not accept a notice.
pub const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(500),
    max_delay: Duration::from_secs(30),
};
/// Time limit of the program for one notice.
const TIME_MAX: Duration = Duration::from_secs(30);

/// The target of notices.
pub struct Target {
    http: Client,
    url: String,
    /// A secret to sign with instead of the agent's own.
    secret: Option<WebhookSecret>,
}

/// The program's answer to a notice.
pub enum DeliveryResult {
    Accepted(u16),
    Rejected(u16),
    NoAnswer(String),
}

/// A delivery as the hub makes it to an endpoint.
#[derive(Deserialize)]
struct Delivery {
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

#[derive(Deserialize)]
struct DeliveryResponse {
    delivery: Option<Delivery>,
}

impl Target {
    /// A program at a URL.
    pub fn new(url: &str, secret: Option<WebhookSecret>) -> Result<Self, CliError> {
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
    pub async fn post(
        &self,
        hub: &Hub,
        position: u64,
    ) -> Result<Option<DeliveryResult>, CallError> {
        let values = [("position", Some(position.to_string())), ("url", Some(self.url.clone()))];
        let asked = get_text(hub, &uri::with_query("/v1/inbox/delivery", values)).await?;
        let Some(delivery) = parse_json::<DeliveryResponse>(&asked)?.delivery else {
            return Ok(None);
        };
        let mut request = self.http.post(&delivery.url);
        for (name, value) in self.signed_headers(&delivery) {
            request = request.header(name, value);
        }
        Ok(Some(match request.body(delivery.body).send().await {
            Ok(answer) if answer.status().is_success() => {
                DeliveryResult::Accepted(answer.status().as_u16())
            }
            Ok(answer) => DeliveryResult::Rejected(answer.status().as_u16()),
            Err(error) if error.is_timeout() => DeliveryResult::NoAnswer("timed out".to_owned()),
            Err(error) => DeliveryResult::NoAnswer(root_cause(&error.without_url())),
        }))
    }

    /// The hub's headers, signed again if another secret is given.
    fn signed_headers(&self, delivery: &Delivery) -> Vec<(String, String)> {
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

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
