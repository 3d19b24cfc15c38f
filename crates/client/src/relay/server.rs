//! A relay server: its operations, their paths, and its responses.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rialto_protocols::kit::ijson;
use rialto_protocols::relay::wire::discovery::{self, Paths};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use url::Url;

use super::agents::{AgentFilter, ListedAgent, RegisterResponse, RegisteredAgent, Registration};
use super::message::{HistoryFilter, PastMessage};
use super::stream::{Inbox, InboxOptions};
use crate::call::CallError;
use crate::json;
use crate::key::Key;
use crate::origin_client::{
    self, OriginClient, Reply, add_query, parse_http_url, read_pages, refusal_from_body,
};
use crate::retry::RetryPolicy;

/// The document with the paths of a server's operations.
const WELL_KNOWN: &str = "/.well-known/chorus.json";
/// Maximum document size in bytes.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;
/// Maximum response size: a full page of the longest messages.
const ANSWER_BYTES_MAX: usize = 64 << 20;

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
        let (paths, name) = match fetch_document(&client, &base).await? {
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
        RegisteredAgent::read(answer.value::<RegisterResponse>()?)
    }

    /// Removes an agent from the server; `false` if it was not there.
    pub async fn unregister(&self, agent_id: &str) -> Result<bool, CallError> {
        #[derive(Deserialize)]
        struct Unregistered {
            #[serde(default = "yes")]
            deleted: bool,
        }
        fn yes() -> bool {
            true
        }
        let request = self.client.request(Method::DELETE, self.agent_url(agent_id)?)?;
        match ServerResponse::send(request).await {
            Ok(answer) => answer.value().map(|answer: Unregistered| answer.deleted),
            // Other servers send this for an agent that does not exist.
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All agents that match a filter.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<Vec<ListedAgent>, CallError> {
        read_pages(|cursor| async move {
            let mut url = self.url(&self.paths.discover)?;
            add_query(&mut url, filter.query().into_iter().chain([("cursor", cursor)]));
            let answer = self.get(url).await?;
            let agents = answer.value::<Vec<Box<RawValue>>>()?.into_iter().map(ListedAgent::read);
            Ok((agents.collect::<Result<_, _>>()?, answer.next_cursor))
        })
        .await
    }

    /// One agent.
    pub async fn agent(&self, agent_id: &str) -> Result<ListedAgent, CallError> {
        ListedAgent::read(self.get(self.agent_url(agent_id)?).await?.data)
    }

    /// Acknowledges every message up to a position.
    pub async fn ack(&self, up_to: u64) -> Result<AckAnswer, CallError> {
        let body = json!({"up_to": up_to}).to_string();
        // This is idempotent.
        let ack = async || self.post(&self.paths.ack, body.clone()).await;
        self.retry.call(ack).await?.value()
    }

    /// Past messages, oldest first.
    pub async fn history(&self, filter: &HistoryFilter) -> Result<Vec<PastMessage>, CallError> {
        let mut url = self.url(&self.paths.history)?;
        add_query(&mut url, filter.query());
        let answer = self.get(url).await?;
        answer.value::<Vec<Box<RawValue>>>()?.into_iter().map(PastMessage::read).collect()
    }

    /// Opens the inbox of the agent that the key belongs to.
    pub async fn inbox(&self, options: InboxOptions) -> Result<Inbox, CallError> {
        Inbox::open(self.clone(), options).await
    }

    pub(super) fn client(&self) -> &OriginClient {
        &self.client
    }

    pub(super) fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// The URL of a path in the document.
    pub(super) fn url(&self, path: &str) -> Result<Url, CallError> {
        let invalid = |_| CallError::unreadable(format!("{path:?} is not a valid path"));
        self.base.join(path).map_err(invalid)
    }

    /// Makes a read call, with retries.
    async fn get(&self, url: Url) -> Result<ServerResponse, CallError> {
        let get =
            async || ServerResponse::send(self.client.request(Method::GET, url.clone())?).await;
        self.retry.call(get).await
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
async fn fetch_document(
    client: &OriginClient,
    base: &Url,
) -> Result<Option<discovery::ServerDocument>, CallError> {
    // RFC 8615: the document belongs to the origin, whatever path the server URL has.
    let url = base.join(WELL_KNOWN).map_err(|_| CallError::unreadable(base))?;
    let response = origin_client::send(client.request(Method::GET, url)?).await?;
    let status = response.status();
    if is_absent(status) {
        return Ok(None);
    }
    let reply = match Reply::read(response, DOCUMENT_BYTES_MAX).await {
        // A server that sends a long page for every path has no such document.
        Err(CallError::Unreadable(_)) if status.is_success() => return Ok(None),
        reply => reply?.accepted(refusal_from_body)?,
    };
    let json = ijson::read(&reply.body).ok().filter(|json| json.get("endpoints").is_some());
    Ok(json.map(|json| discovery::ServerDocument::read(&json)))
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

/// One response: the JSON text of its data, and its metadata.
#[derive(Debug)]
pub(super) struct ServerResponse {
    /// The data as received.
    pub(super) data: Box<RawValue>,
    /// The cursor of the next page.
    next_cursor: Option<String>,
    /// Whether the server repeated its response to an earlier request with the same key.
    pub(super) replayed: bool,
}

#[derive(Deserialize)]
struct Wrapper {
    data: Box<RawValue>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    next_cursor: Option<String>,
}

impl ServerResponse {
    /// Sends a request and reads the response; anything but a success is an error.
    pub(super) async fn send(request: RequestBuilder) -> Result<Self, CallError> {
        Self::from_response(origin_client::send(request).await?).await
    }

    /// Reads a response.
    pub(super) async fn from_response(response: Response) -> Result<Self, CallError> {
        let reply = Reply::read(response, ANSWER_BYTES_MAX).await?.accepted(refusal_from_body)?;
        Self::read(&reply.body, reply.headers.contains_key("idempotency-replayed"))
    }

    fn read(body: &[u8], replayed: bool) -> Result<Self, CallError> {
        let Wrapper { data, metadata } = json::parse(body)?;
        Ok(Self { data, next_cursor: metadata.next_cursor, replayed })
    }

    /// The data, parsed.
    pub(super) fn value<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        json::parse(self.data.get().as_bytes())
    }
}

/// Whether a status means that nothing exists at a path, rather than an error.
fn is_absent(status: StatusCode) -> bool {
    let busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    status.is_redirection() || status.is_client_error() && !busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_kept_as_it_came() {
        let body = br#"{"success":true,"data":{"n": 1.00},"metadata":{"next_cursor":"c"}}"#;
        let answer = ServerResponse::read(body, false).expect("an answer");
        assert_eq!(answer.data.get(), r#"{"n": 1.00}"#);
        assert_eq!(answer.next_cursor.as_deref(), Some("c"));
        assert!(
            ServerResponse::read(br#"{"data":[]}"#, false).expect("bare").next_cursor.is_none()
        );
        for body in ["", "[]", "{}", "<html>"] {
            assert!(ServerResponse::read(body.as_bytes(), false).is_err(), "{body}");
        }
    }
}
