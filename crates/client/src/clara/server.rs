//! A market: its URL and its public data.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, StatusCode};
use rialto_protocols::clara::Action;
use rialto_protocols::clara::wire::result::{MessageResult, ResultPage};
use rialto_protocols::kit::ans104::ItemId;
use rialto_protocols::kit::object::ObjectWriter;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::tasks::{AgentList, Task, parse_tasks};
use super::wallet::SignedItem;
use crate::call::CallError;
use crate::json;
use crate::origin_client::{OriginClient, Reply, add_query, join_path, parse_http_url, with_mount};
use crate::retry::RetryPolicy;

/// The protocol's path below a hub's URL.
const MOUNT: &str = "clara";
/// Maximum size of a short response, and of a page full of the longest results.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const PAGE_BYTES_MAX: usize = 256 << 20;
/// Maximum number of parts of one list.
const PARTS_MAX: usize = 256;
/// Maximum number of results per page.
const PAGE_MAX: usize = 1_000;

/// A market at a hub.
#[derive(Clone, Debug)]
pub struct Server {
    client: OriginClient,
    base: Url,
    process: ItemId,
    retry: RetryPolicy,
}

/// The market's description of itself.
#[derive(Deserialize)]
struct About {
    process: String,
}

impl Server {
    /// Discovers the market process at a URL, which may omit the `/clara` at its end.
    pub async fn discover(url: &str) -> Result<Self, CallError> {
        let base = with_mount(parse_http_url(url)?, MOUNT);
        let client = OriginClient::new(&base)?;
        let body = fetch(client.request(Method::GET, base.clone())?, ANSWER_BYTES_MAX).await?;
        let about: About = json::parse(&body)?;
        let process = ItemId::read(&about.process)
            .ok_or_else(|| CallError::unreadable(format!("{:?} is not an id", about.process)))?;
        Ok(Self { client, base, process, retry: RetryPolicy::default() })
    }

    /// Sets the retry policy.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// The id of the market's process.
    pub fn process(&self) -> ItemId {
        self.process
    }

    /// Posts an item, with retries. It is counted once.
    pub async fn post(&self, item: &SignedItem) -> Result<(), CallError> {
        let post = || async {
            let request = self.client.request(Method::POST, self.url(&["mu"]))?;
            let request =
                request.header(CONTENT_TYPE, "application/octet-stream").body(item.bytes.clone());
            fetch(request, ANSWER_BYTES_MAX).await
        };
        self.retry.run(min_retry_delay, post).await.map(drop)
    }

    /// Gets the result of a message. For a query, waits until the auction has closed.
    pub async fn result(&self, id: &str) -> Result<MessageResult, CallError> {
        let mut url = self.url(&["cu", "result", id]);
        url.query_pairs_mut().append_pair("process-id", &self.process.to_string());
        let body = self.get(url).await?;
        MessageResult::read(&body).map_err(CallError::unreadable)
    }

    /// Results after a cursor, oldest first; all of them without a cursor.
    pub async fn results(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ResultPage, CallError> {
        let limit = limit.min(PAGE_MAX).to_string();
        self.page([("from", after.map(str::to_owned)), ("limit", Some(limit))]).await
    }

    /// The cursor of the newest result, to continue from; `None` if there is none.
    pub async fn newest_cursor(&self) -> Result<Option<String>, CallError> {
        let page =
            self.page([("sort", Some("DESC".to_owned())), ("limit", Some("1".to_owned()))]).await?;
        Ok(page.edges.into_iter().next().map(|edge| edge.cursor))
    }

    /// Evaluates a message without storing it. It has no effect, and returns only public data.
    pub async fn dry_run(
        &self,
        owner: &str,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<MessageResult, CallError> {
        let tags: Vec<_> =
            tags.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let body = ObjectWriter::new()
            .text("Id", "")
            .text("Target", &self.process.to_string())
            .text("Owner", owner)
            .text("Data", data)
            .raw("Tags", &json!(tags).to_string())
            .finish();
        let mut url = self.url(&["cu", "dry-run"]);
        url.query_pairs_mut().append_pair("process-id", &self.process.to_string());
        let post = || async {
            let request = self.client.request(Method::POST, url.clone())?;
            let request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
            fetch(request, PAGE_BYTES_MAX).await
        };
        let body = self.retry.run(min_retry_delay, post).await?;
        MessageResult::read(&body).map_err(CallError::unreadable)
    }

    /// All agents, with all their data.
    pub async fn agents(&self) -> Result<AgentList, CallError> {
        self.fetch_list(Action::ListAgents).await.map(AgentList)
    }

    /// The tasks that wait for an agent.
    pub async fn queue(&self) -> Result<Vec<Task>, CallError> {
        parse_tasks(&self.fetch_list(Action::TasksQueue).await?)
    }

    /// Fetches the list that an action returns; a hub sends a long one in parts.
    async fn fetch_list(&self, action: Action) -> Result<String, CallError> {
        let no_list = || CallError::unreadable(format!("{} returned no list", action.as_str()));
        let (mut parts, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PARTS_MAX {
            let next = cursor.as_deref().map(|cursor| ("Cursor", cursor));
            let tags: Vec<_> = [("Action", action.as_str())].into_iter().chain(next).collect();
            let result = self.dry_run("", &tags, "").await?;
            let message = result.messages.into_iter().next().ok_or_else(no_list)?;
            cursor = message.tag("Next-Cursor").map(str::to_owned);
            parts.push(message.data.ok_or_else(no_list)?);
            if cursor.is_none() {
                return Ok(join_lists(&parts));
            }
        }
        let endless = format!("{} has more than {PARTS_MAX} parts", action.as_str());
        Err(CallError::Unreadable(endless))
    }

    async fn page(&self, query: [(&str, Option<String>); 2]) -> Result<ResultPage, CallError> {
        let mut url = self.url(&["cu", "results", &self.process.to_string()]);
        add_query(&mut url, query);
        ResultPage::read(&self.get(url).await?).map_err(CallError::unreadable)
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, CallError> {
        let get = || async {
            fetch(self.client.request(Method::GET, url.clone())?, PAGE_BYTES_MAX).await
        };
        self.retry.run(min_retry_delay, get).await
    }

    /// The URL of a path below the protocol's path.
    fn url(&self, path: &[&str]) -> Url {
        join_path(&self.base, path)
    }
}

async fn fetch(request: RequestBuilder, max: usize) -> Result<Vec<u8>, CallError> {
    Ok(Reply::fetch(request, max).await?.accepted(read_refusal)?.body)
}

/// The minimum wait before the same call can succeed; `None` if it cannot. The same item is never
/// executed twice, and all other calls only read.
pub(super) fn min_retry_delay(error: &CallError) -> Option<Duration> {
    error.wait_if(|status, _, _| is_temporary(status))
}

fn is_temporary(status: u16) -> bool {
    matches!(status, 429 | 500 | 502..=504 | 507)
}

/// Joins the parts of a list.
fn join_lists(parts: &[String]) -> String {
    let inner = |part: &String| {
        let list = part.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        list.map(str::trim).filter(|items| !items.is_empty()).map(str::to_owned)
    };
    match parts {
        [whole] => whole.clone(),
        parts => format!("[{}]", parts.iter().filter_map(inner).collect::<Vec<_>>().join(",")),
    }
}

/// Reads a refusal of a unit.
fn read_refusal(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> CallError {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: String,
    }
    let message = json::parse(body).map(|body: ErrorBody| body.error);
    CallError::Refused {
        status: status.as_u16(),
        code: status.canonical_reason().unwrap_or("unknown").to_owned(),
        message: message.unwrap_or_else(|_| "the hub refused".to_owned()),
        retryable: is_temporary(status.as_u16()),
        hint: None,
        retry_after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refused;

    #[test]
    fn only_temporary_errors_are_retried() {
        for (error, again) in [
            (refused(202, "", true, None), false),
            (refused(400, "", false, None), false),
            (refused(401, "", false, None), false),
            (refused(404, "", false, None), false),
            (refused(413, "", false, None), false),
            (refused(429, "", false, Some(7)), true),
            (refused(500, "", false, None), true),
            (refused(503, "", false, Some(5)), true),
            (refused(507, "", false, Some(30)), true),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            assert_eq!(min_retry_delay(&error).is_some(), again, "{error:?}");
        }
    }
}
