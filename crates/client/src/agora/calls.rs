//! The messages of a negotiation, one call each: request, offer, accept, deliver, fail, report
//! status.

use std::time::Duration;

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::agora::payload::result::Status;
use rialto_protocols::agora::payload::{self, Accept, Heard, Mood, Output};
use rialto_protocols::agora::{Code, Kind};
use rialto_protocols::kit::ed25519::PublicKey;

use super::agent::Agent;
use super::response::{Accepted, Answered};
use super::hello::{self, Skill};
use super::json_object;
use super::request_spec::Order;
use super::signed_envelope::Sealed;
use crate::call::CallError;

impl Agent {
    /// Signs a REQUEST without sending it, so that its id is known first.
    pub fn draw_up(&self, order: &Order) -> Result<Sealed, CallError> {
        let (hub, payload) = (self.server().key(), order.payload()?);
        self.identity().seal_at(hub, Kind::Request, &payload, order.recipient())
    }

    /// Sends a REQUEST and, if wanted, waits at the server for the first answer. Also returns the
    /// id of the request.
    pub async fn request(
        &self,
        order: &Order,
        wait: Duration,
    ) -> Result<(String, Answered), CallError> {
        let sealed = self.draw_up(order)?;
        let id = sealed.id.clone();
        Ok((id, self.send_and_wait(sealed, wait).await?))
    }

    /// Sends an OFFER for a request; returns the id of the offer.
    pub async fn offer(
        &self,
        to: PublicKey,
        request_id: &str,
        cost: Credits,
        ttl: Millis,
        eta: Millis,
    ) -> Result<String, CallError> {
        let payload = payload::Offer { request_id, cost, ttl, eta }.write();
        let sealed = self.identity().seal(Kind::Offer, &payload, Some(to))?;
        let id = sealed.id.clone();
        self.send(sealed).await.map(|_| id)
    }

    /// Accepts an offer and, if wanted, waits at the server for the first answer.
    pub async fn accept(
        &self,
        to: PublicKey,
        offer_id: &str,
        payment_proof: Option<&str>,
        wait: Duration,
    ) -> Result<Answered, CallError> {
        let payload = Accept { offer_id, payment_proof }.write();
        let hub = self.server().key();
        let sealed = self.identity().seal_at(hub, Kind::Accept, &payload, Some(to))?;
        self.send_and_wait(sealed, wait).await
    }

    /// Delivers the complete work: a JSON object, as text.
    pub async fn result(
        &self,
        to: PublicKey,
        request_id: &str,
        data: &str,
    ) -> Result<Accepted, CallError> {
        self.output(to, Output { request_id, status: Status::Success, data }).await
    }

    /// Delivers a part of the work. With `last` no more parts follow.
    pub async fn partial(
        &self,
        to: PublicKey,
        request_id: &str,
        data: &str,
        last: bool,
    ) -> Result<Accepted, CallError> {
        let status = if last { Status::LastPartial } else { Status::Partial };
        self.output(to, Output { request_id, status, data }).await
    }

    /// Says that the work will not be done or, from the requester, that it is no longer wanted.
    pub async fn error(
        &self,
        to: Option<PublicKey>,
        request_id: Option<&str>,
        code: Code,
        message: &str,
    ) -> Result<Accepted, CallError> {
        let payload = payload::Failed {
            number: i64::from(code.number()),
            message,
            request_id,
            retryable: None,
            hint: None,
        };
        self.tell(Kind::Error, &payload.write(), to).await
    }

    /// Reports the agent's status and current capabilities to the server.
    pub async fn status(
        &self,
        mood: Mood,
        skills: Option<&[Skill]>,
    ) -> Result<Accepted, CallError> {
        let capabilities = skills.map(hello::listed);
        let payload = Heard { status: Some(mood), capabilities }.write();
        self.tell(Kind::Status, &payload, Some(self.server().key())).await
    }

    async fn output(&self, to: PublicKey, output: Output<'_>) -> Result<Accepted, CallError> {
        json_object::check("data", output.data)?;
        self.tell(Kind::Result, &output.write(), Some(to)).await
    }

    async fn tell(
        &self,
        kind: Kind,
        payload: &str,
        to: Option<PublicKey>,
    ) -> Result<Accepted, CallError> {
        match self.send(self.identity().seal(kind, payload, to)?).await? {
            Answered::Accepted(accepted) => Ok(accepted),
            Answered::By(_) => Ok(Accepted::default()),
        }
    }
}
