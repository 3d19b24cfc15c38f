//! Tests: violation texts, references, limits and laws.

mod hostile;

use proptest::prelude::*;

use super::*;

fn schema(text: &str) -> Schema {
    Schema::compile(text).unwrap_or_else(|bad| panic!("{bad}: {}", truncate(text, 300)))
}

fn refusal(text: &str) -> String {
    Schema::compile(text).expect_err(&truncate(text, 300)).to_string()
}

fn told(schema_text: &str, instance: &str) -> Vec<String> {
    let violations = schema(schema_text).check(instance).expect_err(instance);
    violations.iter().map(Violation::to_string).collect()
}

#[test]
fn every_common_keyword_has_a_sentence() {
    for (schema, instance, sentence) in [
        (r#"{"type":"string"}"#, "1", "value must be a string"),
        (r#"{"type":["integer","null"]}"#, "\"x\"", "value must be null or an integer"),
        (r#"{"properties":{"a":{"type":"boolean"}}}"#, r#"{"a":1}"#, "a must be true or false"),
        (r#"{"required":["title"]}"#, "{}", "title is required"),
        (r#"{"items":{"required":["title"]}}"#, "[{}]", "[0].title is required"),
        (r#"{"enum":["a",2]}"#, "3", "value must be one of \"a\", 2"),
        (r#"{"enum":["a"]}"#, "3", "value must be \"a\""),
        (r#"{"const":{"a":1}}"#, "3", "value must be {\"a\":1}"),
        (r#"{"minimum":0.0,"maximum":1.0}"#, "1.5", "value must be between 0.0 and 1.0"),
        (r#"{"minimum":1,"maximum":10}"#, "0", "value must be between 1 and 10"),
        (r#"{"maximum":1}"#, "2", "value must be ≤ 1"),
        (r#"{"minimum":1}"#, "0", "value must be ≥ 1"),
        (r#"{"exclusiveMinimum":1}"#, "1", "value must be > 1"),
        (r#"{"exclusiveMaximum":1}"#, "1", "value must be < 1"),
        (r#"{"minLength":1}"#, "\"\"", "value must have at least 1 character"),
        (r#"{"maxLength":2}"#, "\"abc\"", "value must have at most 2 characters"),
        (r#"{"pattern":"^a$"}"#, "\"b\"", "value must match the pattern ^a$"),
        (r#"{"minItems":1}"#, "[]", "value must have at least 1 item"),
        (r#"{"maxItems":1}"#, "[1,2]", "value must have at most 1 item"),
        (r#"{"minProperties":1}"#, "{}", "value must have at least 1 member"),
        (r#"{"uniqueItems":true}"#, "[1,1.0]", "value must not have the same item twice"),
        (r#"{"additionalProperties":false}"#, r#"{"x":1}"#, "value must not have members"),
        (
            r#"{"properties":{"a":{}},"additionalProperties":false}"#,
            r#"{"x":1}"#,
            "x is not allowed",
        ),
        (r#"{"multipleOf":2}"#, "3", "value must be a multiple of 2"),
        (r#"{"not":{}}"#, "3", "value must not fit the schema in not"),
        ("false", "3", "value is not allowed"),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
            "3",
            "value must fit at least one of the schemas in anyOf",
        ),
        (
            r#"{"format":"date-time"}"#,
            "\"today\"",
            "value must be an RFC 3339 time like 2026-02-11T14:15:09Z",
        ),
        (
            r#"{"format":"uuid"}"#,
            "\"1\"",
            "value must be a UUID like 550e8400-e29b-41d4-a716-446655440000",
        ),
        (r#"{"format":"ipv4"}"#, "\"1\"", "value must have the format ipv4"),
    ] {
        assert_eq!(told(schema, instance), [sentence], "{schema} {instance}");
    }
}

#[test]
fn limits_are_found_behind_references() {
    let text = r##"{"properties":{"trends":{"items":{"$ref":"#/$defs/t"}}},
        "$defs":{"t":{"properties":{"relevance_score":{"minimum":0.0,"maximum":1.0}}}}}"##;
    let instance = r#"{"trends":[{"relevance_score":1.5}]}"#;
    assert_eq!(told(text, instance), ["trends[0].relevance_score must be between 0.0 and 1.0"]);
}

#[test]
fn all_violations_are_told_up_to_a_limit_and_never_the_content() {
    let text = r#"{"items":{"type":"integer"},"minItems":99}"#;
    let secrets = format!("[{}]", vec!["\"hunter2\""; 40].join(","));
    let told = told(text, &secrets);
    assert_eq!(told.len(), VIOLATIONS_MAX);
    assert!(told.iter().all(|sentence| !sentence.contains("hunter2")), "{told:?}");
}

#[test]
fn the_draft_is_the_one_that_is_named() {
    let four = r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}"#;
    assert!(schema(four).check("1").is_err() && schema(four).check("2").is_ok());
    let seven =
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}"#;
    assert!(schema(seven).check("[1]").is_err());
    for year in ["2019-09", "2020-12"] {
        let text = format!(
            r#"{{"$schema":"https://json-schema.org/draft/{year}/schema","format":"uuid"}}"#
        );
        assert!(schema(&text).check("\"1\"").is_err(), "formats are asserted in {year}");
    }
    assert!(schema(r#"{"prefixItems":[{"type":"string"}]}"#).check("[1]").is_err());
    for other in [r#""https://example.com/schema""#, "7", r#""draft-07""#] {
        assert!(refusal(&format!(r#"{{"$schema":{other}}}"#)).starts_with("#/$schema must be one"));
    }
}

#[test]
fn references_work_inside_and_nowhere_else() {
    let text = r##"{"$id":"https://example.com/root","$ref":"#tree",
        "$defs":{"a/b":{"$anchor":"tree","properties":{"next":{"$ref":"#/$defs/a~1b"},
        "n":{"type":"integer"}}}}}"##;
    assert!(schema(text).check(r#"{"next":{"next":{"n":1}}}"#).is_ok());
    assert_eq!(told(text, r#"{"next":{"next":{"n":""}}}"#), ["next.next.n must be an integer"]);
    for away in [
        "https://example.com/s",
        "http://127.0.0.1/",
        "file:///etc/passwd",
        "other.json#/a",
        "https://json-schema.org/draft/2020-12/schema",
        "urn:x",
        "",
        "/x",
    ] {
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let text = format!(r#"{{"properties":{{"a":{{"{keyword}":"{away}"}}}}}}"#);
            let bad = Schema::compile(&text).expect_err(away);
            assert_eq!(bad.pointer, format!("/properties/a/{keyword}"));
            assert!(bad.message.contains("must stay inside this schema"), "{bad}");
        }
    }
    assert!(refusal(r##"{"$ref":"#/nowhere"}"##).contains("does not resolve"));
    assert!(refusal(r##"{"$ref":"#nothing"}"##).contains("names nothing"));
    assert!(refusal(r#"{"allOf":[{"$id":"https://example.com/x"}]}"#).contains("has $id"));
    assert!(refusal(r##"{"allOf":[{"$anchor":"a"},{"$anchor":"a"}]}"##).contains("same name"));
    assert!(schema(r#"{"properties":{"$ref":{"type":"string"},"$id":{}}}"#).check("{}").is_ok());
}

#[test]
fn schemas_have_limits() {
    assert!(refusal(&format!(r#"{{"title":"{}"}}"#, "x".repeat(TEXT_MAX))).contains("longer than"));
    let nested =
        |levels: usize| format!("{}{{}}{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    assert!(Schema::compile(&nested(DEPTH_MAX - 1)).is_ok());
    assert!(refusal(&nested(DEPTH_MAX)).contains("more than 32 levels"));
    let list = |count| format!(r#"{{"anyOf":[{}]}}"#, vec!["{}"; count].join(","));
    assert!(Schema::compile(&list(NODES_MAX - 1)).is_ok());
    assert!(refusal(&list(NODES_MAX)).contains("more than 10000 members and items"));
    assert!(Schema::compile(&list(50_000)).is_err());
    for text in ["", "1", "\"x\"", "null", "[]", "{", r#"{"a":1,"a":2}"#, r#"{"type":"thing"}"#] {
        assert!(Schema::compile(text).is_err(), "{text}");
    }
    for text in [
        r#"{"type":7}"#,
        r#"{"required":"a"}"#,
        r#"{"minimum":1e400}"#,
        r#"{"properties":{"a":5}}"#,
        r#"{"allOf":[]}"#,
        r#"{"minLength":-1}"#,
    ] {
        assert!(Schema::compile(text).is_err(), "{text}");
    }
}

#[test]
fn trivial_schemas_say_so() {
    assert!(schema("{}").is_trivial() && schema("true").is_trivial());
    assert!(!schema("false").is_trivial() && !schema(r#"{"type":"object"}"#).is_trivial());
    assert_eq!(
        schema("{}").check("{"),
        Err(vec![Violation::whole("is not valid JSON: unexpected end at byte 1")])
    );
}

/// Any small JSON value.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i32>().prop_map(|n| n.to_string()),
        "[a-z#/$~.*+()]{0,6}".prop_map(|text| format!("{text:?}")),
    ];
    let name = prop_oneof![
        Just("$ref"),
        Just("allOf"),
        Just("items"),
        Just("properties"),
        Just("not"),
        Just("anyOf"),
        Just("type"),
        Just("pattern"),
        Just("enum"),
        Just("$defs"),
        Just("a"),
        Just("dependencies"),
        Just("additionalProperties"),
        Just("unevaluatedProperties"),
        Just("$id"),
        Just("if"),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4);
        let map = proptest::collection::btree_map(name.clone(), inner, 0..4);
        prop_oneof![
            list.prop_map(|items| format!("[{}]", items.join(","))),
            map.prop_map(|map| {
                let members: Vec<_> = map.iter().map(|(k, v)| format!("{k:?}:{v}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_value_make_it_panic(schema in json(), value in json()) {
        if let Ok(schema) = Schema::compile(&schema) {
            let _ = schema.check(&value);
        }
    }

    #[test]
    fn what_fits_passes_and_what_does_not_is_told(
        low in -50_i64..50,
        span in 0_i64..50,
        n in -120_i64..120,
        names in proptest::collection::btree_set("[a-z]{1,5}", 1..5),
    ) {
        let required: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
        let text = format!(
            r#"{{"required":[{}],"additionalProperties":{{"type":"integer","minimum":{low},"maximum":{}}}}}"#,
            required.join(","), low + span
        );
        let members: Vec<_> = required.iter().map(|name| format!("{name}:{n}")).collect();
        let verdict = schema(&text).check(&format!("{{{}}}", members.join(",")));
        if (low..=low + span).contains(&n) {
            prop_assert_eq!(verdict, Ok(()));
        } else {
            prop_assert_eq!(verdict.expect_err("outside").len(), names.len());
        }
        prop_assert_eq!(schema(&text).check("{}").expect_err("empty").len(), names.len());
    }
}
