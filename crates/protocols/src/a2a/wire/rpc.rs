//! JSON-RPC requests.

use super::Version;
use super::error::{A2aError, Reason};
use crate::kit::ijson::{self, JsonValue};
use crate::kit::object::ObjectWriter;

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    GetExtendedCard,
}

impl Method {
    /// Every method with its names in 1.0 and 0.3.
    const ALL: [(Self, &str, &str); 11] = [
        (Self::SendMessage, "SendMessage", "message/send"),
        (Self::SendStreamingMessage, "SendStreamingMessage", "message/stream"),
        (Self::GetTask, "GetTask", "tasks/get"),
        // 0.3 has no list over JSON-RPC; no method name is empty.
        (Self::ListTasks, "ListTasks", ""),
        (Self::CancelTask, "CancelTask", "tasks/cancel"),
        (Self::SubscribeToTask, "SubscribeToTask", "tasks/resubscribe"),
        (
            Self::CreatePushConfig,
            "CreateTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/set",
        ),
        (Self::GetPushConfig, "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
        (
            Self::ListPushConfigs,
            "ListTaskPushNotificationConfigs",
            "tasks/pushNotificationConfig/list",
        ),
        (
            Self::DeletePushConfig,
            "DeleteTaskPushNotificationConfig",
            "tasks/pushNotificationConfig/delete",
        ),
        (Self::GetExtendedCard, "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
    ];

    /// The method with this name, and the version it is a name of.
    pub fn parse(name: &str) -> Option<(Self, Version)> {
        Self::ALL.into_iter().find_map(|(method, new, old)| match name {
            "" => None,
            _ if name == new => Some((method, Version::V1)),
            _ if name == old => Some((method, Version::V03)),
            _ => None,
        })
    }

    /// Its name; `None` where the version lacks it.
    pub fn name(self, version: Version) -> Option<&'static str> {
        let (_, new, old) = Self::ALL[self as usize];
        let name = if version == Version::V1 { new } else { old };
        (!name.is_empty()).then_some(name)
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcRequest {
    /// The id as JSON text; `null` if there is none.
    pub id: String,
    pub method: Method,
    /// The version of the method's name.
    pub version: Version,
    /// The parameters as JSON text; an empty object if there are none.
    pub params: String,
}

/// Why a call cannot be read, with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcFailure {
    pub id: String,
    pub version: Version,
    pub error: A2aError,
}

impl RpcRequest {
    /// Reads a body.
    pub fn read(body: &[u8], is_json_type: bool) -> Result<Self, Box<RpcFailure>> {
        let fail =
            |id: &str, version, error| Box::new(RpcFailure { id: id.to_owned(), version, error });
        let json = ijson::read(body).map_err(|bad| {
            let error = if is_json_type {
                A2aError::new(Reason::ParseError, format!("not valid JSON: {bad}"))
            } else {
                let text = "the body must be JSON with Content-Type: application/json";
                A2aError::new(Reason::ContentTypeNotSupported, text)
            };
            fail("null", Version::V1, error)
        })?;
        let name = match json.get("method").map(|method| method.value()) {
            Some(JsonValue::String(name)) => Some(name),
            _ => None,
        };
        // Names of 0.3 have a slash.
        let is_old = name.is_some_and(|name| name.contains('/'));
        let named_version = if is_old { Version::V03 } else { Version::V1 };
        let invalid = |id: &str, text: &str| {
            fail(id, named_version, A2aError::new(Reason::InvalidRequest, text))
        };
        let JsonValue::Object(_) = json.value() else {
            return Err(invalid("null", "a request must be one object; batches are not supported"));
        };
        let id = match json.get("id") {
            None => "null",
            Some(id) => match id.value() {
                JsonValue::Null | JsonValue::String(_) => id.raw(),
                JsonValue::Number(digits) if !digits.contains(['.', 'e', 'E']) => id.raw(),
                _ => return Err(invalid("null", "id must be a string, an integer or null")),
            },
        };
        let is_text = |name: &str, text: &str| {
            json.get(name).is_some_and(
                |json| matches!(json.value(), JsonValue::String(given) if given == text),
            )
        };
        if !is_text("jsonrpc", "2.0") {
            return Err(invalid(id, "jsonrpc must be \"2.0\""));
        }
        let Some(name) = name else {
            return Err(invalid(id, "method must be a string"));
        };
        let Some((method, version)) = Method::parse(name) else {
            let name: String = name.chars().take(64).collect();
            let error = A2aError::new(Reason::MethodNotFound, format!("unknown method {name:?}"));
            return Err(fail(id, named_version, error));
        };
        let params = json.get("params").map(|params| (params.value(), params.raw()));
        let params = match params {
            None | Some((JsonValue::Null, _)) => "{}",
            Some((JsonValue::Object(_), raw)) => raw,
            Some(_) => {
                let error = A2aError::invalid_field("params", "must be an object");
                return Err(fail(id, version, error));
            }
        };
        Ok(Self { id: id.to_owned(), method, version, params: params.to_owned() })
    }
}

/// The response with a result. Both are JSON text.
pub fn write_result(id: &str, result: &str) -> String {
    ObjectWriter::new().text("jsonrpc", "2.0").raw("id", id).raw("result", result).finish()
}

/// Checks `A2A-Version` against the version that the method's name or the path means.
pub fn check_version(stated: Option<&str>, meant: Version) -> Result<(), A2aError> {
    let Some(text) = stated.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(()) };
    let refuse = |why: String| Err(A2aError::new(Reason::VersionNotSupported, why));
    match Version::parse(text) {
        Some(version) if version == meant => Ok(()),
        Some(_) => refuse(match meant {
            Version::V1 => "this method is one of version 1.0; send A2A-Version: 1.0".to_owned(),
            Version::V03 => "this method is one of version 0.3; send A2A-Version: 0.3".to_owned(),
        }),
        None => {
            let text: String = text.chars().take(32).collect();
            refuse(format!("version {text:?} is not supported; send 1.0 or 0.3"))
        }
    }
}
