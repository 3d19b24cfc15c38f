//! Agents as a server lists them.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::response::from_json;
use crate::call::CallError;

/// One agent's public record.
#[derive(Clone, Debug)]
pub struct ListedAgent {
    /// Its address.
    pub agent_id: String,
    /// The culture on its card.
    pub culture: Option<String>,
    /// The languages on its card.
    pub languages: Vec<String>,
    /// Whether it is listening now, if the server says.
    pub online: Option<bool>,
    /// The protocol it uses, if the server supports several.
    pub protocol: Option<String>,
    /// Its endpoint, if the server shows it.
    pub endpoint: Option<String>,
    /// When it first registered.
    pub registered_at: Option<String>,
    raw: Box<RawValue>,
}

/// Which agents to list; an empty filter matches all.
#[derive(Clone, Debug, Default)]
pub struct AgentFilter {
    /// Only agents of this culture.
    pub culture: Option<String>,
    /// Only agents that understand this language.
    pub language: Option<String>,
    /// Only agents that are listening now, or only those that are not.
    pub online: Option<bool>,
    /// Only agents of this protocol.
    pub protocol: Option<String>,
    /// Only agents whose record contains this text.
    pub q: Option<String>,
}

#[derive(Deserialize)]
struct AgentBody {
    agent_id: String,
    agent_card: Option<AgentCardBody>,
    online: Option<bool>,
    protocol: Option<String>,
    endpoint: Option<String>,
    registered_at: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgentCardBody {
    user_culture: Option<String>,
    supported_languages: Vec<String>,
}

impl ListedAgent {
    /// Parses a record.
    pub(super) fn read(raw: Box<RawValue>) -> Result<Self, CallError> {
        let wire: AgentBody = from_json(raw.get().as_bytes())?;
        let card = wire.agent_card.unwrap_or_default();
        Ok(Self {
            agent_id: wire.agent_id,
            culture: card.user_culture,
            languages: card.supported_languages,
            online: wire.online,
            protocol: wire.protocol,
            endpoint: wire.endpoint,
            registered_at: wire.registered_at,
            raw,
        })
    }

    /// The whole record as received: JSON text.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl AgentFilter {
    /// The query parameters.
    pub(super) fn pairs(&self) -> Vec<(&'static str, &str)> {
        let online = self.online.map(|online| if online { "true" } else { "false" });
        let all = [
            ("culture", self.culture.as_deref()),
            ("language", self.language.as_deref()),
            ("online", online),
            ("protocol", self.protocol.as_deref()),
            ("q", self.q.as_deref()),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Result<ListedAgent, CallError> {
        ListedAgent::read(RawValue::from_string(text.to_owned()).expect("JSON"))
    }

    #[test]
    fn a_record_is_read_in_part_and_kept_whole() {
        let text = r#"{"agent_id":"a@b","agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en","fr"]},"online":true,"x":1.0}"#;
        let read = record(text).expect("a record");
        assert_eq!(read.agent_id, "a@b");
        assert_eq!(read.culture.as_deref(), Some("en"));
        assert_eq!((read.languages, read.online), (vec!["en".into(), "fr".into()], Some(true)));
        assert_eq!(read.raw.get(), text);
    }

    #[test]
    fn agents_without_card_are_agents_too() {
        for text in [r#"{"agent_id":"a@b"}"#, r#"{"agent_id":"a@b","agent_card":null}"#] {
            assert_eq!(record(text).expect("a record").culture, None);
        }
        assert!(record(r#"{"id":"a@b"}"#).is_err());
    }

    #[test]
    fn a_filter_says_only_what_it_was_told() {
        assert_eq!(AgentFilter::default().pairs(), []);
        let filter =
            AgentFilter { online: Some(true), q: Some("x y".into()), ..AgentFilter::default() };
        assert_eq!(filter.pairs(), [("online", "true"), ("q", "x y")]);
    }
}
