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
use http::response::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::connection_state::{ConnectionPhase, ConnectionState};

/// How much of an unread body is drained before an error response. For more than that, closing the
/// connection is cheaper.
const DRAIN_BYTES_MAX: usize = 64 << 10;
/// How long draining may delay the error response.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// An extension of responses: the body is an event stream that ends soon after the hub begins to stop,
/// and its end says something, so it is not cut.
#[derive(Clone, Copy, Debug)]
pub struct EndsAtShutdown;

/// The body of a request.
pub struct RequestBody {
    /// `None` after it is dropped.
    body: Option<Incoming>,
    state: Arc<ConnectionState>,
    unread: UnreadBody,
    ended: bool,
}

/// The unread rest of a request's body when its response is ready.
#[derive(Clone, Default)]
pub struct UnreadBody(Arc<Mutex<UnreadState>>);

#[derive(Default)]
enum UnreadState {
    /// All of it was read, or the handler still has it.
    #[default]
    None,
    /// The handler dropped it.
    Remaining(Incoming),
    /// It cannot be read.
    Unreadable,
    /// The response is being sent, so a body dropped from now on is not drained.
    Answered,
}

/// The body of a response.
pub struct ResponseBody {
    body: Body,
    connection_state: Arc<ConnectionState>,
    may_be_cut: bool,
}

impl RequestBody {
    pub fn new(body: Incoming, connection_state: Arc<ConnectionState>, unread: UnreadBody) -> Self {
        Self { ended: body.is_end_stream(), body: Some(body), state: connection_state, unread }
    }
}

impl UnreadBody {
    /// Drains a short rest if draining is allowed (`may`). Returns whether another request can
    /// follow on the connection.
    pub async fn drain(&self, may: bool, connection_state: &ConnectionState) -> bool {
        let rest = std::mem::replace(&mut *self.lock_state(), UnreadState::Answered);
        let all_read = match rest {
            UnreadState::None => return true,
            UnreadState::Remaining(body) if may => {
                timeout(DRAIN_TIMEOUT, drain_if_short(body)).await.unwrap_or(false)
            }
            UnreadState::Remaining(_) | UnreadState::Unreadable | UnreadState::Answered => false,
        };
        if all_read {
            connection_state.mark_body_read();
        }
        all_read
    }

    fn set_state(&self, left: UnreadState) {
        let mut rest = self.lock_state();
        if matches!(*rest, UnreadState::None) {
            *rest = left;
        }
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, UnreadState> {
        // The value is replaced as a whole, so a poisoned lock is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a body to its end; `false` if it is too long or fails.
async fn drain_if_short(mut body: Incoming) -> bool {
    let mut left = DRAIN_BYTES_MAX;
    while body.size_hint().lower() <= left as u64 {
        let Some(frame) = body.frame().await else { return true };
        let Ok(frame) = frame else { return false };
        let read = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(read) else { return false };
        left = rest;
    }
    false
}

impl ResponseBody {
    /// `head` is that of the response.
    pub fn new(body: Body, head: &Parts, connection_state: Arc<ConnectionState>) -> Self {
        let ends_itself = head.extensions.get::<EndsAtShutdown>().is_some();
        let may_be_cut = is_event_stream(&head.headers) && !ends_itself;
        Self { may_be_cut, body, connection_state }
    }
}

impl HttpBody for RequestBody {
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
            self.unread.set_state(UnreadState::Unreadable);
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

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Most event streams never end by themselves, and their readers can resume, so they may be cut
        // at shutdown. Any other body would look complete when it is not.
        if self.may_be_cut && self.connection_state.is_stopping() {
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|_| !self.ended) {
            self.state.mark_body_unread();
            self.unread.set_state(UnreadState::Remaining(body));
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.connection_state.enter_phase(ConnectionPhase::Idle);
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
