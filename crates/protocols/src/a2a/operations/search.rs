//! The hub's own answers: which agents match a text or a filter (R83, R84).

use rialto_core::money::Credits;
use rialto_core::reputation::Score;

use super::Call;
use super::send::hub_message;
use crate::a2a::directory::{self, AgentFilter, FOUND_MAX, Words};
use crate::a2a::wire::error::A2aError;
use crate::a2a::wire::message::{Message, Part, PartContent};
use crate::a2a::wire::reader::Reader;
use crate::kit::ijson::{self, JsonValue};

/// Agents that the sentence of an answer names.
const NAMED_MAX: usize = 3;

/// Whether a message asks for a list of agents by its data.
pub fn is_search(message: &Message) -> bool {
    find_object(message).is_some()
}

/// The data part with a filter.
fn find_object(message: &Message) -> Option<&str> {
    let data = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Data(json) => Some(json.as_str()),
        _ => None,
    });
    data.into_iter()
        .find(|json| ijson::read(json.as_bytes()).is_ok_and(|json| json.get("find").is_some()))
}

/// The message with the agents that match.
pub fn answer(call: &Call, message: &Message) -> Result<Message, A2aError> {
    let (filter, limit) = match find_object(message) {
        Some(json) => read_filter(json)?,
        None => {
            let words = Words::of(&text_of(message));
            (AgentFilter { words, ..AgentFilter::default() }, FOUND_MAX)
        }
    };
    let context = &call.context;
    let found = directory::search(context, &filter, limit);
    let now = context.engine.now();
    let (named, items): (Vec<String>, Vec<String>) = context.engine.with_world(|world| {
        let shown = found.agents.iter().map(|(agent, skill)| {
            let skill = skill.as_deref();
            let item = directory::write_listed(context, world, agent, skill, now);
            (directory::one_sentence(world, agent, skill), item)
        });
        shown.unzip()
    });
    let first = named[..named.len().min(NAMED_MAX)].join("; ");
    let sentence = match found.total {
        0 => "no agent matches; GET /a2a/agents lists all agents".to_owned(),
        1 => format!("1 agent: {first}"),
        many if many > NAMED_MAX => format!("{many} agents, among them: {first}"),
        many => format!("{many} agents: {first}"),
    };
    let data = directory::write_found(items, found.total);
    let parts = vec![Part::text(sentence), Part::data(data)];
    Ok(hub_message(call, message, parts))
}

fn text_of(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn read_filter(data: &str) -> Result<(AgentFilter, usize), A2aError> {
    let mut wrong = Vec::new();
    let json = ijson::read(data.as_bytes())
        .map_err(|bad| A2aError::invalid_field("message.parts", bad.to_string()))?;
    let Some(r) = json.get("find").and_then(|find| Reader::new(find, "find", &mut wrong)) else {
        return Err(A2aError::invalid_field("find", "must be an object"));
    };
    let number = |name: &str| {
        r.get(name).map(|value| match value.value() {
            JsonValue::String(text) => text.as_ref().to_owned(),
            JsonValue::Number(digits) => (*digits).to_owned(),
            _ => String::new(),
        })
    };
    let max_price = number("maxPrice").and_then(|text| {
        let price = Credits::parse(&text, 6).ok();
        if price.is_none() {
            r.reject("maxPrice", "must be an amount, such as \"0.25\"", &mut wrong);
        }
        price
    });
    let min_score = number("minScore").and_then(|text| {
        let score =
            Credits::parse(&text, 6).ok().map(|score| Score::from_millionths(score.micros()));
        if score.is_none() {
            r.reject("minScore", "must be a number from 0 to 100", &mut wrong);
        }
        score
    });
    let limit = r.integer("limit", &mut wrong).unwrap_or(20);
    let limit = usize::try_from(limit).ok().filter(|limit| (1..=FOUND_MAX).contains(limit));
    if limit.is_none() {
        r.reject("limit", format!("must be from 1 to {FOUND_MAX}"), &mut wrong);
    }
    let filter = AgentFilter {
        skill: r.text("skill", &mut wrong),
        words: Words::of(&r.text("text", &mut wrong).unwrap_or_default()),
        protocol: r.text("protocol", &mut wrong),
        max_price,
        min_score,
    };
    if wrong.is_empty() {
        Ok((filter, limit.unwrap_or(FOUND_MAX)))
    } else {
        Err(A2aError::invalid(wrong))
    }
}
