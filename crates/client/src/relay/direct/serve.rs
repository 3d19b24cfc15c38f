//! The endpoint: a small HTTP server with a [`Receiver`].

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use tokio::net::TcpListener;

use super::BODY_BYTES_MAX;
use super::receiver::{AdaptError, EnvelopeReceiver, ReceivedEnvelope, ReceiverResponse};
use crate::clock;
use crate::http_server::{self, BodyError};

/// Receives envelopes on every path of `listener` until `stop`; running requests may then finish.
/// If a caller disconnects, the handling of its envelope is cancelled.
pub async fn serve<H, F>(
    listener: TcpListener,
    receiver: EnvelopeReceiver<H>,
    stop: impl Future<Output = ()>,
) where
    H: Fn(ReceivedEnvelope) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), AdaptError>> + Send,
{
    let receiver = Arc::new(receiver);
    let answer = move |head: Parts, body: Result<Bytes, BodyError>| {
        let receiver = Arc::clone(&receiver);
        async move {
            let is_post = head.method == Method::POST;
            let answer = match body {
                _ if !is_post => ReceiverResponse::invalid(405, "envelopes are sent with POST"),
                Ok(body) => receiver.receive(&head.headers, &body, clock::now()).await,
                Err(why) => body_error_response(why),
            };
            let allow = (!is_post).then_some("POST");
            http_server::HttpResponse {
                allow,
                ..http_server::HttpResponse::new(answer.status, answer.body)
            }
        }
    };
    http_server::serve(listener, BODY_BYTES_MAX, answer, stop).await;
}

/// The response to a body that could not be read.
pub(super) fn body_error_response(why: BodyError) -> ReceiverResponse {
    match why {
        BodyError::TooLong => ReceiverResponse::invalid(
            413,
            &format!("the body has more than {BODY_BYTES_MAX} bytes"),
        ),
        BodyError::Incomplete => ReceiverResponse::invalid(400, "the body is incomplete"),
        BodyError::TimedOut => ReceiverResponse::invalid(408, "the body took too long"),
    }
}
