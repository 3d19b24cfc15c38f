//! Long input and output, in parts that fit into a result.

use rialto_protocols::kit::object::ObjectWriter;

/// Content of more characters comes in parts.
const WHOLE_MAX: usize = 20_000;

/// What is read in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Input,
    Output,
}

impl Part {
    pub fn read(name: &str) -> Self {
        if name == "input" { Self::Input } else { Self::Output }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// Whether content comes in parts.
pub fn is_long(text: &str) -> bool {
    text.len() > WHOLE_MAX && text.chars().nth(WHOLE_MAX).is_some()
}

/// A part of a JSON text, counted in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutPart<'t> {
    text: &'t str,
    from: usize,
    to: usize,
    total: usize,
}

/// The part that begins with this character. It is shorter than the limit where many of its characters
/// need an escape.
pub fn cut_part(text: &str, from: usize) -> CutPart<'_> {
    let total = text.chars().count();
    let from = from.min(total);
    let begin = text.char_indices().nth(from).map_or(text.len(), |(begin, _)| begin);
    let (mut to, mut written, mut end) = (from, 0, begin);
    for c in text[begin..].chars() {
        written += escaped_length(c);
        if written > WHOLE_MAX {
            break;
        }
        to += 1;
        end += c.len_utf8();
    }
    CutPart { text: &text[begin..end], from, to, total }
}

/// How many characters a character has in a JSON string.
fn escaped_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c.is_control() => 6,
        _ => 1,
    }
}

impl CutPart<'_> {
    pub fn write(&self, kind: Part) -> String {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        ObjectWriter::new()
            .text("of", kind.as_str())
            .text("text", self.text)
            .integer("from", number(self.from))
            .integer("to", number(self.to))
            .integer("total", number(self.total))
            .finish()
    }

    /// How to read on; `None` at the end.
    pub fn next(&self, kind: Part) -> Option<String> {
        (self.to < self.total).then(|| {
            let (kind, to) = (kind.as_str(), self.to);
            format!(r#"the {kind} goes on: get_job with "part":"{kind}","from":{to}"#)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_joined_are_the_whole_text_whatever_it_holds() {
        let texts = [
            "x".repeat(50_001),
            "\"\\".repeat(15_000),
            "é🦜".repeat(15_000),
            String::new(),
            "short".to_owned(),
        ];
        for text in texts {
            let (mut joined, mut from) = (String::new(), 0);
            loop {
                let part = cut_part(&text, from);
                let written = part.write(Part::Output);
                assert!(written.chars().count() < 21_000, "{}", written.chars().count());
                joined.push_str(part.text);
                assert_eq!((part.from, part.total), (from, text.chars().count()));
                from = part.to;
                match part.next(Part::Output) {
                    Some(next) => assert!(next.contains(&format!("\"from\":{from}"))),
                    None => break,
                }
            }
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn only_more_than_twenty_thousand_characters_are_long() {
        assert!(!is_long(&"é".repeat(20_000)));
        assert!(is_long(&"é".repeat(20_001)));
        let beyond = cut_part("abc", 7);
        assert_eq!((beyond.text, beyond.from, beyond.to), ("", 3, 3));
    }
}
