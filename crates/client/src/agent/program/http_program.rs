//! Your own HTTP server as a handler: the job is posted to it, and its response is the result.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName};
use reqwest::{Client, Response, StatusCode};
use sha2::{Digest, Sha256};
use url::Url;

use super::{OUTPUT_MAX, outcome_of_output, reason, too_long};
use crate::agent::handler::Handler;
use crate::agent::handlers::time_limit_message;
use crate::agent::job::{Job, Outcome};
use crate::call::CallError;
use crate::origin_client::{self, parse_http_url};

/// The same for every attempt at a job, so that the server can recognise a repeat.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// A handler that posts each job to a URL.
#[derive(Clone, Debug)]
pub struct HttpProgram {
    http: Client,
    url: Url,
}

impl HttpProgram {
    /// Posts jobs to `url`.
    pub fn new(url: &str) -> Result<Self, CallError> {
        let url = parse_http_url(url)?;
        let built = Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        match built {
            Ok(http) => Ok(Self { http, url }),
            Err(error) => Err(CallError::Unreachable { url: url.to_string(), error }),
        }
    }

    async fn post(&self, job: &Job) -> Result<(StatusCode, Option<Vec<u8>>), reqwest::Error> {
        let request = self
            .http
            .post(self.url.clone())
            .timeout(job.time_limit)
            .header(CONTENT_TYPE, "application/json")
            .header(KEY, key(job))
            .body(job.to_json_line());
        let answer = request.send().await?;
        Ok((answer.status(), body(answer).await?))
    }
}

impl Handler for HttpProgram {
    async fn work(&self, job: Job) -> Outcome {
        match self.post(&job).await {
            Ok((status, Some(body))) => outcome_of_response(status, &body),
            Ok((_, None)) => Outcome::Failed(too_long("output", OUTPUT_MAX as u64)),
            Err(error) if error.is_timeout() && !error.is_connect() => {
                Outcome::Failed(time_limit_message(job.time_limit))
            }
            // The server never got the job, so another worker may do it.
            Err(error) if error.is_connect() || error.is_builder() => {
                Outcome::Declined("the handler cannot be reached".to_owned())
            }
            Err(_) => Outcome::Failed("the connection to the handler was lost".to_owned()),
        }
    }
}

/// An idempotency key that is unique per job, since two requesters may use the same job id.
pub(super) fn key(job: &Job) -> String {
    let mut hash = Sha256::new();
    for part in [&job.id, &job.requester, &job.skill] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(&hash.finalize()[..16])
}

/// The response body; `None` if it is too long.
async fn body(mut answer: Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    match origin_client::read_body(&mut answer, OUTPUT_MAX).await {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(CallError::Unreachable { error, .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

fn outcome_of_response(status: StatusCode, body: &[u8]) -> Outcome {
    let why =
        |else_: &str| reason(&String::from_utf8_lossy(body)).unwrap_or_else(|| else_.to_owned());
    match status.as_u16() {
        204 => Outcome::Done("{}".to_owned()),
        200..=299 => outcome_of_output(body),
        429 | 503 => Outcome::Declined(why("the handler is unavailable")),
        400 | 422 => Outcome::InvalidInput(why("the handler rejected the input")),
        code => Outcome::Failed(why(&format!("the handler answered {code}"))),
    }
}
