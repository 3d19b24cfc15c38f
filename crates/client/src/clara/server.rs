//! A market: its URL and its public data.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, StatusCode};
use rialto_protocols::clara::Action;
use rialto_protocols::clara::wire::result::{MessageResult, ResultPage};
use rialto_protocols::kit::ans104::ItemId;
use rialto_protocols::kit::object::ObjectWriter;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::record::{AgentList, Task, parse_tasks};
use super::retry::with_retry;
use super::signed_item::SignedItem;
use crate::call::{CallError, retry_after};
use crate::origin_client::{self, OriginClient, join_path, parse_http_url, with_mount};
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
        let body = ask(client.request(Method::GET, base.clone())?, ANSWER_BYTES_MAX).await?;
        let about: About = read(&body)?;
        let process = ItemId::read(&about.process)
            .ok_or_else(|| CallError::Unreadable(format!("{:?} is not an id", about.process)))?;
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
        let sent = with_retry(&self.retry, || async {
            let request = self.client.request(Method::POST, self.url(&["mu"]))?;
            let request =
                request.header(CONTENT_TYPE, "application/octet-stream").body(item.bytes.clone());
            ask(request, ANSWER_BYTES_MAX).await
        });
        sent.await.map(drop)
    }

    /// Gets the result of a message. For a query, waits until the auction has closed.
    pub async fn result(&self, id: &str) -> Result<MessageResult, CallError> {
        let mut url = self.url(&["cu", "result", id]);
        url.query_pairs_mut().append_pair("process-id", &self.process.to_string());
        let body = self.get(url, PAGE_BYTES_MAX).await?;
        MessageResult::read(&body).map_err(unreadable)
    }

    /// Results after a cursor, oldest first; all of them without a cursor.
    pub async fn results(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ResultPage, CallError> {
        self.page(&[("from", after), ("limit", Some(&limit.min(PAGE_MAX).to_string()))]).await
    }

    /// The cursor of the newest result, to continue from; `None` if there is none.
    pub async fn newest_cursor(&self) -> Result<Option<String>, CallError> {
        let page = self.page(&[("sort", Some("DESC")), ("limit", Some("1"))]).await?;
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
        let answer = with_retry(&self.retry, || async {
            let request = self.client.request(Method::POST, url.clone())?;
            let request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
            ask(request, PAGE_BYTES_MAX).await
        });
        MessageResult::read(&answer.await?).map_err(unreadable)
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
        let nothing = || CallError::Unreadable(format!("{} returned no list", action.as_str()));
        let (mut parts, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PARTS_MAX {
            let next = cursor.as_deref().map(|cursor| ("Cursor", cursor));
            let tags: Vec<_> = [("Action", action.as_str())].into_iter().chain(next).collect();
            let shown = self.dry_run("", &tags, "").await?;
            let message = shown.messages.into_iter().next().ok_or_else(nothing)?;
            cursor = message.tag("Next-Cursor").map(str::to_owned);
            parts.push(message.data.ok_or_else(nothing)?);
            if cursor.is_none() {
                return Ok(joined(parts));
            }
        }
        let endless = format!("{} has more than {PARTS_MAX} parts", action.as_str());
        Err(CallError::Unreadable(endless))
    }

    async fn page(&self, query: &[(&str, Option<&str>)]) -> Result<ResultPage, CallError> {
        let mut url = self.url(&["cu", "results", &self.process.to_string()]);
        for (name, value) in query {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        ResultPage::read(&self.get(url, PAGE_BYTES_MAX).await?).map_err(unreadable)
    }

    fn url(&self, path: &[&str]) -> Url {
        join_path(&self.base, path)
    }

    async fn get(&self, url: Url, max: usize) -> Result<Vec<u8>, CallError> {
        let call = || async { ask(self.client.request(Method::GET, url.clone())?, max).await };
        with_retry(&self.retry, call).await
    }
}

async fn ask(request: RequestBuilder, max: usize) -> Result<Vec<u8>, CallError> {
    let mut answer = origin_client::send(request).await?;
    let (status, after) = (answer.status(), retry_after(answer.headers()));
    let body = origin_client::read_body(&mut answer, max).await?;
    if status.is_success() { Ok(body) } else { Err(refusal(status, after, &body)) }
}

/// Joins the parts of a list.
fn joined(parts: Vec<String>) -> String {
    let inner = |part: &String| {
        let list = part.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        list.map(str::trim).filter(|items| !items.is_empty()).map(str::to_owned)
    };
    match parts.as_slice() {
        [whole] => whole.clone(),
        parts => format!("[{}]", parts.iter().filter_map(inner).collect::<Vec<_>>().join(",")),
    }
}

/// Reads a refusal of a unit.
fn refusal(status: StatusCode, retry_after: Option<std::time::Duration>, body: &[u8]) -> CallError {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: String,
    }
    let message = serde_json::from_slice(body).map(|body: ErrorBody| body.error);
    CallError::Refused {
        status: status.as_u16(),
        code: status.canonical_reason().unwrap_or("unknown").to_owned(),
        message: message.unwrap_or_else(|_| "the hub refused".to_owned()),
        retryable: matches!(status.as_u16(), 429 | 500 | 502..=504 | 507),
        hint: None,
        retry_after,
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> CallError {
    CallError::Unreadable(error.to_string())
}
