//! Notes: what became of every field on its way from one side to the other.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::part::Part;
use super::side::{Field, Side, own_name};
use crate::kit::write;

/// Values longer than this are not said again in a note: they stand in the message beside it.
const VALUE_MAX: usize = 256;
/// Strange members of one message that are looked at one by one.
const EXTRAS_MAX: usize = 256;

/// What became of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The field, as its own side names it.
    pub field: Field,
    pub fate: Fate,
}

/// How a field fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The same name and the same value.
    Kept,
    /// Under another name or in another form.
    Renamed {
        to: String,
        /// The new form, if it is another.
        becomes: Option<String>,
    },
    /// Made up by the hub: nothing the asking side said led to it.
    Defaulted,
    /// Not passed on.
    Dropped { why: String },
}

impl Fate {
    /// Its name outside.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Renamed { .. } => "renamed",
            Self::Defaulted => "defaulted",
            Self::Dropped { .. } => "dropped",
        }
    }
}

/// What became of every field of `asked`, and which of `given` nobody asked for.
pub fn notes(asked: &Side, given: &Side) -> Vec<Note> {
    let ((asked, unseen), (given, _)) = (bounded(asked), bounded(given));
    let given = &*given;
    let mut fed = vec![false; given.fields.len()];
    let mut notes = Vec::with_capacity(asked.fields.len() + given.fields.len());
    for field in &asked.fields {
        let fate = match carrier(field, given) {
            Some(at) => {
                feed(&mut fed, field.part, at, given);
                carried(field, &given.fields[at])
            }
            None => dropped(field.part, given),
        };
        notes.push(Note { field: field.clone(), fate });
    }
    let unfed = given.fields.iter().zip(fed).filter(|(_, fed)| !fed);
    notes.extend(unfed.map(|(field, _)| Note { field: field.clone(), fate: Fate::Defaulted }));
    notes.extend(unseen);
    notes
}

/// A side with as many strange members as are looked at, and a note about the others.
fn bounded(side: &Side) -> (Cow<'_, Side>, Option<Note>) {
    let is_extra = |field: &&Field| field.part == Part::Extra;
    let extras = side.fields.iter().filter(is_extra).count();
    if extras <= EXTRAS_MAX {
        return (Cow::Borrowed(side), None);
    }
    let mut left = EXTRAS_MAX;
    let mut short = side.clone();
    short.fields.retain(|field| {
        let extra = field.part == Part::Extra;
        left -= usize::from(extra && left > 0);
        !extra || left > 0
    });
    let unseen = side.fields.len() - short.fields.len();
    let field = Field { name: "/*".to_owned(), part: Part::Extra, value: unseen.to_string() };
    let why = "too many members to list one by one".to_owned();
    (Cow::Owned(short), Some(Note { field, fate: Fate::Dropped { why } }))
}

/// Which field of the given side says what this one says.
fn carrier(field: &Field, given: &Side) -> Option<usize> {
    let same = |other: &Field| other.part == field.part && is_same(field, other);
    let mut all = given.fields.iter();
    let kept = all.position(|other| other.name == field.name && same(other));
    kept.or_else(|| given.fields.iter().position(same))
}

/// Whether another field of the same part says the same.
fn is_same(field: &Field, other: &Field) -> bool {
    match field.part {
        // Two strange members of one value need not have to do with each other.
        Part::Extra => {
            let called = own_name(&other.name);
            field.value == other.value && (called == own_name(&field.name) || called == field.name)
        }
        part => part.is_translated() || field.value == other.value,
    }
}

/// Whatever says the same thing twice was told it once.
fn feed(fed: &mut [bool], part: Part, at: usize, given: &Side) {
    for (fed, (place, field)) in fed.iter_mut().zip(given.fields.iter().enumerate()) {
        *fed |= place == at || (part.is_translated() && field.part == part);
    }
}

fn carried(from: &Field, to: &Field) -> Fate {
    match (from.name == to.name, from.value == to.value) {
        (true, true) => Fate::Kept,
        (_, same) => {
            Fate::Renamed { to: to.name.clone(), becomes: (!same).then(|| to.value.clone()) }
        }
    }
}

fn dropped(part: Part, given: &Side) -> Fate {
    let no_place = || format!("{} has no field for it", given.protocol);
    Fate::Dropped { why: part.why_dropped().map_or_else(no_place, str::to_owned) }
}

/// JSON that is short enough to be said twice.
fn brief(json: &str) -> Option<Box<RawValue>> {
    (json.len() <= VALUE_MAX).then(|| write::verbatim(json))
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("field", &self.field.name)?;
        map.serialize_entry("part", self.field.part.as_str())?;
        map.serialize_entry("fate", self.fate.as_str())?;
        if let Some(value) = brief(&self.field.value) {
            map.serialize_entry("value", &value)?;
        }
        match &self.fate {
            Fate::Renamed { to, becomes } => {
                map.serialize_entry("to", to)?;
                if let Some(becomes) = becomes.as_deref().and_then(brief) {
                    map.serialize_entry("becomes", &becomes)?;
                }
            }
            Fate::Dropped { why } => map.serialize_entry("why", why)?,
            Fate::Kept | Fate::Defaulted => {}
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rialto_core::alias::Protocol;

    use super::*;

    const ONE: Protocol = Protocol::new("one");
    const OTHER: Protocol = Protocol::new("other");

    fn side(protocol: Protocol, fields: &[(&str, Part, &str)]) -> Side {
        let field = |(name, part, value): &(&str, Part, &str)| Field {
            name: (*name).to_owned(),
            part: *part,
            value: (*value).to_owned(),
        };
        Side { protocol, payload: String::new(), fields: fields.iter().map(field).collect() }
    }

    fn told(asked: &[(&str, Part, &str)], given: &[(&str, Part, &str)]) -> Vec<String> {
        let notes = notes(&side(ONE, asked), &side(OTHER, given));
        notes.iter().map(|note| serde_json::to_string(note).expect("JSON")).collect()
    }

    #[test]
    fn the_same_name_and_value_is_kept() {
        let told = told(&[("/input", Part::Input, "{}")], &[("/input", Part::Input, "{}")]);
        assert_eq!(told, [r#"{"field":"/input","part":"input","fate":"kept","value":{}}"#]);
    }

    #[test]
    fn another_name_or_form_is_renamed_once_however_often_it_is_said() {
        let asked = [("/skill", Part::Skill, "\"x\"")];
        let given = [("/resource", Part::Skill, "\"agora:x:v1\""), ("/again", Part::Skill, "1")];
        let wanted = r#"{"field":"/skill","part":"skill","fate":"renamed","value":"x","to":"/resource","becomes":"agora:x:v1"}"#;
        assert_eq!(told(&asked, &given), [wanted]);
    }

    #[test]
    fn what_is_not_translated_is_the_same_or_dropped_and_made_anew() {
        let told = told(
            &[("/at", Part::Time, "\"a\""), ("/sig", Part::Signature, "\"s\"")],
            &[("/time", Part::Time, "\"b\""), ("/proof", Part::Signature, "\"s\"")],
        );
        assert!(told[0].contains(r#""fate":"dropped""#), "{}", told[0]);
        assert!(told[1].contains(r#""to":"/proof""#), "{}", told[1]);
        assert!(told[2].contains(r#""field":"/time","part":"time","fate":"defaulted""#));
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn what_has_no_place_is_dropped_and_says_so() {
        let told = told(&[("/priority", Part::Priority, "3")], &[]);
        assert!(told[0].ends_with(r#""why":"other has no place for it"}"#), "{}", told[0]);
    }

    #[test]
    fn strange_members_go_by_name() {
        let asked = [("/x", Part::Extra, "true"), ("/y", Part::Extra, "true")];
        let told = told(&asked, &[("/meta/y", Part::Extra, "true")]);
        assert!(told[0].contains(r#""fate":"dropped""#), "{}", told[0]);
        assert!(told[1].contains(r#""to":"/meta/y""#), "{}", told[1]);
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn long_values_are_not_said_twice() {
        let long = format!("\"{}\"", "x".repeat(VALUE_MAX));
        let told = told(&[("/input", Part::Input, &long)], &[("/in", Part::Input, "1")]);
        assert_eq!(
            told[0],
            r#"{"field":"/input","part":"input","fate":"renamed","to":"/in","becomes":1}"#
        );
    }

    const PARTS: [Part; 8] = [
        Part::Id,
        Part::Input,
        Part::Budget,
        Part::Time,
        Part::Signature,
        Part::Extra,
        Part::Turn,
        Part::Requester,
    ];

    prop_compose! {
        fn any_side(protocol: Protocol)(
            picked in proptest::collection::vec((0..PARTS.len(), 0..4_u8), 0..12),
        ) -> Side {
            let field = |(at, (part, value)): (usize, &(usize, u8))| Field {
                name: format!("/{at}"),
                part: PARTS[*part],
                value: value.to_string(),
            };
            let fields = picked.iter().enumerate().map(field).collect();
            Side { protocol, payload: String::new(), fields }
        }
    }

    proptest! {
        #[test]
        fn every_field_of_both_sides_is_accounted_for(
            asked in any_side(ONE), given in any_side(OTHER),
        ) {
            let all = notes(&asked, &given);
            let (own, made): (Vec<_>, Vec<_>) =
                all.iter().partition(|note| note.fate != Fate::Defaulted);
            // Every asked field has exactly one note, in order.
            let names: Vec<_> = own.iter().map(|note| &note.field).collect();
            prop_assert_eq!(names, asked.fields.iter().collect::<Vec<_>>());
            for field in &given.fields {
                let fed = own.iter().any(|note| {
                    let says = match &note.fate {
                        Fate::Kept => Some(&note.field.name),
                        Fate::Renamed { to, .. } => Some(to),
                        Fate::Defaulted | Fate::Dropped { .. } => None,
                    };
                    let again = note.field.part == field.part && field.part.is_translated();
                    says.is_some_and(|name| *name == field.name || again)
                });
                let told = made.iter().filter(|note| note.field == *field).count();
                prop_assert_eq!(told, usize::from(!fed), "{:?}", field);
            }
        }
    }
}
