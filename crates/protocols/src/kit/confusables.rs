//! Confusable names: names that a reader cannot tell apart.
//!
//! Names can differ in bytes but look alike: by case, by how their letters are composed, and by
//! letters that look like others (UTS 39). Each protocol folder defines which names are allowed and
//! which must differ.

use std::borrow::Cow;

use caseless::Caseless;
use unicode_normalization::{UnicodeNormalization, is_nfc};
use unicode_security::skeleton as prototypes;

/// The name with its letters composed (NFC).
pub fn to_nfc(name: &str) -> Cow<'_, str> {
    match is_nfc(name) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.nfc().collect()),
    }
}

/// The common form of all spellings: Unicode 3.13, canonical caseless matching, composed again.
pub fn case_fold(name: &str) -> String {
    name.nfd().default_case_fold().nfc().collect()
}

/// Equal for names that look alike as written.
pub fn skeleton(name: &str) -> String {
    prototypes(name).collect()
}

/// Equal for names of which one looks like the other in lower case: a capital I like a small L, a
/// zero like a capital O.
pub fn lowercase_skeleton(name: &str) -> String {
    skeleton(&skeleton(name).to_lowercase())
}

/// The skeletons of a name, in any case it may be read. Names that share a skeleton must not belong
/// to two owners.
pub fn skeletons(name: &str) -> Vec<String> {
    // Readers do not count spaces, nor see those at the ends.
    let words: Vec<&str> = name.split_whitespace().collect();
    let name = words.join(" ");
    let (folded, lowered) = (skeleton(&case_fold(&name)), lowercase_skeleton(&name));
    match folded == lowered {
        true => vec![folded],
        false => vec![folded, lowered],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alike(a: &str, b: &str) -> bool {
        let (a, b) = (skeletons(a), skeletons(b));
        a.iter().any(|look| b.contains(look))
    }

    #[test]
    fn case_composition_and_likeness_make_no_other_name() {
        for (a, b) in [
            ("acme", "ACME"),
            ("acme", "аcme"),
            ("\u{e9}", "e\u{301}"),
            ("\u{c9}", "e\u{301}"),
            ("modern", "modem"),
            ("bank1", "bankl"),
            ("bank1", "BANKI"),
            ("AI", "al"),
            ("AI", "ai"),
            ("a0", "ao"),
            ("a0", "AO"),
            ("straße", "STRASSE"),
            ("Acme Corp", "acme corp"),
            ("owner-1", "owner‐1"),
            ("acme", " acme "),
            ("acme corp", "acme\u{a0}\u{3000}corp"),
        ] {
            assert!(alike(a, b) && alike(b, a), "{a} {b}");
        }
    }

    #[test]
    fn names_that_read_differently_stay_apart() {
        for (a, b) in [
            ("acme", "acme2"),
            ("ai", "al"),
            ("o1", "o2"),
            ("alice", "alicia"),
            ("alice", "al ice"),
            ("界", "世"),
        ] {
            assert!(!alike(a, b), "{a} {b}");
        }
    }

    #[test]
    fn composing_changes_only_what_is_not_composed() {
        assert!(matches!(to_nfc("acm\u{e9}"), Cow::Borrowed("acm\u{e9}")));
        assert_eq!(to_nfc("acme\u{301}"), "acm\u{e9}");
    }

    proptest! {
        #[test]
        fn a_name_looks_like_itself_however_it_is_typed(name in "\\PC{1,12}") {
            prop_assert!(alike(&name, &name.nfd().collect::<String>()));
            prop_assert!(alike(&name, &to_nfc(&name)));
            prop_assert!(alike(&name, &case_fold(&name)));
        }
    }
}
