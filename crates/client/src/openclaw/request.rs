//! Requests: what to ask for, sending it with retries under one idempotency key, and the policy of
//! those retries (section 7 of the specification).

use std::future::Future;
use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::{
    self, CollaborationResult, CommonMembers, Message, Request, Response, ResponseAnswer,
};
use uuid::Uuid;

use super::agent::Agent;
use super::collaboration::PendingRequest;
use super::response::{check_message, parse_message, parse_message_with_text};
use super::server::new_common_fields;
use crate::call::CallError;
use crate::json::check_object;
use crate::retry::{RetryPolicy, random, repeat};
use crate::{clock, ids};

/// Header of the first response to a key that was repeated with another body (R65).
const MISMATCH_HEADER: &str = "idempotency-mismatch";

/// The work to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    capability_id: String,
    input: String,
    responder: Option<Uuid>,
    deadline: Option<Timestamp>,
    priority: Option<u8>,
    budget: Option<Credits>,
    idempotency_key: Option<String>,
}

impl RequestSpec {
    /// A request to the best agent for a capability, chosen by the hub. The input is a JSON object,
    /// as text.
    pub fn new(capability_id: &str, input: &str) -> Self {
        Self {
            capability_id: capability_id.to_owned(),
            input: input.to_owned(),
            responder: None,
            deadline: None,
            priority: None,
            budget: None,
            idempotency_key: None,
        }
    }

    /// Sends the request to one agent.
    pub fn to(mut self, responder: Uuid) -> Self {
        self.responder = Some(responder);
        self
    }

    /// Sets the deadline.
    pub fn deadline(mut self, deadline: Timestamp) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the priority: 1 is the most urgent, 10 the least, and 5 is the default.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the maximum price.
    pub fn budget(mut self, budget: Credits) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the idempotency key: a repeat with it within a day gets the first response. By default
    /// each request has a new one.
    pub fn idempotency_key(mut self, key: &str) -> Self {
        self.idempotency_key = Some(key.to_owned());
        self
    }

    /// Builds the request of one agent.
    pub(super) fn build(&self, requester: Uuid) -> Result<Request, CallError> {
        check_object("the data", &self.input)?;
        let CommonMembers { correlation_id, timestamp } = new_common_fields()?;
        let new_key = || ids::random_id().map(|id| id.to_string());
        let idempotency_key = self.idempotency_key.clone().map_or_else(new_key, Ok)?;
        let request = Request {
            request_id: ids::random_id()?,
            requester_agent_id: requester,
            capability_id: self.capability_id.clone(),
            input_data: self.input.as_str().into(),
            idempotency_key: Some(idempotency_key),
            deadline: self.deadline,
            priority: self.priority,
            responder_agent_id: self.responder,
            budget: self.budget,
            correlation_id,
            timestamp,
        };
        check_message(&request.write())
    }
}

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
    pub fn build_request(&self, spec: &RequestSpec) -> Result<Request, CallError> {
        spec.build(self.id())
    }

    /// Sends a request. Temporary errors are retried with the same key (see [`super::RequestRetryPolicy`]);
    /// the last response is returned.
    pub async fn request(&self, spec: &RequestSpec) -> Result<RequestReply, CallError> {
        self.send_request(self.build_request(spec)?).await
    }

    /// Like `request`, for a request that was already built.
    pub async fn send_request(&self, request: Request) -> Result<RequestReply, CallError> {
        let body = request.write();
        let attempt = || self.send_request_once(&request, body.clone());
        let delay = |result: &Result<RequestReply, CallError>, attempts: u32| {
            let response = result.as_ref().map(|reply| &reply.response);
            let left = request.deadline.map(|deadline| deadline.since(clock::now()));
            // A past deadline leaves no time.
            let left = left.map(|left| Duration::from_millis(u64::try_from(left.0).unwrap_or(0)));
            self.retry().retry_delay(attempts - 1, response, left, random())
        };
        let (result, tries) = repeat(attempt, delay).await;
        result.map(|reply| RequestReply { tries, ..reply })
    }

    async fn send_request_once(
        &self,
        request: &Request,
        body: String,
    ) -> Result<RequestReply, CallError> {
        let reply = self.server().post(self.server().url(&["collaborations"]), body).await?;
        let response: Response = parse_message(&reply.body)?;
        wire::check_belongs(request, response.request_id, response.correlation_id)
            .map_err(|bad| CallError::unreadable(bad.message))?;
        let result = response.result.as_deref();
        let result = result.map(|text| parse_message_with_text(text.as_bytes())).transpose()?;
        let mismatch = reply.header(MISMATCH_HEADER) == Some("true");
        let request = request.clone();
        Ok(RequestReply { request, response, result, mismatch, tries: 1 })
    }
}

/// How often a request is retried, and after how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRetryPolicy {
    /// Maximum number of retries; 0 means none.
    pub max_retries: u32,
    /// The first delay. Each further one is twice as long, and each varies randomly by up to a
    /// fifth.
    pub initial_delay: Duration,
    /// The longest delay a hub may ask for. If it asks for more, the response is returned as it is.
    pub max_delay: Duration,
}

impl Default for RequestRetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(120),
        }
    }
}

impl RequestRetryPolicy {
    /// How long to wait before a retry with the same key; `None` if it must not be retried. `left`
    /// is the time left until the deadline.
    pub(super) fn retry_delay(
        &self,
        retries: u32,
        result: Result<&Response, &CallError>,
        left: Option<Duration>,
        random: u32,
    ) -> Option<Duration> {
        let at_least = response_retry_delay(result)?;
        if retries >= self.max_retries || at_least > self.max_delay {
            return None;
        }
        let wait = self.backoff(retries, random).max(at_least);
        left.is_none_or(|left| wait < left).then_some(wait)
    }

    /// The delay after this many retries: doubled with each, plus or minus a fifth.
    fn backoff(&self, retries: u32, random: u32) -> Duration {
        let doubled = self.initial_delay.saturating_mul(1 << retries.min(16));
        doubled.mul_f64(0.8 + 0.4 * f64::from(random) / f64::from(u32::MAX))
    }
}

/// The minimum wait before the same request can succeed; `None` if it cannot.
fn response_retry_delay(result: Result<&Response, &CallError>) -> Option<Duration> {
    match result {
        Ok(Response { answer: ResponseAnswer::Rejected(why), .. }) if why.retryable => {
            Some(Duration::from_secs(why.retry_after_seconds.unwrap_or(0).into()))
        }
        Ok(_) => None,
        Err(error) => min_retry_delay(error),
    }
}

/// The minimum wait before the same call can succeed; `None` if it cannot. Messages with their own
/// id may be sent again when a response was lost.
pub(super) fn min_retry_delay(error: &CallError) -> Option<Duration> {
    error.wait_if(|status, _, retryable| retryable || matches!(status, 429 | 502..=504 | 507))
}

/// Repeats a call until there is a response, good or bad. Only temporary errors are retried, after
/// at least the wait that the hub asks for.
pub(super) async fn retry_forever<T, F: Future<Output = Result<T, CallError>>>(
    call: impl FnMut() -> F,
) -> Result<T, CallError> {
    let delay = |result: &Result<T, CallError>, attempts| {
        let at_least = min_retry_delay(result.as_ref().err()?)?;
        Some(RetryPolicy::ENDLESS.delay(attempts).max(at_least))
    };
    repeat(call, delay).await.0
}

#[cfg(test)]
mod tests {
    use rialto_protocols::openclaw::wire::Rejection;
    use rialto_protocols::openclaw::wire::error::Rejected;

    use super::*;
    use crate::testing::refused;

    const MIDDLE: u32 = u32::MAX / 2;

    fn answered(answer: ResponseAnswer) -> Response {
        let id = Uuid::nil();
        Response {
            request_id: id,
            responder_agent_id: id,
            answer,
            correlation_id: id,
            timestamp: Timestamp(0),
            result: None,
        }
    }

    fn rejected(code: Rejected, after: Option<u32>) -> Response {
        let why = Rejection { retry_after_seconds: after, ..Rejection::new(code, "no") };
        answered(ResponseAnswer::Rejected(why))
    }

    #[test]
    fn delays_are_one_two_and_four_seconds_give_or_take_a_fifth() {
        let busy = rejected(Rejected::ResourceExhausted, None);
        let wait = |retries, random| {
            RequestRetryPolicy::default().retry_delay(retries, Ok(&busy), None, random)
        };
        for (retries, least_ms, most_ms) in [(0, 800, 1_200), (1, 1_600, 2_400), (2, 3_200, 4_800)]
        {
            assert_eq!(wait(retries, 0), Some(Duration::from_millis(least_ms)));
            assert_eq!(wait(retries, u32::MAX), Some(Duration::from_millis(most_ms)));
        }
        assert_eq!(wait(3, 0), None, "three times is enough");
    }

    #[test]
    fn only_a_temporary_rejection_is_retried() {
        for code in Rejected::ALL {
            let response = rejected(*code, None);
            let again =
                RequestRetryPolicy::default().retry_delay(0, Ok(&response), None, MIDDLE).is_some();
            assert_eq!(again, *code == Rejected::ResourceExhausted, "{code}");
        }
        let later = answered(ResponseAnswer::Deferred { until: Timestamp(1) });
        assert_eq!(RequestRetryPolicy::default().retry_delay(0, Ok(&later), None, MIDDLE), None);
    }

    #[test]
    fn only_temporary_errors_are_retried() {
        for (error, again) in [
            (refused(400, "", false, None), false),
            (refused(401, "", false, None), false),
            (refused(404, "", false, None), false),
            (refused(409, "", false, None), false),
            (refused(409, "", true, None), true),
            (refused(422, "", false, None), false),
            (refused(429, "", true, None), true),
            (refused(500, "", false, None), false),
            (refused(500, "", true, None), true),
            (refused(502, "", false, None), true),
            (refused(503, "", true, None), true),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            let wait = RequestRetryPolicy::default().retry_delay(0, Err(&error), None, MIDDLE);
            assert_eq!(wait.is_some(), again, "{error:?}");
        }
    }

    #[test]
    fn a_hub_that_asks_for_a_wait_gets_it_unless_it_is_too_long() {
        let wait = |after, left: Option<u64>| {
            let response = rejected(Rejected::ResourceExhausted, Some(after));
            let left = left.map(Duration::from_secs);
            RequestRetryPolicy::default()
                .retry_delay(0, Ok(&response), left, 0)
                .map(|wait| wait.as_millis())
        };
        assert_eq!(wait(0, None), Some(800));
        assert_eq!(wait(60, None), Some(60_000));
        assert_eq!(wait(121, None), None);
        assert_eq!(wait(60, Some(61)), Some(60_000));
        assert_eq!(wait(60, Some(60)), None, "the deadline comes first");
    }

    #[test]
    fn a_spec_becomes_a_request_that_always_has_a_key() {
        let (me, you) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let spec =
            RequestSpec::new("echo", r#"{"a":1.50}"#).to(you).priority(1).deadline(Timestamp(5));
        let (one, two) = (spec.build(me).expect("good"), spec.build(me).expect("good"));
        assert_eq!((one.requester_agent_id, one.responder_agent_id), (me, Some(you)));
        assert_eq!((one.priority, one.deadline), (Some(1), Some(Timestamp(5))));
        assert_eq!(&*one.input_data, r#"{"a":1.50}"#);
        assert_ne!(one.request_id, two.request_id);
        assert!(one.idempotency_key.is_some() && one.idempotency_key != two.idempotency_key);
        let named = spec.idempotency_key("mine").build(me).expect("good");
        assert_eq!(named.idempotency_key.as_deref(), Some("mine"));
    }

    #[test]
    fn an_invalid_request_is_not_sent() {
        let me = Uuid::from_u128(1);
        for spec in [
            RequestSpec::new("echo", "[]"),
            RequestSpec::new("echo", r#"{},"budget":9"#),
            RequestSpec::new("echo", "{}").priority(11),
            RequestSpec::new("", "{}"),
            RequestSpec::new("echo", "{}").idempotency_key(&"k".repeat(257)),
        ] {
            assert!(spec.build(me).is_err(), "{spec:?}");
        }
    }
}
