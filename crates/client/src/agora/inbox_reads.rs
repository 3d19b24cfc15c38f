//! Calls with an inbox token: inbox pages, acknowledgements, and the state of a request.

use std::future::Future;

use reqwest::Method;
use rialto_protocols::agora::wire::responses::{Ack, AckAnswer, InboxPage, RequestView};
use serde_json::value::RawValue;

use super::agent::Agent;
use super::incoming::{IncomingEnvelope, TrustError};
use crate::call::CallError;
use crate::key::Key;

/// One page of an inbox.
#[derive(Debug)]
pub struct EnvelopePage {
    /// Envelopes, oldest first; one that cannot be trusted is an error with the reason.
    pub items: Vec<Result<IncomingEnvelope, TrustError>>,
    /// The position to continue after.
    pub next_after: u64,
}

impl Agent {
    /// A page of the inbox: what follows a position, or what is not acknowledged.
    pub async fn messages(
        &self,
        after: Option<u64>,
        limit: u32,
    ) -> Result<EnvelopePage, CallError> {
        let mut url = self.server().url(&["messages"]);
        url.query_pairs_mut().append_pair("limit", &limit.to_string());
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after", &after.to_string());
        }
        let ask = |token| self.server().call_with_token(token, Method::GET, url.clone(), None);
        let raw: Box<RawValue> = self.with_token(ask).await?;
        let page: InboxPage<'_> = serde_json::from_str(raw.get())
            .map_err(|error| CallError::Unreadable(error.to_string()))?;
        let items = page.messages.iter().map(|item| {
            let receipt = item.receipt.map(RawValue::get);
            IncomingEnvelope::verify_receipt(
                item.envelope.get(),
                receipt,
                Some(item.position),
                self.trust_context(),
            )
        });
        Ok(EnvelopePage { items: items.collect(), next_after: page.next_after })
    }

    /// Acknowledges everything up to a position, so that it is not sent again.
    pub async fn ack(&self, up_to: u64) -> Result<AckAnswer, CallError> {
        let url = self.server().url(&["inbox", "ack"]);
        let body = serde_json::to_string(&Ack { up_to })
            .map_err(|error| CallError::Unreadable(error.to_string()))?;
        let ask = |token| {
            self.server().call_with_token(token, Method::POST, url.clone(), Some(body.clone()))
        };
        self.with_token(ask).await
    }

    /// The state of a request. Only its parties may read it.
    pub async fn thread(&self, request_id: &str) -> Result<RequestView, CallError> {
        let url = self.server().url(&["requests", request_id]);
        let ask = |token| self.server().call_with_token(token, Method::GET, url.clone(), None);
        self.with_token(ask).await
    }

    /// Calls with a token, and once more with a new token if the first is refused.
    pub(super) async fn with_token<T, F>(&self, ask: impl Fn(Key) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let token = self.inbox_token().await?;
        match ask(token.clone()).await {
            Err(CallError::Refused { status: 401, .. }) => {
                self.forget_token(&token).await;
                ask(self.inbox_token().await?).await
            }
            answer => answer,
        }
    }
}
