//! The messages of a negotiation, one call each: request, offer, accept, deliver, fail, report
//! status.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::wire::payload::{
    self, Accept, Budget, Request, ResultPayload, ResultStatus,
};
use rialto_protocols::agora::wire::status::{AgentStatus, StatusUpdate};
use rialto_protocols::agora::{Code, MessageType};
use rialto_protocols::kit::ed25519::PublicKey;

use super::agent::Agent;
use super::hello::{self, Skill};
use super::identity::SignedEnvelope;
use super::incoming::{Acceptance, EnvelopeResponse};
use crate::call::CallError;
use crate::json::check_object;

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
        check_object("params", &self.params)?;
        let request = Request {
            resource: &self.resource,
            params: &self.params,
            budget: self.budget.map(|max| Budget { max, currency: None }),
            timeout: self.timeout,
        };
        Ok(request.write())
    }
}

impl Agent {
    /// Signs a REQUEST without sending it, so that its id is known first.
    pub fn sign_request(&self, spec: &RequestSpec) -> Result<SignedEnvelope, CallError> {
        let (hub, payload) = (self.server().key(), spec.payload()?);
        self.identity().sign_for_hub(hub, MessageType::Request, &payload, spec.recipient())
    }

    /// Sends a REQUEST and, if wanted, waits at the server for the first answer. Also returns the
    /// id of the request.
    pub async fn send_request(
        &self,
        spec: &RequestSpec,
        wait: Duration,
    ) -> Result<(String, EnvelopeResponse), CallError> {
        let request = self.sign_request(spec)?;
        let id = request.id.clone();
        Ok((id, self.send_and_wait(request, wait).await?))
    }

    /// Sends an OFFER for a request; returns the id of the offer.
    pub async fn send_offer(
        &self,
        to: PublicKey,
        request_id: &str,
        cost: Credits,
        ttl: Millis,
        eta: Millis,
    ) -> Result<String, CallError> {
        let payload = payload::Offer { request_id, cost, ttl, eta }.write();
        let offer = self.identity().sign(MessageType::Offer, &payload, Some(to))?;
        let id = offer.id.clone();
        self.send(offer).await.map(|_| id)
    }

    /// Accepts an offer and, if wanted, waits at the server for the first answer.
    pub async fn accept_offer(
        &self,
        to: PublicKey,
        offer_id: &str,
        payment_proof: Option<&str>,
        wait: Duration,
    ) -> Result<EnvelopeResponse, CallError> {
        let payload = Accept { offer_id, payment_proof }.write();
        let hub = self.server().key();
        let accept = self.identity().sign_for_hub(hub, MessageType::Accept, &payload, Some(to))?;
        self.send_and_wait(accept, wait).await
    }

    /// Delivers the complete work: a JSON object, as text.
    pub async fn send_result(
        &self,
        to: PublicKey,
        request_id: &str,
        data: &str,
    ) -> Result<Acceptance, CallError> {
        self.send_output(to, ResultPayload { request_id, status: ResultStatus::Success, data })
            .await
    }

    /// Delivers a part of the work. With `last` no more parts follow.
    pub async fn send_partial(
        &self,
        to: PublicKey,
        request_id: &str,
        data: &str,
        last: bool,
    ) -> Result<Acceptance, CallError> {
        let status = if last { ResultStatus::FinalPartial } else { ResultStatus::Partial };
        self.send_output(to, ResultPayload { request_id, status, data }).await
    }

    /// Says that the work will not be done or, from the requester, that it is no longer wanted.
    pub async fn send_error(
        &self,
        to: Option<PublicKey>,
        request_id: Option<&str>,
        code: Code,
        message: &str,
    ) -> Result<Acceptance, CallError> {
        let payload = payload::ErrorPayload {
            number: i64::from(code.number()),
            message,
            request_id,
            retryable: None,
            hint: None,
        };
        self.send_accepted(MessageType::Error, &payload.write(), to).await
    }

    /// Reports the agent's status and current capabilities to the server.
    pub async fn send_status(
        &self,
        status: AgentStatus,
        skills: Option<&[Skill]>,
    ) -> Result<Acceptance, CallError> {
        let capabilities = skills.map(hello::capabilities);
        let payload = StatusUpdate { status: Some(status), capabilities }.write();
        self.send_accepted(MessageType::Status, &payload, Some(self.server().key())).await
    }

    async fn send_output(
        &self,
        to: PublicKey,
        output: ResultPayload<'_>,
    ) -> Result<Acceptance, CallError> {
        check_object("data", output.data)?;
        self.send_accepted(MessageType::Result, &output.write(), Some(to)).await
    }

    async fn send_accepted(
        &self,
        kind: MessageType,
        payload: &str,
        to: Option<PublicKey>,
    ) -> Result<Acceptance, CallError> {
        match self.send(self.identity().sign(kind, payload, to)?).await? {
            EnvelopeResponse::Accepted(accepted) => Ok(accepted),
            EnvelopeResponse::Answered(_) => Ok(Acceptance::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(spec: &RequestSpec) -> String {
        spec.payload().expect("a request")
    }

    #[test]
    fn a_request_names_only_what_was_set() {
        let plain = RequestSpec::new("agora:time:v1", "{}");
        assert_eq!(payload(&plain), r#"{"resource":"agora:time:v1","params":{}}"#);
        let full = plain.budget(Credits::from_micros(5_250_000)).timeout(Duration::from_secs(2));
        assert_eq!(
            payload(&full),
            r#"{"resource":"agora:time:v1","params":{},"budget":{"max":5.25},"timeout":2000}"#
        );
        assert!(payload(&full.open_budget()).contains(r#""budget":{}"#));
        assert!(RequestSpec::new("x", r#"{},"budget":{"max":9}"#).payload().is_err());
    }
}
