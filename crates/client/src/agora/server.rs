//! A hub, or a peer that acts like one: its URL, its key, and calls to it.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder};
use rialto_core::time::Millis;
use rialto_protocols::agora::wire::responses::{AgentEntry, DirectoryPage, HubInfo};
use rialto_protocols::agora::{BODY_MAX, VERSION};
use rialto_protocols::kit::ed25519::PublicKey;
use serde::de::DeserializeOwned;
use url::Url;

use super::incoming::parse_refusal;
use crate::call::CallError;
use crate::key::Key;
use crate::origin_client::{
    OriginClient, Reply, add_query, join_path, parse_http_url, read_pages, with_mount,
};

/// The protocol's path below a hub's URL.
const MOUNT: &str = "agora";
/// Maximum size of a document, and of a page full of the longest envelopes.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;
const PAGE_BYTES_MAX: usize = 256 << 20;
/// Maximum size of the response to an envelope: the longest envelope plus this much.
const ANSWER_BYTES_MAX: usize = BODY_MAX + (64 << 10);
/// The longest wait a hub allows.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Maximum time window. No clock needs more; a server that asks for more would accept old
/// envelopes.
const WINDOW_MAX: Millis = Millis::minutes(10);

/// A server and its key.
#[derive(Clone, Debug)]
pub struct Server {
    client: OriginClient,
    base: Url,
    key: PublicKey,
    did: String,
    window: Millis,
    /// Timeout of an answer to an envelope, if it is not the default.
    answer_timeout: Option<Duration>,
}

impl Server {
    /// Discovers the server at a URL, which may omit the `/agora` at its end.
    ///
    /// The server's statement about its own key is trusted, like its address. Where that matters,
    /// compare [`Server::did`] with the value you expect.
    pub async fn discover(url: &str) -> Result<Self, CallError> {
        Self::discover_with_timeout(url, None).await
    }

    /// Like `discover`, for a server that may take longer to answer an envelope.
    pub(super) async fn discover_with_timeout(
        url: &str,
        timeout: Option<Duration>,
    ) -> Result<Self, CallError> {
        let base = with_mount(parse_http_url(url)?, MOUNT);
        let client = match timeout {
            Some(silence) => OriginClient::with_idle_timeout(&base, silence)?,
            None => OriginClient::new(&base)?,
        };
        let request = client.request(Method::GET, base.clone())?;
        let about: HubInfo = fetch(request, DOCUMENT_BYTES_MAX).await?;
        if about.protocol != VERSION {
            let other = format!("{base} uses {:?}, not {VERSION}", about.protocol);
            return Err(CallError::Unreadable(other));
        }
        let invalid = |bad| CallError::unreadable(format!("its key {bad}"));
        let key = PublicKey::from_did(&about.hub).map_err(invalid)?;
        let window = Millis(about.window_ms.clamp(1, WINDOW_MAX.0));
        Ok(Self { client, base, key, did: about.hub, window, answer_timeout: timeout })
    }

    /// The server's key.
    pub fn key(&self) -> PublicKey {
        self.key
    }

    /// The server's key as `did:key:z6Mk…`.
    pub fn did(&self) -> &str {
        &self.did
    }

    /// How far a timestamp may be from the server's clock.
    pub fn window(&self) -> Millis {
        self.window
    }

    /// All listed agents, or all that support a resource, best first.
    pub async fn agents(&self, resource: Option<&str>) -> Result<Vec<AgentEntry>, CallError> {
        read_pages(|cursor| async move {
            let mut url = self.url(&["agents"]);
            add_query(&mut url, [("resource", resource.map(str::to_owned)), ("cursor", cursor)]);
            let request = self.client.request(Method::GET, url)?;
            let page: DirectoryPage = fetch(request, PAGE_BYTES_MAX).await?;
            Ok((page.agents, page.next_cursor))
        })
        .await
    }

    /// The directory entry of one agent.
    pub async fn agent(&self, key: PublicKey) -> Result<AgentEntry, CallError> {
        let url = self.url(&["agents", &key.did()]);
        fetch(self.client.request(Method::GET, url)?, DOCUMENT_BYTES_MAX).await
    }

    /// Posts an envelope once, to its own recipient or to the given agent, and waits at the server
    /// for the answer if wanted.
    pub(super) async fn post(
        &self,
        envelope: String,
        to: Option<PublicKey>,
        wait: Duration,
    ) -> Result<Reply, CallError> {
        let mut url = match to {
            Some(key) => self.url(&["agents", &key.did()]),
            None => self.url(&["envelopes"]),
        };
        if !wait.is_zero() {
            let ms = wait.min(WAIT_MAX).as_millis().to_string();
            url.query_pairs_mut().append_pair("wait", &ms);
        }
        let request = match self.answer_timeout {
            Some(timeout) => self.client.streaming_request(Method::POST, url)?.timeout(timeout),
            None => self.client.request(Method::POST, url)?,
        };
        let request = request.header(CONTENT_TYPE, "application/json").body(envelope);
        Reply::fetch(request, ANSWER_BYTES_MAX).await?.accepted(parse_refusal)
    }

    /// Makes a read call with an inbox token.
    pub(super) async fn call_with_token<T: DeserializeOwned>(
        &self,
        token: Key,
        method: Method,
        url: Url,
        body: Option<String>,
    ) -> Result<T, CallError> {
        let mut request = self.client.with_key(token).request(method, url)?;
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        fetch(request, PAGE_BYTES_MAX).await
    }

    pub(super) fn client(&self) -> &OriginClient {
        &self.client
    }

    /// The URL of a path below the protocol's path.
    pub(super) fn url(&self, path: &[&str]) -> Url {
        join_path(&self.base, path)
    }
}

async fn fetch<T: DeserializeOwned>(request: RequestBuilder, max: usize) -> Result<T, CallError> {
    Reply::fetch(request, max).await?.accepted(parse_refusal)?.json()
}
