//! Commands as they are typed into a shell.

/// One line that a POSIX shell reads as these words.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.contains(['"', '$', '`', '\\', '!']) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_the_shell_needs_it() {
        for (word, quoted) in [
            ("mcp", "mcp"),
            ("http://127.0.0.1:7425/mcp", "http://127.0.0.1:7425/mcp"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("it's", "\"it's\""),
            (r#"{"a":1}"#, r#"'{"a":1}'"#),
            ("$HOME", "'$HOME'"),
            (r#"it's "$x""#, r#"'it'\''s "$x"'"#),
            ("x?max_price=1", "\"x?max_price=1\""),
        ] {
            assert_eq!(quote(word), quoted);
        }
    }
}
