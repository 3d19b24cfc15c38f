//! Refusals of the core, the engine and the edge as errors of this protocol, or as the message of an
//! agent that does not take a task.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rialto_core::money::Credits;
use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure;

use super::ID;
use super::translate::price_text;
use super::wire::Version;
use super::wire::api_doc::ErrorBody;
use super::wire::error::{A2aError, Reason};
use crate::adapter::operation::ErrorInfo;
use crate::adapter::{EdgeError, NOT_CURRENT};

/// What an agent answers instead of a task (R44).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declined {
    /// The value of `refused`.
    pub code: &'static str,
    pub text: String,
    pub retry_after_seconds: Option<u64>,
    pub is_retryable: bool,
    /// What is wrong with the input.
    pub violations: Vec<String>,
    /// The skills to choose from: a JSON array.
    pub skills: Option<String>,
}

/// What was asked for when an agent refuses.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub skill: &'a str,
    /// What it costs, if that is known.
    pub price: Option<Credits>,
    /// What the caller can spend.
    pub spendable: Credits,
    /// The hub was to choose the agent.
    pub at_hub: bool,
    pub hub_url: &'a str,
}

/// What a refusal is in this protocol: the reason of an error, and the code of an agent that does
/// not take a task, if the refusal is one that the agent itself would give (R115). The match is
/// exhaustive, so that no refusal is forgotten.
fn reason_and_code(refusal: &Refusal) -> (Reason, Option<&'static str>) {
    match refusal {
        Refusal::NotAuthenticated => (Reason::Unauthenticated, None),
        Refusal::IdentityMismatch | Refusal::Suspended | Refusal::Blocked | Refusal::LimitedKey => {
            (Reason::Forbidden, None)
        }
        Refusal::NotFound => (Reason::TaskNotFound, None),
        Refusal::NoSuchAgent => (Reason::NotFound, Some("NO_SUCH_SKILL")),
        Refusal::IdTaken
        | Refusal::OwnerTaken
        | Refusal::NameConfusable
        | Refusal::SameIdOtherContent => (Reason::Conflict, None),
        Refusal::WrongState { .. }
        | Refusal::OtherAssignment { .. }
        | Refusal::AnsweredElsewhere => (Reason::UnsupportedOperation, None),
        Refusal::TooManyOpen => (Reason::RateLimited, None),
        Refusal::AtCapacity | Refusal::AtRateLimit | Refusal::InboxFull => {
            (Reason::RateLimited, Some("AT_CAPACITY"))
        }
        Refusal::MemoryFull { .. } | Refusal::TooManySavedAnswers => (Reason::Unavailable, None),
        Refusal::Offline => (Reason::Unavailable, Some("OFFLINE")),
        Refusal::AgentBroken => (Reason::Unavailable, Some("OUT_OF_ORDER")),
        Refusal::NoSuchSkill | Refusal::SkillNotOffered => {
            (Reason::InvalidParams, Some("NO_SUCH_SKILL"))
        }
        Refusal::BudgetTooLow { .. } => (Reason::InvalidParams, Some("BUDGET_TOO_LOW")),
        Refusal::TooFewCredits | Refusal::OverLimit { .. } => {
            (Reason::InvalidParams, Some("TOO_FEW_CREDITS"))
        }
        Refusal::GuestCannotPay => (Reason::InvalidParams, Some("GUEST_CANNOT_PAY")),
        Refusal::InputRejected { .. } => (Reason::InvalidParams, Some("INPUT_MISFIT")),
        Refusal::DeadlineTooSoon => (Reason::InvalidParams, Some("DEADLINE_TOO_SOON")),
        Refusal::BridgeLoop { .. } => (Reason::InvalidParams, Some("BRIDGE_LOOP")),
        Refusal::OfferExpired
        | Refusal::OfferNotRead
        | Refusal::TooManyOffers { .. }
        | Refusal::OfferAbovePrevious { .. }
        | Refusal::OfferAmbiguous
        | Refusal::NoSuchOffer
        | Refusal::Ambiguous
        | Refusal::WrongParty
        | Refusal::UnsupportedCurrency
        | Refusal::NoSuchOwner { .. }
        | Refusal::SelfPayment
        | Refusal::AmountNotPositive
        | Refusal::PaymentMismatch { .. }
        | Refusal::JobNotPaid { .. }
        | Refusal::AlreadySettled { .. }
        | Refusal::TooManyBlocked { .. }
        | Refusal::TooManyAgents { .. }
        | Refusal::TooManyKeys { .. }
        | Refusal::Overflow
        | Refusal::TooManyReports { .. } => (Reason::InvalidParams, None),
    }
}

fn retry_after_seconds(refusal: &Refusal) -> Option<u64> {
    match refusal.retry() {
        Retry::Never => None,
        Retry::After(wait) => Some(wait.0.unsigned_abs().div_ceil(1_000)),
    }
}

/// Whether the agent itself would give a refusal, before there is a task.
pub fn is_of_agent(refusal: &Refusal) -> bool {
    reason_and_code(refusal).1.is_some()
}

/// A refusal that the agent itself would give; `None` for one of the hub. It says what to do next.
pub fn declined(refusal: &Refusal, asked: &Asked<'_>) -> Option<Declined> {
    let code = reason_and_code(refusal).1?;
    let Asked { skill, spendable, hub_url, .. } = asked;
    let costs = || match asked.price {
        Some(price) => format!("{skill} costs {} credits", price_text(price)),
        None => format!("{skill} costs credits"),
    };
    let text = match refusal {
        Refusal::BudgetTooLow { price } => {
            let price = price_text(*price);
            format!(
                "{skill} costs {price} credits: send it again with metadata \
                 {{\"urn:rialto:a2a:hire:v1\":{{\"budget\":\"{price}\"}}}}"
            )
        }
        Refusal::GuestCannotPay => format!(
            "{}, and callers without a key cannot pay: get one with POST {hub_url}/{ID}/agents \
             {{\"name\":\"…\"}}, and send it as Authorization: Bearer",
            costs()
        ),
        Refusal::TooFewCredits => format!(
            "{}, and you can spend {}; GET {hub_url}/v1/me shows your account",
            costs(),
            price_text(*spendable)
        ),
        Refusal::NoSuchAgent | Refusal::NoSuchSkill | Refusal::SkillNotOffered if asked.at_hub => {
            format!("no agent offers {skill:?}; GET {hub_url}/{ID}/agents lists all")
        }
        Refusal::NoSuchSkill | Refusal::SkillNotOffered => {
            format!("there is no skill {skill:?} here; the card lists the skills")
        }
        other => other.to_string(),
    };
    let violations = match refusal {
        Refusal::InputRejected { reason } => reason.split("; ").map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let retry_after_seconds = retry_after_seconds(refusal);
    let is_retryable = refusal.may_succeed_later();
    let skills = None;
    Some(Declined { code, text, retry_after_seconds, is_retryable, violations, skills })
}

/// The error for a refusal.
pub fn from_refusal(refusal: &Refusal) -> A2aError {
    let text = match refusal {
        Refusal::NotFound => "task not found".to_owned(),
        Refusal::WrongState { state } if state.is_final() => {
            "the task has ended; send a message without taskId to begin a new one".to_owned()
        }
        other => other.to_string(),
    };
    let is_full = matches!(refusal, Refusal::MemoryFull { .. } | Refusal::TooManySavedAnswers);
    A2aError {
        http_status: is_full.then_some(507),
        retry_after_seconds: retry_after_seconds(refusal),
        ..A2aError::new(reason_and_code(refusal).0, text)
    }
}

/// The error for a failure of the engine.
pub fn from_engine(failure: &Failure) -> A2aError {
    let unavailable = |text: &str| {
        let error = A2aError::new(Reason::Unavailable, text);
        A2aError { retry_after_seconds: Some(1), ..error }
    };
    match failure {
        Failure::Refused(refusal) => from_refusal(refusal),
        Failure::StoreFull => A2aError {
            http_status: Some(507),
            ..unavailable("the disk of the hub is full; nothing was changed")
        },
        Failure::Unavailable => unavailable("the hub cannot accept writes now"),
        Failure::Fault => A2aError::new(Reason::InternalError, "internal error; see the hub's log"),
        Failure::StillRunning => {
            let error = A2aError::new(Reason::Conflict, failure.to_string());
            A2aError { retry_after_seconds: Some(1), ..error }
        }
    }
}

/// The error for a refusal of the edge.
pub fn from_edge(error: EdgeError) -> A2aError {
    let new = |reason| A2aError::new(reason, error.to_string());
    let with_status =
        |status| A2aError { http_status: Some(status), ..new(Reason::InvalidRequest) };
    let retry_after_seconds = error.retry_after_seconds();
    match error {
        EdgeError::NotFound => new(Reason::NotFound),
        EdgeError::MethodNotAllowed => {
            A2aError { http_status: Some(405), ..new(Reason::MethodNotFound) }
        }
        EdgeError::Malformed { .. } => with_status(400),
        EdgeError::WrongHost => with_status(421),
        EdgeError::TooSlow => with_status(408),
        EdgeError::ForeignOrigin => new(Reason::Forbidden),
        EdgeError::EncodedBody => new(Reason::UnsupportedEncoding),
        EdgeError::TooLarge { .. } => new(Reason::TooLarge),
        EdgeError::TooManyRequests { .. } => {
            A2aError { retry_after_seconds, ..new(Reason::RateLimited) }
        }
        EdgeError::Overloaded => A2aError { retry_after_seconds, ..new(Reason::Unavailable) },
        EdgeError::NotCurrent => {
            A2aError { retry_after_seconds, ..A2aError::new(Reason::Unavailable, NOT_CURRENT) }
        }
        EdgeError::Internal => new(Reason::InternalError),
    }
}

/// How all operations of this protocol answer errors.
pub fn error_info() -> ErrorInfo {
    let own = Reason::ALL.iter().map(|reason| (reason.http_status(), reason.name()));
    let others = [
        (405, Reason::MethodNotFound),
        (408, Reason::InvalidRequest),
        (421, Reason::InvalidRequest),
        (507, Reason::Unavailable),
    ];
    let others = others.into_iter().map(|(status, reason)| (status, reason.name()));
    ErrorInfo::json::<ErrorBody>(own.chain(others))
}

/// An error in the form of the HTTP+JSON binding.
pub fn http_response(error: &A2aError) -> Response {
    with_retry(json_response(error.http_status(), error.write_http()), error)
}

/// An error in the form of JSON-RPC.
pub fn rpc_error_response(error: &A2aError, id: &str, version: Version) -> Response {
    with_retry(json_response(error.rpc_http_status(), error.write_rpc(id, version)), error)
}

fn with_retry(mut response: Response, error: &A2aError) -> Response {
    if let Some(seconds) = error.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// JSON text as a response.
pub fn json_response(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::from(text)).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rialto_core::job::State;
    use rialto_core::refusal::{MemoryBudget, SpendingLimit};
    use serde_json::Value;

    use super::*;

    /// Every refusal with the reason and HTTP status of its error, and the code of an agent that
    /// gives it.
    fn wordings() -> Vec<(Refusal, &'static str, u16, &'static str)> {
        use Refusal::*;
        let (price, max) = (Credits::from_micros(250_000), 3);
        let text = || "x".to_owned();
        let memory = |budget| MemoryFull { budget };
        let full = ("UNAVAILABLE", 507);
        let mut all = vec![
            (NotAuthenticated, "UNAUTHENTICATED", 401, ""),
            (IdentityMismatch, "FORBIDDEN", 403, ""),
            (Suspended, "FORBIDDEN", 403, ""),
            (Blocked, "FORBIDDEN", 403, ""),
            (NotFound, "TASK_NOT_FOUND", 404, ""),
            (NoSuchAgent, "NOT_FOUND", 404, "NO_SUCH_SKILL"),
            (NoSuchSkill, "INVALID_PARAMS", 400, "NO_SUCH_SKILL"),
            (SkillNotOffered, "INVALID_PARAMS", 400, "NO_SUCH_SKILL"),
            (IdTaken, "CONFLICT", 409, ""),
            (OwnerTaken, "CONFLICT", 409, ""),
            (NameConfusable, "CONFLICT", 409, ""),
            (SameIdOtherContent, "CONFLICT", 409, ""),
            (WrongState { state: State::Completed }, "UNSUPPORTED_OPERATION", 400, ""),
            (WrongState { state: State::Running }, "UNSUPPORTED_OPERATION", 400, ""),
            (OtherAssignment { epoch: 2 }, "UNSUPPORTED_OPERATION", 400, ""),
            (AnsweredElsewhere, "UNSUPPORTED_OPERATION", 400, ""),
            (BudgetTooLow { price }, "INVALID_PARAMS", 400, "BUDGET_TOO_LOW"),
            (TooFewCredits, "INVALID_PARAMS", 400, "TOO_FEW_CREDITS"),
            (
                OverLimit { limit: SpendingLimit::PerJob(price), left: None, by_default: false },
                "INVALID_PARAMS",
                400,
                "TOO_FEW_CREDITS",
            ),
            (LimitedKey, "FORBIDDEN", 403, ""),
            (GuestCannotPay, "INVALID_PARAMS", 400, "GUEST_CANNOT_PAY"),
            (InputRejected { reason: text() }, "INVALID_PARAMS", 400, "INPUT_MISFIT"),
            (DeadlineTooSoon, "INVALID_PARAMS", 400, "DEADLINE_TOO_SOON"),
            (BridgeLoop { max: 8 }, "INVALID_PARAMS", 400, "BRIDGE_LOOP"),
            (Offline, "UNAVAILABLE", 503, "OFFLINE"),
            (AgentBroken, "UNAVAILABLE", 503, "OUT_OF_ORDER"),
            (AtCapacity, "RATE_LIMITED", 429, "AT_CAPACITY"),
            (AtRateLimit, "RATE_LIMITED", 429, "AT_CAPACITY"),
            (InboxFull, "RATE_LIMITED", 429, "AT_CAPACITY"),
            (TooManyOpen, "RATE_LIMITED", 429, ""),
            (TooManySavedAnswers, full.0, full.1, ""),
            (memory(MemoryBudget::Owner), full.0, full.1, ""),
            (memory(MemoryBudget::Newcomers), full.0, full.1, ""),
            (memory(MemoryBudget::Hub), full.0, full.1, ""),
        ];
        // A client of this protocol sends nothing that is refused like this.
        let others = [
            OfferExpired,
            OfferNotRead,
            TooManyOffers { max },
            OfferAbovePrevious { before: price },
            OfferAmbiguous,
            NoSuchOffer,
            Ambiguous,
            WrongParty,
            UnsupportedCurrency,
            NoSuchOwner { name: text() },
            SelfPayment,
            AmountNotPositive,
            PaymentMismatch { paid: price },
            JobNotPaid { pending: false },
            AlreadySettled { by: text() },
            TooManyBlocked { max },
            TooManyAgents { max },
            TooManyKeys { max },
            Overflow,
            TooManyReports { max: 9 },
        ];
        all.extend(others.map(|refusal| (refusal, "INVALID_PARAMS", 400, "")));
        all
    }

    const ASKED: Asked<'_> = Asked {
        skill: "sum",
        price: Some(Credits::from_micros(250_000)),
        spendable: Credits::from_micros(50_000),
        at_hub: false,
        hub_url: "http://hub",
    };

    /// The name of a refusal as it is stored.
    fn stored_name(refusal: &Refusal) -> String {
        match serde_json::to_value(refusal).unwrap() {
            Value::Object(object) => object.keys().next().unwrap().clone(),
            other => other.as_str().unwrap().to_owned(),
        }
    }

    #[test]
    fn every_refusal_of_the_core_has_its_error_and_its_code() {
        let wordings = wordings();
        for (refusal, reason, status, code) in &wordings {
            let error = from_refusal(refusal);
            assert_eq!(
                (error.reason.name(), error.http_status()),
                (*reason, *status),
                "{refusal:?}"
            );
            assert!(!error.message.is_empty(), "{refusal:?}");
            for version in [Version::V1, Version::V03] {
                let body: Value =
                    serde_json::from_str(&error.write_rpc("1", version)).expect("JSON");
                let data = match version {
                    Version::V1 => &body["error"]["data"][0]["reason"],
                    Version::V03 => &body["error"]["data"]["reason"],
                };
                assert_eq!(data, reason, "{refusal:?}");
                assert_eq!(body["error"]["message"], error.message.as_str(), "{refusal:?}");
                assert!(body["error"]["code"].as_i64() < Some(0), "{refusal:?}");
            }
            let waits = matches!(refusal.retry(), Retry::After(_));
            assert_eq!(error.retry_after_seconds.is_some(), waits, "{refusal:?}");
            let declined = declined(refusal, &ASKED);
            assert_eq!(declined.as_ref().map_or("", |declined| declined.code), *code);
            if let Some(declined) = declined {
                assert!(!declined.text.is_empty(), "{refusal:?}");
                assert_eq!(declined.is_retryable, refusal.may_succeed_later(), "{refusal:?}");
                assert_eq!(declined.retry_after_seconds, error.retry_after_seconds);
            }
        }
        // The error of a name that is unknown lists those that are known.
        let listed = serde_json::from_str::<Refusal>("\"?\"").unwrap_err().to_string();
        let names: BTreeSet<String> =
            listed.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        let tested: BTreeSet<String> = wordings.iter().map(|one| stored_name(&one.0)).collect();
        assert_eq!(tested, names);
    }

    #[test]
    fn failures_of_the_hub_have_their_error_and_say_when_to_come_back() {
        for (failure, reason, status, wait) in [
            (Failure::Refused(Refusal::NotFound), "TASK_NOT_FOUND", 404, None),
            (Failure::StoreFull, "UNAVAILABLE", 507, Some(1)),
            (Failure::Unavailable, "UNAVAILABLE", 503, Some(1)),
            (Failure::Fault, "INTERNAL_ERROR", 500, None),
            (Failure::StillRunning, "CONFLICT", 409, Some(1)),
        ] {
            let error = from_engine(&failure);
            let shown = (error.reason.name(), error.http_status(), error.retry_after_seconds);
            assert_eq!(shown, (reason, status, wait), "{failure:?}");
            let response = rpc_error_response(&error, "1", Version::V1);
            let transport = if reason == "INTERNAL_ERROR" || status == 404 { 200 } else { status };
            assert_eq!(response.status(), transport, "{failure:?}");
            let header = response.headers().get(header::RETRY_AFTER);
            assert_eq!(header.is_some(), wait.is_some(), "{failure:?}");
        }
    }

    #[test]
    fn what_an_agent_refuses_says_how_to_do_it_right() {
        let price = Credits::from_micros(250_000);
        let said = |refusal| declined(&refusal, &ASKED).unwrap().text;
        let dear = said(Refusal::BudgetTooLow { price });
        assert!(dear.starts_with("sum costs 0.25 credits: send it again with metadata"), "{dear}");
        assert!(dear.contains(r#"{"urn:rialto:a2a:hire:v1":{"budget":"0.25"}}"#), "{dear}");
        let none = said(Refusal::SkillNotOffered);
        assert!(none.contains("\"sum\"") && none.contains("card"), "{none}");
        let reason = "/n is required; /m must be a number".to_owned();
        let misfit = declined(&Refusal::InputRejected { reason }, &ASKED).unwrap();
        assert_eq!(misfit.violations, ["/n is required", "/m must be a number"]);
        assert_eq!(
            said(Refusal::GuestCannotPay),
            "sum costs 0.25 credits, and callers without a key cannot pay: get one with POST \
             http://hub/a2a/agents {\"name\":\"…\"}, and send it as Authorization: Bearer"
        );
        assert_eq!(
            said(Refusal::TooFewCredits),
            "sum costs 0.25 credits, and you can spend 0.05; GET http://hub/v1/me shows your \
             account"
        );
        let asked = Asked { at_hub: true, ..ASKED };
        let unknown = declined(&Refusal::NoSuchSkill, &asked).unwrap().text;
        assert_eq!(unknown, "no agent offers \"sum\"; GET http://hub/a2a/agents lists all");
    }
}
