//! Payloads of REQUEST, OFFER, ACCEPT, RESULT and ERROR (section 2.4), read and written by the same
//! types on both sides.
//!
//! Numbers are read from their canonical text (R20): `10000.0` and `1e4` have the same signature as
//! `10000`, so they are the same timeout. Unknown members are ignored.

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::envelope::{Envelope, MessageType};
use super::error::{Code, Failure};
use crate::agora::{DECIMALS, ID_MAX};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, JsonValue};
use crate::kit::jcs;
use crate::kit::object::ObjectWriter;

/// The most characters of a resource.
pub const RESOURCE_MAX: usize = 256;
/// The longest timeout of a request: a day.
pub const TIMEOUT_MAX: Millis = Millis::hours(24);

/// The payload of a message, by its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Requested work.
    Request(Request<'a>),
    /// Terms for the work.
    Offer(Offer<'a>),
    /// Accepted terms.
    Accept(Accept<'a>),
    /// A result.
    Result(ResultPayload<'a>),
    /// There will be no result.
    Error(ErrorPayload<'a>),
    /// HELLO, WELCOME and STATUS: any object is valid (R60). The receiver reads it with the types
    /// of the modules `hello` and `status`.
    Unspecified,
}

impl<'a> Payload<'a> {
    /// Reads the payload of an envelope by its type.
    pub fn read(envelope: &Envelope<'a>) -> Result<Self, Failure> {
        let payload = envelope.payload;
        Ok(match envelope.message_type {
            MessageType::Request => Self::Request(Request::read(payload)?),
            MessageType::Offer => Self::Offer(Offer::read(payload)?),
            MessageType::Accept => Self::Accept(Accept::read(payload)?),
            MessageType::Result => Self::Result(ResultPayload::read(payload)?),
            MessageType::Error => Self::Error(ErrorPayload::read(payload)?),
            MessageType::Hello | MessageType::Welcome | MessageType::Status => Self::Unspecified,
        })
    }
}

/// The content of a REQUEST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The requested capability, such as `agora:search:v1`.
    pub resource: &'a str,
    /// The input: JSON text of an object.
    pub params: &'a str,
    /// The budget, if the requester offers money.
    pub budget: Option<Budget<'a>>,
    /// How long the work may take.
    pub timeout: Option<Millis>,
}

/// The budget of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget<'a> {
    /// The highest price. The spec does not define the members of a budget, so one without a
    /// maximum is valid: it invites offers at any price.
    pub max: Option<Credits>,
    /// The currency as given; `None` means credits.
    pub currency: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Reads a payload.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        Ok(Self {
            resource: f.required_name("resource", RESOURCE_MAX)?,
            params: object_text(&f, "params")?,
            budget: f.object("budget")?.map(|budget| Budget::read(&budget)).transpose()?,
            timeout: timeout(&f)?,
        })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let budget = self.budget.as_ref().map(Budget::write);
        ObjectWriter::new()
            .text("resource", self.resource)
            .raw("params", self.params)
            .maybe_raw("budget", budget.as_deref())
            .maybe_integer("timeout", self.timeout.map(|timeout| timeout.0))
            .finish()
    }
}

impl<'a> Budget<'a> {
    fn read(f: &Fields<'_, 'a>) -> Result<Self, Malformed> {
        let (max, max_cost) = (amount(f, "max")?, amount(f, "max_cost")?);
        if max.is_some() && max_cost.is_some() && max != max_cost {
            return Err(f.malformed("max_cost", "must equal max, because both mean the same"));
        }
        Ok(Self { max: max.or(max_cost), currency: f.text("currency")? })
    }

    fn write(&self) -> String {
        ObjectWriter::new()
            .maybe_credits("max", self.max)
            .maybe_text("currency", self.currency)
            .finish()
    }
}

fn timeout(f: &Fields<'_, '_>) -> Result<Option<Millis>, Malformed> {
    match whole(f, "timeout")? {
        None => Ok(None),
        Some(ms) if (1..=TIMEOUT_MAX.0).contains(&ms) => Ok(Some(Millis(ms))),
        Some(_) => Err(f.malformed("timeout", "must be 1 to 86400000 milliseconds")),
    }
}

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

/// The content of a RESULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPayload<'a> {
    /// The REQUEST it is for.
    pub request_id: &'a str,
    /// Whether it is complete.
    pub status: ResultStatus,
    /// The result: JSON text of an object.
    pub data: &'a str,
}

/// Whether a result is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultStatus {
    /// The whole result.
    Success,
    /// A part; more will follow.
    Partial,
    /// The last part: `partial` with `final` (R42).
    FinalPartial,
}

impl ResultStatus {
    /// Whether this ends the request.
    pub fn is_final(self) -> bool {
        self != Self::Partial
    }
}

impl<'a> ResultPayload<'a> {
    /// Reads a payload.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let request_id = id(&f, "request_id")?;
        let last = f.flag("final")?.unwrap_or(false);
        let status = match f.required_text("status")? {
            "success" => ResultStatus::Success,
            "partial" if last => ResultStatus::FinalPartial,
            "partial" => ResultStatus::Partial,
            _ => {
                let failure =
                    Failure::from(f.malformed("status", "must be \"success\" or \"partial\""));
                return Err(failure.with_hint("report failed work with an ERROR"));
            }
        };
        Ok(Self { request_id, status, data: object_text(&f, "data")? })
    }

    /// Writes a payload.
    pub fn write(&self) -> String {
        let whole = self.status == ResultStatus::Success;
        let last = (self.status == ResultStatus::FinalPartial).then_some("true");
        ObjectWriter::new()
            .text("request_id", self.request_id)
            .text("status", if whole { "success" } else { "partial" })
            .maybe_raw("final", last)
            .raw("data", self.data)
            .finish()
    }
}

/// The content of an ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPayload<'a> {
    /// The number, which may not be one of the eight codes.
    pub number: i64,
    /// The error as text for people.
    pub message: &'a str,
    /// The REQUEST it is about.
    pub request_id: Option<&'a str>,
    /// Whether a retry can succeed, according to the hub.
    pub retryable: Option<bool>,
    /// What to do, according to the hub.
    pub hint: Option<&'a str>,
}

impl<'a> ErrorPayload<'a> {
    /// Reads a payload. The hub's own members are only shown to people, so other uses of their
    /// names are not refused.
    pub fn read(payload: &'a Json<'_>) -> Result<Self, Failure> {
        let f = fields(payload)?;
        let retryable = match f.get("retryable").map(Json::value) {
            Some(JsonValue::Bool(flag)) => Some(*flag),
            _ => None,
        };
        Ok(Self {
            number: f.required("code", whole(&f, "code")?)?,
            message: f.required_text("message")?,
            request_id: f.name("request_id", ID_MAX)?,
            retryable,
            hint: f.text("hint").ok().flatten(),
        })
    }

    /// The code of the number. A number that is not one of the eight counts as 500 (R59).
    pub fn code(&self) -> Code {
        Code::read(self.number)
    }

    /// Writes the payload of an agent's ERROR; [`Failure::payload`] writes the hub's.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .integer("code", self.number)
            .text("message", self.message)
            .maybe_text("request_id", self.request_id)
            .finish()
    }
}

/// The members of a payload.
pub(super) fn fields<'a, 'b>(payload: &'b Json<'a>) -> Result<Fields<'a, 'b>, Malformed> {
    Fields::read(payload, "/payload")
}

/// An amount, read from the signed number.
pub(super) fn amount(f: &Fields<'_, '_>, name: &str) -> Result<Option<Credits>, Malformed> {
    let Some(number) = number(f, name, "must be a number")? else { return Ok(None) };
    Credits::parse(&number, DECIMALS).map(Some).map_err(|bad| f.malformed(name, bad))
}

/// An integer, read from the signed number.
fn whole(f: &Fields<'_, '_>, name: &str) -> Result<Option<i64>, Malformed> {
    const WANTED: &str = "must be a whole number";
    let Some(number) = number(f, name, WANTED)? else { return Ok(None) };
    number.parse().map(Some).map_err(|_| f.malformed(name, WANTED))
}

/// The canonical text of a number.
fn number(f: &Fields<'_, '_>, name: &str, wanted: &str) -> Result<Option<String>, Malformed> {
    match f.get(name).map(Json::value) {
        None => Ok(None),
        Some(JsonValue::Number(digits)) => {
            jcs::canonical_number(digits).map(Some).map_err(|bad| f.malformed(name, bad))
        }
        Some(_) => Err(f.malformed(name, wanted)),
    }
}

/// The id of another envelope (R51).
fn id<'b>(f: &Fields<'_, 'b>, name: &str) -> Result<&'b str, Malformed> {
    f.required_name(name, ID_MAX)
}

/// The exact text of an object.
fn object_text<'b>(f: &Fields<'_, 'b>, name: &str) -> Result<&'b str, Malformed> {
    f.required(name, f.object(name)?)?;
    Ok(f.get(name).map_or("{}", Json::raw))
}
