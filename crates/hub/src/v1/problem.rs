//! PLACEHOLDER, see mod.rs.
use axum::response::{IntoResponse, Response};
use rialto_protocols::face::Trouble;
pub struct Problem(Trouble);
impl From<Trouble> for Problem { fn from(t: Trouble) -> Self { Self(t) } }
impl IntoResponse for Problem { fn into_response(self) -> Response { (http::StatusCode::NOT_FOUND, format!("{:?}", self.0)).into_response() } }
