//! Cultures and languages: BCP 47 tags, checked for form and stored as sent.

use oxilangtag::LanguageTag;

/// Why a text is not a culture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a BCP 47 tag like en, zh-CN or es-419, with hyphens and a language of 2 or 3 letters"
)]
pub struct BadCulture;

/// Checks a tag: well-formed by RFC 5646, in any case, with a language of 2 or 3 letters (D20).
pub fn check_language_tag(text: &str) -> Result<(), BadCulture> {
    let language = text.split('-').next().unwrap_or_default();
    let short = matches!(language.len(), 2..=3);
    match short && LanguageTag::parse(text).is_ok() {
        true => Ok(()),
        false => Err(BadCulture),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_tags_are_accepted_in_any_case() {
        for text in [
            "en",
            "zh-CN",
            "zh-Hant-TW",
            "es-419",
            "en-us",
            "en-GB-oxendict",
            "yue",
            "EN-GB",
            "en-GB-oed",
            "de-x-private",
            "en-u-ca-gregory",
            "zh-min-nan",
        ] {
            assert_eq!(check_language_tag(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "english",
            "e",
            "en_US",
            "en-",
            "-en",
            "en--US",
            "en US",
            " en",
            "x-private",
            "i-klingon",
            "root",
            "e1",
            "中文",
            "zh-中国",
            "en-toolongsubtag",
            "en\n",
        ] {
            assert_eq!(check_language_tag(text), Err(BadCulture), "{text}");
        }
    }
}
