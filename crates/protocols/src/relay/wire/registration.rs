//! `POST /register` and `POST /agents`: registration of an agent, by itself or by the operator.

use url::Url;

use super::a2a::EnvelopeFormat;
use super::address::Address;
use super::agent_card::{AgentCard, CARD_MAX};
use super::error::{FieldErrors, InvalidBody, REGISTRATION_EXAMPLE};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::Json;

/// The maximum size of an endpoint in bytes.
const ENDPOINT_MAX: usize = 2_048;

/// Who registers the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisteredBy {
    /// The agent, at `/register`; it needs no endpoint.
    Agent,
    /// The operator, at `/agents`; such an agent has no key, so it needs an endpoint.
    Operator,
}

/// The body of a registration.
#[derive(Clone, Debug)]
pub struct RegisterBody<'a> {
    /// Its address.
    pub address: Address<'a>,
    /// Its card, if it has one.
    pub card: Option<AgentCard<'a>>,
    /// An absolute URL. Whether it may be called is decided elsewhere.
    pub endpoint: Option<&'a str>,
    /// How it wants its envelopes wrapped.
    pub format: Option<EnvelopeFormat>,
    /// Whether it wants a new key.
    pub rotate_key: bool,
}

impl<'a> RegisterBody<'a> {
    /// Reads a body; a name without host gets `default_host`.
    pub fn read(
        json: &'a Json<'_>,
        by: RegisteredBy,
        default_host: &str,
    ) -> Result<Self, InvalidBody> {
        let f = Fields::read(json, "")
            .map_err(|bad| InvalidBody::from(bad).with_example(REGISTRATION_EXAMPLE))?;
        let mut faults = FieldErrors::default();
        let read = (
            faults.collect(address(&f, default_host)),
            faults.collect(card(&f)),
            faults.collect(endpoint(&f, by)),
            faults.collect(format(&f)),
            faults.collect(f.flag("rotate_key")),
        );
        match read {
            (Some(address), Some(card), Some(endpoint), Some(format), Some(rotate_key)) => {
                let rotate_key = rotate_key.unwrap_or(false);
                Ok(Self { address, card, endpoint, format, rotate_key })
            }
            _ => Err(faults.into_invalid_body()),
        }
    }

    /// The first member that has more bytes than the hub stores, and its limit.
    pub fn oversized_member(&self) -> Option<(&'static str, usize)> {
        let card = self.card.as_ref().filter(|card| card.raw().len() > CARD_MAX);
        let endpoint = self.endpoint.filter(|url| url.len() > ENDPOINT_MAX);
        let card = card.map(|_| ("agent_card", CARD_MAX));
        card.or(endpoint.map(|_| ("endpoint", ENDPOINT_MAX)))
    }
}

fn address<'b>(f: &Fields<'_, 'b>, default_host: &str) -> Result<Address<'b>, Malformed> {
    let text = f.required_text("agent_id")?;
    let address = Address::read(text, default_host).map_err(|bad| f.malformed("agent_id", bad))?;
    if address.is_reserved_host() {
        let message = "uses a reserved host; choose another, for example chorus";
        return Err(f.malformed("agent_id", message));
    }
    Ok(address)
}

fn card<'b>(f: &Fields<'_, 'b>) -> Result<Option<AgentCard<'b>>, InvalidBody> {
    f.get("agent_card").map(|card| AgentCard::read(card, "/agent_card")).transpose()
}

fn endpoint<'b>(f: &Fields<'_, 'b>, by: RegisteredBy) -> Result<Option<&'b str>, Malformed> {
    const NAME: &str = "endpoint";
    let text = f.text(NAME)?;
    if by == RegisteredBy::Operator && text.is_none() {
        return Err(f.malformed(
            NAME,
            "is required: an agent without a key can only be reached at an endpoint",
        ));
    }
    if !text.is_none_or(is_http_url) {
        return Err(f.malformed(NAME, "must be a URL like https://agent.example/receive"));
    }
    Ok(text)
}

/// Absolute, with a host, and spelled so that every parser finds the same host in it.
fn is_http_url(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && c != '\\';
    let schemed = text.split_once("://").is_some_and(|(scheme, rest)| {
        ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
            && !rest.starts_with('/')
    });
    schemed && text.chars().all(plain) && Url::parse(text).is_ok_and(|url| url.has_host())
}

fn format(f: &Fields<'_, '_>) -> Result<Option<EnvelopeFormat>, Malformed> {
    const NAME: &str = "envelope_format";
    let wrong = || f.malformed(NAME, "must be \"a2a-1.0\" or \"a2a-0.3\", or be left out");
    f.text(NAME)?.map(|text| EnvelopeFormat::read(text).ok_or_else(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    fn body(text: &str) -> Json<'_> {
        ijson::read(text.as_bytes()).expect(text)
    }

    fn refused(text: &str, by: RegisteredBy) -> InvalidBody {
        RegisterBody::read(&body(text), by, "chorus").expect_err(text)
    }

    #[test]
    fn a_name_is_enough() {
        let json = body(r#"{"agent_id":"Alice"}"#);
        let read = RegisterBody::read(&json, RegisteredBy::Agent, "chorus").expect("a name");
        assert_eq!(read.address.canonical(), "alice@chorus");
        assert!(read.card.is_none() && read.endpoint.is_none() && read.format.is_none());
        assert!(!read.rotate_key);
    }

    #[test]
    fn everything_can_be_said_at_once() {
        let json = body(
            r#"{"agent_id":"alice@hub.example","endpoint":"http://[::1]:8080/x","envelope_format":"a2a-0.3","rotate_key":true,
            "agent_card":{"card_version":"0.3","user_culture":"en","supported_languages":["en"]},"api_key":"x"}"#,
        );
        let read = RegisterBody::read(&json, RegisteredBy::Operator, "chorus").expect("all of it");
        assert_eq!(read.endpoint, Some("http://[::1]:8080/x"));
        assert_eq!(read.format, Some(EnvelopeFormat::A2a03));
        assert_eq!(read.card.expect("a card").culture(), "en");
        assert!(read.rotate_key);
    }

    #[test]
    fn the_operator_must_say_where_an_agent_is() {
        assert_eq!(refused(r#"{"agent_id":"a"}"#, RegisteredBy::Operator).field(), "/endpoint");
    }

    #[test]
    fn an_endpoint_is_an_absolute_url() {
        for url in [
            "",
            "alice.example",
            "/receive",
            "ftp://alice.example",
            "https://",
            "https:alice",
            "https:///x",
            "https://a b/",
            "https://a\\\\b",
            "javascript:alert(1)",
            "http://:80/",
            "file:///etc/passwd",
            " https://alice.example",
        ] {
            let text = format!(r#"{{"agent_id":"a","endpoint":"{url}"}}"#);
            for by in [RegisteredBy::Agent, RegisteredBy::Operator] {
                assert_eq!(refused(&text, by).field(), "/endpoint", "{url}");
            }
        }
        assert!(is_http_url("HTTPS://alice.example/receive?x=1"));
    }

    #[test]
    fn every_bad_field_is_named() {
        let text = r#"{"agent_id":"a b","agent_card":{"chorus_version":"0.2"},"endpoint":7,"envelope_format":"xml","rotate_key":"yes"}"#;
        let bad = refused(text, RegisteredBy::Agent);
        let fields: Vec<_> = bad.errors().iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "/agent_id",
                "/agent_card/card_version",
                "/agent_card/user_culture",
                "/agent_card/supported_languages",
                "/endpoint",
                "/envelope_format",
                "/rotate_key"
            ]
        );
        assert!(
            bad.hint().expect("a hint").contains("card_version"),
            "a hint of any fault is kept"
        );
        assert_eq!(refused("{}", RegisteredBy::Agent).message(), "/agent_id: agent_id is required");
        assert_eq!(refused("[]", RegisteredBy::Agent).example(), REGISTRATION_EXAMPLE);
    }

    #[test]
    fn a_registration_cannot_use_the_hubs_own_host() {
        let bad = refused(r#"{"agent_id":"alice@Registry"}"#, RegisteredBy::Agent);
        assert!(bad.message().contains("a reserved host"));
    }
}
