//! Edits JSON as text: what is not edited keeps every byte.

use std::ops::Range;

use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::object::ObjectWriter;

/// One change of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets a member of an object in the outermost object.
    Member { object: &'static str, name: &'static str, value: String },
    /// Adds an item to an array in the outermost object, unless one with the same `id` is there.
    Item { array: &'static str, id: &'static str, value: String },
}

/// Why a document cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError(pub String);

/// The smallest document with all edits, in one line.
pub fn document(edits: &[Edit]) -> String {
    let document = edits.iter().fold(ObjectWriter::new(), |document, edit| match edit {
        Edit::Member { object, name, value } => {
            document.raw(object, &ObjectWriter::new().raw(name, value).finish())
        }
        Edit::Item { array, value, .. } => document.raw(array, &format!("[{value}]")),
    });
    document.finish()
}

/// The text with all edits; the same text if it has them already.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    edits.iter().try_fold(text.to_owned(), |text, edit| apply_one(&text, edit))
}

fn apply_one(text: &str, edit: &Edit) -> Result<String, EditError> {
    let json = ijson::read(text.as_bytes()).map_err(|bad| {
        let before = &text.as_bytes()[..bad.offset.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        EditError(format!("line {line}: {}", bad.kind))
    })?;
    if !matches!(json.value(), JsonValue::Object(_)) {
        return Err(EditError("it is not an object".to_owned()));
    }
    let wrong = |name: &str, kind: &str| EditError(format!("its {name:?} is not {kind}"));
    let style = Style::of(text, &json);
    match edit {
        Edit::Member { object, name, value } => match json.get(object) {
            None => {
                let whole = ObjectWriter::new().raw(name, value).finish();
                Ok(insert(text, &json, &style, Some(object), &whole))
            }
            Some(found) if matches!(found.value(), JsonValue::Object(_)) => match found.get(name) {
                Some(old) if is_same(old.raw(), value) => Ok(text.to_owned()),
                Some(old) => Ok(replace(text, span(text, old), &style, value)),
                None => Ok(insert(text, found, &style, Some(name), value)),
            },
            Some(_) => Err(wrong(object, "an object")),
        },
        Edit::Item { array, id, value } => match json.get(array) {
            None => Ok(insert(text, &json, &style, Some(array), &format!("[{value}]"))),
            Some(found) => {
                let JsonValue::Array(items) = found.value() else {
                    return Err(wrong(array, "an array"));
                };
                let has_id = |item: &Json<'_>| {
                    item.get("id").is_some_and(
                        |found| matches!(found.value(), JsonValue::String(text) if text == id),
                    )
                };
                if items.iter().any(has_id) {
                    return Ok(text.to_owned());
                }
                Ok(insert(text, found, &style, None, value))
            }
        },
    }
}

/// Whether two texts are the same JSON but for spaces.
fn is_same(one: &str, other: &str) -> bool {
    compact(one) == compact(other)
}

fn compact(json: &str) -> String {
    let mut out = String::new();
    scan(json, |piece, in_string| {
        if in_string || !piece.is_ascii_whitespace() {
            out.push(piece);
        }
    });
    out
}

/// Goes through the characters of JSON text, with whether each stands in a string.
fn scan(json: &str, mut look: impl FnMut(char, bool)) {
    let (mut in_string, mut escaped) = (false, false);
    for character in json.chars() {
        let is_quote = character == '"' && !escaped;
        look(character, in_string || is_quote);
        in_string ^= is_quote;
        escaped = in_string && character == '\\' && !escaped;
    }
}

/// Where a value stands in the text it was read from.
fn span(text: &str, json: &Json<'_>) -> Range<usize> {
    let start = json.raw().as_ptr().addr() - text.as_ptr().addr();
    start..start + json.raw().len()
}

/// How a document is laid out.
struct Style {
    /// `\n` or `\r\n`.
    newline: &'static str,
    /// What one more level is indented by.
    unit: String,
}

impl Style {
    fn of(text: &str, json: &Json<'_>) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let inside = &text[span(text, json).start + 1..];
        let first = &inside[..inside.len() - inside.trim_start().len()];
        let unit = first.rsplit_once('\n').map_or("", |(_, unit)| unit);
        // An empty object, or one on a single line, says nothing.
        let unit =
            if unit.is_empty() || inside.trim_start().starts_with('}') { "  " } else { unit };
        Self { newline, unit: unit.to_owned() }
    }

    /// JSON text with one member per line, below a line that is indented like this.
    fn pretty(&self, json: &str, indent: &str) -> String {
        let mut out = String::new();
        let (mut objects, mut arrays) = (0_usize, 0_usize);
        let mut previous = ' ';
        let compact = compact(json);
        scan(&compact, |character, in_string| {
            let line =
                |depth: usize| format!("{}{indent}{}", self.newline, self.unit.repeat(depth));
            let plain = !in_string;
            match character {
                '{' if plain && arrays == 0 => objects += 1,
                '}' if plain && arrays == 0 => {
                    objects -= 1;
                    if previous != '{' {
                        out.push_str(&line(objects));
                    }
                }
                '[' if plain => arrays += 1,
                ']' if plain => arrays -= 1,
                _ => {}
            }
            if arrays == 0 && (previous == '{' || previous == ',') && character != '}' {
                out.push_str(&line(objects));
            }
            out.push(character);
            if plain && (character == ':' || (character == ',' && arrays > 0)) {
                out.push(' ');
            }
            previous = if plain { character } else { 'x' };
        });
        out
    }
}

/// The indentation of the line at an offset.
fn indent_at(text: &str, offset: usize) -> &str {
    let line = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[line..offset];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

fn replace(text: &str, at: Range<usize>, style: &Style, value: &str) -> String {
    let indent = indent_at(text, at.start);
    format!("{}{}{}", &text[..at.start], style.pretty(value, indent), &text[at.end..])
}

/// Adds a member or an item at the end of an object or array.
fn insert(text: &str, into: &Json<'_>, style: &Style, name: Option<&str>, value: &str) -> String {
    let at = span(text, into);
    let last = match into.value() {
        JsonValue::Object(members) => members.last().map(|(_, value)| value),
        JsonValue::Array(items) => items.last(),
        _ => None,
    };
    let inside = &text[at.start + 1..];
    let space = &inside[..inside.len() - inside.trim_start().len()];
    let outer = indent_at(text, at.start).to_owned();
    let quoted = name.map(|name| format!("{}: ", serde_json::Value::from(name)));
    let entry = |indent: &str| {
        let value = style.pretty(value, indent);
        format!("{}{value}", quoted.as_deref().unwrap_or_default())
    };
    match last {
        Some(last) => {
            let end = span(text, last).end;
            let before = if space.contains('\n') {
                let indent = indent_at(text, at.start + 1 + space.len());
                format!(",{}{indent}{}", style.newline, entry(indent))
            } else {
                let name = quoted.as_deref().unwrap_or_default();
                format!(", {name}{value}")
            };
            format!("{}{before}{}", &text[..end], &text[end..])
        }
        None => {
            let indent = format!("{outer}{}", style.unit);
            let end = at.end - 1;
            let whole = format!("{0}{indent}{1}{0}{outer}", style.newline, entry(&indent));
            // Nothing but space is replaced.
            format!("{}{whole}{}", &text[..at.start + 1], &text[end..])
        }
    }
}

/// A new document, laid out for people.
pub fn pretty_document(edits: &[Edit]) -> String {
    let style = Style { newline: "\n", unit: "  ".to_owned() };
    style.pretty(&document(edits), "")
}

#[cfg(test)]
mod tests;
