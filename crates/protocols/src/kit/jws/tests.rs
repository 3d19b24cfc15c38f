use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaEncoding,
};
use proptest::prelude::*;

use super::*;

/// The payload of RFC 7515, appendix A.
const PAYLOAD: &[u8] =
    b"{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";

/// RFC 7515, appendix A.2.
const RS256: [&str; 3] = [
    "eyJhbGciOiJSUzI1NiJ9",
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5\
     jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1\
     L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYE\
     UipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
    r#"{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}"#,
];
/// RFC 7515, appendix A.3.
const ES256: [&str; 3] = [
    "eyJhbGciOiJFUzI1NiJ9",
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
];
/// RFC 8037, appendix A, with its own payload.
const EDDSA: [&str; 3] = [
    "eyJhbGciOiJFZERTQSJ9",
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
    r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
];
const EDDSA_PAYLOAD: &[u8] = b"Example of Ed25519 signing";
const EDDSA_SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";

fn vectors() -> [([&'static str; 3], &'static [u8]); 3] {
    [(RS256, PAYLOAD), (ES256, PAYLOAD), (EDDSA, EDDSA_PAYLOAD)]
}

fn parse(json: &str) -> Result<Jwk, JwsError> {
    Jwk::parse(&ijson::read(json.as_bytes()).expect("test keys are JSON"))
}

fn key(json: &str) -> Jwk {
    parse(json).expect("a good key")
}

fn header(json: &str) -> Result<ProtectedHeader, JwsError> {
    ProtectedHeader::parse(&base64url::encode(json.as_bytes()))
}

fn seed() -> [u8; 32] {
    base64url::decode_array(EDDSA_SEED).expect("32 bytes")
}

#[test]
fn the_signatures_of_the_standards_are_valid() {
    for ([protected, signature, jwk], payload) in vectors() {
        assert_eq!(verify(protected, payload, signature, &key(jwk)), Ok(()), "{protected}");
    }
}

#[test]
fn a_changed_header_payload_or_signature_is_refused() {
    for ([protected, signature, jwk], payload) in vectors() {
        let key = key(jwk);
        let bad = Err(JwsError::BadSignature);
        assert_eq!(verify(protected, &payload[1..], signature, &key), bad);
        assert_eq!(verify(protected, b"", signature, &key), bad);
        let alg = ProtectedHeader::parse(protected).expect("a good header").alg.as_str();
        let other = base64url::encode(format!(r#"{{"alg":"{alg}","typ":"JOSE"}}"#).as_bytes());
        assert_eq!(verify(&other, payload, signature, &key), bad);
        let bytes = base64url::decode(signature).expect("base64url");
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(verify(protected, payload, &base64url::encode(&changed), &key), bad);
        }
        let (shorter, zeros) = (&bytes[1..], vec![0; bytes.len()]);
        for other in [shorter, &zeros, &[]] {
            assert_eq!(verify(protected, payload, &base64url::encode(other), &key), bad);
        }
        for text in [format!("{signature}="), format!("{signature}=="), "A".repeat(10_000)] {
            assert_eq!(verify(protected, payload, &text, &key), bad);
        }
    }
}

#[test]
fn an_alg_must_fit_the_type_of_the_key() {
    for ([protected, signature, _], payload) in vectors() {
        for ([other, _, jwk], _) in vectors() {
            if other != protected {
                let result = verify(protected, payload, signature, &key(jwk));
                assert_eq!(result, Err(JwsError::WrongKeyType));
            }
        }
    }
    let only = RS256[2].replace("\"kty\"", "\"alg\":\"PS256\",\"kty\"");
    let result = verify(RS256[0], PAYLOAD, RS256[1], &key(&only));
    assert_eq!(result, Err(JwsError::WrongKeyType), "the key is for another algorithm");
    let ps256 = base64url::encode(br#"{"alg":"PS256"}"#);
    let result = verify(&ps256, PAYLOAD, RS256[1], &key(RS256[2]));
    assert_eq!(result, Err(JwsError::BadSignature), "one padding is not the other");
}

#[test]
fn fresh_es384_keys_verify_what_they_sign() {
    let pair = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a new key");
    let (x, y) = pair.public_key().as_ref()[1..].split_at(48);
    let (x, y) = (base64url::encode(x), base64url::encode(y));
    let jwk = key(&format!(r#"{{"kty":"EC","crv":"P-384","x":"{x}","y":"{y}"}}"#));
    let protected = base64url::encode(br#"{"alg":"ES384"}"#);
    let input = signing_input(&protected, PAYLOAD);
    let signature = pair.sign(&SystemRandom::new(), input.as_bytes()).expect("a signature");
    let signature = base64url::encode(signature.as_ref());
    assert_eq!(verify(&protected, PAYLOAD, &signature, &jwk), Ok(()));
    assert_eq!(verify(&protected, b"x", &signature, &jwk), Err(JwsError::BadSignature));
}

#[test]
fn one_rsa_key_verifies_both_paddings() {
    let pair = rsa::KeyPair::generate(KeySize::Rsa2048).expect("a new key");
    // The public key ends with a zero and the modulus, then the five bytes of the exponent 65537.
    let public = pair.public_key().as_ref();
    let n = base64url::encode(&public[public.len() - 5 - 256..public.len() - 5]);
    let e = "AQAB";
    let jwk = key(&format!(r#"{{"kty":"RSA","n":"{n}","e":"{e}"}}"#));
    let paddings: [(_, &'static dyn RsaEncoding); 2] =
        [("RS256", &RSA_PKCS1_SHA256), ("PS256", &RSA_PSS_SHA256)];
    for (alg, padding) in paddings {
        let protected = base64url::encode(format!(r#"{{"alg":"{alg}"}}"#).as_bytes());
        let input = signing_input(&protected, PAYLOAD);
        let mut signature = vec![0; pair.public_modulus_len()];
        let signed = pair.sign(padding, &SystemRandom::new(), input.as_bytes(), &mut signature);
        signed.expect("a signature");
        let signature = base64url::encode(&signature);
        assert_eq!(verify(&protected, PAYLOAD, &signature, &jwk), Ok(()), "{alg}");
        assert_eq!(verify(&protected, b"x", &signature, &jwk), Err(JwsError::BadSignature));
    }
}

#[test]
fn the_members_of_a_header_are_shown() {
    let given =
        r#"{"alg":"ES256","kid":"k 1","jku":"https://a.example/keys","typ":"JOSE","x":[1]}"#;
    let expected = ProtectedHeader {
        alg: Algorithm::Es256,
        kid: Some("k 1".to_owned()),
        jku: Some("https://a.example/keys".to_owned()),
        typ: Some("JOSE".to_owned()),
    };
    assert_eq!(header(given), Ok(expected));
}

#[test]
fn headers_with_extensions_other_algorithms_or_the_wrong_form_are_refused() {
    for (json, error) in [
        (r#"{"alg":"EdDSA","crit":["exp"],"exp":1}"#, JwsError::UnsupportedExtension),
        (r#"{"alg":"EdDSA","crit":[]}"#, JwsError::UnsupportedExtension),
        (r#"{"alg":"EdDSA","b64":false}"#, JwsError::UnsupportedExtension),
        (r#"{"alg":"none"}"#, JwsError::UnsupportedAlgorithm),
        (r#"{"alg":"HS256"}"#, JwsError::UnsupportedAlgorithm),
        (r#"{"alg":"es256"}"#, JwsError::UnsupportedAlgorithm),
        (r#"{"kid":"1"}"#, JwsError::MalformedHeader),
        (r#"{"alg":1}"#, JwsError::MalformedHeader),
        (r#"{"alg":"EdDSA","kid":1}"#, JwsError::MalformedHeader),
        (r#"{"alg":"EdDSA","alg":"ES256"}"#, JwsError::MalformedHeader),
        (r#"["EdDSA"]"#, JwsError::MalformedHeader),
        ("", JwsError::MalformedHeader),
    ] {
        assert_eq!(header(json), Err(error), "{json}");
    }
    let long = format!(r#"{{"alg":"EdDSA","x":"{}"}}"#, "a".repeat(HEADER_BYTES_MAX));
    assert_eq!(header(&long), Err(JwsError::MalformedHeader));
    let padded = format!("{}=", base64url::encode(br#"{"alg":"EdDSA" }"#));
    for text in [padded.as_str(), "{}", "eyJhbGciOiJFZERTQSJ9.", " eyJhbGciOiJFZERTQSJ9"] {
        assert_eq!(ProtectedHeader::parse(text), Err(JwsError::MalformedHeader), "{text}");
    }
}

#[test]
fn keys_that_prove_nothing_are_refused() {
    let rsa = |n: &[u8], e: &[u8]| {
        let (n, e) = (base64url::encode(n), base64url::encode(e));
        format!(r#"{{"kty":"RSA","n":"{n}","e":"{e}"}}"#)
    };
    let (usual, leading) = ([0xff; 256], [&[0][..], &[0xff; 256]].concat());
    assert!(parse(&rsa(&usual, &[1, 0, 1])).is_ok());
    assert!(parse(&rsa(&[0xff; 1_024], &[3])).is_ok());
    let zero = base64url::encode(&[0; 32]);
    for bad in [
        rsa(&[0xff; 255], &[1, 0, 1]),
        rsa(&[&[0x7f][..], &[0xff; 255]].concat(), &[1, 0, 1]),
        rsa(&[0xff; 1_025], &[1, 0, 1]),
        rsa(&leading, &[1, 0, 1]),
        rsa(&[0xfe; 256], &[1, 0, 1]),
        rsa(&[], &[1, 0, 1]),
        rsa(&usual, &[]),
        rsa(&usual, &[1]),
        rsa(&usual, &[2]),
        rsa(&usual, &[0, 1]),
        rsa(&usual, &[0xff; 5]),
        // A point of small order, and points that are not on their curve.
        format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{zero}"}}"#),
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{zero}","y":"{zero}"}}"#),
        ES256[2].replace("P-256", "P-384"),
        ES256[2].replace("P-256", "secp256k1"),
        ES256[2].replace("\"x\":", "\"y2\":"),
        EDDSA[2].replace("Ed25519", "X25519"),
        EDDSA[2].replace("\"kty\"", "\"use\":\"enc\",\"kty\""),
        EDDSA[2].replace("\"kty\"", "\"key_ops\":[\"sign\"],\"kty\""),
        EDDSA[2].replace("\"kty\"", "\"alg\":\"ES256\",\"kty\""),
        EDDSA[2].replace("\"kty\"", "\"kid\":7,\"kty\""),
        r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMko"}"#.to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
    ] {
        assert_eq!(parse(&bad).err(), Some(JwsError::BadKey), "{bad}");
    }
    assert!(parse(&EDDSA[2].replace("\"kty\"", "\"key_ops\":[\"verify\"],\"kty\"")).is_ok());
}

#[test]
fn a_key_is_found_by_its_id_and_algorithm() {
    let named = |jwk: &str, kid: &str| jwk.replacen('{', &format!("{{\"kid\":\"{kid}\","), 1);
    let (one, two, same) = (named(EDDSA[2], "1"), named(ES256[2], "2"), named(RS256[2], "1"));
    let set = format!(r#"{{"keys":[{{"kty":"oct","k":"AA","kid":"1"}},{one},{two},{same},7]}}"#);
    let set = JwkSet::parse(set.as_bytes()).expect("a key set");
    assert_eq!(set.keys().len(), 3);
    let find = |alg, kid: Option<&str>| {
        let kid = kid.map(str::to_owned);
        set.find(&ProtectedHeader { alg, kid, jku: None, typ: None })
    };
    let found = find(Algorithm::EdDsa, Some("1")).expect("the first key");
    assert_eq!(verify(EDDSA[0], EDDSA_PAYLOAD, EDDSA[1], found), Ok(()));
    let found = find(Algorithm::Rs256, Some("1")).expect("the third key");
    assert_eq!(verify(RS256[0], PAYLOAD, RS256[1], found), Ok(()));
    assert!(find(Algorithm::Es256, Some("1")).is_none());
    assert!(find(Algorithm::Es256, Some("3")).is_none());
    assert_eq!(find(Algorithm::Es256, None).and_then(Jwk::kid), Some("2"));

    let twice = format!(r#"{{"keys":[{one},{one}]}}"#);
    let twice = JwkSet::parse(twice.as_bytes()).expect("a key set");
    assert!(twice.find(&header(r#"{"alg":"EdDSA"}"#).expect("a good header")).is_none());
}

#[test]
fn a_document_that_is_no_key_set_is_refused() {
    let many = format!("{{\"keys\":[{}]}}", vec!["{}"; KEYS_MAX + 1].join(","));
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#, &many] {
        let refused = JwkSet::parse(text.as_bytes()).err();
        assert_eq!(refused, Some(JwsError::MalformedKeySet), "{text}");
    }
}

#[test]
fn our_signature_is_that_of_the_standard() {
    let signed = sign_ed25519(&SecretKey::from_seed(&seed()), &[("alg", "none")], EDDSA_PAYLOAD);
    assert_eq!([signed.protected.as_str(), &signed.signature], [EDDSA[0], EDDSA[1]]);
}

#[test]
fn what_we_sign_verifies_with_the_key_we_publish() {
    let members = [("typ", "JOSE"), ("kid", "hub \"1\""), ("jku", "https://hub.example/keys")];
    let signed = sign_ed25519(&SecretKey::from_seed(&seed()), &members, PAYLOAD);
    let public = SecretKey::from_seed(&seed()).public();
    let set = format!("{{\"keys\":[{}]}}", write_ed25519_jwk(public, "hub \"1\""));
    let set = JwkSet::parse(set.as_bytes()).expect("a key set");
    let header = ProtectedHeader::parse(&signed.protected).expect("a good header");
    let key = set.find(&header).expect("our key");
    assert_eq!(verify(&signed.protected, PAYLOAD, &signed.signature, key), Ok(()));
    let same = Jwk::from_ed25519(public, None).expect("a good key");
    assert_eq!(verify(&signed.protected, PAYLOAD, &signed.signature, &same), Ok(()));
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in ".{0,80}", bytes in any::<Vec<u8>>()) {
        let _ = ProtectedHeader::parse(&text);
        let _ = ProtectedHeader::parse(&base64url::encode(&bytes));
        let _ = JwkSet::parse(&bytes);
        prop_assert!(verify(EDDSA[0], &bytes, &text, &key(EDDSA[2])).is_err());
    }
}
