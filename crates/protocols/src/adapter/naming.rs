//! How the hub builds aliases, the same way for every protocol, and how it names owners.

use std::borrow::Cow;

use rialto_core::alias::Protocol;
use rialto_core::world::World;
use rialto_engine::secret::HubSecret;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use uuid::Uuid;

use super::NewAgent;
use crate::kit::confusables;

/// The UUID namespace of aliases the hub gives to agents of other protocols.
const NAMESPACE: Uuid = Uuid::from_u128(0xb26b_c05a_86f5_5456_bb53_ffeb_a844_57cc);
/// The longest slug.
const SLUG_MAX: usize = 40;

/// The UUID that identifies an agent in every protocol but its own.
pub fn alias_uuid(home: Protocol, native: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{home}:{native}").as_bytes())
}

/// The id of a job that an agent opens under a key of its own choice. It is the same for ever.
pub fn job_uuid(home: Protocol, native: &str, key: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("mcp:{home}:{native}:{key}").as_bytes())
}

/// Another UUID, for an agent whose first one was taken before it registered. It cannot be
/// predicted.
fn fallback_alias_uuid(secret: &HubSecret, home: Protocol, native: &str) -> Uuid {
    let key = secret.derive("rialto spare alias v1", &format!("{home}:{native}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&key[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// That UUID as text, or the other one if it is taken.
pub fn alias_text(secret: &HubSecret, new: &NewAgent<'_>, taken: bool) -> String {
    let uuid = if taken {
        fallback_alias_uuid(secret, new.home, new.native)
    } else {
        alias_uuid(new.home, new.native)
    };
    uuid.to_string()
}

/// The first digits of that UUID, for names that people read: 8, or 16 where 8 are taken.
pub fn alias_digits(home: Protocol, native: &str, long: bool) -> String {
    let mut digits = alias_uuid(home, native).simple().to_string();
    digits.truncate(if long { 16 } else { 8 });
    digits
}

/// An owner's name: as typed if an owner has that name, else in NFC, which is how new names are
/// stored.
pub fn canonical_owner_name(world: &World, typed: String) -> String {
    if world.owner_by_name(&typed).is_some() {
        return typed;
    }
    match confusables::to_nfc(&typed) {
        Cow::Borrowed(_) => typed,
        Cow::Owned(composed) => composed,
    }
}

/// A display name as part of an address: plain lower-case letters, digits and dashes.
pub fn slug(name: &str) -> String {
    let plain = name.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase);
    let mut slug = String::with_capacity(SLUG_MAX);
    for c in plain {
        let dash = !c.is_ascii_alphanumeric();
        if dash && (slug.is_empty() || slug.ends_with('-')) {
            continue;
        }
        slug.push(if dash { '-' } else { c });
        if slug.len() == SLUG_MAX {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_worked_names() {
        let registry = Protocol::new("registry");
        let id = alias_uuid(registry, "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f");
        assert_eq!(id.to_string(), "20917bb1-7e13-5f41-9321-10f5be2a3322");
        assert_eq!(slug("Text-Analyst-3000"), "text-analyst-3000");
        let id = job_uuid(registry, "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f", "order-7");
        assert_eq!(id.to_string(), "a880d400-63ad-5b21-8a95-58d13e48c8e4");
        let relay = alias_uuid(Protocol::new("relay"), "alice@chorus").to_string();
        assert_eq!(relay, "a6ee3ec5-dd35-589a-917a-ea2c3a03e30f");
    }

    #[test]
    fn a_slug_is_short_plain_and_never_empty() {
        for (name, expected) in [
            ("Café  au Lait!", "cafe-au-lait"),
            ("--x--", "x"),
            ("下午", "agent"),
            ("", "agent"),
            ("ﬁne", "fine"),
        ] {
            assert_eq!(slug(name), expected);
        }
        let long = slug(&"ab ".repeat(30));
        assert!(long.len() <= SLUG_MAX && !long.ends_with('-'), "{long}");
    }
}
