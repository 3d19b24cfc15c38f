use proptest::prelude::*;

use super::*;

const VALUE: &str = r#"{"command":"/bin/rialto","args":["mcp","--hub"]}"#;

fn edit() -> Edit {
    Edit::Member { object: "mcpServers", name: "rialto", value: VALUE.to_owned() }
}

fn edited(text: &str) -> String {
    apply(text, &[edit()]).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn a_new_document_is_laid_out_for_people() {
    let expected = r#"{
  "mcpServers": {
    "rialto": {
      "command": "/bin/rialto",
      "args": ["mcp", "--hub"]
    }
  }
}"#;
    assert_eq!(pretty_document(&[edit()]), expected);
    assert_eq!(edited("{}"), expected);
    assert_eq!(edited("{ }\n"), format!("{expected}\n"));
}

#[test]
fn entries_are_added_in_the_documents_own_layout() {
    let text = "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t}\n}\n";
    let expected = "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"},\n\t\t\"rialto\": {\n\t\t\t\"command\": \"/bin/rialto\",\n\t\t\t\"args\": [\"mcp\", \"--hub\"]\n\t\t}\n\t}\n}\n";
    assert_eq!(edited(text), expected);
    assert_eq!(edited(&text.replace('\n', "\r\n")), expected.replace('\n', "\r\n"));
    let line = r#"{"mcpServers": {"other": {}}, "a": 1.0}"#;
    assert_eq!(
        edited(line),
        format!(r#"{{"mcpServers": {{"other": {{}}, "rialto": {VALUE}}}, "a": 1.0}}"#)
    );
}

#[test]
fn an_older_entry_is_replaced_where_it_stands_and_an_equal_one_kept() {
    let text = "{\"mcpServers\":{\"rialto\":{\"command\":\"old\"},\"b\":1}}";
    let twice = edited(&edited(text));
    assert!(twice.ends_with("},\"b\":1}}") && !twice.contains("old"), "{twice}");
    assert_eq!(edited(&twice), twice);
}

#[test]
fn an_item_is_added_once() {
    let input = Edit::Item {
        array: "inputs",
        id: "rialto-key",
        value: r#"{"type":"promptString","id":"rialto-key"}"#.to_owned(),
    };
    let add = |text: &str| apply(text, std::slice::from_ref(&input)).expect("edited");
    let expected = "{\n  \"inputs\": [{\"type\": \"promptString\", \"id\": \"rialto-key\"}]\n}";
    assert_eq!(add("{}"), expected);
    let other = "{\"inputs\": [\n  {\"id\": \"x\"}\n]}";
    let once = add(other);
    assert!(once.starts_with("{\"inputs\": [\n  {\"id\": \"x\"},\n  "), "{once}");
    assert_eq!(add(&once), once);
}

#[test]
fn what_is_no_plain_json_is_not_edited() {
    for (text, part) in [
        ("{\n  // mine\n}", "line 2"),
        ("{\"a\": 1,}", "line 1"),
        ("", "unexpected end"),
        ("[]", "not an object"),
        ("{\"a\":1,\"a\":2}", "duplicate"),
        ("{\"mcpServers\": []}", "\"mcpServers\" is not an object"),
        ("\u{feff}{}", "byte order mark"),
    ] {
        let EditError(why) = apply(text, &[edit()]).expect_err(text);
        assert!(why.contains(part), "{text:?}: {why}");
    }
}

/// JSON text with spaces in any place.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[1-9][0-9]{0,5}(\\.[0-9]{1,4})?([eE][+-]?[0-9])?",
        "\"[a-z {}\\[\\],:/#]{0,8}\"",
        Just(r#""\"quoted\\\"""#.to_owned()),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..5), space()).prop_map(|(items, space)| {
                format!("[{space}{}{space}]", items.join(&format!("{space},{space}")))
            }),
            object_of(inner),
        ]
    })
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just(" ".to_owned()), "\n[ ]{0,4}", "\r\n\t{0,2}"]
}

fn object_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (prop::collection::btree_map("[a-z]{1,6}", value, 0..5), space()).prop_map(
        |(members, space)| {
            let members = members.iter().map(|(name, value)| format!("\"{name}\":{space}{value}"));
            let members: Vec<String> = members.collect();
            format!("{{{space}{}{space}}}", members.join(&format!("{space},{space}")))
        },
    )
}

/// A client's file: an object, perhaps with servers, perhaps with ours.
fn file_text() -> impl Strategy<Value = String> {
    let servers = (object_of(json_text()), prop::option::of(json_text()), space()).prop_map(
        |(others, own, space)| match own {
            None => others,
            Some(own) => {
                let rest = others.trim_start_matches('{').trim_start();
                let comma = if rest.starts_with('}') { "" } else { "," };
                format!("{{{space}\"rialto\"{space}:{own}{comma}{rest}")
            }
        },
    );
    (object_of(json_text()), prop::option::of(servers), space()).prop_map(
        |(others, servers, space)| match servers {
            None => format!("{space}{others}{space}"),
            Some(servers) => {
                let rest = others.trim_start_matches('{').trim_start();
                let comma = if rest.starts_with('}') { "" } else { "," };
                format!("{{{space}\"mcpServers\":{space}{servers}{comma}{rest}{space}")
            }
        },
    )
}

proptest! {
    /// The new text is the old one with one piece inserted, or with our own entry replaced. All other
    /// members keep their bytes.
    #[test]
    fn other_entries_keep_every_byte(text in file_text()) {
        let before = ijson::read(text.as_bytes()).expect("generated JSON");
        let is_object = before.get("mcpServers").is_none_or(|s| matches!(s.value(), JsonValue::Object(_)));
        prop_assume!(is_object);
        let new = edited(&text);
        let after = ijson::read(new.as_bytes()).expect("still JSON");
        let servers = after.get("mcpServers").expect("the servers");
        prop_assert!(is_same(servers.get("rialto").expect("the entry").raw(), VALUE));
        let raw = |json: &Json<'_>| match json.value() {
            JsonValue::Object(members) => members
                .iter()
                .filter(|(name, _)| name != "mcpServers" && name != "rialto")
                .map(|(name, value)| (name.to_string(), value.raw().to_owned()))
                .collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        prop_assert_eq!(raw(&before), raw(&after));
        let old_servers = before.get("mcpServers").map(raw).unwrap_or_default();
        prop_assert_eq!(old_servers, raw(servers));
        // Outside of one piece, nothing changed.
        let own = before.get("mcpServers").and_then(|servers| servers.get("rialto"));
        let same_start = text.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
        let rest = text.len() - same_start;
        let same_end = text.bytes().rev().zip(new.bytes().rev()).take(rest).take_while(|(old, new)| old == new).count();
        let gone = &text[same_start..text.len() - same_end];
        match own {
            Some(own) => prop_assert!(gone.len() <= own.raw().len(), "{gone:?}"),
            None => prop_assert!(gone.trim().is_empty(), "{gone:?}"),
        }
        prop_assert_eq!(edited(&new), new);
    }
}
