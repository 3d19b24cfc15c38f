//! Refusals of the core as the market's error texts, failures of the engine and the edge as
//! [`Failure`], and failures as HTTP responses.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use rialto_core::market::MarketStep;
use rialto_core::money::Credits;
use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure as EngineFailure;

use super::operations::json_response;
use super::record_writer::{OrderRecord, OrderReply};
use super::{Failure, OrderError, auth};
use crate::adapter::{EdgeError, NOT_CURRENT};

/// The error text of the market for a refusal, depending on the order.
pub fn from_refusal(
    record: &OrderRecord,
    step: &MarketStep<'_, '_>,
    refusal: &Refusal,
) -> Option<OrderError> {
    let address = record.from.clone();
    match (&record.reply, refusal) {
        (
            OrderReply::Registered { agent_id },
            Refusal::IdTaken
            | Refusal::OwnerTaken
            | Refusal::NameConfusable
            | Refusal::IdentityMismatch,
        ) => Some(OrderError::NotOwner { address, agent: agent_id.clone() }),
        (OrderReply::Task, Refusal::TooFewCredits | Refusal::OverLimit { .. }) => {
            Some(OrderError::InsufficientFunds { funds: sender_funds(step, &address), address })
        }
        (
            OrderReply::Task,
            Refusal::NoSuchSkill
            | Refusal::SkillNotOffered
            | Refusal::NoSuchAgent
            | Refusal::Offline
            | Refusal::AtCapacity
            | Refusal::AtRateLimit
            | Refusal::AgentBroken
            | Refusal::GuestCannotPay
            | Refusal::BudgetTooLow { .. }
            | Refusal::BridgeLoop { .. },
        ) => Some(OrderError::NoAgents),
        (OrderReply::Result { task_id }, Refusal::WrongState { state: is }) if is.is_final() => {
            Some(OrderError::AlreadySent(task_id.clone()))
        }
        (OrderReply::Offer { task_id, .. }, Refusal::WrongState { .. }) => {
            Some(OrderError::AuctionClosed(task_id.clone()))
        }
        (OrderReply::Offer { fee, reward, .. }, Refusal::BudgetTooLow { .. }) => {
            Some(OrderError::OfferTooHigh { offer: *fee, reward: *reward })
        }
        (
            OrderReply::Offer { task_id, .. } | OrderReply::Declined { task_id, .. },
            Refusal::TooManyOffers { .. },
        ) => Some(OrderError::AlreadyOffered(task_id.clone())),
        (
            OrderReply::Result { .. } | OrderReply::Declined { .. } | OrderReply::Offer { .. },
            Refusal::NotFound | Refusal::WrongState { .. },
        ) => Some(OrderError::NotAssigned),
        _ => None,
    }
}

/// The available credits of the sender.
fn sender_funds(step: &MarketStep<'_, '_>, address: &str) -> Credits {
    let name = auth::owner_name(address);
    let owner = step.draft.owner_by_name(&name).and_then(|id| step.draft.owner(id));
    // An owner who registers with this very order will have the welcome grant.
    owner.map_or(step.draft.world.rules.welcome_grant, |owner| owner.available)
}

/// The failure for an engine failure.
pub fn from_engine(failure: EngineFailure) -> Failure {
    match failure {
        EngineFailure::StoreFull => {
            Failure { retry_after_seconds: Some(30), ..Failure::disk_full() }
        }
        EngineFailure::Unavailable => {
            let down = Failure::unavailable("the hub cannot accept writes now");
            Failure { retry_after_seconds: Some(1), ..down }
        }
        EngineFailure::Refused(refusal @ Refusal::MemoryFull { .. }) => {
            let seconds = match refusal.retry() {
                Retry::After(wait) => u32::try_from(wait.0 / 1_000).ok(),
                Retry::Never => None,
            };
            Failure { retry_after_seconds: seconds, ..Failure::new(507, refusal.to_string()) }
        }
        EngineFailure::Refused(refusal) => Failure::bad_request(refusal.to_string()),
        EngineFailure::Fault | EngineFailure::StillRunning => {
            Failure::internal("see X-Request-Id in the hub's log")
        }
    }
}

/// The failure for a refusal of the edge.
pub fn from_edge(error: EdgeError) -> Failure {
    match error {
        EdgeError::NotFound => Failure::not_found(),
        EdgeError::MethodNotAllowed => Failure::method_not_allowed(),
        EdgeError::WrongHost => Failure::new(421, "unknown Host header for this hub"),
        EdgeError::ForeignOrigin => Failure::new(403, "cross-origin requests are not allowed here"),
        EdgeError::EncodedBody => Failure::encoded_body(),
        EdgeError::TooLarge { .. } => Failure::too_large(),
        EdgeError::TooManyRequests { retry_after_seconds } => {
            let seconds = u32::try_from(retry_after_seconds).unwrap_or(u32::MAX);
            Failure::rate_limited("too many messages; retry later", seconds)
        }
        EdgeError::Overloaded => {
            let full = Failure::unavailable("the hub is overloaded");
            Failure { retry_after_seconds: Some(1), ..full }
        }
        EdgeError::NotCurrent => {
            let behind = Failure::unavailable(NOT_CURRENT);
            Failure { retry_after_seconds: Some(1), ..behind }
        }
        EdgeError::Malformed { what } => {
            Failure::bad_request(format!("malformed HTTP request: {what}"))
        }
        EdgeError::TooSlow => Failure::new(408, "the body took too long to arrive"),
        EdgeError::Internal => Failure::internal("see X-Request-Id in the hub's log"),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut answer = json_response(self.status, self.body());
        if let Some(seconds) = self.retry_after_seconds {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_cannot_write_now_says_when_to_retry() {
        let Failure { status, retry_after_seconds, .. } = from_engine(EngineFailure::Unavailable);
        assert_eq!((status, retry_after_seconds), (503, Some(1)));
    }
}
