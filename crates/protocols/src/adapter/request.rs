//! What handlers take from a request, the same in every API.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;

use super::api::ServedOperation;
use super::edge_error::EdgeError;

/// The operation that a request is for, and the variable parts of its path. The dispatcher puts it
/// into the extensions of every request.
#[derive(Clone)]
pub struct MatchedOperation {
    pub operation: Arc<ServedOperation>,
    /// Decoded; `None` where one is not valid UTF-8.
    pub path_params: Vec<Option<String>>,
}

impl MatchedOperation {
    pub fn of(extensions: &Extensions) -> &Self {
        extensions.get().expect("the dispatcher has inserted the operation it calls")
    }
}

/// A variable part of a path, decoded; `None` if it is not valid UTF-8.
pub fn decode_path_param(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

/// The variable part of the path.
pub struct PathParam(pub String);

impl<S: Sync> FromRequestParts<S> for PathParam {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let matched = MatchedOperation::of(&parts.extensions);
        match matched.path_params.first() {
            Some(Some(text)) => Ok(Self(text.clone())),
            _ => match matched.operation.api.unreadable_path() {
                Some(response) => Err(response),
                // No name contains the replacement character.
                None => Ok(Self(char::REPLACEMENT_CHARACTER.to_string())),
            },
        }
    }
}

/// The whole body. The edge limits its length and its time.
pub struct BodyBytes(pub Bytes);

/// The body could not be read.
pub struct BodyRejection {
    pub error: EdgeError,
    operation: Arc<ServedOperation>,
}

impl IntoResponse for BodyRejection {
    fn into_response(self) -> Response {
        self.operation.api.operation_error(&self.operation.info, self.error)
    }
}

impl<S: Sync> FromRequest<S> for BodyBytes {
    type Rejection = BodyRejection;

    async fn from_request(request: Request, _: &S) -> Result<Self, BodyRejection> {
        let (parts, body) = request.into_parts();
        read_body(body).await.map(Self).map_err(|error| {
            let operation = MatchedOperation::of(&parts.extensions).operation.clone();
            BodyRejection { error, operation }
        })
    }
}

/// Reads a body to its end.
pub async fn read_body(mut body: Body) -> Result<Bytes, EdgeError> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(body_error)?.into_data() else { continue };
        // Nearly every body arrives in one piece, which is not copied.
        if first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// The edge's own error, if its limits ended the body; else the client disconnected.
fn body_error(error: axum::Error) -> EdgeError {
    let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
    let edge_error = causes.find_map(|cause| cause.downcast_ref::<EdgeError>());
    edge_error.copied().unwrap_or(EdgeError::Malformed { what: "the body ended early" })
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn body(pieces: &[Result<&'static [u8], EdgeError>]) -> Body {
        let pieces: Vec<_> = pieces.iter().map(|piece| piece.map(Bytes::from_static)).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_is_put_together_from_its_pieces() {
        assert_eq!(read_body(Body::empty()).await, Ok(Bytes::new()));
        for pieces in [&[Ok(&b"abcdef"[..])][..], &[Ok(b""), Ok(b"ab"), Ok(b"cd"), Ok(b"ef")]] {
            assert_eq!(read_body(body(pieces)).await, Ok(Bytes::from_static(b"abcdef")));
        }
    }

    #[tokio::test]
    async fn the_reason_why_a_body_ended_is_kept() {
        let slow = body(&[Ok(b"ab"), Err(EdgeError::TooSlow)]);
        assert_eq!(read_body(slow).await, Err(EdgeError::TooSlow));
        let cut = stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
        let early = EdgeError::Malformed { what: "the body ended early" };
        assert_eq!(read_body(Body::from_stream(cut)).await, Err(early));
    }
}
