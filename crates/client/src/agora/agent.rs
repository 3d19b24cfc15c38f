//! An agent at a server. It signs envelopes and sends them with retries; each takes effect once.

use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::hello::{Profile, WelcomeResponse};
use super::identity::{Identity, new_id};
use super::incoming::TrustContext;
use super::response::{EnvelopeResponse, ServerResponse};
use super::retry;
use super::server::Server;
use super::signed_envelope::SignedEnvelope;
use super::token::Token;
use crate::call::CallError;
use crate::clock;
use crate::key::Key;
use crate::retry::RetryPolicy;

/// How often a new HELLO is sent when its response, and the token in it, was lost.
const HELLOS_MAX: usize = 3;

/// An identity at a server.
#[derive(Clone, Debug)]
pub struct Agent {
    identity: Identity,
    server: Server,
    retry: RetryPolicy,
    is_peer: bool,
    token: Arc<Mutex<Option<Token>>>,
}

impl Agent {
    /// Creates an agent. Sends nothing.
    pub fn new(identity: Identity, server: Server) -> Self {
        Self {
            identity,
            server,
            retry: RetryPolicy::default(),
            is_peer: false,
            token: Arc::default(),
        }
    }

    /// Adapts the agent to a server that is itself an agent. A peer gives a repeated envelope the
    /// same answer, but refuses the same id with another timestamp. So the first envelope is sent
    /// again for as long as it is fresh.
    pub(super) fn for_peer(self) -> Self {
        Self { is_peer: true, ..self }
    }

    /// Sets the retry policy for sending.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// The agent's identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The agent's server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends an envelope. Temporary errors are retried with the same envelope, which is signed
    /// again under its id when it gets old. It takes effect only once: if a response was lost and
    /// the envelope was signed again, the hub refuses the second one with 400 because it accepted
    /// the first.
    pub async fn send(&self, sealed: SignedEnvelope) -> Result<EnvelopeResponse, CallError> {
        self.send_and_wait(sealed, Duration::ZERO).await
    }

    /// Like `send`, and waits at the server up to 30 seconds for the answer to a REQUEST or ACCEPT.
    pub async fn send_and_wait(
        &self,
        sealed: SignedEnvelope,
        wait: Duration,
    ) -> Result<EnvelopeResponse, CallError> {
        let id = sealed.id.clone();
        let posted = self.post_with_retry(sealed, None, wait).await?.1;
        posted.read(&id, clock::now(), self.trust_context())
    }

    /// Signs a payload for an agent and sends it to the agent's own address.
    pub async fn send_to(
        &self,
        to: PublicKey,
        kind: MessageType,
        payload: &str,
    ) -> Result<EnvelopeResponse, CallError> {
        let sealed = self.identity.sign(kind, payload, Some(to))?;
        let id = sealed.id.clone();
        let posted = self.post_with_retry(sealed, Some(to), Duration::ZERO).await?.1;
        posted.read(&id, clock::now(), self.trust_context())
    }

    /// Sends HELLO to the server, and stores the inbox token if one is requested.
    pub async fn hello(
        &self,
        profile: &Profile,
        inbox: bool,
    ) -> Result<WelcomeResponse, CallError> {
        for _ in 0..HELLOS_MAX {
            let nonce = new_id()?;
            let payload = profile.payload(&nonce, inbox);
            let sealed =
                self.identity.sign(MessageType::Hello, &payload, Some(self.server.key()))?;
            let (sealed, posted) = self.post_with_retry(sealed, None, Duration::ZERO).await?;
            let welcomed = WelcomeResponse::read(
                &posted.text,
                &sealed,
                &nonce,
                clock::now(),
                self.trust_context(),
            )?;
            if inbox && welcomed.token.is_none() {
                // The first response to this HELLO was lost, and only the first has a token (R69).
                continue;
            }
            if let Some(token) = &welcomed.token {
                *self.token.lock().await = Some(token.clone());
            }
            return Ok(welcomed);
        }
        Err(CallError::Unreadable(
            "the server gave no inbox token (peers do not have inboxes)".to_owned(),
        ))
    }

    /// A token that is valid for a while: the current one, or a new one from a new HELLO.
    pub(super) async fn inbox_token(&self) -> Result<Key, CallError> {
        let kept = self.token.lock().await.clone();
        if let Some(token) = kept.filter(|token| token.is_valid(clock::now())) {
            return Ok(token.key);
        }
        let welcomed = self.hello(&Profile::default(), true).await?;
        let token = welcomed.token.map(|token| token.key);
        token.ok_or_else(|| CallError::Unreadable("it contains no inbox token".to_owned()))
    }

    /// Drops a token that was refused, so that the next use gets a new one.
    pub(super) async fn forget_token(&self, refused: &Key) {
        let mut kept = self.token.lock().await;
        if kept.as_ref().is_some_and(|token| token.key == *refused) {
            *kept = None;
        }
    }

    /// The keys this agent trusts.
    pub(super) fn trust_context(&self) -> TrustContext {
        TrustContext {
            me: self.identity.key(),
            hub: self.server.key(),
            window: self.server.window(),
        }
    }

    pub(super) async fn post_with_retry(
        &self,
        mut sealed: SignedEnvelope,
        to: Option<PublicKey>,
        wait: Duration,
    ) -> Result<(SignedEnvelope, ServerResponse), CallError> {
        let mut tries = 1;
        loop {
            let (now, window) = (clock::now(), self.server.window());
            let is_old = match self.is_peer {
                true => retry::is_stale(sealed.timestamp, now, window),
                false => retry::is_aging(sealed.timestamp, now, window),
            };
            if is_old {
                sealed = self.identity.sign_again(&sealed)?;
            }
            let error = match self.server.post(sealed.as_str(), to, wait).await {
                Ok(posted) => return Ok((sealed, posted)),
                Err(error) => error,
            };
            let Some(pause) = retry::retry_delay(&self.retry, tries, &error) else {
                return Err(error);
            };
            sleep(pause).await;
            tries += 1;
        }
    }
}
