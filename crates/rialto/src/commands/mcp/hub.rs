//! Calls to the hub: one POST per message, answered by one message or a stream of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rialto_client::KeyFile;
use rialto_hub::mcp::wire::version;
use rialto_protocols::kit::sse::{Event, Parser, replace_newlines};

use super::door::DoorArgs;
use super::key::{BridgeKey, KeyError};
use super::message::Members;
use crate::commands::{CliError, CliResult};

/// Connect timeout.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// A connection that is silent for this long is lost. The hub sends a comment every 10 to 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The longest message of the hub.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Why the hub did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubError {
    /// Nothing answers at its address.
    Unreachable,
    /// The connection ended before the response.
    Interrupted,
    /// Something else than a hub with MCP answered.
    NotAHub(StatusCode),
    /// There is no key, and none can be had: what is wrong, and what to do.
    NoKey { what: String, fix: String },
}

/// What a request repeats in its headers.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    pub method: &'a str,
    pub name: Option<&'a str>,
    pub version: &'a str,
}

/// One endpoint of the hub, with the key for it.
pub struct HubDoor {
    http: Client,
    base: String,
    url: String,
    is_for_agents: bool,
    key: Arc<BridgeKey>,
}

impl HubDoor {
    pub fn new(base: &str, door: &DoorArgs, key: BridgeKey) -> CliResult<Self> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .read_timeout(SILENCE_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let http = client.build().map_err(|error| CliError::plain(error.to_string()))?;
        let (base, url) = (base.trim_end_matches('/').to_owned(), door.path()?);
        let (url, is_for_agents) = (format!("{base}{url}"), door.is_for_agents());
        Ok(Self { http, url, base, is_for_agents, key: Arc::new(key) })
    }

    /// The hub's address.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Whether the tools are skills of agents.
    pub fn is_for_agents(&self) -> bool {
        self.is_for_agents
    }

    /// Sends a message. `needs_key` says whether it makes no sense without the key of an agent.
    pub async fn post(
        &self,
        message: &str,
        headers: Headers<'_>,
        needs_key: bool,
    ) -> Result<Replies, HubError> {
        let key = match self.key().await {
            Ok(key) => Some(key),
            Err(KeyError::Unreachable) => return Err(HubError::Unreachable),
            Err(KeyError::None { what, fix }) if needs_key => {
                return Err(HubError::NoKey { what, fix });
            }
            Err(KeyError::None { .. }) => None,
        };
        let response = self.send(message, headers, key.as_ref()).await?;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some(refused) = key
            && let Some(other) = self.other_key(refused).await
        {
            let response = self.send(message, headers, Some(&other)).await?;
            return Replies::of(response);
        }
        Replies::of(response)
    }

    /// The key. Registering the caller is not interrupted when a request is cancelled.
    async fn key(&self) -> Result<KeyFile, KeyError> {
        let key = self.key.clone();
        let got = tokio::spawn(async move { key.get().await }).await;
        got.unwrap_or(Err(KeyError::Unreachable))
    }

    /// Another key in place of one that the hub refused.
    async fn other_key(&self, refused: KeyFile) -> Option<KeyFile> {
        let key = self.key.clone();
        tokio::spawn(async move { key.replace(&refused).await }).await.ok()?.ok()?
    }

    async fn send(
        &self,
        message: &str,
        headers: Headers<'_>,
        key: Option<&KeyFile>,
    ) -> Result<Response, HubError> {
        let mut request = self
            .http
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", encode(headers.version))
            .header("mcp-method", encode(headers.method));
        if let Some(name) = headers.name {
            request = request.header("mcp-name", encode(name));
        }
        if let Some(key) = key {
            request = authorize(request, key);
        }
        request.body(message.to_owned()).send().await.map_err(|error| {
            // Whatever was sent before the connection broke may have been read.
            if error.is_connect() { HubError::Unreachable } else { HubError::Interrupted }
        })
    }
}

fn authorize(request: RequestBuilder, key: &KeyFile) -> RequestBuilder {
    request.header(AUTHORIZATION, format!("Bearer {}", key.key.reveal()))
}

/// A value for a header; text that a header cannot hold is encoded.
fn encode(text: &str) -> String {
    let is_plain = !text.starts_with("=?")
        && text.trim() == text
        && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// The version that the bridge itself speaks.
pub const SPOKEN: &str = version::NEWEST;

/// The messages that answer one request. Dropping them hangs up.
#[derive(Debug)]
pub struct Replies {
    response: Response,
    /// `None` for one message alone.
    stream: Option<Parser>,
    events: VecDeque<Event>,
    is_over: bool,
}

impl Replies {
    fn of(response: Response) -> Result<Self, HubError> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        let stream = match kind {
            "application/json" => None,
            "text/event-stream" => Some(Parser::new(MESSAGE_BYTES_MAX)),
            _ => return Err(HubError::NotAHub(response.status())),
        };
        Ok(Self { response, stream, events: VecDeque::new(), is_over: false })
    }

    /// The next message, on one line.
    pub async fn next(&mut self) -> Result<String, HubError> {
        let text = match self.stream {
            None => self.whole().await?,
            Some(_) => self.next_event().await?,
        };
        let mut bytes = text.into_bytes();
        replace_newlines(&mut bytes);
        let text = String::from_utf8(bytes).map_err(|_| HubError::Interrupted)?;
        // A proxy in front of the hub has other errors.
        let is_message =
            Members::read(&text).is_some_and(|members| members.get("jsonrpc").is_some());
        if is_message { Ok(text) } else { Err(HubError::NotAHub(self.response.status())) }
    }

    async fn whole(&mut self) -> Result<String, HubError> {
        if std::mem::replace(&mut self.is_over, true) {
            return Err(HubError::Interrupted);
        }
        let mut body = Vec::new();
        while let Some(piece) = self.response.chunk().await.map_err(|_| HubError::Interrupted)? {
            if body.len() + piece.len() > MESSAGE_BYTES_MAX {
                return Err(HubError::Interrupted);
            }
            body.extend_from_slice(&piece);
        }
        String::from_utf8(body).map_err(|_| HubError::NotAHub(self.response.status()))
    }

    async fn next_event(&mut self) -> Result<String, HubError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event.data);
            }
            let piece = self.response.chunk().await.map_err(|_| HubError::Interrupted)?;
            let (Some(piece), Some(parser)) = (piece, &mut self.stream) else {
                return Err(HubError::Interrupted);
            };
            let mut events = Vec::new();
            parser.push(&piece, &mut events).map_err(|_| HubError::Interrupted)?;
            self.events.extend(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_header_cannot_hold_are_encoded() {
        assert_eq!(encode("hire"), "hire");
        assert_eq!(encode("rialto://agents/a b"), "rialto://agents/a b");
        assert_eq!(encode("naïve"), "=?base64?bmHDr3Zl?=");
        assert_eq!(encode(" x"), "=?base64?IHg=?=");
        assert_eq!(encode("a\nb"), "=?base64?YQpi?=");
        assert_eq!(encode("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
    }
}
