//! Texts that agents choose: what may stand in a name, and how long it may be.

/// Why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Nothing there.
    #[error("must not be empty")]
    Empty,
    /// More characters than a name may have.
    #[error("has more than {max} characters")]
    TooLong {
        /// Characters that are allowed.
        max: usize,
    },
    /// A character that hides, reorders or controls.
    #[error("contains a control, bidi or zero-width character")]
    Unseen,
}

/// Checks a name: 1 to `max` characters, none of them invisible.
pub fn check_name(text: &str, max: usize) -> Result<(), BadName> {
    if text.is_empty() {
        return Err(BadName::Empty);
    }
    if text.chars().count() > max {
        return Err(BadName::TooLong { max });
    }
    if text.chars().any(is_unseen) {
        return Err(BadName::Unseen);
    }
    Ok(())
}

/// Characters that make two different names look the same, or one name do something.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
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
    fn unseen_characters_are_refused() {
        for name in
            ["a\u{200b}b", "a\u{202e}b", "a\nb", "a\0", "\u{feff}a", "a\u{2066}b", "a\u{ad}b"]
        {
            assert_eq!(check_name(name, 128), Err(BadName::Unseen), "{name:?}");
        }
    }

    #[test]
    fn length_counts_characters_not_bytes() {
        assert_eq!(check_name(&"界".repeat(128), 128), Ok(()));
        assert_eq!(check_name(&"界".repeat(129), 128), Err(BadName::TooLong { max: 128 }));
        assert_eq!(check_name("", 128), Err(BadName::Empty));
    }
}
