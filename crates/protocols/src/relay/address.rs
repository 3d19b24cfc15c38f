//! Addresses: `name@host`, one identity however it is typed.
//!
//! An address is shown as it was registered and compared in its canonical form: composed (NFC) and
//! case-folded. Names that only look alike are told by their skeleton (UTS 39). Whether a name is
//! free, and whether it looks like one that is not, is known elsewhere.

use std::borrow::Cow;

use unicode_normalization::is_nfkc;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_security::{MixedScript, RestrictionLevel, RestrictionLevelDetection};

use crate::kit::looks;
use crate::kit::name::{is_joiner, is_unseen};

/// Characters of a whole address.
pub const ADDRESS_MAX: usize = 128;
/// Characters of the part before the `@`.
pub const NAME_MAX: usize = 64;
/// Hosts of the hub's own: agents of other protocols are shown there.
pub const RESERVED_HOSTS: [&str; 7] =
    ["registry", "openclaw", "clara", "agora", "a2a", "mcp", "bridge"];

/// Why a text is no address.
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
    /// Something invisible in the name.
    #[error("contains a control, bidi or zero-width character; remove it")]
    Unseen,
    /// Something in the name that is neither letter, digit nor one of `.` `_` `-`.
    #[error("contains {0:?}; a name has letters, digits and . _ - only")]
    BadCharacter(char),
    /// A name that begins or ends with `.`, `_` or `-`.
    #[error("must have a letter or digit first and last in its name")]
    BadEdge,
    /// Scripts that are not written together, or dressed-up forms of other letters.
    #[error("mixes scripts or uses compatibility letters; use letters of one script")]
    MixedScripts,
    /// Nothing, or something impossible, after the `@`.
    #[error("must have a host of ASCII letters, digits and . - _ that does not end in a dot")]
    BadHost,
}

/// An agent's address.
#[derive(Clone, Debug)]
pub struct Address<'a> {
    shown: Cow<'a, str>,
    /// Only where it differs from what is shown.
    canonical: Option<String>,
}

impl<'a> Address<'a> {
    /// Reads an address; a short name stands at `default_host`.
    pub fn read(text: &'a str, default_host: &str) -> Result<Self, BadAddress> {
        match text.contains('@') {
            true => Self::of(Cow::Borrowed(text)),
            false => Self::of(Cow::Owned([text, "@", default_host].concat())),
        }
    }

    /// Reads an address that must name its host.
    pub fn read_full(text: &'a str) -> Result<Self, BadAddress> {
        match text.contains('@') {
            true => Self::of(Cow::Borrowed(text)),
            false => Err(BadAddress::NoHost),
        }
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
            // The same for the whole address: what identifies an agent can be typed.
            if whole.chars().count() > ADDRESS_MAX {
                return Err(BadAddress::TooLong);
            }
            Some(whole)
        };
        // Most names are canonical as they come, whatever way that was found out.
        let canonical = canonical.filter(|canonical| *canonical != shown);
        Ok(Self { shown, canonical })
    }

    /// The whole address as it was typed.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The whole address in the form that identifies the agent.
    pub fn canonical(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.shown)
    }

    /// The part before the `@`, as it was typed.
    pub fn name(&self) -> &str {
        self.shown.split_once('@').map_or("", |(name, _)| name)
    }

    /// The part after the `@`, in lower case.
    pub fn host(&self) -> &str {
        self.canonical().split_once('@').map_or("", |(_, host)| host)
    }

    /// Equal for addresses that a reader could take for each other.
    pub fn skeleton(&self) -> String {
        let name = self.canonical().split_once('@').map_or("", |(name, _)| name);
        looks::skeleton(name) + "@" + self.host()
    }

    /// The same for the name as it was typed, where it can look like more than in lower case: a
    /// capital I is taken for a small L.
    pub fn shown_skeleton(&self) -> String {
        looks::lowered_skeleton(self.name()) + "@" + self.host()
    }

    /// Whether the host is one of the hub's own.
    pub fn is_reserved_host(&self) -> bool {
        RESERVED_HOSTS.contains(&self.host())
    }

    /// The same address with a text of its own.
    pub fn into_owned(self) -> Address<'static> {
        Address { shown: Cow::Owned(self.shown.into_owned()), canonical: self.canonical }
    }
}

/// Two spellings of one address are one address.
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

/// The checks of [`canonical_name`] for names that need no tables.
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
        return Err(BadAddress::BadEdge);
    }
    Ok(())
}

fn canonical_name(name: &str) -> Result<String, BadAddress> {
    // A joiner that shapes its letters makes no other name: it is shown, and identifies nobody.
    let typed: Vec<char> = name.chars().collect();
    let plain = (0..typed.len()).filter(|at| !is_joiner(&typed, *at)).map(|at| typed[at]);
    let plain: String = plain.collect();
    let composed = looks::composed(&plain);
    let is_mark = |c: char| c.general_category_group() == GeneralCategoryGroup::Mark;
    let strange = |c: &char| !is_letter_or_digit(*c) && !is_mark(*c) && !"._-".contains(*c);
    if let Some(c) = plain.chars().find(|c| is_unseen(*c) || strange(c)) {
        return Err(bad_character(c));
    }
    // A mark belongs to the letter before it, so that names of scripts that write their vowels as
    // marks can end in one.
    let first = composed.chars().next();
    let last = composed.chars().rev().find(|c| !is_mark(*c));
    if ![first, last].into_iter().all(|edge| edge.is_some_and(is_letter_or_digit)) {
        return Err(BadAddress::BadEdge);
    }
    if !is_written_together(&composed) {
        return Err(BadAddress::MixedScripts);
    }
    let canonical = looks::folded(&composed);
    // Folding can lengthen; what identifies an agent must itself be a name.
    if [name, &canonical].into_iter().any(|text| text.chars().count() > NAME_MAX) {
        return Err(BadAddress::NameTooLong);
    }
    Ok(canonical)
}

/// UTS 39, highly restrictive. Its profile also leaves out scripts of small communities; a name all
/// in one of those mixes nothing, so it is welcome unless it only dresses up other letters.
fn is_written_together(name: &str) -> bool {
    name.check_restriction_level(RestrictionLevel::HighlyRestrictive)
        || (name.is_single_script() && is_nfkc(name))
}

fn is_letter_or_digit(c: char) -> bool {
    c.general_category_group() == GeneralCategoryGroup::Letter
        || c.general_category() == GeneralCategory::DecimalNumber
}

fn bad_character(c: char) -> BadAddress {
    if is_unseen(c) { BadAddress::Unseen } else { BadAddress::BadCharacter(c) }
}

#[cfg(test)]
mod tests;
