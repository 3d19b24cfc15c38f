//! Tests: what the reader accepts, what it refuses, and that serde_json agrees.

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::*;

fn why(text: &str) -> JsonErrorKind {
    read(text.as_bytes()).expect_err(text).kind
}

fn unescaped(text: &str) -> String {
    match read(text.as_bytes()).expect(text).kind {
        JsonValue::String(text) => text.into_owned(),
        other => panic!("{other:?} is not a string"),
    }
}

/// The same value as serde_json reads it.
fn as_serde(json: &Json<'_>) -> Value {
    match json.value() {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(flag) => Value::Bool(*flag),
        JsonValue::Number(digits) => serde_json::from_str(digits).expect("a number"),
        JsonValue::String(text) => Value::String(text.to_string()),
        JsonValue::Array(items) => Value::Array(items.iter().map(as_serde).collect()),
        JsonValue::Object(members) => Value::Object(
            members.iter().map(|(name, value)| (name.to_string(), as_serde(value))).collect(),
        ),
    }
}

#[test]
fn every_value_keeps_the_text_it_came_from() {
    let text = " { \"a\" : [ 1.50 , -0e+1 ] ,\r\n\t\"b\\u0062\":{} , \"c\":\"\\u00e9\" } ";
    let json = read(text.as_bytes()).expect(text);
    assert_eq!(json.raw(), text.trim());
    let list = json.get("a").expect("a");
    assert_eq!(list.raw(), "[ 1.50 , -0e+1 ]");
    let JsonValue::Array(items) = list.value() else { panic!("not an array") };
    assert_eq!(items[0].value(), &JsonValue::Number("1.50"));
    assert_eq!(items[1].raw(), "-0e+1");
    assert_eq!(json.get("bb").expect("bb").raw(), "{}");
    assert_eq!(json.get("c").expect("c").raw(), "\"\\u00e9\"");
    assert_eq!(json.get("d"), None);
    assert_eq!(list.get("a"), None);
}

#[test]
fn only_named_members_of_the_outermost_object_may_be_figures_that_are_not_finite() {
    let read = |text: &'static str| read_allowing_non_finite(text.as_bytes(), &["cost", "time"]);
    let json = read(r#"{"cost": NaN ,"time":-Infinity,"n":1}"#).expect("an object");
    assert_eq!(json.get("cost").expect("cost").raw(), "NaN");
    assert_eq!(json.get("time").expect("time").value(), &JsonValue::String("-Infinity".into()));
    assert_eq!(read(r#"{"cost":Infinity}"#).map(|json| json.raw()), Ok(r#"{"cost":Infinity}"#));
    for text in [
        "NaN",
        r#"{"other":NaN}"#,
        r#"{"cost":[NaN]}"#,
        r#"{"cost":nan}"#,
        r#"{"cost":NaNa}"#,
        r#"{"cost":NaN1}"#,
        r#"{"cost":+Infinity}"#,
        r#"{"cost":--Infinity}"#,
        r#"{"cost":Inf}"#,
        r#"{"output":{"cost":NaN}}"#,
        r#"[{"cost":NaN}]"#,
        r#"{"cost":NaN,"cost":NaN}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
        assert!(super::read(text.as_bytes()).is_err(), "{text}");
    }
    assert!(super::read(br#"{"cost":NaN}"#).is_err(), "elsewhere it is not valid JSON");
}

#[test]
fn text_without_escapes_is_borrowed() {
    let json = read("\"naïve 界\"".as_bytes()).expect("text");
    assert!(matches!(json.value(), JsonValue::String(Cow::Borrowed("naïve 界"))));
}

#[test]
fn escapes_become_their_characters() {
    assert_eq!(unescaped(r#""\"\\\/\b\f\n\r\t""#), "\"\\/\u{8}\u{c}\n\r\t");
    assert_eq!(unescaped(r#""a\u0000b\u00E9\u00e9\uFFFF""#), "a\0béé\u{ffff}");
    assert_eq!(unescaped(r#""\ud83e\uDD9C!""#), "🦜!");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let broken = read(b"\"a\xff\"").expect_err("not UTF-8");
    assert_eq!(broken, JsonError { offset: 2, kind: JsonErrorKind::NotUtf8 });
    assert!(read(b"\"\xed\xa0\x80\"").is_err(), "a surrogate in UTF-8");
    assert!(read(b"\"\xc0\x80\"").is_err(), "an overlong NUL");
    assert_eq!(why("\u{feff}{}"), JsonErrorKind::ByteOrderMark);
}

#[test]
fn nothing_may_follow_the_value() {
    for text in ["{} {}", "1 2", "null,", "{}x", "[]]", "\"a\"\0", "{}\u{a0}"] {
        assert_eq!(why(text), JsonErrorKind::TrailingText, "{text:?}");
    }
}

#[test]
fn unfinished_texts_are_refused_at_their_end() {
    for text in
        ["", " ", "{", "[", "[1", "[1,", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "\"a"]
    {
        let broken = read(text.as_bytes()).expect_err(text);
        assert_eq!(
            broken,
            JsonError { offset: text.len(), kind: JsonErrorKind::UnexpectedEnd },
            "{text:?}"
        );
    }
}

#[test]
fn what_other_readers_forgive_is_refused() {
    for text in [
        "{a:1}",
        "{'a':1}",
        "[1,]",
        "{\"a\":1,}",
        "[,]",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\":}",
        "nul",
        "True",
        "NaN",
        "Infinity",
        "+1",
        ".5",
        "//x\n1",
        "[1/*x*/]",
        "\u{b}1",
        "{1:2}",
        "undefined",
    ] {
        assert!(matches!(why(text), JsonErrorKind::UnexpectedCharacter(_)), "{text:?}");
    }
}

#[test]
fn numbers_off_the_grammar_are_refused() {
    for text in [
        "01", "-", "-01", "1.", "1.e1", "1e", "1e+", "1.2.3", "0x1F", "1_0", "--1", "1e1.5", "-.5",
        "1a", "00", "-a", "1-2", "1E--2",
    ] {
        assert_eq!(why(text), JsonErrorKind::BadNumber, "{text:?}");
        assert_eq!(why(&format!("[{text}]")), JsonErrorKind::BadNumber, "{text:?}");
    }
    for text in ["0", "-0", "10", "1.0", "-1.50E-7", "0e0", "1e999999", "123456789012345678901"] {
        assert_eq!(read(text.as_bytes()).expect(text).value(), &JsonValue::Number(text));
    }
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\ud800""#,
        r#""\ud83ex""#,
        r#""\ud83e\n""#,
        r#""\udd9c\ud83e""#,
        r#""\ud83e\u0041""#,
        r#"{"\ud800":1}"#,
        r#""\ud83e\uDD9"#,
    ] {
        assert_eq!(why(text), JsonErrorKind::LoneSurrogate, "{text}");
    }
}

#[test]
fn broken_escapes_and_raw_controls_are_refused() {
    for text in
        [r#""\x41""#, r#""\u12""#, r#""\u+123""#, r#""\u00g0""#, r#""\'""#, r#""\u12é""#, "\"\\"]
    {
        assert_eq!(why(text), JsonErrorKind::BadEscape, "{text}");
    }
    for text in ["\"a\nb\"", "\"\t\"", "\"\0\"", "\"\u{1f}\"", "{\"\n\":1}"] {
        assert_eq!(why(text), JsonErrorKind::ControlCharacter, "{text:?}");
    }
    assert_eq!(unescaped("\"\u{7f}\u{80}\""), "\u{7f}\u{80}");
}

#[test]
fn a_member_name_may_stand_once_however_it_is_written() {
    let twice = read(br#"{"a": 1, "b": 2, "\u0061": 3}"#).expect_err("a twice");
    assert_eq!(twice.to_string(), "duplicate member \"a\" at byte 17");
    assert_eq!(why(r#"{"":1,"":2}"#), JsonErrorKind::DuplicateMember(String::new()));
    assert!(read(br#"{"a":{"a":[{"a":1},{"a":2}]},"A":1}"#).is_ok());
}

#[test]
fn a_late_duplicate_among_many_members_is_found() {
    let many: String = (0..ELEMENTS_MAX - 1).map(|n| format!("\"n{n}\":0,")).collect();
    assert!(read(format!("{{{many}\"last\":0}}").as_bytes()).is_ok());
    for n in [0, 15, 16, 17, ELEMENTS_MAX - 2] {
        assert_eq!(
            why(&format!("{{{many}\"\\u006e{n}\":0}}")),
            JsonErrorKind::DuplicateMember(format!("n{n}"))
        );
    }
}

#[test]
fn a_long_duplicate_name_does_not_come_back_whole() {
    let name = "界".repeat(10_000);
    assert_eq!(
        why(&format!("{{\"{name}\":1,\"{name}\":2}}")),
        JsonErrorKind::DuplicateMember("界".repeat(64))
    );
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(nested(DEPTH_MAX).as_bytes()).is_ok());
    let deep = read(nested(DEPTH_MAX + 1).as_bytes()).expect_err("too deep");
    assert_eq!(deep, JsonError { offset: DEPTH_MAX, kind: JsonErrorKind::TooDeep });
    assert_eq!(why(&"[".repeat(1_000_000)), JsonErrorKind::TooDeep);
    assert_eq!(why(&"{\"a\":".repeat(100_000)), JsonErrorKind::TooDeep);
    assert!(read(format!("[{}]", vec!["{\"a\":[]}"; 1_000].join(",")).as_bytes()).is_ok());
}

#[test]
fn members_and_items_are_counted_together() {
    let list = |items: usize| format!("{{\"a\":[{}]}}", vec!["0"; items].join(","));
    assert!(read(list(ELEMENTS_MAX - 1).as_bytes()).is_ok());
    assert_eq!(why(&list(ELEMENTS_MAX)), JsonErrorKind::TooManyElements);
}

#[test]
fn an_error_says_what_is_wrong_and_where() {
    let shown = |text: &str| read(text.as_bytes()).expect_err(text).to_string();
    assert_eq!(shown("{\"a\" é"), "unexpected character 'é' at byte 5");
    assert_eq!(shown("[1, 02]"), "invalid number at byte 4");
    assert_eq!(shown("[1"), "unexpected end at byte 2");
    assert_eq!(shown(&"[".repeat(65)), "more than 64 levels at byte 64");
}

/// Any JSON value serde_json can hold without rounding.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_json_prints_we_read_back(value in values(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let json = read(text.as_bytes()).expect("printed JSON");
        prop_assert_eq!(as_serde(&json), value);
        prop_assert_eq!(json.raw(), text.as_str());
    }

    #[test]
    fn every_part_read_alone_is_the_same_part(value in values()) {
        let text = format!("{value:#}");
        let json = read(text.as_bytes()).expect("printed JSON");
        let mut parts = vec![&json];
        while let Some(part) = parts.pop() {
            prop_assert_eq!(&read(part.raw().as_bytes()).expect("a part"), part);
            match part.value() {
                JsonValue::Array(items) => parts.extend(items),
                JsonValue::Object(members) => parts.extend(members.iter().map(|(_, value)| value)),
                _ => {}
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn cutting_a_text_short_never_panics(value in values(), cut in any::<prop::sample::Index>()) {
        let text = value.to_string();
        let _ = read(&text.as_bytes()[..cut.index(text.len())]);
    }

    /// Texts made of JSON's own pieces, so that many are almost valid.
    #[test]
    fn we_are_never_looser_than_serde_json_and_stricter_only_by_our_rules(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "0", "1", "-", ".", "e", "E+", "true",
            "null", "\\", "\\u00", "\\ud83e", "\\udd9c", "61", " ", "\n", "é", "/",
        ]), 0..14),
    ) {
        let text = pieces.concat();
        match read(text.as_bytes()) {
            Ok(json) => {
                let raw: &RawValue = serde_json::from_str(&text).expect("serde_json reads it too");
                prop_assert_eq!(json.raw(), raw.get());
            }
            Err(broken) => {
                prop_assert!(broken.offset <= text.len());
                if !matches!(broken.kind, JsonErrorKind::DuplicateMember(_)) {
                    prop_assert!(serde_json::from_str::<Value>(&text).is_err(), "{}: {}", text, broken);
                }
            }
        }
    }
}
