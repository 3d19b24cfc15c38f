//! Response bodies that are still at work for their request: what they spend counts against its key.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http::Response;

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rialto_core::agent::key_limits::KeyUse;
use rialto_engine::key_use;

/// A stream that is read after the handler has returned.
struct KeyedBody {
    inner: Body,
    key: KeyUse,
}

/// The response, with the key of the current request for as long as its body is read.
pub fn keep_key(response: Response<Body>) -> Response<Body> {
    match key_use::current() {
        Some(key) if response.body().size_hint().exact().is_none() => {
            response.map(|inner| Body::new(KeyedBody { inner, key }))
        }
        _ => response,
    }
}

impl HttpBody for KeyedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { inner, key } = self.get_mut();
        key_use::sync_scope(*key, || Pin::new(inner).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use http_body_util::BodyExt;
    use rialto_core::id::{AgentId, KeyId};

    use super::*;

    #[tokio::test]
    async fn a_stream_works_with_the_key_of_its_request() {
        let key = KeyUse { agent: AgentId(1), key: KeyId(2), by_default: true };
        let stream = futures_util::stream::repeat_with(|| {
            Ok::<_, std::convert::Infallible>(format!("{:?};", key_use::current()))
        });
        let handler = async { keep_key(Response::new(Body::from_stream(stream.take(2)))) };
        let response = key_use::scope(Some(key), handler).await;
        assert_eq!(key_use::current(), None);
        let read = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(read, format!("{:?};", Some(key)).repeat(2).as_bytes());
        let spawned = key_use::scope(Some(key), async {
            key_use::spawn(async { key_use::current() }).await.expect("no panic")
        });
        assert_eq!(spawned.await, Some(key));
    }
}
