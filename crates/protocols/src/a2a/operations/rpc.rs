//! `POST {base}`: JSON-RPC.

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use rialto_core::alias::Digest;

use super::{Binding, Call, PathNames, Request, called_agent};
use crate::a2a::A2aContext;
use crate::a2a::auth;
use crate::a2a::errors::{http_response, rpc_error_response};
use crate::a2a::translate::read_send;
use crate::a2a::wire::error::A2aError;
use crate::a2a::wire::params::{ListParams, PushConfig, PushParams, TaskParams, read_tenant};
use crate::a2a::wire::rpc::{Method, RpcRequest, check_version};
use crate::adapter::caller::{KnownCaller, PresentedKey};
use crate::adapter::request::BodyBytes;
use crate::adapter::shutdown::Shutdown;
use crate::kit::canonical::canonical_bytes;
use crate::kit::ijson;
use crate::kit::media_type;
use crate::kit::query::Query;

/// Any method.
#[expect(clippy::too_many_arguments, reason = "each is one part of the request")]
pub async fn call(
    State(context): State<A2aContext>,
    known: KnownCaller,
    PresentedKey(key): PresentedKey,
    names: PathNames,
    shutdown: Shutdown,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
    BodyBytes(body): BodyBytes,
) -> Response {
    let agent = match called_agent(&context, &names) {
        Ok(agent) => agent,
        Err(error) => return http_response(&error),
    };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let request = match RpcRequest::read(&body, kind.is_none_or(media_type::is_json)) {
        Ok(request) => request,
        Err(failure) => return rpc_error_response(&failure.error, &failure.id, failure.version),
    };
    let binding = Binding::JsonRpc { id: request.id.clone(), version: request.version };
    let stated = stated_version(&headers, query.as_deref());
    let ready = async {
        check_version(stated.as_deref(), request.version)?;
        let client = auth::client(&context, known).await?;
        Ok((client, read_params(&request)?))
    };
    let (client, wanted) = match ready.await {
        Ok(ready) => ready,
        Err(error) => return binding.error_response(&error),
    };
    let tenants = [names.tenant, query_tenant(query.as_deref())];
    let principal = known.0.principal;
    let call = Call { context, client, principal, key, agent, tenants, binding, headers, shutdown };
    call.answer(Ok(wanted)).await
}

/// The version that a request states, in its header or its query.
pub fn stated_version(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let header = headers.get("a2a-version").and_then(|value| value.to_str().ok());
    let header = header.filter(|text| !text.is_empty()).map(str::to_owned);
    header.or_else(|| {
        let query = Query::read(query?).ok()?;
        query.text("A2A-Version").map(str::to_owned)
    })
}

/// The tenant in a query (R26).
pub fn query_tenant(query: Option<&str>) -> Option<String> {
    let query = Query::read(query?).ok()?;
    query.text("tenant").map(str::to_owned)
}

fn read_params(request: &RpcRequest) -> Result<Request, A2aError> {
    let version = request.version;
    let json = ijson::read(request.params.as_bytes())
        .map_err(|bad| A2aError::invalid_field("params", bad.to_string()))?;
    let invalid = A2aError::invalid;
    Ok(match request.method {
        Method::SendMessage | Method::SendStreamingMessage => Request::Send {
            params: Box::new(read_send(&json, version)?),
            is_streaming: request.method == Method::SendStreamingMessage,
            digest: Digest::of(&[&canonical_bytes(&request.params)]),
        },
        Method::GetTask => Request::Get(TaskParams::read(&json, version).map_err(invalid)?),
        Method::ListTasks => Request::List(ListParams::read(&json, version).map_err(invalid)?),
        Method::CancelTask => Request::Cancel(TaskParams::read(&json, version).map_err(invalid)?),
        Method::SubscribeToTask => {
            Request::Subscribe(TaskParams::read(&json, version).map_err(invalid)?)
        }
        Method::CreatePushConfig => {
            Request::CreatePush(PushConfig::read(&json, version).map_err(invalid)?)
        }
        Method::GetPushConfig => {
            Request::GetPush(PushParams::read(&json, version).map_err(invalid)?)
        }
        Method::ListPushConfigs => {
            Request::ListPush(PushParams::read(&json, version).map_err(invalid)?)
        }
        Method::DeletePushConfig => {
            Request::DeletePush(PushParams::read(&json, version).map_err(invalid)?)
        }
        Method::GetExtendedCard => {
            Request::ExtendedCard { tenant: read_tenant(&json).map_err(invalid)? }
        }
    })
}
