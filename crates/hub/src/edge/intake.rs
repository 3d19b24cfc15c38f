//! A request's body as handlers get it: never larger than its path allows, never slower than the
//! hub waits.
//!
//! A handler that reads it sees an error like any other. What the error was is kept beside, so that
//! the front can tell the caller in the right shape whatever the handler made of it.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::house::Trouble;

/// What went wrong with a body, once something has.
pub type Fate = Arc<OnceLock<Trouble>>;

/// A body with limits.
pub struct Intake {
    body: Body,
    limit: usize,
    read: usize,
    patience: Duration,
    /// Most bodies arrive together with their head and never need it.
    timer: Option<Pin<Box<Sleep>>>,
    fate: Fate,
}

impl Intake {
    /// At most `limit` bytes, the last of them at most `patience` after the first wait.
    pub fn new(body: Body, limit: usize, patience: Duration) -> (Self, Fate) {
        let fate = Fate::default();
        let intake = Self { body, limit, read: 0, patience, timer: None, fate: Arc::clone(&fate) };
        (intake, fate)
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(self.weigh(frame))),
            Poll::Ready(Some(Err(_))) => {
                let what = "the body was cut short or badly chunked";
                Poll::Ready(Some(Err(Trouble::Malformed { what })))
            }
            Poll::Pending => {
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.patience)));
                timer.as_mut().poll(context).map(|()| Some(Err(Trouble::TooSlow)))
            }
        }
    }

    fn weigh(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, Trouble> {
        self.read = self.read.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if self.read > self.limit {
            return Err(Trouble::TooLarge { limit: self.limit });
        }
        Ok(frame)
    }
}

impl HttpBody for Intake {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        if let Some(trouble) = self.fate.get() {
            return Poll::Ready(Some(Err(*trouble)));
        }
        let next = self.next(context);
        if let Poll::Ready(Some(Err(trouble))) = next {
            let _ = self.fate.set(trouble);
            // Nothing more is wanted of it; the connection need not carry it.
            self.body = Body::empty();
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.fate.get().is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn parts(count: usize) -> Body {
        let parts = (0..count).map(|_| Ok::<_, Infallible>(Bytes::from_static(b"four")));
        Body::from_stream(stream::iter(parts))
    }

    #[tokio::test]
    async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
        let (intake, fate) = Intake::new(parts(2), 8, LONG);
        assert_eq!(intake.collect().await.map(|body| body.to_bytes().len()), Ok(8));
        assert_eq!(fate.get(), None);

        let (intake, fate) = Intake::new(parts(3), 8, LONG);
        assert_eq!(intake.collect().await.err(), Some(Trouble::TooLarge { limit: 8 }));
        assert_eq!(fate.get(), Some(&Trouble::TooLarge { limit: 8 }));
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let (intake, fate) = Intake::new(never, 8, Duration::from_millis(20));
        assert_eq!(intake.collect().await.err(), Some(Trouble::TooSlow));
        assert_eq!(fate.get(), Some(&Trouble::TooSlow));
    }

    #[tokio::test]
    async fn a_broken_body_is_malformed() {
        let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
        let (intake, fate) = Intake::new(Body::from_stream(broken), 8, LONG);
        assert!(intake.collect().await.is_err());
        assert!(matches!(fate.get(), Some(Trouble::Malformed { .. })));
    }
}
