//! A skill: what an agent does, for how much, and what it takes and gives.

use std::time::Duration;

use rialto_core::money::{Credits, NotMoney};
use rialto_protocols::kit::schema::{BadSchema, Schema};

/// The longest a job may take where nothing else is said.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Decimals of a price in the protocol that agents of ours are at home in.
const DECIMALS: usize = 2;

/// One thing an agent does.
#[derive(Clone, Debug)]
pub struct Skill {
    /// What it is called.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// What one job costs.
    pub price: Credits,
    /// What it adds for every started KiB of input, where a price is asked for each job.
    pub per_kib: Credits,
    /// What it takes; anything without.
    pub input: Option<Schema>,
    /// What it gives; anything without.
    pub output: Option<Schema>,
    /// The longest one job may take.
    pub time_limit: Duration,
}

/// Why something is no skill.
#[derive(Debug, thiserror::Error)]
pub enum BadSkill {
    /// The price is no amount.
    #[error("the price {0}")]
    Price(#[from] NotMoney),
    /// A schema cannot be used.
    #[error("the {which} schema {why}")]
    Schema {
        /// `input` or `output`.
        which: &'static str,
        /// What is wrong with it.
        why: BadSchema,
    },
}

impl Skill {
    /// A skill at a price in decimal text, such as `0.05`.
    pub fn new(name: impl Into<String>, price: &str) -> Result<Self, BadSkill> {
        Ok(Self {
            name: name.into(),
            about: String::new(),
            price: Credits::parse(price, DECIMALS)?,
            per_kib: Credits::ZERO,
            input: None,
            output: None,
            time_limit: TIME_LIMIT,
        })
    }

    /// Says what it is.
    pub fn about(mut self, text: impl Into<String>) -> Self {
        self.about = text.into();
        self
    }

    /// Takes only input of this JSON Schema.
    pub fn takes(mut self, schema: &str) -> Result<Self, BadSkill> {
        self.input = Some(compiled("input", schema)?);
        Ok(self)
    }

    /// Gives only output of this JSON Schema: anything else the handler makes is a failure.
    pub fn gives(mut self, schema: &str) -> Result<Self, BadSkill> {
        self.output = Some(compiled("output", schema)?);
        Ok(self)
    }

    /// Takes at most this long.
    pub fn within(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Adds to the price for every started KiB of input, where prices are asked for each job.
    pub fn per_kib(mut self, amount: &str) -> Result<Self, BadSkill> {
        self.per_kib = Credits::parse(amount, DECIMALS)?;
        Ok(self)
    }

    /// What a job with this input costs, where prices are asked for each job.
    pub fn price_of(&self, input: &str) -> Credits {
        let kibs = i64::try_from(input.len().div_ceil(1024)).unwrap_or(i64::MAX);
        let more = self.per_kib.micros().saturating_mul(kibs);
        let sum = self.price.micros().saturating_add(more);
        Credits::from_micros(sum.min(Credits::MAX.micros()))
    }
}

fn compiled(which: &'static str, schema: &str) -> Result<Schema, BadSkill> {
    Schema::compile(schema).map_err(|why| BadSkill::Schema { which, why })
}
