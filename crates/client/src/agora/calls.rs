//! The messages of a negotiation, one call each: request, offer, accept, deliver, fail, report
//! status.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::wire::payload::{self, Accept, ResultPayload, ResultStatus};
use rialto_protocols::agora::wire::status::{AgentStatus, StatusUpdate};
use rialto_protocols::agora::{Code, MessageType};
use rialto_protocols::kit::ed25519::PublicKey;

use super::agent::Agent;
use super::hello::{self, Skill};
use super::json_object;
use super::request_spec::RequestSpec;
use super::response::{Acceptance, EnvelopeResponse};
use super::signed_envelope::SignedEnvelope;
use crate::call::CallError;

impl Agent {
    /// Signs a REQUEST without sending it, so that its id is known first.
    pub fn sign_request(&self, order: &RequestSpec) -> Result<SignedEnvelope, CallError> {
        let (hub, payload) = (self.server().key(), order.payload()?);
        self.identity().sign_for_hub(hub, MessageType::Request, &payload, order.recipient())
    }

    /// Sends a REQUEST and, if wanted, waits at the server for the first answer. Also returns the
    /// id of the request.
    pub async fn send_request(
        &self,
        order: &RequestSpec,
        wait: Duration,
    ) -> Result<(String, EnvelopeResponse), CallError> {
        let sealed = self.sign_request(order)?;
        let id = sealed.id.clone();
        Ok((id, self.send_and_wait(sealed, wait).await?))
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
        let sealed = self.identity().sign(MessageType::Offer, &payload, Some(to))?;
        let id = sealed.id.clone();
        self.send(sealed).await.map(|_| id)
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
        let sealed = self.identity().sign_for_hub(hub, MessageType::Accept, &payload, Some(to))?;
        self.send_and_wait(sealed, wait).await
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
        mood: AgentStatus,
        skills: Option<&[Skill]>,
    ) -> Result<Acceptance, CallError> {
        let capabilities = skills.map(hello::listed);
        let payload = StatusUpdate { status: Some(mood), capabilities }.write();
        self.send_accepted(MessageType::Status, &payload, Some(self.server().key())).await
    }

    async fn send_output(
        &self,
        to: PublicKey,
        output: ResultPayload<'_>,
    ) -> Result<Acceptance, CallError> {
        json_object::check_object("data", output.data)?;
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
