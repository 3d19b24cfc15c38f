//! Addresses: `name@host`, one identity for all spellings.
//!
//! An address is displayed as registered and compared in its canonical form: composed (NFC) and
//! case-folded. Confusable names are recognized by their skeleton (UTS 39). Whether a name is free,
//! or confusable with one that is taken, is checked elsewhere.

use std::borrow::Cow;

use unicode_normalization::is_nfkc;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_security::{MixedScript, RestrictionLevel, RestrictionLevelDetection};

use crate::kit::confusables;
use crate::kit::name::{is_invisible, is_valid_joiner};

/// The maximum length of a whole address in characters.
pub const ADDRESS_MAX: usize = 128;
/// The maximum length of the part before the `@` in characters.
pub const NAME_MAX: usize = 64;
/// Hosts reserved for the hub: agents of other protocols have their addresses there.
pub const RESERVED_HOSTS: [&str; 7] =
    ["registry", "openclaw", "clara", "agora", "a2a", "mcp", "bridge"];

/// Why a text is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// More characters than an address may have.
    #[error("has more than {ADDRESS_MAX} characters")]
    TooLong,
    /// A short name where the whole address is needed.
    #[error("must be a full address such as alice@chorus")]
    NoHost,
    /// More than one `@`.
    #[error("must have exactly one @, as in alice@chorus")]
    TwoHosts,
    /// Nothing before the `@`.
    #[error("must have a name before the @, as in alice@chorus")]
    NoName,
    /// A name with too many characters.
    #[error("has a name of more than {NAME_MAX} characters")]
    NameTooLong,
    /// An invisible character in the name.
    #[error("contains a control, bidi or zero-width character; remove it")]
    InvisibleCharacter,
    /// A character in the name that is neither a letter, a digit nor one of `.` `_` `-`.
    #[error("contains {0:?}; a name has letters, digits and . _ - only")]
    BadCharacter(char),
    /// A name that begins or ends with `.`, `_` or `-`.
    #[error("must have a letter or digit first and last in its name")]
    BadFirstOrLast,
    /// Scripts that are not normally mixed, or stylized forms of other letters.
    #[error("mixes scripts or uses compatibility letters; use letters of one script")]
    MixedScripts,
    /// Nothing, or an invalid host, after the `@`.
    #[error("must have a host of ASCII letters, digits and . - _ that does not end in a dot")]
    BadHost,
}

/// An agent's address.
#[derive(Clone, Debug)]
pub struct Address<'a> {
    display: Cow<'a, str>,
    /// Only where it differs from the displayed form.
    canonical: Option<String>,
}

impl<'a> Address<'a> {
    /// Reads an address; a short name gets `default_host`.
    pub fn read(text: &'a str, default_host: &str) -> Result<Self, BadAddress> {
        if !text.contains('@') {
            return Self::of(Cow::Owned([text, "@", default_host].concat()));
        }
        Self::of(Cow::Borrowed(text))
    }

    /// Reads an address that must name its host.
    pub fn read_full(text: &'a str) -> Result<Self, BadAddress> {
        if !text.contains('@') {
            return Err(BadAddress::NoHost);
        }
        Self::of(Cow::Borrowed(text))
    }

    fn of(shown: Cow<'a, str>) -> Result<Self, BadAddress> {
        if shown.len() > ADDRESS_MAX && shown.chars().count() > ADDRESS_MAX {
            return Err(BadAddress::TooLong);
        }
        let (name, host) = shown.split_once('@').ok_or(BadAddress::NoHost)?;
        check_host(host)?;
        let canonical = if name.is_ascii() {
            check_ascii_name(name)?;
            let lower = !shown.bytes().any(|byte| byte.is_ascii_uppercase());
            (!lower).then(|| shown.to_ascii_lowercase())
        } else {
            let whole = canonical_name(name)? + "@" + &host.to_ascii_lowercase();
            // The same for the whole address: the canonical form must be a valid address too.
            if whole.chars().count() > ADDRESS_MAX {
                return Err(BadAddress::TooLong);
            }
            Some(whole)
        };
        // Most names are canonical as typed, whichever way they were checked.
        let canonical = canonical.filter(|canonical| *canonical != shown);
        Ok(Self { display: shown, canonical })
    }

    /// The whole address as typed.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// The whole address in the form that identifies the agent.
    pub fn canonical(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.display)
    }

    /// The part before the `@`, as typed.
    pub fn name(&self) -> &str {
        self.display.split_once('@').map_or("", |(name, _)| name)
    }

    /// The part after the `@`, in lower case.
    pub fn host(&self) -> &str {
        self.canonical().split_once('@').map_or("", |(_, host)| host)
    }

    /// Equal for confusable addresses.
    pub fn skeleton(&self) -> String {
        let name = self.canonical().split_once('@').map_or("", |(name, _)| name);
        confusables::skeleton(name) + "@" + self.host()
    }

    /// The skeleton of the name as typed, which can be confusable in more ways than in lower case:
    /// a capital I looks like a small L.
    pub fn display_skeleton(&self) -> String {
        confusables::lowercase_skeleton(self.name()) + "@" + self.host()
    }

    /// Whether the host is reserved for the hub.
    pub fn is_reserved_host(&self) -> bool {
        RESERVED_HOSTS.contains(&self.host())
    }

    /// The same address with owned text.
    pub fn into_owned(self) -> Address<'static> {
        Address { display: Cow::Owned(self.display.into_owned()), canonical: self.canonical }
    }
}

/// Two spellings of one address are equal.
impl PartialEq<Address<'_>> for Address<'_> {
    fn eq(&self, other: &Address<'_>) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Eq for Address<'_> {}

fn check_host(host: &str) -> Result<(), BadAddress> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if host.contains('@') {
        return Err(BadAddress::TwoHosts);
    }
    if host.is_empty() || host.ends_with('.') || !host.bytes().all(fits) {
        return Err(BadAddress::BadHost);
    }
    Ok(())
}

/// The checks of [`canonical_name`] for names that need no Unicode tables.
fn check_ascii_name(name: &str) -> Result<(), BadAddress> {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return Err(BadAddress::NoName);
    };
    if bytes.len() > NAME_MAX {
        return Err(BadAddress::NameTooLong);
    }
    let strange = |byte: &&u8| !byte.is_ascii_alphanumeric() && !b"._-".contains(*byte);
    if let Some(byte) = bytes.iter().find(strange) {
        return Err(bad_character(char::from(*byte)));
    }
    if !first.is_ascii_alphanumeric() || !last.is_ascii_alphanumeric() {
        return Err(BadAddress::BadFirstOrLast);
    }
    Ok(())
}

fn canonical_name(name: &str) -> Result<String, BadAddress> {
    // A joiner that shapes its letters does not make a different name: it is displayed, but is not
    // part of the identity.
    let typed: Vec<char> = name.chars().collect();
    let plain = (0..typed.len()).filter(|at| !is_valid_joiner(&typed, *at)).map(|at| typed[at]);
    let plain: String = plain.collect();
    let composed = confusables::to_nfc(&plain);
    let is_mark = |c: char| c.general_category_group() == GeneralCategoryGroup::Mark;
    let strange = |c: &char| !is_letter_or_digit(*c) && !is_mark(*c) && !"._-".contains(*c);
    if let Some(c) = plain.chars().find(|c| is_invisible(*c) || strange(c)) {
        return Err(bad_character(c));
    }
    // A mark belongs to the letter before it, so names in scripts that write vowels as marks can
    // end in one.
    let first = composed.chars().next();
    let last = composed.chars().rev().find(|c| !is_mark(*c));
    if ![first, last].into_iter().all(|edge| edge.is_some_and(is_letter_or_digit)) {
        return Err(BadAddress::BadFirstOrLast);
    }
    if !is_written_together(&composed) {
        return Err(BadAddress::MixedScripts);
    }
    let canonical = confusables::case_fold(&composed);
    // Folding can lengthen a name; the canonical form must be a valid name too.
    if [name, &canonical].into_iter().any(|text| text.chars().count() > NAME_MAX) {
        return Err(BadAddress::NameTooLong);
    }
    Ok(canonical)
}

/// UTS 39, highly restrictive. That profile also excludes scripts of small communities. A name in
/// only one of those mixes nothing, so it is accepted unless it only imitates other letters.
fn is_written_together(name: &str) -> bool {
    name.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        || (name.is_single_script() && is_nfkc(name))
}

fn is_letter_or_digit(c: char) -> bool {
    c.general_category_group() == GeneralCategoryGroup::Letter
        || c.general_category() == GeneralCategory::DecimalNumber
}

fn bad_character(c: char) -> BadAddress {
    if is_invisible(c) { BadAddress::InvisibleCharacter } else { BadAddress::BadCharacter(c) }
}
