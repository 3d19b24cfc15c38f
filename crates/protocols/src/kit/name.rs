//! Names that agents choose: which characters they may have, and how many.
//!
//! Invisible characters make two different names look the same or change how a name is displayed,
//! so they are refused. Some of them are part of normal writing: the joiners of Persian and of
//! Indic scripts, and the characters that hold an emoji together. These are accepted where
//! Unicode's rules expect them (UAX 31 section 2.3 for joiners, UTS 51 for emoji), and nowhere
//! else. Whether two names are confusable is checked elsewhere, without these characters
//! (`confusables`).

use icu_properties::props::{
    CanonicalCombiningClass, DefaultIgnorableCodePoint, Emoji, EmojiModifier, ExtendedPictographic,
    GeneralCategory, GeneralCategoryGroup, IndicSyllabicCategory, JoiningType,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// More characters than a name may have.
    #[error("has more than {max} characters")]
    TooLong {
        /// The limit in characters.
        max: usize,
    },
    /// A character that hides, reorders or controls text.
    #[error("contains a control, bidi or zero-width character")]
    Invisible,
}

/// Checks a name: 1 to `max` characters, with invisible ones only where they are allowed.
pub fn check_name(text: &str, max: usize) -> Result<(), BadName> {
    if text.is_empty() {
        return Err(BadName::Empty);
    }
    if text.chars().count() > max {
        return Err(BadName::TooLong { max });
    }
    if !text.is_ascii() {
        let chars: Vec<char> = text.chars().collect();
        if (0..chars.len()).any(|at| is_invisible(chars[at]) && !is_in_place(&chars, at)) {
            return Err(BadName::Invisible);
        }
    } else if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(BadName::Invisible);
    }
    Ok(())
}

const ZWNJ: char = '\u{200C}';
const ZWJ: char = '\u{200D}';
const TEXT_STYLE: char = '\u{FE0E}';
const EMOJI_STYLE: char = '\u{FE0F}';
const KEYCAP: char = '\u{20E3}';
const BLACK_FLAG: char = '\u{1F3F4}';
/// The flags spelled in tags that all fonts know: England, Scotland and Wales. Others could hide
/// text.
const TAGGED_FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const TAG_END: char = '\u{E007F}';

/// Characters that make two different names look the same, or change how a name is displayed.
pub fn is_invisible(c: char) -> bool {
    let separator = matches!(c, '\u{2028}' | '\u{2029}' | '\u{FFF9}'..='\u{FFFB}');
    c.is_control() || separator || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Whether an invisible character is at a place where its script or an emoji needs it.
fn is_in_place(chars: &[char], at: usize) -> bool {
    match chars[at] {
        ZWNJ | ZWJ if is_valid_joiner(chars, at) => true,
        ZWJ => joins_emoji(chars, at),
        TEXT_STYLE | EMOJI_STYLE => styles_emoji(chars, at),
        '\u{E0020}'..=TAG_END => is_flag_tag(chars, at),
        _ => false,
    }
}

/// Whether the joiner at this index shapes the letters around it (UAX 31, A1, A2 and B).
pub fn is_valid_joiner(chars: &[char], at: usize) -> bool {
    let (before, after) = (&chars[..at], &chars[at + 1..]);
    match chars[at] {
        ZWNJ => breaks_letters(before, after) || (ends_in_virama(before) && goes_on(after)),
        ZWJ => ends_in_virama(before) && !after.first().is_some_and(|c| is_dependent_vowel(*c)),
        _ => false,
    }
}

/// Between two letters that would be joined, as in Persian.
fn breaks_letters(before: &[char], after: &[char]) -> bool {
    let types = CodePointMapData::<JoiningType>::new();
    let shaped = |c: &&char| types.get(**c) != JoiningType::Transparent;
    let joins = |c: Option<&char>, side: JoiningType| {
        c.is_some_and(|c| [side, JoiningType::DualJoining].contains(&types.get(*c)))
    };
    joins(before.iter().rev().find(shaped), JoiningType::LeftJoining)
        && joins(after.iter().find(shaped), JoiningType::RightJoining)
}

/// A letter with its marks, the last of them a virama or followed by combining marks only.
fn ends_in_virama(before: &[char]) -> bool {
    let classes = CodePointMapData::<CanonicalCombiningClass>::new();
    let mut rest = before.iter().rev().skip_while(|c| {
        let class = classes.get(**c);
        class != CanonicalCombiningClass::Virama && class != CanonicalCombiningClass::NotReordered
    });
    let virama = rest.next().is_some_and(|c| classes.get(*c) == CanonicalCombiningClass::Virama);
    let base = rest.find(|c| classes.get(**c) == CanonicalCombiningClass::NotReordered);
    virama && base.is_some_and(|c| is_letter(*c))
}

/// A letter follows, preceded by marks at most.
fn goes_on(after: &[char]) -> bool {
    let classes = CodePointMapData::<CanonicalCombiningClass>::new();
    let alone = |c: &&char| classes.get(**c) == CanonicalCombiningClass::NotReordered;
    after.iter().find(alone).is_some_and(|c| is_letter(*c))
}

fn is_letter(c: char) -> bool {
    GeneralCategoryGroup::Letter.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

fn is_dependent_vowel(c: char) -> bool {
    let category = CodePointMapData::<IndicSyllabicCategory>::new().get(c);
    category == IndicSyllabicCategory::VowelDependent
}

/// Between two pictures that form one emoji, such as a flag and a rainbow.
fn joins_emoji(chars: &[char], at: usize) -> bool {
    let picture = |c: &char| CodePointSetData::new::<ExtendedPictographic>().contains(*c);
    let modifiers = CodePointSetData::new::<EmojiModifier>();
    let undressed = |c: &&char| **c != EMOJI_STYLE && !modifiers.contains(**c);
    let before = chars[..at].iter().rev().find(undressed);
    before.is_some_and(picture) && chars.get(at + 1).is_some_and(picture)
}

/// After a character that has a text form and a picture form. Digits qualify only as keycaps:
/// without the cap they look like plain digits.
fn styles_emoji(chars: &[char], at: usize) -> bool {
    let Some(base) = at.checked_sub(1).map(|before| chars[before]) else { return false };
    let emoji = CodePointSetData::new::<Emoji>().contains(base);
    emoji && (!base.is_ascii() || chars.get(at + 1) == Some(&KEYCAP))
}

/// Within a black flag whose tags name a region.
fn is_flag_tag(chars: &[char], at: usize) -> bool {
    let Some(flag) = chars[..at].iter().rposition(|c| *c == BLACK_FLAG) else { return false };
    let spelled = |code: &&str| {
        let tags = code.bytes().map(|byte| char::from_u32(0xE0000 + u32::from(byte)));
        let tags: Vec<char> = tags.flatten().chain([TAG_END]).collect();
        chars[flag + 1..].starts_with(&tags) && at <= flag + tags.len()
    };
    TAGGED_FLAGS.iter().any(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_script_are_fine() {
        for name in ["Text-Analyst-3000", "分析師", "Ünï çödé", "a", "تحليل", "🦜 parrot"]
        {
            assert_eq!(check_name(name, 128), Ok(()), "{name}");
        }
    }

    #[test]
    fn emoji_are_fine_however_they_are_put_together() {
        for name in [
            "☁\u{fe0f} Weather",
            "☁\u{fe0e} weather",
            "❤\u{fe0f}\u{200d}🔥",
            "🏳\u{fe0f}\u{200d}🌈",
            "🏴\u{200d}☠\u{fe0f}",
            "👩🏽\u{200d}💻 coder",
            "👨\u{200d}👩\u{200d}👧\u{200d}👦",
            "🧔🏻\u{200d}♂\u{fe0f}",
            "1\u{fe0f}\u{20e3} first",
            "🇩🇪 Übersetzer",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "©\u{fe0f} Acme",
        ] {
            assert_eq!(check_name(name, 128), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn joiners_are_fine_where_a_script_needs_them() {
        for name in [
            // Persian: mi-khāham, and the plural of book.
            "می\u{200c}خواهم",
            "کتاب\u{200c}ها",
            // Across a vowel mark, which does not separate the letters.
            "مِ\u{200c}خ",
            // Devanagari ksha with a half form and with a visible virama; Sinhala rakaransaya.
            "क्\u{200d}ष",
            "क्\u{200c}ष",
            "ක්\u{200d}ර",
            // Malayalam chillu at the end of a word.
            "അവന്\u{200d}",
        ] {
            assert_eq!(check_name(name, 128), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn unseen_characters_are_refused() {
        for name in [
            "a\u{200b}b",
            "a\u{202e}b",
            "a\nb",
            "a\0",
            "\u{feff}a",
            "a\u{2066}b",
            "a\u{ad}b",
            "a\u{2028}b",
            "a\u{3164}b",
            "a\u{61c}b",
            "a\u{180e}b",
            "a\u{7f}",
        ] {
            assert_eq!(check_name(name, 128), Err(BadName::Invisible), "{name:?}");
        }
    }

    #[test]
    fn what_belongs_to_an_emoji_or_a_script_is_refused_anywhere_else() {
        for name in [
            "a\u{200d}b",
            "a\u{200c}b",
            "\u{200d}",
            "\u{200c}خ",
            "خ\u{200c}",
            // Alef never joins the letter that follows it.
            "ا\u{200c}خ",
            "خ\u{200c}\u{200c}خ",
            "☁\u{200d}",
            "\u{200d}☁",
            "☁\u{200d}\u{200d}☁",
            "☁\u{200d}a",
            "a\u{fe0f}",
            "\u{fe0f}",
            "☁\u{fe0f}\u{fe0f}",
            "agent1\u{fe0f}",
            "界\u{e0100}",
            "क\u{200d}ष",
            "क्\u{200d}\u{93e}",
            "🏴\u{e0067}\u{e007f}",
            "🏴\u{e0068}\u{e0069}\u{e007f}",
            "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}\u{e007f}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}",
        ] {
            assert_eq!(check_name(name, 128), Err(BadName::Invisible), "{name:?}");
        }
    }

    #[test]
    fn length_counts_characters_not_bytes() {
        assert_eq!(check_name(&"界".repeat(128), 128), Ok(()));
        assert_eq!(check_name(&"界".repeat(129), 128), Err(BadName::TooLong { max: 128 }));
        assert_eq!(check_name("", 128), Err(BadName::Empty));
    }
}
