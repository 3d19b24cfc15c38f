//! Fidelity notes as a table for people.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::escape_line;
use super::output::shorten;

/// Characters of a value that are shown.
const VALUE_MAX: usize = 48;

/// One note, as the hub writes it.
#[derive(Deserialize)]
pub struct NoteRow {
    field: String,
    pub fate: String,
    value: Option<Box<RawValue>>,
    to: Option<String>,
    becomes: Option<Box<RawValue>>,
    why: Option<String>,
}

/// The notes in columns, one line each.
pub fn table(rows: &[NoteRow]) -> String {
    let width = |of: fn(&NoteRow) -> &str| rows.iter().map(|row| of(row).chars().count()).max();
    let (field, fate) = (width(|row| &row.field), width(|row| &row.fate));
    let (field, fate) = (field.unwrap_or(0), fate.unwrap_or(0));
    let line = |row: &NoteRow| {
        let name = escape_line(&row.field);
        format!("  {name:field$}  {:fate$}  {}", row.fate, row.describe()).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl NoteRow {
    fn describe(&self) -> String {
        let value = self.value.as_deref().map(short);
        match (&self.to, &self.why, value) {
            (Some(to), _, _) => {
                let becomes = self.becomes.as_deref().map(|value| format!("  {}", short(value)));
                format!("→ {}{}", escape_line(to), becomes.unwrap_or_default())
            }
            (None, Some(why), _) => escape_line(why),
            (None, None, value) => value.unwrap_or_default(),
        }
    }
}

/// A value on one short line.
fn short(value: &RawValue) -> String {
    shorten(&escape_line(value.get()), VALUE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_stand_in_columns_and_on_their_lines() {
        let notes = r#"[
            {"field":"/job_id","part":"id","fate":"renamed","value":"a","to":"/id","becomes":"b"},
            {"field":"/x","part":"extra","fate":"dropped","value":1,"why":"no\nplace"},
            {"field":"/time","part":"time","fate":"defaulted","value":1.50}]"#;
        let rows: Vec<NoteRow> = serde_json::from_str(notes).expect("notes");
        let expected = "  /job_id  renamed    → /id  \"b\"\n  \
                      /x       dropped    no\\nplace\n  \
                      /time    defaulted  1.50";
        assert_eq!(table(&rows), expected);
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn long_values_are_cut() {
        let value = RawValue::from_string(format!("\"{}\"", "文".repeat(100))).expect("JSON");
        assert_eq!(short(&value).chars().count(), VALUE_MAX + 1);
    }
}
