//! Sends requests, with retries under one idempotency key.

use std::time::Duration;

use rialto_protocols::openclaw::wire::{
    self, CollaborationResult, Message, Request, Response, ResponseAnswer,
};
use tokio::time::sleep;
use uuid::Uuid;

use super::agent::Agent;
use super::request_spec::RequestSpec;
use super::response;
use super::wait::PendingRequest;
use crate::call::CallError;
use crate::clock;
use crate::retry::random;

/// A request and the response to it.
#[derive(Clone, Debug)]
pub struct RequestReply {
    /// The request.
    pub request: Request,
    /// The response: accepted, rejected with a reason, or deferred.
    pub response: Response,
    /// The result, if an earlier request with the same key already has one.
    pub result: Option<Message<CollaborationResult>>,
    /// Whether the response belongs to an earlier request with the same key and other content.
    pub mismatch: bool,
    /// Number of attempts.
    pub tries: u32,
}

impl RequestReply {
    /// The collaboration's id, if it was accepted.
    pub fn collaboration_id(&self) -> Option<Uuid> {
        match self.response.answer {
            ResponseAnswer::Accepted { collaboration_id, .. } => Some(collaboration_id),
            ResponseAnswer::Rejected(_) | ResponseAnswer::Deferred { .. } => None,
        }
    }

    /// What to pass to [`Agent::result`] to wait for the end.
    pub fn pending(&self) -> PendingRequest {
        let request_id = self.request.request_id;
        PendingRequest { request_id, collaboration_id: self.collaboration_id() }
    }
}

impl Agent {
    /// Builds a request without sending it, so that its ids are known first.
    pub fn build_request(&self, order: &RequestSpec) -> Result<Request, CallError> {
        order.build(self.id())
    }

    /// Sends a request. Temporary errors are retried with the same key (see [`super::RequestRetryPolicy`]);
    /// the last response is returned.
    pub async fn request(&self, order: &RequestSpec) -> Result<RequestReply, CallError> {
        self.send_request(self.build_request(order)?).await
    }

    /// Like `request`, for a request that was already built.
    pub async fn send_request(&self, request: Request) -> Result<RequestReply, CallError> {
        let body = request.write();
        let mut retries = 0;
        loop {
            let result = self.send_request_once(&request, body.clone()).await;
            let said = result.as_ref().map(|asked| &asked.response);
            let left = request.deadline.map(|deadline| deadline.since(clock::now()));
            // A past deadline leaves no time.
            let left = left.map(|left| Duration::from_millis(u64::try_from(left.0).unwrap_or(0)));
            let Some(wait) = self.retry().retry_delay(retries, said, left, random()) else {
                return result.map(|asked| RequestReply { tries: retries + 1, ..asked });
            };
            sleep(wait).await;
            retries += 1;
        }
    }

    async fn send_request_once(
        &self,
        request: &Request,
        body: String,
    ) -> Result<RequestReply, CallError> {
        let answer = self.server().post(self.server().url(&["collaborations"]), body).await?;
        let response: Response = answer.message()?;
        wire::check_belongs(request, response.request_id, response.correlation_id)
            .map_err(|bad| CallError::Unreadable(bad.message.into_owned()))?;
        let result =
            response.result.as_deref().map(response::parse_message_with_text).transpose()?;
        let (request, mismatch) = (request.clone(), answer.mismatch);
        Ok(RequestReply { request, response, result, mismatch, tries: 1 })
    }
}
