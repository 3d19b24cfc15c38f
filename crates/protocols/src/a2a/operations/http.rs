//! The HTTP+JSON binding.

use axum::extract::{FromRequest, FromRequestParts, RawQuery, Request as HttpRequest};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rialto_core::alias::Digest;

use super::rpc::stated_version;
use super::{Binding, Call, PathNames, Request, called_agent};
use crate::a2a::A2aContext;
use crate::a2a::auth;
use crate::a2a::errors::http_response;
use crate::a2a::translate::read_send;
use crate::a2a::wire::Version;
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::params::{ListParams, PushConfig, PushParams, TaskParams, read_tenant};
use crate::a2a::wire::rpc::check_version;
use crate::adapter::caller::{KnownCaller, PresentedKey};
use crate::adapter::request::BodyBytes;
use crate::adapter::shutdown::Shutdown;
use crate::kit::canonical::canonical_bytes;
use crate::kit::ijson::{self, Json};
use crate::kit::media_type;
use crate::kit::query::Query;

/// A request whose caller is known, before its body is read.
pub struct HttpCall {
    call: Call,
    names: PathNames,
    query: Query,
    body: Bytes,
}

impl FromRequest<A2aContext> for HttpCall {
    type Rejection = Response;

    async fn from_request(request: HttpRequest, context: &A2aContext) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let known = KnownCaller::from_request_parts(&mut parts, context).await?;
        let Ok(PresentedKey(key)) = PresentedKey::from_request_parts(&mut parts, context).await;
        let Ok(names) = PathNames::from_request_parts(&mut parts, context).await;
        let Ok(shutdown) = Shutdown::from_request_parts(&mut parts, context).await;
        let Ok(RawQuery(raw)) = RawQuery::from_request_parts(&mut parts, context).await;
        let headers: HeaderMap = parts.headers.clone();
        let ready = async {
            check_version(stated_version(&headers, raw.as_deref()).as_deref(), Version::V1)?;
            let query = Query::read(raw.as_deref().unwrap_or_default())
                .map_err(|bad| A2aError::malformed("query", &bad))?;
            let agent = called_agent(context, &names)?;
            Ok((query, agent, auth::client(context, known).await?))
        };
        let (query, agent, client) =
            ready.await.map_err(|error: A2aError| http_response(&error))?;
        let request = HttpRequest::from_parts(parts, body);
        let BodyBytes(body) =
            BodyBytes::from_request(request, context).await.map_err(IntoResponse::into_response)?;
        let context = context.clone();
        let binding = Binding::Http;
        let tenants = [names.tenant.clone(), query.text("tenant").map(str::to_owned)];
        let principal = known.0.principal;
        let call =
            Call { context, client, principal, key, agent, tenants, binding, headers, shutdown };
        Ok(Self { call, names, query, body })
    }
}

impl HttpCall {
    async fn answer(self, request: Result<Request, A2aError>) -> Response {
        self.call.answer(request).await
    }

    /// The extended card.
    pub async fn answer_extended(self) -> Response {
        self.answer(Ok(Request::ExtendedCard { tenant: None })).await
    }

    fn json(&self) -> Result<Json<'_>, A2aError> {
        ijson::read(&self.body).map_err(|bad| {
            let kind = self.call.header("content-type");
            if kind.is_none_or(media_type::is_json) {
                A2aError::new(Reason::ParseError, format!("not valid JSON: {bad}"))
            } else {
                let text = "the body must be JSON with Content-Type: application/json";
                A2aError::new(Reason::ContentTypeNotSupported, text)
            }
        })
    }

    fn send(&self, is_streaming: bool) -> Result<Request, A2aError> {
        let json = self.json()?;
        let params = Box::new(read_send(&json, Version::V1)?);
        let digest = Digest::of(&[&canonical_bytes(json.raw())]);
        Ok(Request::Send { params, is_streaming, digest })
    }

    fn task(&self) -> String {
        self.names.task.clone().unwrap_or_default()
    }

    /// The parameters of an operation on one task. Its body is not needed; a tenant in it counts.
    fn task_params(&self, id: String) -> Result<TaskParams, A2aError> {
        let params = TaskParams::read_query(id, &self.query).map_err(A2aError::invalid)?;
        if self.body.is_empty() {
            return Ok(params);
        }
        let tenant = read_tenant(&self.json()?).map_err(A2aError::invalid)?;
        Ok(TaskParams { tenant, ..params })
    }

    fn push_params(&self) -> PushParams {
        PushParams { task_id: self.task(), id: self.names.config.clone(), tenant: None }
    }
}

/// `POST {base}/message:send`.
pub async fn send_message(call: HttpCall) -> Response {
    let request = call.send(false);
    call.answer(request).await
}

/// `POST {base}/message:stream`.
pub async fn stream_message(call: HttpCall) -> Response {
    let request = call.send(true);
    call.answer(request).await
}

/// `GET {base}/tasks`.
pub async fn list_tasks(call: HttpCall) -> Response {
    let params = ListParams::read_query(&call.query).map_err(A2aError::invalid);
    call.answer(params.map(Request::List)).await
}

/// `GET {base}/tasks/{id}` and `GET {base}/tasks/{id}:subscribe`.
pub async fn get_task(call: HttpCall) -> Response {
    let task = call.task();
    let request = match task.rsplit_once(':') {
        Some((id, "subscribe")) => call.task_params(id.to_owned()).map(Request::Subscribe),
        _ => call.task_params(task).map(Request::Get),
    };
    call.answer(request).await
}

/// `POST {base}/tasks/{id}:cancel` and `POST {base}/tasks/{id}:subscribe`.
pub async fn change_task(call: HttpCall) -> Response {
    let task = call.task();
    let request = match task.rsplit_once(':') {
        Some((id, "cancel")) => call.task_params(id.to_owned()).map(Request::Cancel),
        Some((id, "subscribe")) => call.task_params(id.to_owned()).map(Request::Subscribe),
        _ => {
            let text = "no such operation on a task; there are :cancel and :subscribe";
            Err(A2aError::new(Reason::NotFound, text))
        }
    };
    call.answer(request).await
}

/// `POST {base}/tasks/{id}/pushNotificationConfigs`.
pub async fn create_push(call: HttpCall) -> Response {
    let request = call.json().and_then(|json| {
        let config = PushConfig::read(&json, Version::V1).map_err(A2aError::invalid)?;
        if config.task_id.as_ref().is_some_and(|id| *id != call.task()) {
            return Err(A2aError::invalid_field("taskId", "must be the task of the path"));
        }
        Ok(Request::CreatePush(PushConfig { task_id: Some(call.task()), ..config }))
    });
    call.answer(request).await
}

/// `GET {base}/tasks/{id}/pushNotificationConfigs`.
pub async fn list_push(call: HttpCall) -> Response {
    let params = call.push_params();
    call.answer(Ok(Request::ListPush(params))).await
}

/// `GET {base}/tasks/{id}/pushNotificationConfigs/{configId}`.
pub async fn get_push(call: HttpCall) -> Response {
    let params = call.push_params();
    call.answer(Ok(Request::GetPush(params))).await
}

/// `DELETE {base}/tasks/{id}/pushNotificationConfigs/{configId}`.
pub async fn delete_push(call: HttpCall) -> Response {
    let params = call.push_params();
    call.answer(Ok(Request::DeletePush(params))).await
}
