//! A collaboration request to send.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson::{self, JsonValue};
use rialto_protocols::openclaw::wire::{CommonMembers, Request};
use uuid::Uuid;

use super::{ids, response, server};
use crate::call::CallError;

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
        check_object(&self.input)?;
        let CommonMembers { correlation_id, timestamp } = server::new_common_fields()?;
        let idempotency_key = match &self.idempotency_key {
            Some(key) => key.clone(),
            None => ids::random_id()?.to_string(),
        };
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
        response::check_message(&request.write())
    }
}

/// Refuses text that is not a single object, because it could add other members.
pub(super) fn check_object(text: &str) -> Result<(), CallError> {
    let hint = || Some("write a JSON object, such as {\"text\":\"hi\"}".to_owned());
    match ijson::read(text.as_bytes()).as_ref().map(ijson::Json::value) {
        Ok(JsonValue::Object(_)) => Ok(()),
        Ok(_) => Err(CallError::invalid("the data is not an object", hint())),
        Err(why) => Err(CallError::invalid(format!("the data cannot be read: {why}"), hint())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_becomes_a_request_that_always_has_a_key() {
        let (me, you) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let order =
            RequestSpec::new("echo", r#"{"a":1.50}"#).to(you).priority(1).deadline(Timestamp(5));
        let (one, two) = (order.build(me).expect("good"), order.build(me).expect("good"));
        assert_eq!((one.requester_agent_id, one.responder_agent_id), (me, Some(you)));
        assert_eq!((one.priority, one.deadline), (Some(1), Some(Timestamp(5))));
        assert_eq!(&*one.input_data, r#"{"a":1.50}"#);
        assert_ne!(one.request_id, two.request_id);
        assert!(one.idempotency_key.is_some() && one.idempotency_key != two.idempotency_key);
        let named = order.idempotency_key("mine").build(me).expect("good");
        assert_eq!(named.idempotency_key.as_deref(), Some("mine"));
    }

    #[test]
    fn a_bad_order_is_not_sent() {
        let me = Uuid::from_u128(1);
        for order in [
            RequestSpec::new("echo", "[]"),
            RequestSpec::new("echo", r#"{},"budget":9"#),
            RequestSpec::new("echo", "{}").priority(11),
            RequestSpec::new("", "{}"),
            RequestSpec::new("echo", "{}").idempotency_key(&"k".repeat(257)),
        ] {
            assert!(order.build(me).is_err(), "{order:?}");
        }
    }
}
