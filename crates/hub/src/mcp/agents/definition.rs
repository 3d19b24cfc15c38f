//! What the list says of a skill, as a tool.

use rialto_core::money::Credits;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::raw_json;

use super::offered_skill::OfferedSkill;
use super::schema::{InputForm, OutputForm};
use super::tool_name::to_plain;
use crate::mcp::tools::stranger_text::{clean, cut};
use crate::mcp::wire::result::json_string;

/// The longest description in the agent's own words.
const OWN_WORDS_MAX: usize = 300;
/// How much of a description is looked at for that.
const LOOKED_AT_MAX: usize = 4 * OWN_WORDS_MAX;
/// Decimals of amounts.
const DECIMALS: usize = 2;

/// A tool as its agent defines it.
#[derive(Clone, Debug)]
pub struct Definition {
    pub offered: OfferedSkill,
    /// What the agent says of the skill, cut and cleaned.
    pub own_words: String,
    pub input: InputForm,
    pub output: OutputForm,
}

impl Definition {
    /// Compiles schemas of strangers, so it may take a while.
    pub fn of(offered: OfferedSkill) -> Self {
        let skill = offered.skill();
        let own_words = clean(cut(&skill.description, LOOKED_AT_MAX));
        Self {
            own_words: cut(own_words.trim(), OWN_WORDS_MAX).to_owned(),
            input: InputForm::of(&skill.input),
            output: OutputForm::of(&skill.output),
            offered,
        }
    }

    /// The tool as it is listed: JSON text.
    pub fn write(&self, max_price: Credits) -> String {
        let title = format!("{} ({})", self.skill_title(), self.offered.label());
        let annotations = ObjectWriter::new()
            .flag("readOnlyHint", false)
            .flag("destructiveHint", !self.offered.is_free())
            .flag("idempotentHint", false)
            .flag("openWorldHint", true)
            .finish();
        ObjectWriter::new()
            .text("name", &self.offered.tool)
            .text("title", &title)
            .text("description", &self.description(max_price))
            .raw("inputSchema", &self.input.schema)
            .raw("annotations", &annotations)
            .maybe_raw("outputSchema", self.output.shown())
            .finish()
    }

    /// The hub's words, and then the agent's as a JSON string.
    fn description(&self, max_price: Credits) -> String {
        let cost = match self.offered.price() {
            Some(price) => format!("for {} credits a call", price.to_text(DECIMALS)),
            None => {
                let most = max_price.to_text(DECIMALS);
                format!("for a price that it names for each call, at most {most} credits")
            }
        };
        let hub = format!(
            "Hires the agent {} {cost} (score {}, {} jobs done).",
            self.offered.label(),
            raw_json::score(self.offered.score()).get(),
            self.offered.jobs_done(),
        );
        match &*self.own_words {
            "" => hub,
            own => format!("{hub} Its own words, not checked: {}", json_string(own)),
        }
    }

    /// The skill's name, if it cannot be read as a sentence; else the tool's form of it.
    fn skill_title(&self) -> String {
        const TITLE_MAX: usize = 64;
        let name = &self.offered.skill().name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
        match name.len() <= TITLE_MAX && name.chars().all(is_plain) {
            true => name.clone(),
            false => cut(&to_plain(name), TITLE_MAX).to_owned(),
        }
    }
}
