//! A relay server: its operations and their paths.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rialto_protocols::kit::ijson;
use rialto_protocols::relay::discovery::{self, Paths};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use url::Url;

use super::registration::{self, Announcement, Registered};
use super::response::{Answer, is_absent};
use super::history::{Past, Span};
use super::inbox::{Inbox, Listen};
use super::key::Key;
use super::origin_client::{self, Line, http_url};
use super::listed_agent::{Filter, Record};
use super::retry::Retry;
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
    line: Line,
    base: Url,
    paths: Paths,
    name: Option<String>,
    retry: Retry,
}

/// The acknowledged part of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Acked {
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
        let mut base = http_url(base)?;
        base.set_query(None);
        base.set_fragment(None);
        let line = Line::new(&base)?;
        let (paths, name) = match document(&line, &base).await? {
            Some(found) => (found.paths, found.server_name),
            None => (below(base.path()), None),
        };
        Ok(Self { line, base, paths, name, retry: Retry::default() })
    }

    /// The same server with a key.
    pub fn with_key(&self, key: Key) -> Self {
        Self { line: self.line.with_key(key), ..self.clone() }
    }

    /// Sets the retry policy for sending.
    pub fn with_retry(&self, retry: Retry) -> Self {
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
    pub async fn register(&self, agent: &Announcement) -> Result<Registered, CallError> {
        let answer = self.post(&self.paths.self_register, agent.body()?).await?;
        Registered::read(answer.value::<registration::Wire>()?)
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
        let request = self.line.request(Method::DELETE, self.agent_url(agent_id)?)?;
        match Answer::ask(request).await {
            Ok(answer) => answer.value().map(|gone: Gone| gone.deleted),
            // Other servers send this for an agent that does not exist.
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All agents that match a filter.
    pub async fn agents(&self, filter: &Filter) -> Result<Vec<Record>, CallError> {
        let mut agents = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut url = self.at(&self.paths.discover)?;
            let more = cursor.as_deref().map(|cursor| ("cursor", cursor));
            ask_for(&mut url, filter.pairs().into_iter().chain(more));
            let answer = self.get(url).await?;
            for raw in answer.value::<Vec<Box<RawValue>>>()? {
                agents.push(Record::read(raw)?);
            }
            match answer.next_cursor {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => return Ok(agents),
            }
        }
        Err(CallError::Unreadable(format!("the list has more than {PAGES_MAX} pages")))
    }

    /// One agent.
    pub async fn agent(&self, agent_id: &str) -> Result<Record, CallError> {
        Record::read(self.get(self.agent_url(agent_id)?).await?.data)
    }

    /// Acknowledges every message up to a position.
    pub async fn ack(&self, up_to: u64) -> Result<Acked, CallError> {
        let body = json!({"up_to": up_to}).to_string();
        // This is idempotent.
        let told = self.retry.call(async || self.post(&self.paths.ack, body.clone()).await);
        told.await?.value()
    }

    /// Past messages, oldest first.
    pub async fn history(&self, span: &Span) -> Result<Vec<Past>, CallError> {
        let mut url = self.at(&self.paths.history)?;
        ask_for(&mut url, span.pairs().iter().map(|(name, value)| (*name, value.as_str())));
        let answer = self.get(url).await?;
        answer.value::<Vec<Box<RawValue>>>()?.into_iter().map(Past::read).collect()
    }

    /// Opens the inbox of the agent that the key belongs to.
    pub async fn inbox(&self, how: Listen) -> Result<Inbox, CallError> {
        Inbox::open(self.clone(), how).await
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    pub(super) fn retry(&self) -> &Retry {
        &self.retry
    }

    /// The URL of a path in the document.
    pub(super) fn at(&self, path: &str) -> Result<Url, CallError> {
        let wrong = |_| CallError::Unreadable(format!("{path:?} is not a valid path"));
        self.base.join(path).map_err(wrong)
    }

    /// Makes a read call, with retries.
    async fn get(&self, url: Url) -> Result<Answer, CallError> {
        let look = async || Answer::ask(self.line.request(Method::GET, url.clone())?).await;
        self.retry.call(look).await
    }

    async fn post(&self, path: &str, body: String) -> Result<Answer, CallError> {
        let request = self.line.request(Method::POST, self.at(path)?)?;
        Answer::ask(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    fn agent_url(&self, agent_id: &str) -> Result<Url, CallError> {
        // In a URL these are relative path segments, not names.
        if matches!(agent_id, "" | "." | "..") {
            let hint = Some("write it like alice or alice@chorus".to_owned());
            return Err(CallError::invalid(format!("{agent_id:?} is not an agent id"), hint));
        }
        let mut url = self.at(&self.paths.discover)?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(agent_id);
        }
        Ok(url)
    }
}

/// The server's document, if it has a valid one.
async fn document(line: &Line, base: &Url) -> Result<Option<discovery::Server>, CallError> {
    // RFC 8615: the document belongs to the origin, whatever path the server URL has.
    let url = base.join(WELL_KNOWN).map_err(|_| CallError::Unreadable(base.to_string()))?;
    let mut answer = origin_client::send(line.request(Method::GET, url)?).await?;
    if is_absent(answer.status()) {
        return Ok(None);
    }
    if !answer.status().is_success() {
        return Err(origin_client::refusal(answer, DOCUMENT_BYTES_MAX).await);
    }
    let body = match origin_client::body(&mut answer, DOCUMENT_BYTES_MAX).await {
        Ok(body) => body,
        Err(CallError::Unreadable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A server that sends a page for every path has no such document.
    let read = ijson::read(&body).ok().filter(|json| json.get("endpoints").is_some());
    Ok(read.map(|json| discovery::Server::read(&json)))
}

/// The spec's paths below a prefix.
fn below(prefix: &str) -> Paths {
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
pub(super) fn ask_for<'a>(url: &mut Url, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut pairs = pairs.peekable();
    if pairs.peek().is_some() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
}
