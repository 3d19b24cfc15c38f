//! A hub at a URL: its paths and its public calls.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder};
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::openclaw::wire::answers::{Done, Health, Unregistered};
use rialto_protocols::openclaw::wire::{CommonMembers, Identity};
use url::Url;
use uuid::Uuid;

use super::agent::PublishedAgent;
use super::response::{check_message, parse_refusal};
use crate::call::CallError;
use crate::key::Key;
use crate::origin_client::{OriginClient, Reply, join_path, parse_http_url, with_mount};
use crate::{clock, ids};

/// The protocol's path below a hub's URL.
const MOUNT: &str = "openclaw";
/// Maximum response size: a full page of the longest messages.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A hub, called with or without a key.
#[derive(Clone, Debug)]
pub struct Server {
    client: OriginClient,
    base: Url,
}

impl Server {
    /// The hub at a URL, which may omit the `/openclaw` at its end. Sends nothing.
    pub fn new(url: &str) -> Result<Self, CallError> {
        let base = with_mount(parse_http_url(url)?, MOUNT);
        Ok(Self { client: OriginClient::new(&base)?, base })
    }

    /// The same hub with a key: an agent's own, or an operator's.
    pub fn with_key(&self, key: Key) -> Self {
        Self { client: self.client.with_key(key), base: self.base.clone() }
    }

    /// The hub's health and identity.
    pub async fn health(&self) -> Result<Health, CallError> {
        self.get(self.url(&["health"])).await?.json()
    }

    /// Publishes an identity: without a key as a new agent, with a key as an update. There are no
    /// retries: the key of a new agent is only in the first response.
    pub async fn publish(&self, identity: &Identity) -> Result<PublishedAgent, CallError> {
        let text = identity.write();
        check_message::<Identity>(&text)?;
        let body = with_common_fields(&text, new_common_fields()?)?;
        let reply = self.post(self.url(&["identity"]), body).await?;
        PublishedAgent::read(self, identity.agent_id, &reply)
    }

    /// Unregisters an agent, with its own key or an operator's. `false` if it was not there.
    pub async fn unregister(&self, agent_id: Uuid) -> Result<bool, CallError> {
        let url = self.url(&["agents", &agent_id.to_string()]);
        match fetch(self.client.request(Method::DELETE, url)?).await {
            Ok(reply) => reply.json::<Unregistered>().map(|_| true),
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Approves or rejects work that needs approval, with the responder's key or an operator's.
    /// `id` is the collaboration's; the responder may also use the request's.
    pub async fn approve(&self, id: Uuid, approved: bool) -> Result<(), CallError> {
        let url = self.url(&["collaborations", &id.to_string(), "approve"]);
        let body =
            new_common_fields()?.write_to(ObjectWriter::new().flag("approved", approved)).finish();
        self.post(url, body).await?.json().map(|_: Done| ())
    }

    pub(super) async fn get(&self, url: Url) -> Result<Reply, CallError> {
        fetch(self.client.request(Method::GET, url)?).await
    }

    pub(super) async fn post(&self, url: Url, body: String) -> Result<Reply, CallError> {
        let request = self.client.request(Method::POST, url)?;
        fetch(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    pub(super) fn client(&self) -> &OriginClient {
        &self.client
    }

    /// The URL of a path below the protocol's path.
    pub(super) fn url(&self, path: &[&str]) -> Url {
        join_path(&self.base, path)
    }
}

async fn fetch(request: RequestBuilder) -> Result<Reply, CallError> {
    Reply::fetch(request, ANSWER_BYTES_MAX).await?.accepted(parse_refusal)
}

/// Adds a correlation id and a timestamp to an identity. Its schema does not require them, but
/// every message should have them (R4).
pub(super) fn with_common_fields(
    identity: &str,
    common: CommonMembers,
) -> Result<String, CallError> {
    let json = ijson::read(identity.as_bytes()).map_err(CallError::unreadable)?;
    Ok(common.write_to(ObjectWriter::copy_without(&json, &["protocol_version"])).finish())
}

/// The common fields of a new message.
pub(super) fn new_common_fields() -> Result<CommonMembers, CallError> {
    Ok(CommonMembers { correlation_id: ids::random_id()?, timestamp: clock::now() })
}
