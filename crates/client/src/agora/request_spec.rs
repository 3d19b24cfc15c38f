//! A REQUEST to send.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::wire::payload::{Budget, Request};
use rialto_protocols::kit::ed25519::PublicKey;

use super::json_object;
use crate::call::CallError;

/// The work to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    resource: String,
    params: String,
    /// Outer `None`: no budget. Inner `None`: a budget without a maximum.
    budget: Option<Option<Credits>>,
    timeout: Option<Millis>,
    to: Option<PublicKey>,
}

impl RequestSpec {
    /// Work of a kind, such as `agora:search:v1`, with its input: a JSON object, as text.
    pub fn new(resource: impl Into<String>, params: impl Into<String>) -> Self {
        let (resource, params) = (resource.into(), params.into());
        Self { resource, params, budget: None, timeout: None, to: None }
    }

    /// Sets the maximum price. Unless there is a provider, several agents are asked for offers.
    pub fn budget(self, max: Credits) -> Self {
        Self { budget: Some(Some(max)), ..self }
    }

    /// Sets a budget without a maximum: offers at any price are accepted.
    pub fn open_budget(self) -> Self {
        Self { budget: Some(None), ..self }
    }

    /// Sets the time limit.
    pub fn timeout(self, timeout: Duration) -> Self {
        let ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        Self { timeout: Some(Millis(ms)), ..self }
    }

    /// Sends the request to one provider.
    pub fn to(self, provider: PublicKey) -> Self {
        Self { to: Some(provider), ..self }
    }

    /// The provider, if there is one.
    pub fn recipient(&self) -> Option<PublicKey> {
        self.to
    }

    /// The time limit, if set.
    pub fn time_limit(&self) -> Option<Duration> {
        self.timeout.map(|timeout| Duration::from_millis(timeout.0.unsigned_abs()))
    }

    /// The maximum price, if set.
    pub fn max_cost(&self) -> Option<Credits> {
        self.budget.flatten()
    }

    /// The payload of the REQUEST.
    pub(super) fn payload(&self) -> Result<String, CallError> {
        json_object::check_object("params", &self.params)?;
        let request = Request {
            resource: &self.resource,
            params: &self.params,
            budget: self.budget.map(|max| Budget { max, currency: None }),
            timeout: self.timeout,
        };
        Ok(request.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(order: &RequestSpec) -> String {
        order.payload().expect("an order")
    }

    #[test]
    fn an_order_says_what_was_ordered_and_no_more() {
        let plain = RequestSpec::new("agora:time:v1", "{}");
        assert_eq!(written(&plain), r#"{"resource":"agora:time:v1","params":{}}"#);
        let full = plain.budget(Credits::from_micros(5_250_000)).timeout(Duration::from_secs(2));
        assert_eq!(
            written(&full),
            r#"{"resource":"agora:time:v1","params":{},"budget":{"max":5.25},"timeout":2000}"#
        );
        assert!(written(&full.open_budget()).contains(r#""budget":{}"#));
        assert!(RequestSpec::new("x", r#"{},"budget":{"max":9}"#).payload().is_err());
    }
}
