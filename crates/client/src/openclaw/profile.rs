//! Builds an identity: an agent's name and its capabilities.

use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::kit::schema::Schema;
use rialto_protocols::openclaw::wire::words::{Category, Mode, Status};
use rialto_protocols::openclaw::wire::{
    Identity, PublishedCapability, ReportedStatus, ResourceLimits, StatusDetails,
};
use uuid::Uuid;

use super::response::check_message;
use crate::call::CallError;
use crate::{clock, ids};

/// The default agent version.
const AGENT_VERSION: &str = "1.0.0";

/// One skill of an agent.
#[derive(Clone, Debug)]
pub struct Skill {
    id: String,
    name: String,
    description: String,
    category: Category,
    input: Option<String>,
    output: Option<String>,
    estimated_duration: Option<Millis>,
    requires_approval: bool,
    price: Option<Credits>,
}

/// An agent to publish.
#[derive(Clone, Debug)]
pub struct Profile {
    agent_id: Option<Uuid>,
    name: String,
    version: String,
    skills: Vec<Skill>,
    limits: ResourceLimits,
    endpoint: Option<String>,
    mode: Mode,
}

impl Skill {
    /// A skill with any object as input and output.
    pub fn new(id: &str, category: Category, description: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
            description: description.to_owned(),
            category,
            input: None,
            output: None,
            estimated_duration: None,
            requires_approval: false,
            price: None,
        }
    }

    /// Sets the display name.
    pub fn display_name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Sets a JSON Schema that every input must match.
    pub fn input(mut self, schema: &str) -> Self {
        self.input = Some(schema.to_owned());
        self
    }

    /// Sets a JSON Schema that every output must match.
    pub fn output(mut self, schema: &str) -> Self {
        self.output = Some(schema.to_owned());
        self
    }

    /// Sets the estimated duration.
    pub fn estimated_duration(mut self, long: Millis) -> Self {
        self.estimated_duration = Some(long);
        self
    }

    /// Requires an approval before the work is done.
    pub fn requires_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Sets the price.
    pub fn price(mut self, price: Credits) -> Self {
        self.price = Some(price);
        self
    }

    fn build(self) -> Result<PublishedCapability, CallError> {
        let schema = |which: &str, text: Option<String>| {
            let compiled = text.map(|text| Schema::compile(&text)).transpose();
            let message = |bad| format!("invalid {which} schema of {}: {bad}", self.id);
            compiled.map_err(|bad| CallError::invalid(message(bad), None))
        };
        let (input, output) = (schema("input", self.input)?, schema("output", self.output)?);
        Ok(PublishedCapability {
            id: self.id,
            name: self.name,
            description: self.description,
            category: self.category,
            estimated_duration_ms: self.estimated_duration.map(|long| long.0),
            requires_approval: self.requires_approval,
            price: self.price,
            input,
            output,
        })
    }
}

impl Profile {
    /// An agent with a name: `chimera-` and lowercase letters, digits and hyphens.
    pub fn new(name: &str) -> Self {
        Self {
            agent_id: None,
            name: name.to_owned(),
            version: AGENT_VERSION.to_owned(),
            skills: Vec::new(),
            limits: ResourceLimits::default(),
            endpoint: None,
            mode: Mode::Auto,
        }
    }

    /// Sets an id it had before. By default it gets a new one.
    pub fn id(mut self, id: Uuid) -> Self {
        self.agent_id = Some(id);
        self
    }

    /// Sets the version, such as `1.2.0`.
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Adds a skill; at least one is required.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Sets the maximum number of collaborations at a time.
    pub fn max_concurrent_tasks(mut self, most: u32) -> Self {
        self.limits.max_concurrent_tasks = Some(most.into());
        self
    }

    /// Sets the maximum number of new collaborations per minute.
    pub fn rate_limit_per_minute(mut self, most: u32) -> Self {
        self.limits.rate_limit_per_minute = Some(most.into());
        self
    }

    /// Sets the URL for webhooks while no stream is open.
    pub fn endpoint(mut self, url: &str) -> Self {
        self.endpoint = Some(url.to_owned());
        self
    }

    /// Lets the agent respond to every request itself, within nine seconds.
    pub fn respond_manually(mut self) -> Self {
        self.mode = Mode::Ask;
        self
    }

    /// Builds the identity, checked like at the hub.
    pub fn build(self) -> Result<Identity, CallError> {
        let identity = Identity {
            agent_id: self.agent_id.map_or_else(ids::random_id, Ok)?,
            agent_name: self.name,
            version: self.version,
            spec_version: Some(rialto_protocols::openclaw::VERSION.to_owned()),
            capabilities: self.skills.into_iter().map(Skill::build).collect::<Result<_, _>>()?,
            report: ReportedStatus {
                status: Status::Idle,
                at: clock::now(),
                details: StatusDetails::default(),
            },
            trust_signals: None,
            limits: self.limits,
            published_at: Some(clock::now()),
            endpoint: self.endpoint,
            response_mode: self.mode,
        };
        check_message(&identity.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill() -> Skill {
        Skill::new("echo", Category::TrendAnalysis, "Says it again")
    }

    #[test]
    fn a_profile_becomes_an_identity() {
        let id = Uuid::from_u128(7);
        let identity = Profile::new("chimera-echo")
            .id(id)
            .skill(
                skill()
                    .display_name("Echo")
                    .input(r#"{"type":"object"}"#)
                    .estimated_duration(Millis(50)),
            )
            .max_concurrent_tasks(3)
            .respond_manually()
            .build()
            .expect("a good profile");
        assert_eq!(identity.agent_id, id);
        assert_eq!(identity.response_mode, Mode::Ask);
        assert_eq!(identity.limits.max_concurrent_tasks, Some(3));
        let echo = identity.capability("echo").expect("a skill");
        assert_eq!((echo.name.as_str(), echo.estimated_duration_ms), ("Echo", Some(50)));
        assert!(echo.input.is_some() && echo.output.is_none());
    }

    #[test]
    fn an_identity_that_the_hub_would_refuse_is_not_built() {
        for bad in [
            Profile::new("echo").skill(skill()),
            Profile::new("chimera-echo"),
            Profile::new("chimera-echo").version("1").skill(skill()),
            Profile::new("chimera-echo").skill(skill()).skill(skill()),
            Profile::new("chimera-echo").skill(skill().input("[")),
            Profile::new("chimera-echo").skill(skill()).max_concurrent_tasks(0),
        ] {
            let shown = format!("{bad:?}");
            assert!(matches!(bad.build(), Err(CallError::Refused { status: 400, .. })), "{shown}");
        }
    }
}
