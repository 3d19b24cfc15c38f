//! What web pages of other origins are told (C13): public paths are open to all of them, without
//! credentials, and nothing else is.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

const ANY: HeaderValue = HeaderValue::from_static("*");
/// Browsers ask again after this many seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The method a browser asks about before it sends the request itself.
pub fn preflighted<B>(request: &Request<B>) -> Option<Method> {
    if request.method() != Method::OPTIONS {
        return None;
    }
    let method = request.headers().get(ACCESS_CONTROL_REQUEST_METHOD)?;
    Method::from_bytes(method.as_bytes()).ok()
}

/// Lets a page send `method`, with any header but `Authorization`, which `*` leaves out.
pub fn preflight(method: &Method) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    allow(headers);
    if let Ok(method) = HeaderValue::from_str(method.as_str()) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method);
    }
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ANY);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Lets every page read the answer.
pub fn allow(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
}
