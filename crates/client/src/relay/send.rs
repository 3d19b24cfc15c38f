//! Sends messages, with retries; each is counted once.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::envelope::ValidEnvelope;
use super::origin_client;
use super::outcome::SentMessage;
use super::reply_stream::ReplyStream;
use super::response::ServerResponse;
use super::server::Server;
use crate::call::CallError;

/// The `Accept` header of a request for a streaming reply.
const LIVE_OR_WHOLE: &str = "text/event-stream, application/json";

/// A message to send, and its receiver.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// The receiver's address; a short name is resolved by the server.
    pub receiver_id: &'a str,
    /// The message.
    pub envelope: &'a ValidEnvelope,
    /// An idempotency key, so that the server accepts the message once however often it arrives.
    /// The client generates one by default; set your own to be able to repeat the request later.
    pub idempotency_key: Option<&'a str>,
}

/// A server's response to a request for a streaming reply.
#[derive(Debug)]
pub enum SendResponse {
    /// There is nothing to stream: the receiver has an inbox, or is offline.
    Complete(SentMessage),
    /// The receiver streams its reply.
    Streaming(Box<ReplyStream>),
}

impl Server {
    /// Sends a message. Temporary failures are retried (see [`super::RetryPolicy`]), always with the same
    /// idempotency key.
    pub async fn send(&self, order: &SendRequest<'_>) -> Result<SentMessage, CallError> {
        let key = idempotency_key(order)?;
        let mut tries = 1;
        loop {
            let mut result =
                sent_message(ServerResponse::send(self.send_request(order, &key, false)?).await);
            let Some(wait) = self.retry().retry_delay(tries, &result) else {
                if let Ok(sent) = &mut result {
                    sent.tries = tries;
                }
                return result;
            };
            tokio::time::sleep(wait).await;
            tries += 1;
        }
    }

    /// Sends a message and streams the receiver's reply. There are no retries, because parts of the
    /// reply may already have been read.
    pub async fn send_streaming(&self, order: &SendRequest<'_>) -> Result<SendResponse, CallError> {
        let request = self.send_request(order, &idempotency_key(order)?, true)?;
        let answer = origin_client::send(request).await?;
        let kind = answer.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        if answer.status().is_success() && is_stream {
            return Ok(SendResponse::Streaming(Box::new(ReplyStream::new(answer))));
        }
        sent_message(ServerResponse::from_response(answer).await).map(SendResponse::Complete)
    }

    fn send_request(
        &self,
        order: &SendRequest<'_>,
        key: &str,
        live: bool,
    ) -> Result<RequestBuilder, CallError> {
        let url = self.url(&self.paths().send)?;
        let (receiver, envelope) = (json!(order.receiver_id), order.envelope.as_str());
        let stream = if live { r#","stream":true"# } else { "" };
        let body = format!(r#"{{"receiver_id":{receiver},"envelope":{envelope}{stream}}}"#);
        let request = match live {
            true => {
                self.client().streaming_request(Method::POST, url)?.header(ACCEPT, LIVE_OR_WHOLE)
            }
            false => self.client().request(Method::POST, url)?,
        };
        let request = request.header(CONTENT_TYPE, "application/json");
        Ok(request.header("idempotency-key", key).body(body))
    }
}

/// Reads the outcome of the message from a response.
fn sent_message(answer: Result<ServerResponse, CallError>) -> Result<SentMessage, CallError> {
    match answer {
        Ok(answer) => SentMessage::read(answer.data.get(), answer.replayed),
        Err(error) => SentMessage::from_refusal(error),
    }
}

/// The request's idempotency key, or a new one.
fn idempotency_key(order: &SendRequest<'_>) -> Result<String, CallError> {
    if let Some(key) = order.idempotency_key {
        return Ok(key.to_owned());
    }
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(hex::encode(bytes)),
        Err(error) => Err(CallError::Unreadable(format!(
            "the system's random number generator failed: {error}"
        ))),
    }
}
