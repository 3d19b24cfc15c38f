//! The bodies of a connection: the one that arrives and the one that leaves.
//!
//! Both are what they wrap; they only tell the pulse when they end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::pulse::{Phase, Pulse};

/// A request's body on its way in.
pub struct Arriving {
    body: Incoming,
    pulse: Arc<Pulse>,
    ended: bool,
}

/// A response's body on its way out.
pub struct Departing {
    body: Body,
    pulse: Arc<Pulse>,
    endless: bool,
}

impl Arriving {
    pub fn new(body: Incoming, pulse: Arc<Pulse>) -> Self {
        Self { ended: body.is_end_stream(), body, pulse }
    }
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
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.ended = frame.is_none() || self.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl HttpBody for Departing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // An event stream has no end of its own, and its reader knows how to resume. Anything else
        // would look complete when it is not.
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
        if !self.ended {
            self.pulse.leave_unread();
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
