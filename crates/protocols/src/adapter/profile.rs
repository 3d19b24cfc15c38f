//! Changes of an agent's profile that are not written in the words of its protocol.
//!
//! Each protocol makes its own profile of them, by its own limits. What all share is here: names,
//! prices and schemas that are safe to keep (T28).

use rialto_core::agent::{Agent, Skill, Terms};
use rialto_core::money::Credits;

use crate::kit::fields::Malformed;
use crate::kit::name::check_name;
use crate::kit::schema::Schema;

/// The most characters of an agent's or a skill's name, where a protocol has no lower limit.
pub const NAME_MAX: usize = 128;
/// The most characters of a description.
const ABOUT_MAX: usize = 4_096;
/// The longest schema, in bytes, and the most bytes of all skills of one agent.
const SCHEMA_MAX: usize = 16 << 10;
const SKILLS_BYTES_MAX: usize = 64 << 10;
/// Patterns in all schemas of one agent together.
const PATTERNS_MAX: usize = 128;

/// A skill, described without any protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillListing {
    pub name: String,
    pub price: Credits,
    pub description: String,
    /// JSON Schemas, as text.
    pub input: Option<String>,
    pub output: Option<String>,
}

/// What an agent changes of its profile. What it does not name stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileChange {
    pub name: Option<String>,
    /// All skills from now on.
    pub skills: Option<Vec<SkillListing>>,
}

/// What a change makes of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedProfile {
    pub name: Option<String>,
    pub skills: Option<Vec<Skill>>,
    /// What the protocol keeps of the agent, where that changes too.
    pub published: Option<PublishedProfile>,
}

/// What a protocol keeps of an agent beside name and skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedProfile {
    /// JSON text.
    pub card: String,
    pub terms: Terms,
}

impl ProfileChange {
    /// Checks what no protocol accepts. The pointers begin at the change itself.
    pub fn check(&self, decimals: usize) -> Result<(), Malformed> {
        if let Some(name) = &self.name {
            let wrong = |bad| malformed("/name", format!("name {bad}"));
            check_name(name, NAME_MAX).map_err(wrong)?;
        }
        let (mut bytes, mut patterns) = (0, 0);
        let skills = self.skills.as_deref().unwrap_or_default();
        for (at, skill) in skills.iter().enumerate() {
            let wrong = |member: &str, what: String| {
                malformed(&format!("/skills/{at}/{member}"), format!("{member} {what}"))
            };
            check_name(&skill.name, NAME_MAX).map_err(|bad| wrong("name", bad.to_string()))?;
            if skills[..at].iter().any(|other| other.name == skill.name) {
                return Err(wrong("name", "is listed twice; list each skill once".to_owned()));
            }
            if skill.price.floor(decimals) != skill.price {
                return Err(wrong("price", format!("has more than {decimals} decimals")));
            }
            if skill.description.chars().count() > ABOUT_MAX {
                return Err(wrong("about", format!("has more than {ABOUT_MAX} characters")));
            }
            bytes += skill.name.len() + skill.description.len();
            for (member, schema) in
                [("input_schema", &skill.input), ("output_schema", &skill.output)]
            {
                let Some(schema) = schema else { continue };
                if schema.len() > SCHEMA_MAX {
                    return Err(wrong(member, format!("has more than {SCHEMA_MAX} bytes")));
                }
                let compiled = Schema::compile(schema)
                    .map_err(|bad| wrong(member, format!("is not a supported schema: {bad}")))?;
                bytes += schema.len();
                patterns += compiled.patterns();
                if patterns > PATTERNS_MAX {
                    let text = format!("brings the schemas to more than {PATTERNS_MAX} patterns");
                    return Err(wrong(member, text));
                }
            }
        }
        if bytes > SKILLS_BYTES_MAX {
            let text = format!("skills have more than {SKILLS_BYTES_MAX} bytes together");
            return Err(malformed("/skills", text));
        }
        Ok(())
    }

    /// The change of an agent whose protocol keeps nothing beside its name and skills.
    pub fn plainly(&self, decimals: usize) -> Result<ChangedProfile, Malformed> {
        self.check(decimals)?;
        let skills = self.skills.as_ref();
        let skills = skills.map(|skills| skills.iter().map(SkillListing::to_skill).collect());
        Ok(ChangedProfile { name: self.name.clone(), skills, published: None })
    }

    /// The refusal of a protocol in whose words alone a profile can be changed.
    pub fn refuse(&self, agent: &Agent) -> Malformed {
        let member = if self.skills.is_some() { "skills" } else { "name" };
        let text = format!("{member} of a {} agent can be changed there only", agent.home);
        malformed(&format!("/{member}"), text)
    }
}

impl SkillListing {
    pub fn to_skill(&self) -> Skill {
        let schema = |text: &Option<String>| text.clone().unwrap_or_else(|| "{}".to_owned());
        Skill {
            name: self.name.clone(),
            price: self.price,
            by_offer: false,
            expected_duration: None,
            needs_approval: false,
            description: self.description.clone(),
            category: None,
            native_name: None,
            input: schema(&self.input),
            output: schema(&self.output),
        }
    }
}

fn malformed(field: &str, message: String) -> Malformed {
    Malformed { field: field.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(name: &str) -> SkillListing {
        SkillListing {
            name: name.to_owned(),
            price: Credits::ZERO,
            description: String::new(),
            input: None,
            output: None,
        }
    }

    fn refused(skills: Vec<SkillListing>) -> String {
        let change = ProfileChange { name: None, skills: Some(skills) };
        change.check(2).expect_err("it is refused").field
    }

    #[test]
    fn what_could_hurt_a_reader_or_the_hub_is_refused_by_its_place() {
        let with = |input: &str| SkillListing { input: Some(input.to_owned()), ..listing("a") };
        assert_eq!(refused(vec![listing("a"), listing("a")]), "/skills/1/name");
        assert_eq!(refused(vec![listing("a\u{202E}b")]), "/skills/0/name");
        let nested = format!("{}{{}}{}", r#"{"not":"#.repeat(64), "}".repeat(64));
        assert_eq!(refused(vec![with(&nested)]), "/skills/0/input_schema");
        let elsewhere = r#"{"$ref":"https://example.com/schema"}"#;
        assert_eq!(refused(vec![with(elsewhere)]), "/skills/0/input_schema");
        let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(SCHEMA_MAX));
        assert_eq!(refused(vec![with(&long)]), "/skills/0/input_schema");
        let about = SkillListing { description: "x".repeat(ABOUT_MAX + 1), ..listing("a") };
        assert_eq!(refused(vec![about]), "/skills/0/about");
        let price = Credits::parse("0.001", 6).expect("an amount");
        assert_eq!(refused(vec![SkillListing { price, ..listing("a") }]), "/skills/0/price");
        let change = ProfileChange { name: Some(String::new()), skills: None };
        assert_eq!(change.check(2).expect_err("no name").field, "/name");
    }

    #[test]
    fn a_change_without_a_protocol_keeps_schemas_as_they_were_written() {
        let input = r#"{ "type":"object" }"#.to_owned();
        let skills = Some(vec![SkillListing { input: Some(input.clone()), ..listing("a") }]);
        let changed = ProfileChange { name: None, skills }.plainly(2).expect("it is fine");
        let skill = &changed.skills.expect("skills")[0];
        assert_eq!((&*skill.input, &*skill.output), (&*input, "{}"));
        assert_eq!((changed.name, changed.published), (None, None));
    }
}
