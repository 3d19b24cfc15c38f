//! CORS headers (C13): pages of any origin may call public paths, without credentials, and pages of
//! listed origins may call what models call, with a key.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
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

/// Which pages may read a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Pages of the hub's own origin.
    Own,
    /// Pages of every origin.
    Any,
    /// Pages of this origin.
    Origin(HeaderValue),
}

/// Allows a page to send `method`. A page of any origin may send any header except `Authorization`,
/// which `*` does not cover; a page of a listed origin may send whatever it asks for.
pub fn preflight_response(
    method: &Method,
    readers: &Readers,
    request: &HeaderMap,
) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    readers.allow(headers);
    if let Ok(method) = HeaderValue::from_str(method.as_str()) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method);
    }
    let asked = request.get(ACCESS_CONTROL_REQUEST_HEADERS);
    let allowed = match readers {
        Readers::Origin(_) => asked.cloned().unwrap_or(ANY),
        Readers::Own | Readers::Any => ANY,
    };
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

impl Readers {
    /// Allows the pages to read a response.
    pub fn allow(&self, headers: &mut HeaderMap) {
        match self {
            Self::Own => {}
            Self::Any => drop(headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY)),
            Self::Origin(origin) => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, ANY);
                headers.append(VARY, HeaderValue::from_name(ORIGIN));
            }
        }
    }
}
