//! REQUEST: the requested resource, its input and the budget.

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::{amount, fields, object_text, whole};
use crate::agora::failure::Failure;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::Json;
use crate::kit::object::ObjectWriter;

/// The most characters of a resource.
pub const RESOURCE_MAX: usize = 256;
/// The longest timeout of a request: a day.
pub const TIMEOUT_MAX: Millis = Millis::hours(24);

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
