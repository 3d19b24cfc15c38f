//! Sends requests, with retries under one idempotency key.

use std::time::Duration;

use rialto_protocols::openclaw::message::{self, Answer, Message, Output, Request, Response};
use tokio::time::sleep;
use uuid::Uuid;

use super::agent::Agent;
use super::response;
use super::request_spec::Order;
use super::wait::Errand;
use crate::call::CallError;
use crate::clock;
use crate::retry::random;

/// A request and the response to it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request.
    pub request: Request,
    /// The response: accepted, rejected with a reason, or deferred.
    pub response: Response,
    /// The result, if an earlier request with the same key already has one.
    pub result: Option<Message<Output>>,
    /// Whether the response belongs to an earlier request with the same key and other content.
    pub mismatch: bool,
    /// Number of attempts.
    pub tries: u32,
}

impl Asked {
    /// The collaboration's id, if it was accepted.
    pub fn collaboration_id(&self) -> Option<Uuid> {
        match self.response.answer {
            Answer::Accepted { collaboration_id, .. } => Some(collaboration_id),
            Answer::Rejected(_) | Answer::Deferred { .. } => None,
        }
    }

    /// What to pass to [`Agent::result`] to wait for the end.
    pub fn errand(&self) -> Errand {
        let request_id = self.request.request_id;
        Errand { request_id, collaboration_id: self.collaboration_id() }
    }
}

impl Agent {
    /// Builds a request without sending it, so that its ids are known first.
    pub fn draw_up(&self, order: &Order) -> Result<Request, CallError> {
        order.draw_up(self.id())
    }

    /// Sends a request. Temporary errors are retried with the same key (see [`super::Patience`]);
    /// the last response is returned.
    pub async fn request(&self, order: &Order) -> Result<Asked, CallError> {
        self.ask(self.draw_up(order)?).await
    }

    /// Like `request`, for a request that was already built.
    pub async fn ask(&self, request: Request) -> Result<Asked, CallError> {
        let body = request.write();
        let mut retries = 0;
        loop {
            let result = self.ask_once(&request, body.clone()).await;
            let said = result.as_ref().map(|asked| &asked.response);
            let left = request.deadline.map(|deadline| deadline.since(clock::now()));
            // A past deadline leaves no time.
            let left = left.map(|left| Duration::from_millis(u64::try_from(left.0).unwrap_or(0)));
            let Some(wait) = self.patience().wait(retries, said, left, random()) else {
                return result.map(|asked| Asked { tries: retries + 1, ..asked });
            };
            sleep(wait).await;
            retries += 1;
        }
    }

    async fn ask_once(&self, request: &Request, body: String) -> Result<Asked, CallError> {
        let answer = self.server().post(self.server().at(&["collaborations"]), body).await?;
        let response: Response = answer.message()?;
        message::belongs(request, response.request_id, response.correlation_id)
            .map_err(|bad| CallError::Unreadable(bad.message.into_owned()))?;
        let result = response.result.as_deref().map(response::whole).transpose()?;
        let (request, mismatch) = (request.clone(), answer.mismatch);
        Ok(Asked { request, response, result, mismatch, tries: 1 })
    }
}
