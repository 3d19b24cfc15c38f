//! CORS headers (C13): pages of any origin may call public paths, without credentials, and nothing
//! else.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

const ANY: HeaderValue = HeaderValue::from_static("*");
/// Seconds a browser may cache a preflight response.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The method a CORS preflight asks about.
pub fn preflight_method(request: &Parts) -> Option<Method> {
    if request.method != Method::OPTIONS {
        return None;
    }
    let method = request.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    Method::from_bytes(method.as_bytes()).ok()
}

/// Allows a page to send `method` with any header except `Authorization`, which `*` does not cover.
pub fn preflight_response(method: &Method) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    allow_any_origin(headers);
    if let Ok(method) = HeaderValue::from_str(method.as_str()) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method);
    }
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ANY);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Allows every page to read the response.
pub fn allow_any_origin(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
}
