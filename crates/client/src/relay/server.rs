//! A relay server: its operations and their paths.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rialto_protocols::kit::ijson;
use rialto_protocols::relay::wire::discovery::{self, Paths};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use url::Url;

use super::history::{HistoryFilter, PastMessage};
use super::inbox::{Inbox, InboxOptions};
use super::key::Key;
use super::listed_agent::{AgentFilter, ListedAgent};
use super::origin_client::{self, OriginClient, parse_http_url};
use super::registration::{self, RegisteredAgent, Registration};
use super::response::{ServerResponse, is_absent};
use super::retry::RetryPolicy;
use crate::call::CallError;

/// The document with the paths of a server's operations.
const WELL_KNOWN: &str = "/.well-known/chorus.json";
/// Maximum document size in bytes.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;
/// Maximum number of agent pages to read; at 1,000 agents a page this covers any server.
const PAGES_MAX: usize = 1_000;

/// A relay server.
#[derive(Clone, Debug)]
pub struct Server {
    client: OriginClient,
    base: Url,
    paths: Paths,
    name: Option<String>,
    retry: RetryPolicy,
}

/// The acknowledged part of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct AckAnswer {
    /// Everything up to this position.
    pub acked_to: u64,
    /// How many messages are still unread.
    #[serde(default)]
    pub pending: u64,
}

impl Server {
    /// Reads the paths of a server's operations. A server without a document has them where the
    /// spec puts them, below `base`.
    pub async fn discover(base: &str) -> Result<Self, CallError> {
        let mut base = parse_http_url(base)?;
        base.set_query(None);
        base.set_fragment(None);
        let client = OriginClient::new(&base)?;
        let (paths, name) = match document(&client, &base).await? {
            Some(document) => (document.paths, document.server_name),
            None => (paths_below(base.path()), None),
        };
        Ok(Self { client, base, paths, name, retry: RetryPolicy::default() })
    }

    /// The same server with a key.
    pub fn with_key(&self, key: Key) -> Self {
        Self { client: self.client.with_key(key), ..self.clone() }
    }

    /// Sets the retry policy for sending.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// The server's name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The paths of its operations.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Registers an agent. With a key this updates the agent the key belongs to.
    pub async fn register(&self, agent: &Registration) -> Result<RegisteredAgent, CallError> {
        let answer = self.post(&self.paths.self_register, agent.body()?).await?;
        RegisteredAgent::read(answer.value::<registration::RegisterResponse>()?)
    }

    /// Removes an agent from the server; `false` if it was not there.
    pub async fn unregister(&self, agent_id: &str) -> Result<bool, CallError> {
        #[derive(Deserialize)]
        struct Gone {
            #[serde(default = "yes")]
            deleted: bool,
        }
        fn yes() -> bool {
            true
        }
        let request = self.client.request(Method::DELETE, self.agent_url(agent_id)?)?;
        match ServerResponse::send(request).await {
            Ok(answer) => answer.value().map(|gone: Gone| gone.deleted),
            // Other servers send this for an agent that does not exist.
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All agents that match a filter.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<Vec<ListedAgent>, CallError> {
        let mut agents = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut url = self.url(&self.paths.discover)?;
            let more = cursor.as_deref().map(|cursor| ("cursor", cursor));
            add_query(&mut url, filter.pairs().into_iter().chain(more));
            let answer = self.get(url).await?;
            for raw in answer.value::<Vec<Box<RawValue>>>()? {
                agents.push(ListedAgent::read(raw)?);
            }
            match answer.next_cursor {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => return Ok(agents),
            }
        }
        Err(CallError::Unreadable(format!("the list has more than {PAGES_MAX} pages")))
    }

    /// One agent.
    pub async fn agent(&self, agent_id: &str) -> Result<ListedAgent, CallError> {
        ListedAgent::read(self.get(self.agent_url(agent_id)?).await?.data)
    }

    /// Acknowledges every message up to a position.
    pub async fn ack(&self, up_to: u64) -> Result<AckAnswer, CallError> {
        let body = json!({"up_to": up_to}).to_string();
        // This is idempotent.
        let acked = self.retry.call(async || self.post(&self.paths.ack, body.clone()).await);
        acked.await?.value()
    }

    /// Past messages, oldest first.
    pub async fn history(&self, span: &HistoryFilter) -> Result<Vec<PastMessage>, CallError> {
        let mut url = self.url(&self.paths.history)?;
        add_query(&mut url, span.pairs().iter().map(|(name, value)| (*name, value.as_str())));
        let answer = self.get(url).await?;
        answer.value::<Vec<Box<RawValue>>>()?.into_iter().map(PastMessage::read).collect()
    }

    /// Opens the inbox of the agent that the key belongs to.
    pub async fn inbox(&self, how: InboxOptions) -> Result<Inbox, CallError> {
        Inbox::open(self.clone(), how).await
    }

    pub(super) fn client(&self) -> &OriginClient {
        &self.client
    }

    pub(super) fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// The URL of a path in the document.
    pub(super) fn url(&self, path: &str) -> Result<Url, CallError> {
        let wrong = |_| CallError::Unreadable(format!("{path:?} is not a valid path"));
        self.base.join(path).map_err(wrong)
    }

    /// Makes a read call, with retries.
    async fn get(&self, url: Url) -> Result<ServerResponse, CallError> {
        let read =
            async || ServerResponse::send(self.client.request(Method::GET, url.clone())?).await;
        self.retry.call(read).await
    }

    async fn post(&self, path: &str, body: String) -> Result<ServerResponse, CallError> {
        let request = self.client.request(Method::POST, self.url(path)?)?;
        ServerResponse::send(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    fn agent_url(&self, agent_id: &str) -> Result<Url, CallError> {
        // In a URL these are relative path segments, not names.
        if matches!(agent_id, "" | "." | "..") {
            let hint = Some("write it like alice or alice@chorus".to_owned());
            return Err(CallError::invalid(format!("{agent_id:?} is not an agent id"), hint));
        }
        let mut url = self.url(&self.paths.discover)?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(agent_id);
        }
        Ok(url)
    }
}

/// The server's document, if it has a valid one.
async fn document(
    client: &OriginClient,
    base: &Url,
) -> Result<Option<discovery::ServerDocument>, CallError> {
    // RFC 8615: the document belongs to the origin, whatever path the server URL has.
    let url = base.join(WELL_KNOWN).map_err(|_| CallError::Unreadable(base.to_string()))?;
    let mut answer = origin_client::send(client.request(Method::GET, url)?).await?;
    if is_absent(answer.status()) {
        return Ok(None);
    }
    if !answer.status().is_success() {
        return Err(origin_client::read_refusal(answer, DOCUMENT_BYTES_MAX).await);
    }
    let body = match origin_client::read_body(&mut answer, DOCUMENT_BYTES_MAX).await {
        Ok(body) => body,
        Err(CallError::Unreadable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A server that sends a page for every path has no such document.
    let read = ijson::read(&body).ok().filter(|json| json.get("endpoints").is_some());
    Ok(read.map(|json| discovery::ServerDocument::read(&json)))
}

/// The spec's paths below a prefix.
fn paths_below(prefix: &str) -> Paths {
    let prefix = prefix.trim_end_matches('/');
    let put = |path: String| format!("{prefix}{path}");
    let paths = Paths::default();
    Paths {
        register: put(paths.register),
        discover: put(paths.discover),
        send: put(paths.send),
        health: put(paths.health),
        self_register: put(paths.self_register),
        inbox: put(paths.inbox),
        ack: put(paths.ack),
        history: put(paths.history),
    }
}

/// Adds query parameters; a URL without any gets no `?`.
pub(super) fn add_query<'a>(url: &mut Url, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut pairs = pairs.peekable();
    if pairs.peek().is_some() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
}
