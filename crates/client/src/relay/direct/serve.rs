//! The endpoint: a small HTTP server with a [`Receiver`].

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use tokio::net::TcpListener;

use super::BODY_BYTES_MAX;
use super::receiver::{Answer, CannotAdapt, Received, Receiver};
use crate::clock;
use crate::http_server::{self, NoBody};

/// Receives envelopes on every path of `listener` until `stop`; running requests may then finish.
/// If a caller disconnects, the handling of its envelope is cancelled.
pub async fn serve<H, F>(
    listener: TcpListener,
    receiver: Receiver<H>,
    stop: impl Future<Output = ()>,
) where
    H: Fn(Received) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), CannotAdapt>> + Send,
{
    let receiver = Arc::new(receiver);
    let answer = move |head: Parts, body: Result<Bytes, NoBody>| {
        let receiver = Arc::clone(&receiver);
        async move {
            let is_post = head.method == Method::POST;
            let answer = match body {
                _ if !is_post => Answer::unusable(405, "envelopes are sent with POST"),
                Ok(body) => receiver.receive(&head.headers, &body, clock::now()).await,
                Err(why) => unread(why),
            };
            let allow = (!is_post).then_some("POST");
            http_server::Answer { allow, ..http_server::Answer::new(answer.status, answer.body) }
        }
    };
    http_server::serve(listener, BODY_BYTES_MAX, answer, stop).await;
}

/// The response to a body that could not be read.
pub(super) fn unread(why: NoBody) -> Answer {
    match why {
        NoBody::TooLong => {
            Answer::unusable(413, &format!("the body has more than {BODY_BYTES_MAX} bytes"))
        }
        NoBody::BrokeOff => Answer::unusable(400, "the body is incomplete"),
        NoBody::TooSlow => Answer::unusable(408, "the body took too long"),
    }
}
