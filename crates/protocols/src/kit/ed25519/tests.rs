//! Tests: spellings of keys, refused keys, and invalid signatures.

use num_bigint::BigUint;
use proptest::prelude::*;
use sha2::{Digest as _, Sha512};

use super::*;

/// The first vector of RFC 8032 section 7.1: seed, key, and the signature of the empty message.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const KEY: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const SIGNATURE: &str = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";

/// The order of the base point, least byte first.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// Every encoding of a point of small order: the canonical eight, and those with a redundant sign
/// bit, an unreduced y, or both.
const SMALL_ORDER: [&str; 14] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

fn hex(text: &str) -> [u8; 32] {
    from_hex(text).expect("hex digits")
}

fn signature() -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&hex(&SIGNATURE[..64]));
    bytes[32..].copy_from_slice(&hex(&SIGNATURE[64..]));
    bytes
}

fn verifier() -> Verifier {
    Verifier::new(PublicKey(hex(KEY))).expect("a good key")
}

#[test]
fn the_rfcs_first_vector_holds() {
    let secret = SecretKey::from_seed(&hex(SEED));
    assert_eq!(secret.public(), PublicKey(hex(KEY)));
    assert_eq!(secret.sign(b""), signature());
    assert_eq!(verifier().verify(b"", &signature()), Ok(()));
    assert_eq!(verifier().verify(b"x", &signature()), Err(BadSignature));
    assert_eq!(verifier().key(), secret.public());
}

#[test]
fn a_secret_is_not_printed() {
    let secret = SecretKey::from_seed(&hex(SEED));
    let shown = format!("{secret:?}");
    assert_eq!(shown, format!("SecretKey(of {})", secret.public().did()));
}

#[test]
fn three_spellings_are_one_identity() {
    let key = PublicKey::parse("OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y").expect("a key");
    let did = "did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s";
    let hex = "39578cf7396eeb01117e5ccbcdbbb61d4306d2ca3d3155ab72dd5250e4f25bd6";
    for text in [did, hex, &hex.to_uppercase()] {
        assert_eq!(PublicKey::parse(text), Ok(key), "{text}");
    }
    assert_eq!((key.did().as_str(), key.to_string().as_str()), (did, did));
}

#[test]
fn the_first_and_the_last_key_are_spelled_like_all_others() {
    for bytes in [[0; 32], [0xff; 32]] {
        let mut coded = vec![0xed, 0x01];
        coded.extend_from_slice(&bytes);
        let did = format!("did:key:z{}", bs58::encode(coded).into_string());
        assert_eq!(PublicKey(bytes).did(), did);
        assert_eq!((PublicKey::parse(&did), did.len()), (Ok(PublicKey(bytes)), 56));
    }
}

#[test]
fn other_texts_are_no_keys() {
    let did = "did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s";
    let bare = did.strip_prefix("did:key:z").expect("its prefix");
    let long = format!("did:key:z{}", "2".repeat(100_000));
    let mut short = Vec::from([0xed, 0x01]);
    short.extend_from_slice(&[7; 31]);
    let mut one_too_long = Vec::from([0xed, 0x01]);
    one_too_long.extend_from_slice(&[7; 33]);
    let encoded = |bytes: &[u8]| format!("did:key:z{}", bs58::encode(bytes).into_string());
    for text in [
        "",
        "alice",
        "did:key:",
        "did:key:z",
        "did:web:example.com",
        "did:key:z6MkhaXgBZDvotDkL5257...",
        &format!("did:key:z1{bare}"),
        &format!("did:key:{bare}"),
        &format!("did:key:Z{bare}"),
        &format!("did:key:u{}", base64url::encode(&[7; 34])),
        &format!("DID:KEY:z{bare}"),
        &format!("{did}#z{bare}"),
        &format!("{did} "),
        &format!(" {did}"),
        &did[..did.len() - 1],
        &did.replace('6', "0"),
        &long,
        &encoded(&short),
        &encoded(&one_too_long),
        &encoded(&[7; 34]),
        "OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y=",
        "OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9",
        "OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Z",
        "OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9+",
        "39578cf7396eeb01117e5ccbcdbbb61d4306d2ca3d3155ab72dd5250e4f25bdg",
        "39578cf7396eeb01117e5ccbcdbbb61d4306d2ca3d3155ab72dd5250e4f25bé",
        "0x578cf7396eeb01117e5ccbcdbbb61d4306d2ca3d3155ab72dd5250e4f25bd6",
    ] {
        assert_eq!(PublicKey::parse(text), Err(BadKey::Malformed), "{text}");
    }
}

#[test]
fn keys_of_other_algorithms_are_told_apart_from_nonsense() {
    for (text, what) in [
        ("did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc", "X25519"),
        ("did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme", "secp256k1"),
        ("did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169", "P-256"),
    ] {
        assert_eq!(PublicKey::parse(text), Err(BadKey::OtherType), "{what}");
    }
    let mut rsa = Vec::from([0x85, 0x24, 0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01, 0x00]);
    rsa.resize(272, 0xc3);
    let rsa = format!("did:key:z{}", bs58::encode(rsa).into_string());
    assert_eq!(PublicKey::parse(&rsa), Err(BadKey::OtherType), "{rsa}");
    assert_eq!(PublicKey::parse(&rsa.replace('4', "0")), Err(BadKey::Malformed));
}

#[test]
fn weak_and_twice_written_keys_are_refused() {
    for text in SMALL_ORDER {
        assert_eq!(Verifier::new(PublicKey(hex(text))), Err(BadKey::Weak), "{text}");
    }
    for low in 0xed..=0xff {
        for high in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, high);
            assert_eq!(Verifier::new(PublicKey(bytes)), Err(BadKey::Weak), "{low:x} {high:x}");
        }
    }
    let mut no_point = [0; 32];
    no_point[0] = 2;
    assert_eq!(Verifier::new(PublicKey(no_point)), Err(BadKey::Weak));
}

#[test]
fn a_signature_cannot_be_written_in_a_second_way() {
    let mut unreduced = signature();
    let mut carry = 0;
    for (byte, add) in unreduced[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(carry, 0);
    assert_eq!(verifier().verify(b"", &unreduced), Err(BadSignature), "S + L");
    for text in SMALL_ORDER {
        let mut small = [0; 64];
        small[..32].copy_from_slice(&hex(text));
        assert_eq!(verifier().verify(b"", &small), Err(BadSignature), "R {text}");
    }
    for bit in 0..512 {
        let mut flipped = signature();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verifier().verify(b"", &flipped), Err(BadSignature), "bit {bit}");
    }
}

/// A number from its bytes, least byte first, as Ed25519 writes them.
fn number(bytes: &[u8]) -> BigUint {
    BigUint::from_bytes_le(bytes)
}

/// The signature of `message` with the neutral point as R and S = k·a, which only the owner of the
/// key can make. The curve's equation holds for it: S·B − k·A is the neutral point.
fn with_neutral_point(seed: &[u8; 32], message: &[u8]) -> [u8; 64] {
    let key = SecretKey::from_seed(seed).public();
    let mut secret: [u8; 32] = Sha512::digest(seed)[..32].try_into().expect("32 bytes");
    secret[0] &= 0xf8;
    secret[31] = secret[31] & 0x3f | 0x40;
    let r = hex(SMALL_ORDER[0]);
    let hash = Sha512::new_with_prefix(r).chain_update(key.as_bytes()).chain_update(message);
    let s = number(&hash.finalize()) * number(&secret) % number(&ORDER);
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    let s = s.to_bytes_le();
    signature[32..32 + s.len()].copy_from_slice(&s);
    signature
}

#[test]
fn a_point_of_small_order_is_known_by_its_bytes() {
    // The last six are not canonical, so no expected point is ever written like them.
    for text in &SMALL_ORDER[..8] {
        assert!(is_small_order(&hex(text)), "{text}");
    }
    assert!(!is_small_order(&hex(KEY)) && !is_small_order(&hex(&SIGNATURE[..64])));
}

proptest! {
    #[test]
    fn a_signature_with_r_of_small_order_is_refused_although_the_equation_holds(
        seed in any::<[u8; 32]>(),
        message in any::<Vec<u8>>(),
    ) {
        let bytes = with_neutral_point(&seed, &message);
        let verifier = Verifier::new(SecretKey::from_seed(&seed).public()).expect("a good key");
        let signature = Signature::from_bytes(&bytes);
        prop_assert!(verifier.0.verify(&message, &signature).is_ok());
        prop_assert!(verifier.0.verify_strict(&message, &signature).is_err());
        prop_assert_eq!(verifier.verify(&message, &bytes), Err(BadSignature));
    }

    #[test]
    fn a_changed_signature_is_judged_as_the_library_judges_it_strictly(
        seed in any::<[u8; 32]>(),
        message in any::<Vec<u8>>(),
        bit in 0..=512_usize,
    ) {
        let secret = SecretKey::from_seed(&seed);
        let verifier = Verifier::new(secret.public()).expect("a key that was made");
        let mut bytes = secret.sign(&message);
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        let strict = verifier.0.verify_strict(&message, &Signature::from_bytes(&bytes));
        prop_assert_eq!(verifier.verify(&message, &bytes).is_ok(), strict.is_ok());
    }

    #[test]
    fn digits_are_read_as_the_general_decoder_reads_them(
        digits in "[1-9A-HJ-NP-Za-km-z]{47}|6Mk[1-9A-HJ-NP-Za-km-z]{44}|6Mk[1-9A-HJ-NP-Za-km-z]{20}[0OIl+é]\\PC{23}",
    ) {
        let read = PublicKey::parse(&format!("did:key:z{digits}"));
        let decoded = bs58::decode(&digits).into_vec().unwrap_or_default();
        let key = decoded.strip_prefix(&[0xed, 0x01]).and_then(|key| key.try_into().ok());
        prop_assert_eq!(read.ok(), key.map(PublicKey));
    }

    #[test]
    fn a_key_read_from_any_spelling_has_the_same_did(bytes in any::<[u8; 32]>()) {
        let key = PublicKey(bytes);
        for text in [key.did(), base64url::encode(&bytes)] {
            prop_assert_eq!(key.did_from(&text), key.did());
        }
    }

    #[test]
    fn every_key_has_one_did(bytes in any::<[u8; 32]>()) {
        let key = PublicKey(bytes);
        prop_assert_eq!(PublicKey::parse(&key.did()), Ok(key));
        let mut coded = vec![0xed, 0x01];
        coded.extend_from_slice(&bytes);
        prop_assert_eq!(key.did(), format!("did:key:z{}", bs58::encode(coded).into_string()));
        prop_assert!(key.did().starts_with("did:key:z6Mk"));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,70}|did:key:z[1-9A-HJ-NP-Za-km-z]{0,300}") {
        if let Ok(key) = PublicKey::parse(&text) {
            let _ = Verifier::new(key);
        }
    }

    #[test]
    fn what_is_signed_verifies(seed in any::<[u8; 32]>(), message in any::<Vec<u8>>()) {
        let secret = SecretKey::from_seed(&seed);
        let verifier = Verifier::new(secret.public()).expect("a key that was made");
        prop_assert_eq!(verifier.verify(&message, &secret.sign(&message)), Ok(()));
    }

    #[test]
    fn the_library_that_signs_and_the_one_that_checks_make_the_same_keys_and_signatures(
        seed in any::<[u8; 32]>(),
        message in any::<Vec<u8>>(),
    ) {
        use ed25519_dalek::Signer as _;
        let (ours, theirs) = (SecretKey::from_seed(&seed), ed25519_dalek::SigningKey::from_bytes(&seed));
        prop_assert_eq!(ours.public(), PublicKey(theirs.verifying_key().to_bytes()));
        prop_assert_eq!(ours.sign(&message), theirs.sign(&message).to_bytes());
    }
}
