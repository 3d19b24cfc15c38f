//! The settings of this protocol: which processes and topics the market has, and how it treats
//! tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use rialto_config::{
    InvalidValue, Layers, NonZeroDuration, Setting, TomlValue, parse_inline_toml, quote_toml,
};
use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;

use super::{BROADCAST, BridgedTopics, ClaraState, PROCESS, TOPICS, Topics};
use crate::adapter::OpenProtocol;
use crate::adapter::settings::ProtocolSettings;
use crate::kit::ans104::ItemId;

/// Words that have another meaning in place of a topic.
const TOPICS_RESERVED: [&str; 2] = [BROADCAST, "none"];
/// The characters of 32 bytes in base64url.
const PROCESS_ID_LENGTH: usize = 43;
/// The key of the topics of other protocols' capabilities.
const BRIDGED: &str = "bridge.topics";

/// The protocol's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The process id of this market in the specification's message format; unset, the hub uses
    /// its own.
    pub process_id: Option<ItemId>,
    /// A second process id, which uses the message format of the deployed market.
    pub deployed_process_id: Option<ItemId>,
    /// The topics that agents may register for.
    pub topics: Topics,
    /// Whether a task without a suitable agent is queued instead of refused (R36).
    pub queue_unmatched: bool,
    /// Whether fees and rewards move credits (R80).
    pub payments: bool,
    /// How long a task may remain unfinished (R62).
    pub task_ttl: Millis,
    /// The topic of each capability of other protocols whose own name is not a topic.
    pub bridged: BridgedTopics,
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let ttl: NonZeroDuration = layers.resolve("clara.task_ttl", "7d");
        let settings = Self {
            process_id: layers.resolve("clara.process_id", ""),
            deployed_process_id: layers.resolve("clara.deployed_process_id", ""),
            topics: layers.resolve("clara.topics", ""),
            queue_unmatched: layers.resolve("clara.queue_unmatched", "false"),
            payments: layers.resolve("clara.payments", "true"),
            task_ttl: ttl.millis(),
            bridged: layers.resolve(BRIDGED, ""),
        };
        let known: Vec<&str> = settings.topics.iter().collect();
        // A capability mapped to an unknown topic would silently never match.
        if let Some((_, topic)) = settings.bridged.iter().find(|(_, topic)| !known.contains(topic))
        {
            layers.add_conflict(
                BRIDGED,
                format!("`{topic}` is not in clara.topics"),
                format!("topics among {}", known.join(", ")),
                "topics = { write_tweet = \"tweet\" }",
            );
        }
        settings
    }
}

impl ProtocolSettings for Settings {
    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(ClaraState::new(self.clone(), secret))
    }
}

impl Setting for ItemId {
    const EXAMPLE: &'static str = PROCESS;

    fn expected() -> String {
        "32 bytes in base64url, which is 43 characters".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if text.len() != PROCESS_ID_LENGTH || !text.bytes().all(allowed) {
            return Err(InvalidValue::new(text, "is not a process id"));
        }
        // 43 characters hold two bits more than 32 bytes, and those must be zero.
        let impossible = "has a last character that is not possible for 32 bytes";
        Self::read(text).ok_or_else(|| InvalidValue::new(text, impossible))
    }

    fn to_toml(&self) -> String {
        quote_toml(self)
    }
}

/// The specification's topics are always included.
impl Setting for Topics {
    const EXAMPLE: &'static str = "tweet,discord,telegram,nft,weather";

    fn expected() -> String {
        Vec::<Topic>::expected()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        Vec::from_text(text).map(with_extra)
    }

    fn from_toml(value: &TomlValue<'_>) -> Result<Self, InvalidValue> {
        Vec::from_toml(value).map(with_extra)
    }

    fn to_toml(&self) -> String {
        format!("[{}]", self.iter().map(quote_toml).collect::<Vec<_>>().join(", "))
    }
}

fn with_extra(named: Vec<Topic>) -> Topics {
    let mut extra: Vec<String> = Vec::new();
    for Topic(topic) in named {
        if !TOPICS.contains(&topic.as_str()) && !extra.contains(&topic) {
            extra.push(topic);
        }
    }
    Topics::with(extra)
}

/// In text the pairs are separated by commas, or written as inline TOML.
impl Setting for BridgedTopics {
    const EXAMPLE: &'static str = "write_tweet=tweet";

    fn expected() -> String {
        "a table from capabilities to topics".to_owned()
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
            pairs => pairs.split(',').map(pair).collect::<Result<_, _>>().map(bridged),
        }
    }

    fn from_toml(value: &TomlValue<'_>) -> Result<Self, InvalidValue> {
        let table = value.as_table().ok_or_else(|| InvalidValue::wrong_type(value))?;
        let pairs = table.iter().map(|(capability, topic)| {
            let Topic(topic) = Topic::from_toml(topic.get_ref())?;
            Ok((capability.get_ref().to_string(), topic))
        });
        pairs.collect::<Result<_, _>>().map(bridged)
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

/// One topic per capability, in the order of the names.
fn bridged(map: BTreeMap<String, String>) -> BridgedTopics {
    BridgedTopics::with(map)
}

/// The name of one topic.
struct Topic(String);

impl Setting for Topic {
    const EXAMPLE: &'static str = "tweet";

    fn expected() -> String {
        "a topic of letters, digits, dashes and underscores".to_owned()
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
    use rialto_config::Profile;

    use super::*;
    use crate::clara::{Dialect, Processes};

    fn processes(secret: u8, process_id: Option<ItemId>) -> Processes {
        let defaults = Settings::read(&mut Layers::new(Profile::Serve));
        let settings = Settings { process_id, ..defaults };
        ClaraState::new(settings, &HubSecret::from_bytes([secret; 32])).processes
    }

    #[test]
    fn every_hub_has_a_process_id_of_its_own_and_keeps_it() {
        assert_eq!(processes(1, None), processes(1, None));
        assert_ne!(processes(1, None), processes(2, None));
        assert_ne!(processes(1, None).spec.to_string(), PROCESS);
    }

    #[test]
    fn the_published_process_id_is_understood_and_moves_no_money() {
        let published = ItemId::read(PROCESS).expect("an id");
        let usual = processes(1, None);
        assert_eq!(usual.dialect(published), Some(Dialect::Spec));
        assert!(usual.may_move_money(usual.spec) && !usual.may_move_money(published));
        // Unless the operator assigned the published process to this hub.
        let chosen = processes(1, Some(published));
        assert!(chosen.may_move_money(published));
        assert_eq!(chosen.dialect(usual.spec), None);
    }

    #[test]
    fn a_process_id_is_32_bytes() {
        assert!(ItemId::from_text(PROCESS).is_ok());
        let (short, long) = (&PROCESS[1..], format!("{PROCESS}A"));
        for text in [short, &long, &PROCESS.replace('_', "/"), &PROCESS.replace("jLc", "jLd")] {
            assert!(ItemId::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn topics_are_added_to_the_four() {
        let all = ["tweet", "discord", "telegram", "nft", "weather"];
        for text in ["weather", "nft, weather", "[\"weather\", \"tweet\"]"] {
            let topics = Topics::from_text(text).expect("valid topics");
            assert_eq!(topics.iter().collect::<Vec<_>>(), all, "{text}");
        }
        assert!(Topics::from_text("broadcast").is_err());
    }

    #[test]
    fn a_map_reads_the_same_from_pairs_and_from_a_table() {
        let pairs = BridgedTopics::from_text("post=tweet, write.it = nft");
        assert_eq!(pairs, BridgedTopics::from_text("{ post = \"tweet\", \"write.it\" = \"nft\" }"));
        assert_eq!(pairs.as_ref().map(|map| map.topic_of("write.it")), Ok(Some("nft")));
        let shown = pairs.as_ref().map(BridgedTopics::to_toml).unwrap_or_default();
        assert_eq!(BridgedTopics::from_text(&shown), pairs);
        assert!(BridgedTopics::from_text("post").is_err());
        assert!(BridgedTopics::from_text("post=").is_err());
    }
}
