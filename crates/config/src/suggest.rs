//! Suggests the key that was probably meant.

use strsim::damerau_levenshtein;

/// A key is suggested only if it has at most one mistake per this many letters.
const LETTERS_PER_MISTAKE: usize = 3;

/// The known key nearest to `given`, if one is near enough; the first of several. The right name in
/// the wrong section, or in none, counts as one mistake.
pub fn nearest_key<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let distance = |key: &str| {
        let moved = 1 + damerau_levenshtein(last_part(&given), last_part(key));
        moved.min(damerau_levenshtein(&given, key))
    };
    known
        .map(|key| (distance(key), key))
        .filter(|(mistakes, _)| mistakes * LETTERS_PER_MISTAKE <= given.len())
        .min_by_key(|(mistakes, _)| *mistakes)
        .map(|(_, key)| key)
}

fn last_part(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] =
        ["http.listen", "http.body_limit", "egress.timeout", "data.dir", "cluster.listen"];

    fn guess(given: &str) -> Option<&'static str> {
        nearest_key(given, KNOWN.into_iter())
    }

    #[test]
    fn slips_of_the_finger_are_understood() {
        assert_eq!(guess("http.listn"), Some("http.listen"));
        assert_eq!(guess("http.body-limit"), Some("http.body_limit"));
        assert_eq!(guess("htpp.listen"), Some("http.listen"));
        assert_eq!(guess("Http.Listen"), Some("http.listen"));
    }

    #[test]
    fn the_right_name_in_the_wrong_place_is_understood() {
        assert_eq!(guess("server.listen"), Some("http.listen"));
        assert_eq!(guess("timeout"), Some("egress.timeout"));
        assert_eq!(guess("listen"), Some("http.listen"), "the first of two");
    }

    #[test]
    fn nothing_is_guessed_when_nothing_is_near() {
        assert_eq!(guess("colour.theme"), None);
        assert_eq!(guess(""), None);
    }
}
