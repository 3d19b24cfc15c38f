//! Wallets and the items they sign.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use rialto_protocols::clara::PROCESS;
use rialto_protocols::kit::ans104::{Item, ItemId, SignatureType};
use rialto_protocols::kit::base64url;
use serde_json::json;

use crate::clara::{Seed, Wallet, WalletError};

fn process() -> ItemId {
    ItemId::read(PROCESS).expect("an id")
}

/// Whether a wallet's items are valid and carry its own address.
fn signs(wallet: &Wallet, kind: SignatureType) {
    let tags = [("Action", "List-Agents"), ("", "é")];
    let one = wallet.sign(process(), &tags, "data").expect("signed");
    let two = wallet.sign(process(), &tags, "data").expect("signed");
    assert_ne!(one.id, two.id);
    let item = Item::read(one.as_bytes()).expect("an item");
    assert_eq!(item.verify(), Ok(()));
    assert_eq!((item.signature_type, item.signer_address().as_str()), (kind, wallet.address()));
    assert_eq!(item.id().to_string(), one.id);
    assert_eq!(item.target, Some(process().0.as_slice()));
    assert_eq!(
        (item.tag("Action"), item.tag(""), item.data),
        (Some("List-Agents"), Some("é"), b"data".as_slice())
    );
}

#[test]
fn a_seed_is_a_wallet_and_a_key_file_is_too() {
    let seed = Seed::from_bytes([7; 32]);
    let wallet = Wallet::new(&seed);
    signs(&wallet, SignatureType::Ed25519);
    let dir = std::env::temp_dir().join(format!("rialto-wallet-{}", std::process::id()));
    std::fs::write(&dir, seed.reveal()).expect("a file");
    let read = Wallet::open(&dir);
    std::fs::remove_file(&dir).expect("it goes");
    assert_eq!(read.expect("a wallet").address(), wallet.address());
    assert_eq!(format!("{wallet:?}"), format!("Wallet({})", wallet.address()));
    assert!(matches!(Wallet::open(&dir), Err(WalletError::Unreadable(_))));
}

/// The numbers of a private key, in the order of its DER.
fn numbers(key: &KeyPair) -> Vec<Vec<u8>> {
    let der = AsDer::<Pkcs8V1Der<'_>>::as_der(key).expect("DER");
    let der = der.as_ref();
    // Inside PKCS #8 the key begins with version 0 and the header of the modulus.
    let start = [0x02, 0x01, 0x00, 0x02, 0x82, 0x02, 0x01];
    let start = der.windows(7).position(|part| part == start).expect("a key") + 3;
    let (mut rest, mut found) = (&der[start..], Vec::new());
    while let Some((0x02, tail)) = rest.split_first() {
        let (length, head) = match tail[0] {
            0x82 => (usize::from(tail[1]) << 8 | usize::from(tail[2]), 3),
            0x81 => (usize::from(tail[1]), 2),
            short => (usize::from(short), 1),
        };
        let bytes = &tail[head..head + length];
        found.push(bytes.strip_prefix(&[0]).unwrap_or(bytes).to_vec());
        rest = &tail[head + length..];
    }
    found
}

#[test]
fn an_arweave_wallet_is_read_from_its_jwk() {
    let key = KeyPair::generate(KeySize::Rsa4096).expect("a key");
    let numbers = numbers(&key);
    assert_eq!(numbers.len(), 8);
    let names = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];
    let mut jwk = json!({"kty": "RSA"});
    for (name, number) in names.iter().zip(&numbers) {
        jwk[*name] = base64url::encode(number).into();
    }
    let wallet = Wallet::read(&jwk.to_string()).expect("a wallet");
    signs(&wallet, SignatureType::Arweave);

    for name in names {
        let mut broken = jwk.clone();
        broken[name] = "".into();
        let why = Wallet::read(&broken.to_string()).expect_err(name);
        assert!(matches!(why, WalletError::BadMember(named) if named == name), "{why:?}");
    }
    let mut other = jwk.clone();
    other["d"] = base64url::encode(&[1; 512]).into();
    assert!(matches!(Wallet::read(&other.to_string()), Err(WalletError::BadKey)));
    other["e"] = base64url::encode(&[3]).into();
    assert!(matches!(Wallet::read(&other.to_string()), Err(WalletError::BadKey)));
    for unknown in ["", "{}", r#"{"kty":"OKP"}"#, "ed25519-seed:AAAA"] {
        assert!(matches!(Wallet::read(unknown), Err(WalletError::UnknownFormat)), "{unknown}");
    }
}
