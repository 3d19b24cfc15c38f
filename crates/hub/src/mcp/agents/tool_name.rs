//! Names of tools, made from the names of skills and agents.
//!
//! The interfaces of models refuse most characters and long names, so names are cut, and a part of
//! their hash keeps cut names apart.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// The longest name at an endpoint of one agent.
const NAME_MAX: usize = 40;
/// The longest parts of a name at an endpoint of several agents.
const AGENT_MAX: usize = 20;
const SKILL_MAX: usize = 26;
const SEPARATOR: &str = "__";
/// Digits of the hash in a name that was cut.
const HASH_DIGITS: usize = 4;

/// Gives each skill of an endpoint a name of its own, in the order of the list.
#[derive(Debug)]
pub struct ToolNames {
    taken: HashSet<String>,
    /// Whether names begin with the agent's.
    names_agents: bool,
}

impl ToolNames {
    /// `reserved` names are the hub's own tools.
    pub fn new(reserved: &[&str], names_agents: bool) -> Self {
        let taken = reserved.iter().map(|name| (*name).to_owned()).collect();
        Self { taken, names_agents }
    }

    /// The name of a skill. `address` tells agents of one display name apart.
    pub fn assign(&mut self, agent: &str, address: &str, skill: &str) -> String {
        let with = |hashed: Option<&str>| {
            if !self.names_agents {
                return shorten(skill, NAME_MAX, hashed);
            }
            let (agent, skill) =
                (shorten(agent, AGENT_MAX, None), shorten(skill, SKILL_MAX, hashed));
            format!("{agent}{SEPARATOR}{skill}")
        };
        let whole = format!("{address}/{skill}");
        let numbered = (2..).map(|number| with(Some(&format!("{whole}/{number}"))));
        let mut names =
            [with(None), with(Some(skill)), with(Some(&whole))].into_iter().chain(numbered);
        // The numbers do not end, and what is taken does.
        let name = names.find(|name| !self.taken.contains(name)).unwrap_or(whole);
        self.taken.insert(name.clone());
        name
    }
}

/// At most `max` allowed characters. A name that is longer, or taken, ends with digits of a hash.
fn shorten(name: &str, max: usize, hashed: Option<&str>) -> String {
    let mut plain = to_plain(name);
    if plain.len() <= max && hashed.is_none() {
        return plain;
    }
    plain.truncate(max - HASH_DIGITS - 1);
    let digits = hex::encode(Sha256::digest(hashed.unwrap_or(name).as_bytes()));
    format!("{plain}_{}", &digits[..HASH_DIGITS])
}

/// The name with `_` for every character that models' interfaces refuse.
pub fn to_plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(skill: &str) -> String {
        ToolNames::new(&["get_job"], false).assign("a", "a@b", skill)
    }

    #[test]
    fn the_books_worked_names() {
        assert_eq!(one("clara.tweet"), "clara_tweet");
        assert_eq!(one("naïve plan v2"), "na_ve_plan_v2");
        assert_eq!(
            one("summarize_quarterly_revenue_reports_of_companies"),
            "summarize_quarterly_revenue_reports_419e"
        );
        let mut several = ToolNames::new(&["get_job"], true);
        assert_eq!(
            several.assign("Text-Analyst-3000", "t@registry", "test_multiple_content_types"),
            "Text-Analyst-3000__test_multiple_content_d8ac"
        );
    }

    #[test]
    fn a_name_is_cut_only_if_it_is_too_long() {
        let longest = "a".repeat(40);
        assert_eq!(one(&longest), longest);
        let cut = one(&"a".repeat(41));
        assert_eq!((cut.len(), &cut[..36]), (40, &*format!("{}_", "a".repeat(35))));
        let mut several = ToolNames::new(&[], true);
        let name = several.assign(&"b".repeat(21), "b@b", &"s".repeat(27));
        assert_eq!(name.len(), 48);
        assert!(name.starts_with(&format!("{}_", "b".repeat(15))), "{name}");
    }

    #[test]
    fn a_taken_name_gets_digits_of_its_hash_and_every_name_is_its_own() {
        let mut names = ToolNames::new(&["get_job"], false);
        assert_eq!(names.assign("a", "a@b", "a.b"), "a_b");
        let second = names.assign("a", "a@b", "a b");
        assert!(second.starts_with("a_b_") && second.len() == 8, "{second}");
        assert!(names.assign("a", "a@b", "get_job").starts_with("get_job_"));

        // Two agents of one name with the same skill.
        let mut names = ToolNames::new(&["get_job"], true);
        let all: HashSet<String> =
            (0..40).map(|at| names.assign("x", &format!("x-{at}@b"), "s")).collect();
        assert_eq!(all.len(), 40);
        assert!(all.iter().all(|name| name.starts_with("x__s")), "{all:?}");
    }

    proptest::proptest! {
        #[test]
        fn every_name_is_one_that_models_interfaces_take(
            skills in proptest::collection::vec((".{0,60}", ".{1,140}"), 0..40),
            names_agents: bool,
        ) {
            let mut names = ToolNames::new(&["get_job"], names_agents);
            let mut all = HashSet::from(["get_job".to_owned()]);
            for (agent, skill) in skills {
                let name = names.assign(&agent, "a@b", &skill);
                let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                assert!((1..=48).contains(&name.len()) && name.bytes().all(is_plain), "{name}");
                assert!(all.insert(name));
            }
        }
    }
}
