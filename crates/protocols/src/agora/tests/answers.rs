//! Tests of the hub's answers: the exact texts of the book, and that a client can read them.

use rialto_core::money::Credits;
use rialto_core::time::Millis;

use super::*;
use crate::agora::wire::responses::{
    self, Ack, AckAnswer, AgentEntry, CapabilityEntry, DirectoryPage, HubInfo, InboxEvent,
    InboxPage, OfferView, RequestView,
};
use crate::agora::wire::status::RequestState;

#[test]
fn a_directory_entry_is_the_books() {
    let text = r#"{"id":"did:key:z6Mk","name":"Searcher","capabilities":[{"resource":"agora:search:v1","price":0.5}],"status":"idle","protocol":"agora","held_by":null}"#;
    let entry = AgentEntry {
        id: "did:key:z6Mk".into(),
        name: "Searcher".into(),
        capabilities: vec![CapabilityEntry::new(
            "agora:search:v1".into(),
            Some(Credits::from_micros(500_000)),
            None,
        )],
        status: "idle".into(),
        protocol: "agora".into(),
        held_by: None,
        native_id: None,
    };
    assert_eq!(serde_json::to_string(&entry).expect("JSON"), text);
    let page = DirectoryPage { agents: vec![entry], next_cursor: None };
    let page = serde_json::to_string(&page).expect("JSON");
    assert_eq!(page, format!(r#"{{"agents":[{text}],"next_cursor":null}}"#));
    let read: DirectoryPage = serde_json::from_str(&page).expect("a page");
    assert_eq!(read.agents[0].capabilities[0].price(), Some(Credits::from_micros(500_000)));
    let bridged = text.replace("null}", r#""did:key:hub","native_id":"a-1"}"#);
    let read: AgentEntry = serde_json::from_str(&bridged).expect("an entry");
    assert_eq!(
        (read.held_by.as_deref(), read.native_id.as_deref()),
        (Some("did:key:hub"), Some("a-1"))
    );
    assert_eq!(serde_json::to_string(&read).expect("JSON"), bridged);
}

#[test]
fn a_thread_is_the_books() {
    let offered = OfferView::new(
        "o-1".into(),
        "did:key:p".into(),
        Credits::from_micros(5_250_000),
        Millis(900),
        NOW,
    );
    let thread = RequestView {
        request_id: "r-1".into(),
        state: RequestState::Negotiating,
        provider: None,
        offers: vec![offered],
        deadline: Some("2026-03-20T10:10:00.000Z".into()),
        requester: None,
        others: Vec::new(),
    };
    let text = serde_json::to_string(&thread).expect("JSON");
    let wanted = r#"{"request_id":"r-1","state":"NEGOTIATING","provider":null,"offers":[{"offer_id":"o-1","provider":"did:key:p","cost":5.25,"eta":900,"expires_at":"2026-03-20T10:00:00.000Z"}],"deadline":"2026-03-20T10:10:00.000Z"}"#;
    assert_eq!(text, wanted);
    let read: RequestView = serde_json::from_str(&text).expect("a thread");
    assert_eq!(read.offers[0].cost(), Some(Credits::from_micros(5_250_000)));
    for state in RequestState::ALL {
        assert_eq!(json!(state), state.as_str());
        assert_eq!(RequestState::read(state.as_str()), Some(state));
    }
}

#[test]
fn envelopes_in_an_inbox_are_not_touched() {
    let envelope = "{ \"b\":1.0 ,\"a\":\"\\u0041\"}";
    let item = responses::write_message(7, envelope, Some("{\"r\": 1}"));
    let text = responses::write_page(&[item, responses::write_message(9, envelope, None)], 9);
    let page: InboxPage<'_> = serde_json::from_str(&text).expect("a page");
    assert_eq!((page.messages.len(), page.next_after), (2, 9));
    let [first, second] = [page.messages[0], page.messages[1]];
    assert_eq!((first.position, first.envelope.get()), (7, envelope));
    assert_eq!(first.receipt.map(|r| r.get()), Some("{\"r\": 1}"));
    assert!(second.receipt.is_none());
    assert_eq!(serde_json::to_string(&page).expect("JSON"), text);
    assert_eq!(responses::write_page(&[], 0), r#"{"messages":[],"next_after":0}"#);
    let text = responses::write_event(envelope, Some("{}"));
    let event: InboxEvent<'_> = serde_json::from_str(&text).expect("an event");
    assert_eq!((event.envelope.get(), event.receipt.map(|r| r.get())), (envelope, Some("{}")));
    assert_eq!(serde_json::to_string(&event).expect("JSON"), text);
}

#[test]
fn an_ack_names_a_position() {
    let ack = |text: &str| Ack::read(&ijson::read(text.as_bytes()).expect(text));
    assert_eq!(ack(r#"{"up_to":42}"#), Ok(Ack { up_to: 42 }));
    for text in [r#"{}"#, r#"{"up_to":-1}"#, r#"{"up_to":1.5}"#, r#"{"up_to":"1"}"#] {
        assert_eq!(ack(text).expect_err(text).field.as_deref(), Some("/up_to"), "{text}");
    }
    assert_eq!(ack("[]").expect_err("a list").http_status, 400);
    let acked = serde_json::to_string(&AckAnswer { acked_to: 1, pending: 0 }).expect("JSON");
    assert_eq!(acked, r#"{"acked_to":1,"pending":0}"#);
}

#[test]
fn the_hub_says_who_it_is() {
    let about = HubInfo {
        protocol: "agora/1.0".into(),
        hub: "did:key:z6Mk".into(),
        window_ms: 60_000,
        endpoints: [("envelopes".to_owned(), "/agora/envelopes".to_owned())].into(),
    };
    let text = r#"{"protocol":"agora/1.0","hub":"did:key:z6Mk","window_ms":60000,"endpoints":{"envelopes":"/agora/envelopes"}}"#;
    assert_eq!(serde_json::to_string(&about).expect("JSON"), text);
    assert_eq!(serde_json::from_str::<HubInfo>(text).expect("an answer"), about);
}
