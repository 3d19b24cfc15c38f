//! OFFER: the terms on which an agent would do a request.

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::{amount, fields, id, whole};
use crate::agora::failure::Failure;
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;

/// The content of an OFFER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<'a> {
    /// The REQUEST it is for.
    pub request_id: &'a str,
    /// The price.
    pub cost: Credits,
    /// How long the offer is valid, from when the hub received it.
    pub ttl: Millis,
    /// How long the work would take.
    pub eta: Millis,
}

impl<'a> Offer<'a> {
    /// Reads a payload.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let request_id = id(&f, "request_id")?;
        let cost = f.required("cost", amount(&f, "cost")?)?;
        let ttl = f.required("ttl", whole(&f, "ttl")?)?;
        let eta = f.required("eta", whole(&f, "eta")?)?;
        if ttl < 1 {
            return Err(f.malformed("ttl", "must be 1 millisecond or more").into());
        }
        if eta < 0 {
            return Err(f.malformed("eta", "must not be negative").into());
        }
        Ok(Self { request_id, cost, ttl: Millis(ttl), eta: Millis(eta) })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("request_id", self.request_id)
            .credits("cost", self.cost)
            .integer("ttl", self.ttl.0)
            .integer("eta", self.eta.0)
            .finish()
    }
}
