//! An agent at a server. It signs envelopes and sends them with retries; each takes effect once.
//!
//! Ids make repeated envelopes harmless, so an envelope whose response was lost is sent again as it
//! is.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::sync::Mutex;

use super::hello::{Profile, Token, WelcomeResponse};
use super::identity::{Identity, SignedEnvelope, new_id};
use super::incoming::{EnvelopeResponse, TrustContext};
use super::server::Server;
use crate::call::CallError;
use crate::clock;
use crate::key::Key;
use crate::origin_client::Reply;
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
    pub async fn send(&self, envelope: SignedEnvelope) -> Result<EnvelopeResponse, CallError> {
        self.send_and_wait(envelope, Duration::ZERO).await
    }

    /// Like `send`, and waits at the server up to 30 seconds for the answer to a REQUEST or ACCEPT.
    pub async fn send_and_wait(
        &self,
        envelope: SignedEnvelope,
        wait: Duration,
    ) -> Result<EnvelopeResponse, CallError> {
        self.post_and_read(envelope, None, wait).await
    }

    /// Signs a payload for an agent and sends it to the agent's own address.
    pub async fn send_to(
        &self,
        to: PublicKey,
        kind: MessageType,
        payload: &str,
    ) -> Result<EnvelopeResponse, CallError> {
        let envelope = self.identity.sign(kind, payload, Some(to))?;
        self.post_and_read(envelope, Some(to), Duration::ZERO).await
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
            let hello =
                self.identity.sign(MessageType::Hello, &payload, Some(self.server.key()))?;
            let (hello, reply) = self.post_with_retry(hello, None, Duration::ZERO).await?;
            let (text, now) = (reply.text()?, clock::now());
            let welcome = WelcomeResponse::read(&text, &hello, &nonce, now, self.trust_context())?;
            if inbox && welcome.token.is_none() {
                // The first response to this HELLO was lost, and only the first has a token (R69).
                continue;
            }
            if let Some(token) = &welcome.token {
                *self.token.lock().await = Some(token.clone());
            }
            return Ok(welcome);
        }
        Err(CallError::unreadable("the server gave no inbox token (peers do not have inboxes)"))
    }

    /// A token that is valid for a while: the current one, or a new one from a new HELLO.
    pub(super) async fn inbox_token(&self) -> Result<Key, CallError> {
        let current = self.token.lock().await.clone();
        if let Some(token) = current.filter(|token| token.is_valid(clock::now())) {
            return Ok(token.key);
        }
        let welcome = self.hello(&Profile::default(), true).await?;
        let token = welcome.token.map(|token| token.key);
        token.ok_or_else(|| CallError::unreadable("it contains no inbox token"))
    }

    /// Drops a token that was refused, so that the next use gets a new one.
    pub(super) async fn forget_token(&self, refused: &Key) {
        let mut current = self.token.lock().await;
        if current.as_ref().is_some_and(|token| token.key == *refused) {
            *current = None;
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

    async fn post_and_read(
        &self,
        envelope: SignedEnvelope,
        to: Option<PublicKey>,
        wait: Duration,
    ) -> Result<EnvelopeResponse, CallError> {
        let (envelope, reply) = self.post_with_retry(envelope, to, wait).await?;
        EnvelopeResponse::read(reply, &envelope.id, clock::now(), self.trust_context())
    }

    /// Returns the response, and the envelope as it was last signed.
    async fn post_with_retry(
        &self,
        mut envelope: SignedEnvelope,
        to: Option<PublicKey>,
        wait: Duration,
    ) -> Result<(SignedEnvelope, Reply), CallError> {
        let post = || {
            let fresh = self.refresh(&mut envelope).map(|()| envelope.as_str().to_owned());
            async move { self.server.post(fresh?, to, wait).await }
        };
        let reply = self.retry.run(min_retry_delay, post).await?;
        Ok((envelope, reply))
    }

    /// Signs an envelope again when it gets old.
    fn refresh(&self, envelope: &mut SignedEnvelope) -> Result<(), CallError> {
        let (now, window) = (clock::now(), self.server.window());
        let is_old = if self.is_peer { is_stale } else { is_aging };
        if is_old(envelope.timestamp, now, window) {
            *envelope = self.identity.sign_again(envelope)?;
        }
        Ok(())
    }
}

/// The minimum wait before the same envelope can succeed; `None` if it cannot.
fn min_retry_delay(error: &CallError) -> Option<Duration> {
    error.wait_if(|status, _, retryable| match status {
        429 | 502..=504 | 507 => true,
        // The hub had an internal error and says itself whether a retry is safe. A 408 is retryable
        // too, but only as a new request.
        500 => retryable,
        _ => false,
    })
}

/// Whether an envelope may become too old before it arrives.
fn is_aging(signed: Timestamp, now: Timestamp, window: Millis) -> bool {
    signed.0.abs_diff(now.0) > window.0.unsigned_abs() / 2
}

/// Whether an envelope is too old to be accepted.
fn is_stale(signed: Timestamp, now: Timestamp, window: Millis) -> bool {
    signed.0.abs_diff(now.0) > window.0.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refused;

    #[test]
    fn only_temporary_errors_are_retried() {
        for (error, again) in [
            (refused(400, "ERROR 400", false, None), false),
            (refused(401, "ERROR 401", false, None), false),
            (refused(402, "ERROR 402", false, None), false),
            (refused(404, "ERROR 404", false, None), false),
            (refused(408, "ERROR 408", true, None), false),
            (refused(413, "ERROR 413", false, None), false),
            (refused(429, "ERROR 429", true, Some(7)), true),
            (refused(500, "ERROR 500", false, None), false),
            (refused(500, "ERROR 500", true, None), true),
            (refused(503, "ERROR 503", true, None), true),
            (refused(507, "ERROR 507", true, None), true),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            assert_eq!(min_retry_delay(&error).is_some(), again, "{error:?}");
        }
    }

    #[test]
    fn an_envelope_ages_after_half_the_window() {
        let (window, signed) = (Millis::seconds(60), Timestamp(100_000));
        for (now, aging) in [(100_000, false), (130_000, false), (130_001, true), (69_999, true)] {
            assert_eq!(is_aging(signed, Timestamp(now), window), aging, "{now}");
        }
        for (now, stale) in [(160_000, false), (160_001, true), (40_000, false), (39_999, true)] {
            assert_eq!(is_stale(signed, Timestamp(now), window), stale, "{now}");
        }
    }
}
