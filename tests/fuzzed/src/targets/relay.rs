//! Envelopes, alone and inside A2A messages, and everything else relay parses.

use rialto_protocols::kit::ijson::{self, Json};
use rialto_protocols::relay::wire::a2a;
use rialto_protocols::relay::wire::agent_card::check_language_tag;
use rialto_protocols::relay::wire::discovery::ServerDocument;
use rialto_protocols::relay::wire::envelope::{read_receive_body, write_receive_body};
use rialto_protocols::relay::wire::registration::{RegisterBody, RegisteredBy};
use rialto_protocols::relay::wire::reply::Reply;
use rialto_protocols::relay::wire::send::SendRequest;
use rialto_protocols::relay::wire::work::{WorkTerms, json_as_text};
use rialto_protocols::relay::{Address, AgentCard, Envelope, EnvelopeFormat};

use super::text;

const HOST: &str = "hub.example";

/// Checks all parsers of relay on the same body.
pub fn relay(bytes: &[u8]) {
    if let Some(reply) = Reply::read(bytes) {
        assert_eq!(Reply::read(reply.raw().as_bytes()), Some(reply.clone()));
    }
    let Ok(json) = ijson::read(bytes) else { return };
    if let Ok(envelope) = Envelope::read(&json, "") {
        assert_eq!(envelope.raw(), json.raw(), "an envelope must be forwarded unchanged");
        wrapped(&json);
    }
    if let Ok(send) = SendRequest::read(&json, HOST) {
        assert!(json.raw().contains(send.envelope.raw()));
        addressed(&send.receiver);
        addressed(&send.envelope.sender);
    }
    for by in [RegisteredBy::Agent, RegisteredBy::Operator] {
        if let Ok(register) = RegisterBody::read(&json, by, HOST) {
            addressed(&register.address);
            if let Some(card) = &register.card {
                check_language_tag(card.culture()).expect("a card's culture is valid");
            }
        }
    }
    let _ = (
        AgentCard::read(&json, ""),
        WorkTerms::read(&json),
        read_receive_body(&json),
        ServerDocument::read(&json),
    );
    let _ = json_as_text(json.raw());
}

/// Wrapping an envelope in A2A and unwrapping it gives the same envelope.
fn wrapped(envelope: &Json<'_>) {
    for format in [None, Some(EnvelopeFormat::A2a10), Some(EnvelopeFormat::A2a03)] {
        let mut out = Vec::new();
        a2a::write_envelope(&mut out, envelope.raw(), format, "m\"\n1");
        // Wrapping makes it deeper and larger; just below the limits it does not fit any more.
        let Ok(json) = ijson::read(&out) else { continue };
        let found = a2a::find_envelope(&json, "").expect("our own wrapping");
        assert_eq!(found.envelope.raw(), envelope.raw());
        let body = write_receive_body(envelope.raw(), format, "t1");
        if let Ok(json) = ijson::read(&body) {
            let read = read_receive_body(&json).expect("our own delivery");
            assert_eq!(read.raw(), envelope.raw());
        }
    }
}

/// Checks the parser of addresses.
pub fn relay_address(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(address) = Address::read(text, HOST) {
        addressed(&address);
        assert!(Address::read_full(text).is_ok() == text.contains('@'));
    }
    let _ = check_language_tag(text);
}

fn addressed(address: &Address<'_>) {
    let canonical = Address::read_full(address.canonical()).expect("a canonical address");
    assert_eq!(canonical.canonical(), address.canonical(), "the canonical form is not stable");
    let shown = Address::read_full(address.display()).expect("an address as it is shown");
    assert_eq!(shown.canonical(), address.canonical(), "the shown form means another address");
    let whole = format!("{}@{}", address.name(), address.host());
    assert_eq!(Address::read_full(&whole).expect("its two parts").canonical(), address.canonical());
    assert_eq!(canonical.skeleton(), address.skeleton(), "the canonical form has another skeleton");
}
