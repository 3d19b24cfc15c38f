//! Tests: spellings of one agent, confusable names, and invalid addresses.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use crate::relay::wire::address::{ADDRESS_MAX, Address, BadAddress, RESERVED_HOSTS};

fn read(text: &str) -> Result<String, BadAddress> {
    Address::read(text, "chorus").map(|address| address.canonical().to_owned())
}

fn skeleton_of(text: &str) -> String {
    Address::read(text, "chorus").expect(text).skeleton()
}

#[test]
fn one_agent_has_many_spellings() {
    for text in ["Alice@chorus", "alice@chorus", "ALICE@Chorus", "alice"] {
        assert_eq!(read(text), Ok("alice@chorus".to_owned()), "{text}");
    }
    assert_eq!(read("\u{e9}@chorus"), read("e\u{301}@chorus"));
    assert_eq!(read("É@chorus"), read("e\u{301}@chorus"));
    assert_eq!(read("STRASSE"), read("straße"));
    assert_eq!(read("ΣΟΦΟΣ"), read("σοφος"));
    assert_eq!(Address::read_full("ALICE@Chorus"), Address::read("alice", "chorus"));
}

#[test]
fn an_address_is_shown_as_it_was_typed() {
    let address = Address::read("Alice@Chorus.Example", "x").expect("an address");
    assert_eq!(address.display(), "Alice@Chorus.Example");
    assert_eq!((address.name(), address.host()), ("Alice", "chorus.example"));
    let short = Address::read("Alice", "Hub").expect("a short name").into_owned();
    assert_eq!((short.display(), short.canonical()), ("Alice@Hub", "alice@hub"));
}

/// `İ` folds to two characters, which exceeds the limit at the boundary.
#[test]
fn an_address_that_folding_makes_too_long_is_refused() {
    let at = |host: usize| format!("aİ@{}", "h".repeat(host));
    let longest = read(&at(ADDRESS_MAX - 4)).expect("128 characters in its canonical form");
    assert_eq!(read(&longest), Ok(longest.clone()));
    assert_eq!(read(&at(ADDRESS_MAX - 3)), Err(BadAddress::TooLong));
}

#[test]
fn plain_addresses_are_borrowed() {
    for text in ["alice@chorus", "my-agent.2_x@chorus.example", "你的agent名@chorus"] {
        let address = Address::read(text, "chorus").expect(text);
        for form in [address.display(), address.canonical()] {
            assert_eq!(form.as_ptr(), text.as_ptr(), "{text} is copied");
        }
    }
}

#[test]
fn names_may_have_the_letters_of_their_language() {
    for text in
        ["你的agent名@chorus", "алиса", "আমি", "नमस्ते", "日本語かな-bot", "한글bot", "٣ب", "ᏣᎳᎩ"]
    {
        assert!(read(text).is_ok(), "{text} {:?}", read(text));
    }
}

#[test]
fn what_is_no_address_is_refused_for_its_reason() {
    use BadAddress::*;
    for (text, why) in [
        ("", NoName),
        ("@chorus", NoName),
        ("alice@", BadHost),
        ("alice@chorus.", BadHost),
        ("alice@chörus", BadHost),
        ("alice@chorus:80", BadHost),
        ("a@b@c", TwoHosts),
        ("@@", TwoHosts),
        ("al ice", BadCharacter(' ')),
        ("a/b", BadCharacter('/')),
        ("a\u{300}😀b", BadCharacter('😀')),
        ("al\u{200b}ice@chorus", InvisibleCharacter),
        ("al\u{202e}ice", InvisibleCharacter),
        ("al\u{fe0f}ice", InvisibleCharacter),
        ("al\nice", InvisibleCharacter),
        ("é\u{7}", InvisibleCharacter),
        (".alice", BadFirstOrLast),
        ("alice-", BadFirstOrLast),
        ("é_", BadFirstOrLast),
        ("\u{301}a", BadFirstOrLast),
        ("\u{430}lice@chorus", MixedScripts),
        ("aλ", MixedScripts),
        ("Ａlice", MixedScripts),
        ("𝐚lice", MixedScripts),
    ] {
        assert_eq!(read(text), Err(why), "{text:?}");
    }
    assert_eq!(Address::read_full("alice"), Err(NoHost));
    assert!(Address::read_full("alice@chorus").is_ok());
}

#[test]
fn a_joiner_that_its_script_needs_is_shown_and_makes_no_other_address() {
    for (typed, plain) in [("کتاب\u{200c}ها@chorus", "کتابها@chorus"), ("क्\u{200d}ष", "क्ष")]
    {
        let shown = Address::read(typed, "chorus").expect(typed);
        assert_eq!(Ok(shown.canonical().to_owned()), read(plain));
        assert!(typed.starts_with(shown.name()), "shown as it was typed");
    }
    for lone in ["al\u{200c}ice", "al\u{200d}ice", "\u{200c}کتاب", "کتاب\u{200c}"] {
        assert_eq!(read(lone), Err(BadAddress::InvisibleCharacter), "{lone:?}");
    }
}

#[test]
fn lengths_count_characters() {
    assert!(read(&"a".repeat(64)).is_ok());
    assert_eq!(read(&"a".repeat(65)), Err(BadAddress::NameTooLong));
    assert!(read(&"界".repeat(64)).is_ok());
    assert_eq!(read(&"界".repeat(65)), Err(BadAddress::NameTooLong));
    assert!(read(&"ß".repeat(32)).is_ok());
    assert_eq!(read(&"ß".repeat(33)), Err(BadAddress::NameTooLong));
    assert!(read(&format!("{}@{}", "界".repeat(64), "h".repeat(63))).is_ok());
    let long = format!("{}@{}", "a".repeat(64), "h".repeat(64));
    assert_eq!(read(&long), Err(BadAddress::TooLong));
}

#[test]
fn names_that_look_alike_have_one_skeleton() {
    assert_eq!(skeleton_of("modern"), skeleton_of("modem"));
    assert_eq!(skeleton_of("agent1"), skeleton_of("AGENTL"));
    assert_eq!(skeleton_of("асе"), skeleton_of("ace"));
    assert_ne!(skeleton_of("alice"), skeleton_of("alicia"));
    assert_ne!(skeleton_of("alice@a"), skeleton_of("alice@b"));
    assert!(skeleton_of("bob@Chorus").ends_with("@chorus"));
}

#[test]
fn the_hubs_own_hosts_are_known_in_any_case() {
    for host in RESERVED_HOSTS {
        let text = format!("x@{}", host.to_uppercase());
        assert!(Address::read_full(&text).expect("an address").is_reserved_host());
    }
    assert!(!Address::read("x", "chorus").expect("an address").is_reserved_host());
    assert!(!Address::read("x", "registry.example").expect("an address").is_reserved_host());
}

#[test]
fn every_letter_that_is_a_name_has_one_identity() {
    let mut names = 0;
    for envelope in '\u{80}'..='\u{3ffff}' {
        let text = envelope.to_string();
        let Ok(canonical) = read(&text) else { continue };
        names += 1;
        assert_eq!(read(&canonical), Ok(canonical.clone()), "{text}");
        assert_eq!(read(&text.nfd().collect::<String>()), Ok(canonical), "{text}");
    }
    assert!(names > 100_000, "{names} letters can be names");
}

proptest! {
    #[test]
    fn a_canonical_address_is_its_own_canonical_form(
        text in "[a-zA-Z0-9._-]{1,9}@[a-zA-Z.]{1,5}|[A-zÀ-ɏḀ-ỿ\u{300}-\u{330}.-]{1,6}|[Ͱ-Ͽἀ-ῼ\u{345}\u{301}]{1,5}|[А-я\u{306}]{1,5}|[ぁ-ヿ一-三가-힣a-z]{1,5}",
    ) {
        if let Ok(canonical) = read(&text) {
            prop_assert_eq!(read(&text.nfd().collect::<String>()), Ok(canonical.clone()));
            prop_assert_eq!(read(&canonical), Ok(canonical));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>(), host in any::<String>()) {
        if let Ok(address) = Address::read(&text, &host) {
            prop_assert!(address.canonical().contains('@') && !address.skeleton().is_empty());
        }
    }
}
