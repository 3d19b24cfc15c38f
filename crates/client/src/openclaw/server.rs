//! A hub at a URL: its paths and its public calls.

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::Object;
use rialto_protocols::openclaw::answers::{Done, Health, Unregistered};
use rialto_protocols::openclaw::common::Common;
use rialto_protocols::openclaw::message::Identity;
use url::Url;
use uuid::Uuid;

use super::response::{self, Answer};
use super::ids;
use super::published_agent::Published;
use crate::call::CallError;
use crate::clock;
use crate::key::Key;
use crate::origin_client::{Line, below, http_url, mounted};

/// The protocol's path below a hub's URL.
const MOUNT: &str = "openclaw";

/// A hub, called with or without a key.
#[derive(Clone, Debug)]
pub struct Server {
    line: Line,
    base: Url,
}

impl Server {
    /// The hub at a URL, which may omit the `/openclaw` at its end. Sends nothing.
    pub fn new(url: &str) -> Result<Self, CallError> {
        let base = mounted(http_url(url)?, MOUNT);
        Ok(Self { line: Line::new(&base)?, base })
    }

    /// The same hub with a key: an agent's own, or an operator's.
    pub fn with_key(&self, key: Key) -> Self {
        Self { line: self.line.with_key(key), base: self.base.clone() }
    }

    /// The hub's health and identity.
    pub async fn health(&self) -> Result<Health, CallError> {
        self.get(self.at(&["health"])).await?.value()
    }

    /// Publishes an identity: without a key as a new agent, with a key as an update. There are no
    /// retries: the key of a new agent is only in the first response.
    pub async fn publish(&self, identity: &Identity) -> Result<Published, CallError> {
        let text = identity.write();
        response::check::<Identity>(&text)?;
        let answer = self.post(self.at(&["identity"]), traced(&text, common()?)?).await?;
        Published::read(self, identity.agent_id, &answer)
    }

    /// Unregisters an agent, with its own key or an operator's. `false` if it was not there.
    pub async fn unregister(&self, agent_id: Uuid) -> Result<bool, CallError> {
        let url = self.at(&["agents", &agent_id.to_string()]);
        match Answer::ask(self.line.request(Method::DELETE, url)?).await {
            Ok(answer) => answer.value::<Unregistered>().map(|_| true),
            Err(CallError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Approves or rejects work that needs approval, with the responder's key or an operator's.
    /// `id` is the collaboration's; the responder may also use the request's.
    pub async fn approve(&self, id: Uuid, approved: bool) -> Result<(), CallError> {
        let url = self.at(&["collaborations", &id.to_string(), "approve"]);
        let body = common()?.on(Object::new().flag("approved", approved)).finish();
        self.post(url, body).await?.value().map(|_: Done| ())
    }

    pub(super) async fn get(&self, url: Url) -> Result<Answer, CallError> {
        Answer::ask(self.line.request(Method::GET, url)?).await
    }

    pub(super) async fn post(&self, url: Url, body: String) -> Result<Answer, CallError> {
        let request = self.line.request(Method::POST, url)?;
        Answer::ask(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// The URL of a path below the protocol's path.
    pub(super) fn at(&self, path: &[&str]) -> Url {
        below(&self.base, path)
    }
}

/// Adds a correlation id and a timestamp to an identity. Its schema does not require them, but
/// every message should have them (R4).
pub(super) fn traced(identity: &str, common: Common) -> Result<String, CallError> {
    let unreadable = |bad: ijson::Unreadable| CallError::Unreadable(bad.to_string());
    let json = ijson::read(identity.as_bytes()).map_err(unreadable)?;
    Ok(common.on(Object::copy(&json, &["protocol_version"])).finish())
}

/// The common fields of a new message.
pub(super) fn common() -> Result<Common, CallError> {
    Ok(Common { correlation_id: ids::id()?, timestamp: clock::now() })
}
