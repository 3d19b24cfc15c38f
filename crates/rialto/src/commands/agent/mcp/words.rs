//! Splits a command line into words as a shell does. No shell runs it, so nothing is expanded.

/// The words of a command line, or why it cannot be split.
pub fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or("a quote ' is not closed")? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or("a quote \" is not closed")? {
                        '"' => break,
                        '\\' => match rest.next().ok_or("a quote \" is not closed")? {
                            '\n' => {}
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => match rest.next().ok_or("it ends with a backslash")? {
                '\n' => {}
                c => word.get_or_insert_default().push(c),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell_and_nothing_is_expanded() {
        for (line, words) in [
            ("npx -y some-server", vec!["npx", "-y", "some-server"]),
            ("  a\t'b c'  \"d e\" ", vec!["a", "b c", "d e"]),
            (r#"a\ b "\"\$\x" '\'"#, vec!["a b", "\"$\\x", "\\"]),
            ("a'b'\"c\"d ''", vec!["abcd", ""]),
            ("echo $HOME * `ls` | cat;#x", vec!["echo", "$HOME", "*", "`ls`", "|", "cat;#x"]),
            ("", vec![]),
        ] {
            assert_eq!(split(line).expect(line), words, "{line}");
        }
        for line in ["a 'b", "a \"b", "a \\", "\"\\"] {
            assert!(split(line).is_err(), "{line}");
        }
    }
}
