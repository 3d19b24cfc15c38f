//! Formats JSON text for people: breaks it into lines and keeps everything else exact.

use std::fmt::Write as _;

use super::super::output::is_control_or_bidi;

/// Spaces per level of indentation.
const STEP: usize = 2;

/// Breaks JSON text into lines. Characters that could control a terminal are written as JSON
/// escapes, so that the meaning stays the same.
pub fn pretty(json: &str) -> String {
    let mut out = Writer { text: String::with_capacity(json.len() * 2), depth: 0 };
    let mut rest = json.chars().peekable();
    let mut in_text = false;
    while let Some(c) = rest.next() {
        match c {
            _ if in_text => {
                out.shown(c);
                match c {
                    // The next character is escaped, even a quote.
                    '\\' => rest.next().into_iter().for_each(|c| out.shown(c)),
                    '"' => in_text = false,
                    _ => {}
                }
            }
            '"' => {
                in_text = true;
                out.shown(c);
            }
            '{' | '[' => {
                out.shown(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                match rest.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => out.shown(end),
                    None => out.inwards(),
                }
            }
            '}' | ']' => {
                out.outwards();
                out.shown(c);
            }
            ',' => {
                out.shown(c);
                out.line();
            }
            ':' => out.text.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.shown(c),
        }
    }
    out.text
}

struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn shown(&mut self, c: char) {
        if !is_control_or_bidi(c) {
            return self.text.push(c);
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            write!(self.text, "\\u{unit:04x}").expect("memory can be written to");
        }
    }

    fn inwards(&mut self) {
        self.depth += 1;
        self.line();
    }

    fn outwards(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line();
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.depth * STEP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stands_on_lines_with_the_digits_it_came_with() {
        let json = r#"{"price":0.10,"big":12345678901234567890, "list":[1, {"a":null}],"none":{ },"no":[]}"#;
        let wanted = "{\n  \"price\": 0.10,\n  \"big\": 12345678901234567890,\n  \"list\": [\n    \
                      1,\n    {\n      \"a\": null\n    }\n  ],\n  \"none\": {},\n  \"no\": []\n}";
        assert_eq!(pretty(json), wanted);
        assert_eq!(pretty("0.50"), "0.50");
    }

    #[test]
    fn texts_stay_what_they_are_and_cannot_take_over_the_terminal() {
        let json = "[\"a\\\"{,:}\\\\\",\"\u{202e}\u{7f}文\"]";
        let shown = pretty(json);
        assert_eq!(shown, "[\n  \"a\\\"{,:}\\\\\",\n  \"\\u202e\\u007f文\"\n]");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(value(&shown), value(json));
    }
}
