//! Cards with signatures, by keys of every supported kind (R90).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaEncoding,
};
use rialto_protocols::kit::{base64url, ijson, jcs};
use serde_json::{Value, json};

use super::server::{Dialect, KEYS, Puppet};
use crate::kit::TestHub;

/// What signs a card.
type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// A new key: its algorithm, its public half as a JWK, and what signs with it.
struct Signer {
    alg: &'static str,
    jwk: Value,
    sign: Sign,
}

fn text(bytes: &[u8]) -> Value {
    base64url::encode(bytes).into()
}

fn eddsa() -> Signer {
    let pair = Ed25519KeyPair::generate().expect("a key");
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref())});
    Signer { alg: "EdDSA", jwk, sign: Box::new(move |input| pair.sign(input).as_ref().to_vec()) }
}

fn ecdsa(alg: &'static str, curve: &str, algorithm: &'static EcdsaSigningAlgorithm) -> Signer {
    let pair = EcdsaKeyPair::generate(algorithm).expect("a key");
    // The first byte says that both coordinates follow.
    let point = &pair.public_key().as_ref()[1..];
    let (x, y) = point.split_at(point.len() / 2);
    let jwk = json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y)});
    let sign = move |input: &[u8]| {
        pair.sign(&SystemRandom::new(), input).expect("a signature").as_ref().to_vec()
    };
    Signer { alg, jwk, sign: Box::new(sign) }
}

fn rsa(alg: &'static str, encoding: &'static dyn RsaEncoding) -> Signer {
    let pair = rsa::KeyPair::generate(KeySize::Rsa2048).expect("a key");
    // The modulus stands before the five bytes of the exponent 65537.
    let public = pair.public_key().as_ref();
    let modulus = &public[public.len() - 5 - 256..public.len() - 5];
    let jwk = json!({"kty": "RSA", "n": text(modulus), "e": "AQAB"});
    let sign = move |input: &[u8]| {
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(encoding, &SystemRandom::new(), input, &mut signature).expect("a signature");
        signature
    };
    Signer { alg, jwk, sign: Box::new(sign) }
}

fn all() -> [Signer; 5] {
    [
        eddsa(),
        ecdsa("ES256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
        ecdsa("ES384", "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        rsa("RS256", &RSA_PKCS1_SHA256),
        rsa("PS256", &RSA_PSS_SHA256),
    ]
}

/// A signature over a card as it is.
fn signature(card: &Value, signer: &Signer, jku: Option<&str>) -> Value {
    let mut header = json!({"alg": signer.alg, "typ": "JOSE", "kid": "k-1"});
    if let Some(jku) = jku {
        header["jku"] = jku.into();
    }
    let mut unsigned = card.clone();
    unsigned.as_object_mut().expect("an object").remove("signatures");
    let unsigned = unsigned.to_string();
    let canonical = jcs::canonicalize(&ijson::read(unsigned.as_bytes()).expect("JSON"));
    let protected = base64url::encode(header.to_string().as_bytes());
    let payload = base64url::encode(canonical.expect("canonical").as_bytes());
    let signed = (signer.sign)(format!("{protected}.{payload}").as_bytes());
    json!({"protected": protected, "signature": text(&signed)})
}

/// Publishes a key at a server.
fn publish(puppet: &Puppet, signer: &Signer) {
    let mut jwk = signer.jwk.clone();
    jwk["kid"] = "k-1".into();
    puppet.set_keys(json!({ "keys": [jwk] }));
}

/// Signs the card of a server, and publishes the key at it.
fn sign(puppet: &Puppet, signer: &Signer) {
    publish(puppet, signer);
    let jku = puppet.at(KEYS);
    puppet.change_card(|card| {
        card["signatures"] = json!([signature(card, signer, Some(&jku))]);
    });
}

#[tokio::test]
async fn a_card_is_verified_with_keys_of_every_kind_and_a_changed_one_is_refused() {
    let hub = TestHub::serve(&[]).await;
    for (signer, dialect) in all().into_iter().zip([Dialect::JsonRpc, Dialect::Old].iter().cycle())
    {
        let name = signer.alg.to_lowercase();
        let puppet = Puppet::speaking(*dialect).await;
        sign(&puppet, &signer);
        let body = json!({"card_url": puppet.card_url(), "name": name});
        let reply = hub.register_card(None, &body).await.expect(201);
        assert_eq!(reply.str("/signature"), "verified", "{name}");
        let key = reply.str("/api_key");
        puppet.change_card(|card| card["description"] = "Plans something else".into());
        let refused = hub.refresh(&name, &key).await.expect(400);
        assert!(refused.str("/error/message").contains("no good signature"), "{}", refused.text);
        puppet.change_card(|card| card["signatures"] = json!([]));
        let reply = hub.refresh(&name, &key).await.expect(200);
        assert_eq!(reply.str("/signature"), "unsigned");
    }
}

#[tokio::test]
async fn one_good_signature_is_enough_and_only_bad_ones_are_refused() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let (good, bad) = (eddsa(), eddsa());
    sign(&puppet, &good);
    let jku = puppet.at(KEYS);
    let body = |name: &str| json!({"card_url": puppet.card_url(), "name": name});
    puppet.change_card(|card| {
        let own = card["signatures"][0].clone();
        card["signatures"] = json!([signature(card, &bad, Some(&jku)), own]);
    });
    let reply = hub.register_card(None, &body("both")).await.expect(201);
    assert_eq!(reply.str("/signature"), "verified");
    // A signer without a place for its key, and one that names another host.
    let elsewhere = jku.replace("127.0.0.1", "localhost");
    for (jku, why) in [
        (Some(jku.as_str()), "does not fit the card"),
        (None, "names no key set in jku"),
        (Some(elsewhere.as_str()), "a2a.trust_jku"),
    ] {
        puppet.change_card(|card| card["signatures"] = json!([signature(card, &bad, jku)]));
        let refused = hub.register_card(None, &body("bad")).await.expect(400);
        assert!(refused.str("/error/message").contains(why), "{}", refused.text);
    }
    let unsigned = puppet.seen().iter().filter(|seen| seen.path == KEYS).count();
    assert_eq!(unsigned, 3, "keys of strangers' hosts are not even fetched");
}

#[tokio::test]
async fn a_hub_trusts_the_key_sets_that_it_names_and_may_want_signed_cards() {
    let (keys, puppet) = (Puppet::start().await, Puppet::start().await);
    let elsewhere = keys.at(KEYS).replace("127.0.0.1", "localhost");
    let flags = [("a2a.trust_jku", elsewhere.as_str()), ("a2a.require_signed", "true")];
    let hub = TestHub::serve(&flags).await;
    let body = json!({"card_url": puppet.card_url(), "name": "geo"});
    let refused = hub.register_card(None, &body).await.expect(400);
    assert!(refused.str("/error/message").contains("is not signed"), "{}", refused.text);
    let signer = eddsa();
    publish(&keys, &signer);
    puppet.change_card(|card| {
        card["signatures"] = json!([signature(card, &signer, Some(&elsewhere))]);
    });
    let reply = hub.register_card(None, &body).await.expect(201);
    assert_eq!(reply.str("/signature"), "verified");
    // The old card stays when the new one has no signature.
    puppet.change_card(|card| card["signatures"] = json!([]));
    let key = reply.str("/api_key");
    hub.refresh("geo", &key).await.expect(400);
    let again = hub.register_card(Some(&key), &json!({"name": "geo"})).await.expect(200);
    assert_eq!(again.str("/signature"), "verified");
}
