//! A skill: what an agent does, its price, and its input and output schemas.

use std::time::Duration;

use rialto_core::money::{AmountError, Credits};
use rialto_protocols::kit::schema::{BadSchema, Schema};

/// The default time limit of a job.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Decimals of a price in the home protocol of these agents.
const DECIMALS: usize = 2;

/// One skill of an agent.
#[derive(Clone, Debug)]
pub struct Skill {
    /// The skill's name.
    pub name: String,
    /// The description, for people.
    pub description: String,
    /// The price of one job.
    pub price: Credits,
    /// The surcharge for every started KiB of input, for jobs with offers.
    pub per_kib: Credits,
    /// The input schema; any input without one.
    pub input_schema: Option<Schema>,
    /// The output schema; any output without one.
    pub output_schema: Option<Schema>,
    /// The time limit of one job.
    pub time_limit: Duration,
    /// Whether a hub gets the whole schemas, and not only required members and their types.
    pub shows_schemas: bool,
}

/// Why a skill is not valid.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// The price is not a valid amount.
    #[error("the price {0}")]
    Price(#[from] AmountError),
    /// A schema is not valid.
    #[error("the {which} schema {error}")]
    Schema {
        /// `input` or `output`.
        which: &'static str,
        /// What is wrong with it.
        error: BadSchema,
    },
}

impl Skill {
    /// A skill with a price in decimal text, such as `0.05`.
    pub fn new(name: impl Into<String>, price: &str) -> Result<Self, SkillError> {
        Ok(Self {
            name: name.into(),
            description: String::new(),
            price: Credits::parse(price, DECIMALS)?,
            per_kib: Credits::ZERO,
            input_schema: None,
            output_schema: None,
            time_limit: TIME_LIMIT,
            shows_schemas: false,
        })
    }

    /// Sets the description.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Accepts only input that matches this JSON Schema.
    pub fn input_schema(mut self, schema: &str) -> Result<Self, SkillError> {
        self.input_schema = Some(compiled("input", schema)?);
        Ok(self)
    }

    /// Allows only output that matches this JSON Schema; any other output of the handler is a
    /// failure.
    pub fn output_schema(mut self, schema: &str) -> Result<Self, SkillError> {
        self.output_schema = Some(compiled("output", schema)?);
        Ok(self)
    }

    /// Sets the time limit of one job.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Gives a hub the whole schemas, and not only required members and their types.
    pub fn show_schemas(mut self) -> Self {
        self.shows_schemas = true;
        self
    }

    /// Sets a surcharge for every started KiB of input, for jobs with offers.
    pub fn per_kib(mut self, amount: &str) -> Result<Self, SkillError> {
        self.per_kib = Credits::parse(amount, DECIMALS)?;
        Ok(self)
    }

    /// The price of a job with this input, for jobs with offers.
    pub fn price_for(&self, input: &str) -> Credits {
        let kibs = i64::try_from(input.len().div_ceil(1024)).unwrap_or(i64::MAX);
        let more = self.per_kib.micros().saturating_mul(kibs);
        let sum = self.price.micros().saturating_add(more);
        Credits::from_micros(sum.min(Credits::MAX.micros()))
    }
}

fn compiled(which: &'static str, schema: &str) -> Result<Schema, SkillError> {
    Schema::compile(schema).map_err(|why| SkillError::Schema { which, error: why })
}
