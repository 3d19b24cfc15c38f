//! A request body with limits on size and rate.
//!
//! Reading it fails with the error that the API then puts into its own format.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rialto_protocols::adapter::EdgeError;
use tokio::time::{Instant, Sleep, sleep_until};

use super::body_rate::{BodyRate, BodyRateLimits};
use super::idle_timer::poll_deadline;

/// A body with limits.
pub struct LimitedBody<B> {
    /// `None` after an error: the rest need not be received.
    body: Option<B>,
    limit: usize,
    read: usize,
    pace: BodyRate,
    /// Created on demand: most bodies arrive together with their head and never need it.
    timer: Option<Pin<Box<Sleep>>>,
    error: Option<EdgeError>,
}

impl<B: HttpBody<Data = Bytes> + Unpin> LimitedBody<B> {
    /// At most `limit` bytes, no slower than `rates` allow.
    pub fn new(body: B, limit: usize, rates: BodyRateLimits) -> Self {
        let (body, pace) = (Some(body), BodyRate::new(rates));
        Self { body, limit, read: 0, pace, timer: None, error: None }
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, EdgeError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        match Pin::new(body).poll_frame(context) {
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.count_frame(frame))),
            Poll::Ready(Some(Err(_))) => {
                let what = "the body is incomplete or its chunked encoding is invalid";
                Poll::Ready(Some(Err(EdgeError::Malformed { what })))
            }
            Poll::Pending => self.poll_too_slow(context).map(|()| Some(Err(EdgeError::TooSlow))),
        }
    }

    /// Ready when the body is too slow.
    fn poll_too_slow(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let due = self.pace.deadline(Instant::now());
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        poll_deadline(timer.as_mut(), due, context)
    }

    fn count_frame(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, EdgeError> {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        self.pace.record_bytes(bytes, Instant::now());
        self.read = self.read.saturating_add(bytes);
        if self.read > self.limit {
            return Err(EdgeError::TooLarge { limit: self.limit });
        }
        Ok(frame)
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for LimitedBody<B> {
    type Data = Bytes;
    type Error = EdgeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EdgeError>>> {
        if let Some(error) = self.error {
            return Poll::Ready(Some(Err(error)));
        }
        let next = self.next(context);
        if let Poll::Ready(Some(Err(error))) = next {
            self.error = Some(error);
            self.body = None;
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::num::NonZeroU32;
    use std::time::Duration;

    use axum::body::Body;
    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const LONG: BodyRateLimits =
        BodyRateLimits { total_timeout: HOUR, grace: HOUR, min_bytes_per_second: None };

    fn parts(count: usize) -> Body {
        let parts = (0..count).map(|_| Ok::<_, Infallible>(Bytes::from_static(b"four")));
        Body::from_stream(stream::iter(parts))
    }

    #[tokio::test]
    async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
        let body = LimitedBody::new(parts(2), 8, LONG);
        assert_eq!(body.collect().await.map(|body| body.to_bytes().len()), Ok(8));

        let body = LimitedBody::new(parts(3), 8, LONG);
        assert_eq!(body.collect().await.err(), Some(EdgeError::TooLarge { limit: 8 }));
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let body = LimitedBody::new(
            never,
            8,
            BodyRateLimits { total_timeout: Duration::from_millis(20), ..LONG },
        );
        assert_eq!(body.collect().await.err(), Some(EdgeError::TooSlow));
    }

    #[tokio::test]
    async fn a_body_that_comes_byte_by_byte_is_given_up_long_before_its_time_is_over() {
        let dripping =
            stream::repeat(Ok::<_, Infallible>(Bytes::from_static(b"x"))).then(async |byte| {
                tokio::time::sleep(Duration::from_millis(5)).await;
                byte
            });
        let (grace, least) = (Duration::from_millis(50), NonZeroU32::new(1_000_000));
        let dripping = Body::from_stream(dripping);
        let body = LimitedBody::new(
            dripping,
            usize::MAX,
            BodyRateLimits { grace, min_bytes_per_second: least, ..LONG },
        );
        assert_eq!(body.collect().await.err(), Some(EdgeError::TooSlow));
    }

    #[tokio::test]
    async fn a_broken_body_is_malformed() {
        let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
        let body = LimitedBody::new(Body::from_stream(broken), 8, LONG);
        assert!(matches!(body.collect().await, Err(EdgeError::Malformed { .. })));
    }
}
