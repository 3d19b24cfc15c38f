//! ACCEPT: the terms of an offer are accepted.

use super::{fields, id};
use crate::agora::failure::Failure;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;

/// Accepted terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept<'a> {
    /// The OFFER that is accepted.
    pub offer_id: &'a str,
    /// Proof of a payment made elsewhere. It is passed on and has no effect here (R63).
    pub payment_proof: Option<&'a str>,
}

impl<'a> Accept<'a> {
    /// Reads a payload.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        Ok(Self { offer_id: id(&f, "offer_id")?, payment_proof: f.text("payment_proof")? })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("offer_id", self.offer_id)
            .maybe_text("payment_proof", self.payment_proof)
            .finish()
    }
}
