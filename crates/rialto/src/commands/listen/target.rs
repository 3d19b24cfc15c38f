//! The program on this machine that notices are brought to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Client;
use reqwest::redirect::Policy;
use rialto_client::Retry;
use rialto_client::call::cause;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::signature::{WebhookSecret, sign};

use super::super::trouble::Trouble;
use super::notice::Told;

/// How to come back to a program that did not take a notice.
pub const PATIENCE: Retry = Retry {
    tries_max: u32::MAX,
    first: Duration::from_millis(500),
    longest: Duration::from_secs(30),
};
/// The longest a program may take for one notice.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Where notices go, and how they are signed.
pub struct Target {
    http: Client,
    url: reqwest::Url,
    agent: u64,
    secret: WebhookSecret,
}

/// What the program made of a notice.
pub enum Answer {
    Taken(u16),
    Refused(u16),
    Nothing(String),
}

impl Target {
    /// A program at a URL, for the notices of an agent.
    pub fn new(url: &str, agent: u64, secret: WebhookSecret) -> Result<Self, Trouble> {
        let wrong = |why: String| {
            Trouble::usage(why, "write it like --forward-to http://127.0.0.1:3000/hook")
        };
        let parsed = reqwest::Url::parse(url).ok();
        let parsed =
            parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = parsed.ok_or_else(|| wrong(format!("{url:?} is no http or https URL")))?;
        let built = Client::builder().timeout(TIME_MAX).redirect(Policy::none()).no_proxy().build();
        let http = built.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { http, url, agent, secret })
    }

    /// What the program checks signatures with.
    pub fn secret(&self) -> String {
        self.secret.text()
    }

    /// Posts a notice once. Its id stays the same over all tries, also those of another run.
    pub async fn post(&self, notice: &Told) -> Answer {
        let id = format!("inbox_{}_{}", self.agent, notice.position);
        let mut request =
            self.http.post(self.url.clone()).header("content-type", "application/json");
        for (name, value) in sign(&self.secret, &id, now(), notice.data.as_bytes()) {
            request = request.header(name, value);
        }
        match request.body(notice.data.clone()).send().await {
            Ok(answer) if answer.status().is_success() => Answer::Taken(answer.status().as_u16()),
            Ok(answer) => Answer::Refused(answer.status().as_u16()),
            Err(error) if error.is_timeout() => Answer::Nothing("no answer in time".to_owned()),
            Err(error) => Answer::Nothing(cause(&error.without_url())),
        }
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
