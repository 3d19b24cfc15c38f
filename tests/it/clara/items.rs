//! Signed items: what they prove, and everything that is refused (R63, R67, R70, R71, R73, R75).

use rialto_protocols::clara::PROCESS;
use rialto_protocols::kit::ans104::{ItemId, SignatureType, UnsignedItem};
use rialto_protocols::kit::ed25519::SecretKey;
use serde_json::Value;

use super::kit::{Hub, Wallet};
use crate::kit::{counted, snapshot};

const VECTORS: &str = include_str!("../../../crates/protocols/src/kit/ans104/fixtures/ans104.json");

/// Offsets in an Ed25519 item with target and anchor.
const OWNER: usize = 66;
const TARGET_FLAG: usize = 98;
const ANCHOR_FLAG: usize = 131;
const TAG_COUNT: usize = 164;
const TAG_BYTES: usize = 172;
const TAGS: usize = 180;

/// The published items of a list: name, bytes, and their printed properties.
pub fn vectors(list: &str) -> Vec<(String, Vec<u8>, Value)> {
    let all: Value = serde_json::from_str(VECTORS).expect("JSON");
    let items = all[list].as_array().expect("a list");
    let text = |item: &Value, name: &str| item[name].as_str().expect("text").to_owned();
    items.iter().map(|item| (text(item, "name"), bytes(&text(item, "hex")), item.clone())).collect()
}

pub fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn good() -> Vec<u8> {
    let tags = [
        ("Action", "Register-Agent-Profile"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "1"),
        ("RedStone-Agent-Id", "A"),
    ];
    Wallet::of(1).item(&tags, b"{}")
}

fn changed(at: usize, with: &[u8]) -> Vec<u8> {
    let mut item = good();
    item[at..at + with.len()].copy_from_slice(with);
    item
}

/// A valid signature over any content.
fn signed(target: Option<[u8; 32]>, tags: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
    let key = SecretKey::from_seed(&[1; 32]);
    let draft = UnsignedItem { target, anchor: None, tags, data };
    let owner = *key.public().as_bytes();
    let signature = key.sign(&draft.deep_hash(SignatureType::Ed25519, &owner));
    draft.with_signature(SignatureType::Ed25519, &owner, &signature)
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_items_are_told_why_and_change_nothing() {
    let hub = Hub::serve(&[]).await;
    let process = ItemId::read(PROCESS).map(|id| id.0);
    let long = "x".repeat(4_200);
    let count = good()[TAG_COUNT] + 1;
    let broken: Vec<(&str, Vec<u8>, u16)> = vec![
        ("nothing", Vec::new(), 400),
        ("79 bytes", good()[..79].to_vec(), 400),
        ("cut inside the owner", good()[..90].to_vec(), 400),
        ("cut inside the tags", good()[..TAGS + 30].to_vec(), 400),
        ("type 0", changed(0, &[0, 0]), 400),
        ("type 5", changed(0, &[5, 0]), 400),
        ("type 9", changed(0, &[9, 0]), 400),
        ("type 258", changed(0, &[2, 1]), 400),
        ("target flag 2", changed(TARGET_FLAG, &[2]), 400),
        ("anchor flag 255", changed(ANCHOR_FLAG, &[255]), 400),
        ("one tag more than there are", changed(TAG_COUNT, &[count]), 400),
        ("one tag less than there are", changed(TAG_COUNT, &[count - 2]), 400),
        ("no tags in so many bytes", changed(TAG_COUNT, &[0]), 400),
        ("2^40 bytes of tags", changed(TAG_BYTES, &[0, 0, 0, 0, 0, 1, 0, 0]), 400),
        ("2^64 - 1 tags", changed(TAG_COUNT, &[255; 8]), 400),
        ("a name longer than the tags", changed(TAGS + 1, &[0xfe, 0x7f]), 400),
        ("tags that do not end", changed(TAGS, &[0xff; 12]), 400),
        ("more than 4096 bytes of tags", signed(process, &[("Note", &long)], b""), 400),
        ("data that is not text", signed(process, &[("Action", "x")], b"\xff\xfe"), 400),
        ("a process", signed(process, &[("Type", "Process")], b""), 400),
        ("no target", signed(None, &[("Action", "x")], b""), 404),
        ("another target", signed(Some([0; 32]), &[("Action", "x")], b""), 404),
        ("another owner", changed(OWNER, &[7; 32]), 401),
        ("a weak key", changed(OWNER, &[0; 32]), 401),
        ("another signature", changed(2, &[7; 64]), 401),
        ("a signature of nothing", changed(2, &[0; 64]), 401),
        ("more than a mebibyte", signed(process, &[], &vec![b' '; 1 << 20]), 413),
    ];
    let before = snapshot(&hub.0).await;
    for (what, item, status) in &broken {
        let reply = hub.post_bytes(item.clone()).await;
        assert_eq!(reply.status, *status, "{what}: {}", reply.text);
        assert!(reply.str("/error").len() > 10, "{what}: {}", reply.text);
        assert!(reply.json().get("id").is_none());
    }
    assert_eq!(snapshot(&hub.0).await, before);
    assert!(hub.results("").await.edges.is_empty());
    hub.post_bytes(good()).await.expect(202);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changed_bit_anywhere_is_refused() {
    let hub = Hub::serve(&[]).await;
    let (item, before) = (good(), counted(&hub.0));
    for at in 0..item.len() {
        let mut bad = item.clone();
        bad[at] ^= 1 << (at % 8);
        let reply = hub.post_bytes(bad).await;
        assert!(
            matches!(reply.status, 400 | 401 | 404),
            "byte {at}: {} {}",
            reply.status,
            reply.text
        );
    }
    for longer in [[&item[..], b" "].concat(), item[..item.len() - 1].to_vec()] {
        hub.post_bytes(longer).await.expect(401);
    }
    assert_eq!(counted(&hub.0), before, "none of them was recorded");
    assert!(hub.board().await.is_empty());
    hub.post_bytes(item).await.expect(202);
    assert_eq!(hub.board().await.len(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_items_are_taken_under_their_printed_ids_and_the_invalid_are_not() {
    let hub = Hub::serve(&[]).await;
    for (name, item, printed) in vectors("valid") {
        let reply = hub.post_bytes(item).await;
        assert_eq!(reply.status, 202, "{name}: {}", reply.text);
        assert_eq!(reply.at("/id"), printed["id"], "{name}");
        hub.result(printed["id"].as_str().expect("an id")).await;
    }
    let agent = hub.listed("AO_Agent_1").await;
    assert_eq!(agent["profileAddress"], "mjP2droAo5EfDd9GbW0oVRhG_bRK1IF1xm3iiR2GwcY");
    let before = snapshot(&hub.0).await;
    for (name, item, _) in vectors("invalid") {
        let reply = hub.post_bytes(item).await;
        assert!(matches!(reply.status, 400 | 401 | 404), "{name}: {} {}", reply.status, reply.text);
    }
    assert_eq!(snapshot(&hub.0).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_signed_as_solana_wallets_do_is_taken() {
    let hub = Hub::serve(&[]).await;
    let key = SecretKey::from_seed(&[7; 32]);
    let owner = *key.public().as_bytes();
    let target = ItemId::read(PROCESS).map(|id| id.0);
    let draft =
        UnsignedItem { target, anchor: None, tags: &[("Action", "List-Agents")], data: b"" };
    let hex: String = draft
        .deep_hash(SignatureType::Solana, &owner)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let item = draft.with_signature(SignatureType::Solana, &owner, &key.sign(hex.as_bytes()));
    let id = hub.post_bytes(item).await.expect(202).str("/id");
    assert_eq!(hub.result(&id).await.messages[0].target, Wallet::of(7).address());
    // An Ed25519 item signs these bytes themselves, and only these.
    let plain = key.sign(&draft.deep_hash(SignatureType::Solana, &owner));
    hub.post_bytes(draft.with_signature(SignatureType::Solana, &owner, &plain)).await.expect(401);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tags_and_empty_values_are_allowed() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let mut tags = vec![("Action", "List-Agents")];
    tags.resize(300, ("Note", ""));
    assert_eq!(hub.say(&by, &tags, "").await.actions(), ["List-Agents"]);
    hub.0.stop().await;
}
