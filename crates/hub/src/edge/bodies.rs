//! Request and response bodies of a connection.
//!
//! Both wrap another body and report its end to the connection state. If a handler leaves a short
//! rest of the request body unread, it is drained before the response, because the next request
//! follows it on the connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::connection_state::{Phase, Pulse};

/// How much of an unread body is drained before an error response. For more than that, closing the
/// connection is cheaper.
const UNREAD_MAX: usize = 64 << 10;
/// How long draining may delay the error response.
const UNREAD_TIME: Duration = Duration::from_millis(500);

/// The body of a request.
pub struct Arriving {
    /// `None` after it is dropped.
    body: Option<Incoming>,
    pulse: Arc<Pulse>,
    unread: Unread,
    ended: bool,
}

/// The unread rest of a request's body when its response is ready.
#[derive(Clone, Default)]
pub struct Unread(Arc<Mutex<Rest>>);

#[derive(Default)]
enum Rest {
    /// All of it was read, or the handler still has it.
    #[default]
    None,
    /// The handler dropped it.
    Left(Incoming),
    /// It cannot be read.
    Broken,
    /// The response is being sent, so a body dropped from now on is not drained.
    Answered,
}

/// The body of a response.
pub struct Departing {
    body: Body,
    pulse: Arc<Pulse>,
    endless: bool,
}

impl Arriving {
    pub fn new(body: Incoming, pulse: Arc<Pulse>, unread: Unread) -> Self {
        Self { ended: body.is_end_stream(), body: Some(body), pulse, unread }
    }
}

impl Unread {
    /// Drains a short rest if draining is allowed (`may`). Returns whether another request can
    /// follow on the connection.
    pub async fn read_up(&self, may: bool, pulse: &Pulse) -> bool {
        let rest = std::mem::replace(&mut *self.rest(), Rest::Answered);
        let all_read = match rest {
            Rest::None => return true,
            Rest::Left(body) if may => timeout(UNREAD_TIME, is_short(body)).await.unwrap_or(false),
            Rest::Left(_) | Rest::Broken | Rest::Answered => false,
        };
        if all_read {
            pulse.leave_nothing();
        }
        all_read
    }

    fn leave(&self, left: Rest) {
        let mut rest = self.rest();
        if matches!(*rest, Rest::None) {
            *rest = left;
        }
    }

    fn rest(&self) -> std::sync::MutexGuard<'_, Rest> {
        // The value is replaced as a whole, so a poisoned lock is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a body to its end; `false` if it is too long or fails.
async fn is_short(mut body: Incoming) -> bool {
    let mut left = UNREAD_MAX;
    while body.size_hint().lower() <= left as u64 {
        let Some(frame) = body.frame().await else { return true };
        let Ok(frame) = frame else { return false };
        let read = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(read) else { return false };
        left = rest;
    }
    false
}

impl Departing {
    /// `headers` are those of the response.
    pub fn new(body: Body, headers: &HeaderMap, pulse: Arc<Pulse>) -> Self {
        Self { endless: is_event_stream(headers), body, pulse }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        self.ended = frame.is_none() || body.is_end_stream();
        if matches!(frame, Some(Err(_))) {
            self.unread.leave(Rest::Broken);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl HttpBody for Departing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // An event stream never ends by itself, and its reader can resume, so it may be cut at
        // shutdown. Any other body would look complete when it is not.
        if self.endless && self.pulse.is_stopping() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|_| !self.ended) {
            self.pulse.leave_unread();
            self.unread.leave(Rest::Left(body));
        }
    }
}

impl Drop for Departing {
    fn drop(&mut self) {
        self.pulse.enter(Phase::Waiting);
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
