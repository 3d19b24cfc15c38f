//! Long input and output, in parts that fit into a result (R29). Joined, the parts are its JSON text.

use rialto_protocols::kit::object::ObjectWriter;

/// The longest JSON text that stands in a result whole, in characters; also the longest part, as it is
/// written with its escapes.
pub const WHOLE_MAX: usize = 20_000;

/// Whether a JSON text has to come in parts.
pub fn is_long(json: &str) -> bool {
    json.len() > WHOLE_MAX && json.chars().count() > WHOLE_MAX
}

/// The part that begins after so many characters, as JSON text of an object. `of` is `input` or
/// `output`.
pub fn write_part(of: &str, json: &str, from: usize) -> String {
    let total = json.chars().count();
    let from = from.min(total);
    let mut room = WHOLE_MAX;
    let fits = |c: &char| {
        let length = escaped_length(*c);
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let text: String = json.chars().skip(from).take_while(fits).collect();
    let to = from + text.chars().count();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    ObjectWriter::new()
        .text("of", of)
        .text("text", &text)
        .integer("from", number(from))
        .integer("to", number(to))
        .integer("total", number(total))
        .finish()
}

/// How many characters a JSON string needs for one.
fn escaped_length(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        control if control < ' ' => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn joined_parts_are_the_json_text_whatever_it_holds() {
        for piece in ["a", "\\\"", "é🦜", r#"{"k":[1.50]},"#] {
            let json =
                format!("[{}0]", serde_json::to_string(&piece.repeat(9_000)).expect("JSON") + ",");
            assert!(is_long(&json) || piece == "a");
            let (mut joined, mut from) = (String::new(), 0);
            loop {
                let part = write_part("input", &json, from);
                assert!(part.chars().count() <= WHOLE_MAX + 100, "{}", part.chars().count());
                let part: Value = serde_json::from_str(&part).expect("JSON");
                assert_eq!(
                    (&part["of"], part["from"].as_u64()),
                    (&"input".into(), Some(from as u64))
                );
                joined.push_str(part["text"].as_str().expect("a text"));
                let to = part["to"].as_u64().expect("a number") as usize;
                assert!(to > from);
                from = to;
                if part["to"] == part["total"] {
                    break;
                }
            }
            assert_eq!(joined, json);
        }
        let after: Value = serde_json::from_str(&write_part("output", "{}", 9)).expect("JSON");
        assert_eq!(after.to_string(), r#"{"from":2,"of":"output","text":"","to":2,"total":2}"#);
    }
}
