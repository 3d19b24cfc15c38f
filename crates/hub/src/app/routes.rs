//! The hub's routes: every protocol under its prefix, the paths from the specifications at the
//! root, and the one path that two protocols share.

use axum::Extension;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::Uri;
use rialto_protocols::adapter::{EdgeError, HubContext, ProtocolAdapter, body};
use rialto_protocols::kit::{ijson, rfc3339};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::path_policy::error_response;
use super::{openapi, probes};
use crate::v1;

/// The router for everything the hub serves.
pub fn build_router(context: &HubContext, probes: probes::ProbeState) -> Router {
    let mut router = Router::new()
        .route("/register", post(register).with_state(RegistrationRoutes::new(context)))
        .merge(v1::build_router(context))
        .merge(probes::routes(probes))
        .merge(openapi::routes());
    for protocol in &context.protocols {
        router = router.merge(protocol.clone().root_routes(context));
        let own = protocol
            .clone()
            .routes(context)
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed);
        router = router.nest(&format!("/{}", protocol.adapter().id()), own);
    }
    let router = router.fallback(not_found).method_not_allowed_fallback(method_not_allowed);
    router.layer(Extension(context.clone()))
}

async fn not_found(Extension(context): Extension<HubContext>, uri: OriginalPath) -> Response {
    error_response(&context, &uri.0, EdgeError::NotFound)
}

async fn method_not_allowed(
    Extension(context): Extension<HubContext>,
    uri: OriginalPath,
) -> Response {
    error_response(&context, &uri.0, EdgeError::MethodNotAllowed)
}

/// The path as the client sent it, before any prefix was stripped.
struct OriginalPath(String);

impl<S: Sync> axum::extract::FromRequestParts<S> for OriginalPath {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _: &S,
    ) -> Result<Self, Self::Rejection> {
        let original = parts.extensions.get::<axum::extract::OriginalUri>();
        Ok(Self(original.map_or(&parts.uri, |original| &original.0).path().to_owned()))
    }
}

/// The protocols that accept `POST /register` at the root, with the router of each.
#[derive(Clone)]
struct RegistrationRoutes {
    routes: Vec<(&'static dyn ProtocolAdapter, Router)>,
    context: HubContext,
}

impl RegistrationRoutes {
    fn new(context: &HubContext) -> Self {
        let opened = context.protocols.iter().map(|protocol| (protocol.adapter(), protocol));
        let registers = opened.filter(|(adapter, _)| adapter.registration_example().is_some());
        let routes =
            registers.map(|(adapter, protocol)| (adapter, protocol.clone().routes(context)));
        let routes = routes.collect();
        Self { routes, context: context.clone() }
    }
}

/// `POST /register` at the root. The shape of the body decides which protocol gets it.
async fn register(State(who): State<RegistrationRoutes>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match body::read_body(&parts.headers, body, who.context.body_limit).await {
        Ok(body) => body,
        Err(error) => return error_response(&who.context, "/register", error),
    };
    let json = ijson::read(&body);
    let claims = |adapter: &&dyn ProtocolAdapter| {
        json.as_ref().is_ok_and(|json| adapter.recognizes_registration(json))
    };
    let mut fitting = who.routes.iter().filter(|(adapter, _)| claims(adapter));
    let (Some((_, routes)), None) = (fitting.next(), fitting.next()) else {
        return shape_error(&who, json.err().map(|unreadable| unreadable.to_string()));
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    *request.uri_mut() = Uri::from_static("/register");
    match routes.clone().oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}

/// The error for a body that matches no protocol, with a correct example for each.
fn shape_error(who: &RegistrationRoutes, unreadable: Option<String>) -> Response {
    let shapes = who.routes.iter().map(|(adapter, _)| {
        let example: Value = adapter
            .registration_example()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        json!({"protocol": adapter.id(), "path": format!("/{}/register", adapter.id()), "example": example})
    });
    let neither = "two registrations share this path; the body fits neither (or both)";
    let text = unreadable
        .map_or_else(|| neither.to_owned(), |why| format!("the body is not valid JSON: {why}"));
    let body = json!({
        "success": false,
        "status": "error",
        "error_code": "INVALID_REQUEST",
        "error_message": text,
        "error": {
            "code": "ERR_VALIDATION",
            "message": text,
            "retryable": false,
            "shapes": shapes.collect::<Vec<_>>(),
        },
        "detail": text,
        "metadata": {"timestamp": rfc3339::format_millis(who.context.engine.now())},
    });
    (http::StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
}
