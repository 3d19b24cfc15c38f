//! Message views: a message as one party saw it, split into fields.

use std::collections::HashSet;

use rialto_core::alias::Protocol;
use serde_json::value::RawValue;

use super::members::Members;
use super::part::Part;
use crate::kit::object::ObjectWriter;

/// A protocol's fields and their parts, by JSON pointer. Every other field is extra.
pub type FieldParts = &'static [(&'static str, Part)];

/// Replaces a value that the reader may not see.
const HIDDEN: &str = r#""(not shown)""#;

/// One field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// A JSON pointer, or the name of a tag.
    pub name: String,
    pub part: Part,
    /// JSON text.
    pub value: String,
}

/// A message as one party saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    pub protocol: Protocol,
    /// The text that party wrote or read.
    pub payload: String,
    pub fields: Vec<Field>,
}

impl MessageView {
    /// A message that is a JSON object.
    pub fn from_json(protocol: Protocol, payload: String, layout: FieldParts) -> Self {
        let fields = read_fields(&payload, "", layout);
        Self { protocol, payload, fields }
    }

    /// The first field of this part.
    pub fn get(&self, part: Part) -> Option<&Field> {
        self.fields.iter().find(|field| field.part == part)
    }

    /// The text of the first field of this part; the JSON of a value that is not a string.
    pub fn text(&self, part: Part) -> Option<String> {
        self.get(part).map(|field| unquote(&field.value))
    }

    /// Members the protocol does not define, as one object; `None` if there are none.
    pub fn extras(&self) -> Option<String> {
        let mut extras = self.fields.iter().filter(|field| field.part == Part::Extra).peekable();
        extras.peek()?;
        let (mut all, mut taken) = (ObjectWriter::new(), HashSet::new());
        for field in extras {
            let mut name = last_segment(&field.name);
            if taken.contains(&name) {
                name.clone_from(&field.name);
            }
            // A tag's name may look like a pointer, so this name may be taken too.
            while !taken.insert(name.clone()) {
                name.insert(0, '/');
            }
            all = all.raw(&name, &field.value);
        }
        Some(all.finish())
    }

    /// The same view with the members of one field as fields of their own.
    pub fn expand_field(mut self, name: &str) -> Self {
        let Some(at) = self.fields.iter().position(|field| field.name == name) else { return self };
        let inner = read_fields(&self.fields[at].value, name, &[]);
        if !inner.is_empty() {
            self.fields.splice(at..=at, inner);
        }
        self
    }

    /// The same view with the values of these fields hidden.
    pub fn redact(mut self, is_hidden: impl Fn(&Field) -> bool) -> Self {
        let (mut payload, mut changed) = (self.payload.clone(), false);
        for field in self.fields.iter_mut().filter(|field| is_hidden(field)) {
            payload = without(&payload, &field.name);
            field.value = HIDDEN.to_owned();
            changed = true;
        }
        if changed {
            self.payload = payload;
        }
        self
    }
}

/// The fields of an object: members in the layout, members of objects the layout looks into, and
/// all others as extra.
pub fn read_fields(json: &str, at: &str, layout: FieldParts) -> Vec<Field> {
    let Some(Members(members)) = Members::read(json) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in members {
        let pointer = format!("{at}/{}", escaped(&name));
        let known = layout.iter().find(|(field, _)| *field == pointer).map(|(_, part)| *part);
        let inner = format!("{pointer}/");
        let inside = layout.iter().find(|(field, _)| field.starts_with(&inner));
        let field = |part| Field { name: pointer.clone(), part, value: value.get().to_owned() };
        match (known, inside) {
            (None, Some((_, part))) => match read_fields(value.get(), &pointer, layout) {
                // It has another form than usual, or is empty.
                none if none.is_empty() => found.push(field(*part)),
                some => found.extend(some),
            },
            (known, _) => found.push(field(known.unwrap_or(Part::Extra))),
        }
    }
    found
}

/// The last name of a pointer, or the name of a tag.
pub fn last_segment(name: &str) -> String {
    unescaped(name.rsplit('/').next().unwrap_or(name))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// The text of a JSON string; other JSON unchanged.
pub fn unquote(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())
}

/// The object with the member at this pointer hidden.
fn without(payload: &str, pointer: &str) -> String {
    let Some(Members(members)) = Members::read(payload) else { return payload.to_owned() };
    let (head, rest) = match pointer.trim_start_matches('/').split_once('/') {
        Some((head, rest)) => (unescaped(head), Some(rest)),
        None => (unescaped(pointer.trim_start_matches('/')), None),
    };
    let shown =
        |object: ObjectWriter, (name, value): (String, Box<RawValue>)| match (name == head, rest) {
            (true, Some(rest)) => object.raw(&name, &without(value.get(), rest)),
            (true, None) => object.raw(&name, HIDDEN),
            (false, _) => object.raw(&name, value.get()),
        };
    members.into_iter().fold(ObjectWriter::new(), shown).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Protocol = Protocol::new("test");
    const LAYOUT: FieldParts = &[
        ("/id", Part::Id),
        ("/to/id", Part::Worker),
        ("/bid/max", Part::Budget),
        ("/callback", Part::Callback),
    ];

    fn names(payload: &str) -> Vec<(String, Part, String)> {
        let side = MessageView::from_json(TEST, payload.to_owned(), LAYOUT);
        side.fields.into_iter().map(|field| (field.name, field.part, field.value)).collect()
    }

    #[test]
    fn every_member_becomes_a_field_and_strange_ones_are_extra() {
        let found = names(r#"{"id":1.50,"to":{"id":"x","y":[ 1 ]},"a/b~":null}"#);
        let wanted = [
            ("/id", Part::Id, "1.50"),
            ("/to/id", Part::Worker, "\"x\""),
            ("/to/y", Part::Extra, "[ 1 ]"),
            ("/a~1b~0", Part::Extra, "null"),
        ];
        let wanted = wanted.map(|(name, part, value)| (name.to_owned(), part, value.to_owned()));
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_looked_into_and_has_no_members_is_a_field_itself() {
        let found = names(r#"{"to":"did:key:x","bid":{}}"#);
        assert_eq!(found[0], ("/to".to_owned(), Part::Worker, "\"did:key:x\"".to_owned()));
        assert_eq!(found[1], ("/bid".to_owned(), Part::Budget, "{}".to_owned()));
    }

    #[test]
    fn what_is_hidden_stands_neither_in_the_field_nor_in_the_text() {
        let payload = r#"{"callback":"https://secret","bid":{"max":7,"n":1},"z":"https://secret"}"#;
        let side = MessageView::from_json(TEST, payload.to_owned(), LAYOUT);
        let hidden = side.redact(|field| matches!(field.part, Part::Callback | Part::Budget));
        let wanted =
            r#"{"callback":"(not shown)","bid":{"max":"(not shown)","n":1},"z":"https://secret"}"#;
        assert_eq!(hidden.payload, wanted);
        assert_eq!(hidden.get(Part::Budget).expect("it").value, HIDDEN);
    }

    #[test]
    fn extras_are_one_object() {
        let side =
            MessageView::from_json(TEST, r#"{"id":1,"a/b":[2],"to":{"c":3}}"#.to_owned(), LAYOUT);
        assert_eq!(side.extras().as_deref(), Some(r#"{"a/b":[2],"c":3}"#));
        assert_eq!(MessageView::from_json(TEST, r#"{"id":1}"#.to_owned(), LAYOUT).extras(), None);
        let twice = MessageView::from_json(TEST, r#"{"c":1,"to":{"c":3}}"#.to_owned(), LAYOUT);
        assert_eq!(twice.extras().as_deref(), Some(r#"{"c":1,"/to/c":3}"#));
        let tag = |name: &str| Field { name: name.into(), part: Part::Extra, value: "1".into() };
        let fields = ["b", "x/a~1b", "a/b"].map(tag).into();
        let tags = MessageView { protocol: TEST, payload: String::new(), fields };
        assert_eq!(tags.extras().as_deref(), Some(r#"{"b":1,"a/b":1,"/a/b":1}"#));
    }

    #[test]
    fn a_field_can_be_opened() {
        let side = MessageView::from_json(
            TEST,
            r#"{"id":1,"meta":{"a":1,"b":2},"x":3}"#.to_owned(),
            LAYOUT,
        );
        let names: Vec<_> = side.expand_field("/meta").fields.into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["/id", "/meta/a", "/meta/b", "/x"]);
    }
}
