//! Clara's topics, and which capabilities of other protocols map to them.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::value::{InvalidValue, Setting, parse_inline_toml, quote_toml};

/// The topics of clara's specification (clara R3); they cannot be removed.
const TOPICS_BASE: [&str; 4] = ["tweet", "discord", "telegram", "nft"];
/// Reserved words that have another meaning in place of a topic.
const TOPICS_RESERVED: [&str; 2] = ["broadcast", "none"];

/// The topics agents may register for: clara's own four, and the configured ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics(Vec<String>);

/// The topic of each capability whose own name is not a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicMap(BTreeMap<String, String>);

impl Topics {
    /// Whether `topic` is known.
    pub fn contains(&self, topic: &str) -> bool {
        self.iter().any(|known| known == topic)
    }

    /// All topics, clara's four first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    fn with_extra(extra: Vec<Topic>) -> Self {
        let mut topics = Self(TOPICS_BASE.map(str::to_owned).into());
        for Topic(topic) in extra {
            if !topics.contains(&topic) {
                topics.0.push(topic);
            }
        }
        topics
    }
}

impl TopicMap {
    /// The topic configured for `capability`.
    pub fn get(&self, capability: &str) -> Option<&str> {
        self.0.get(capability).map(String::as_str)
    }

    /// Every capability with its topic, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(capability, topic)| (capability.as_str(), topic.as_str()))
    }
}

impl Setting for Topics {
    fn expected() -> String {
        Vec::<Topic>::expected()
    }

    fn example() -> &'static str {
        "tweet,discord,telegram,nft,weather"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        Vec::from_text(text).map(Self::with_extra)
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        Vec::from_toml(value).map(Self::with_extra)
    }

    fn to_toml(&self) -> String {
        format!("[{}]", self.iter().map(quote_toml).collect::<Vec<_>>().join(", "))
    }
}

/// In text the pairs are separated by commas, or written as inline TOML.
impl Setting for TopicMap {
    fn expected() -> String {
        "a table from capabilities to topics".to_owned()
    }

    fn example() -> &'static str {
        "write_tweet=tweet"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let pair = |pair: &str| {
            let (capability, topic) = pair
                .split_once('=')
                .ok_or_else(|| InvalidValue::new(pair, "is not of the form capability=topic"))?;
            let Topic(topic) = Topic::from_text(topic.trim())?;
            Ok((capability.trim().to_owned(), topic))
        };
        match text.trim() {
            "" => Ok(Self::default()),
            table if table.starts_with('{') => parse_inline_toml(table),
            pairs => pairs.split(',').map(pair).collect::<Result<_, _>>().map(Self),
        }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        let table = value.as_table().ok_or_else(|| InvalidValue::wrong_type(value))?;
        let pairs = table.iter().map(|(capability, topic)| {
            let Topic(topic) = Topic::from_toml(topic.get_ref())?;
            Ok((capability.get_ref().to_string(), topic))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn to_toml(&self) -> String {
        let pair =
            |(capability, topic)| format!("{} = {}", quote_toml(capability), quote_toml(topic));
        match self.iter().map(pair).collect::<Vec<_>>().join(", ") {
            pairs if pairs.is_empty() => "{}".to_owned(),
            pairs => format!("{{ {pairs} }}"),
        }
    }
}

/// The name of one topic.
struct Topic(String);

impl Setting for Topic {
    fn expected() -> String {
        "a topic of letters, digits, dashes and underscores".to_owned()
    }

    fn example() -> &'static str {
        "tweet"
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if text.is_empty() || !text.bytes().all(allowed) {
            return Err(InvalidValue::new(text, "is not a valid topic name"));
        }
        if TOPICS_RESERVED.contains(&text) {
            return Err(InvalidValue::new(text, "is reserved"));
        }
        Ok(Self(text.to_owned()))
    }

    fn to_toml(&self) -> String {
        quote_toml(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_added_to_the_four() {
        let all = ["tweet", "discord", "telegram", "nft", "weather"];
        for text in ["weather", "nft, weather", "[\"weather\", \"tweet\"]"] {
            let topics = Topics::from_text(text);
            assert_eq!(topics.map(|t| t.0), Ok(all.map(str::to_owned).to_vec()), "{text}");
        }
        assert!(Topics::from_text("broadcast").is_err());
    }

    #[test]
    fn a_map_reads_the_same_from_pairs_and_from_a_table() {
        let pairs = TopicMap::from_text("post=tweet, write.it = nft");
        assert_eq!(pairs, TopicMap::from_text("{ post = \"tweet\", \"write.it\" = \"nft\" }"));
        assert_eq!(pairs.as_ref().map(|map| map.get("write.it")), Ok(Some("nft")));
        let shown = pairs.as_ref().map(TopicMap::to_toml).unwrap_or_default();
        assert_eq!(TopicMap::from_text(&shown), pairs);
        assert!(TopicMap::from_text("post").is_err());
        assert!(TopicMap::from_text("post=").is_err());
    }
}
