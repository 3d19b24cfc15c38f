//! Tests with malicious schemas and values.

use std::time::{Duration, Instant};

use super::*;

/// The debug build of the validator is about twenty times slower than the release build.
fn soon<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    assert!(start.elapsed() < Duration::from_secs(20), "{what}: {:?}", start.elapsed());
    done
}

#[test]
fn references_that_never_consume_anything_are_refused() {
    for text in [
        r##"{"$ref":"#"}"##,
        r##"{"$dynamicRef":"#"}"##,
        r##"{"$recursiveRef":"#"}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"anyOf":[{"type":"string"},{"not":{"if":{"$ref":"#"}}}]}"##,
        r##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##,
        r##"{"$anchor":"me","oneOf":[{"$ref":"#me"}]}"##,
        r##"{"x":{"y":{"$ref":"#/x"},"$ref":"#/x/y"},"$ref":"#/x"}"##,
    ] {
        assert!(refusal(text).contains("would never end"), "{text}");
    }
    let tree = r##"{"type":"object","properties":{"kids":{"items":{"$ref":"#"}}}}"##;
    assert!(schema(tree).check(r#"{"kids":[{"kids":[{}]}]}"#).is_ok());
    assert_eq!(told(tree, r#"{"kids":[{"kids":[1]}]}"#), ["kids[0].kids[0] must be an object"]);
}

/// `a0` applies `a1` twice, which applies `a2` twice, and so on.
fn doubling(levels: usize, around: impl Fn(String) -> String) -> String {
    let mut defs: Vec<_> = (0..levels)
        .map(|n| {
            let next = format!(r##"{{"$ref":"#/$defs/a{}"}}"##, n + 1);
            format!(r#""a{n}":{}"#, around(next))
        })
        .collect();
    defs.push(format!(r#""a{levels}":{{"type":"integer"}}"#));
    format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{}}}}}"##, defs.join(","))
}

#[test]
fn references_that_double_are_refused_in_place() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let twice = |next: String| format!(r#"{{"{keyword}":[{next},{next}]}}"#);
        assert!(refusal(&doubling(20, twice)).contains("when references are resolved"));
    }
    let nested = |next: String| format!(r#"{{"allOf":[{next}]}}"#);
    assert!(refusal(&doubling(500, nested)).contains("nested in more than 64 schemas"));
    let aware = |next: String| format!(r#"{{"unevaluatedProperties":false,"anyOf":[{next}]}}"#);
    assert!(refusal(&doubling(30, aware)).contains("when references are resolved"));
}

#[test]
fn references_that_double_with_every_level_of_the_value_are_counted() {
    let wide = doubling(60, |next| format!(r#"{{"properties":{{"x":{next},"y":{next}}}}}"#));
    let wide = soon("compile", || schema(&wide));
    assert!(wide.check(r#"{"x":{"y":{}}}"#).is_ok());
    let both = r##"{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}"##;
    let both = soon("compile", || schema(both));
    let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
    assert!(both.check("[[[[]]]]").is_ok());
    let told = soon("check", || both.check(&deep)).expect_err("2^60");
    assert_eq!(told[0].to_string(), "value is too expensive to check against its schema");
    for text in [
        r##"{"anyOf":[{"items":{"$ref":"#"},"minItems":1},{"items":{"$ref":"#"},"minItems":1}]}"##,
        r##"{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}},"unevaluatedProperties":{"$ref":"#"}}"##,
        r##"{"unevaluatedItems":false,"anyOf":[{"prefixItems":[{"$ref":"#"}]},{"prefixItems":[{"$ref":"#"}]}]}"##,
    ] {
        let schema = schema(text);
        let objects = format!("{}1{}", r#"{"a":"#.repeat(60), "}".repeat(60));
        let _ = soon(text, || (schema.check(&deep), schema.check(&objects)));
    }
}

#[test]
fn patterns_are_linear_or_refused() {
    let evil = schema(r#"{"pattern":"(a+)+$"}"#);
    let text = format!("\"{}!\"", "a".repeat(100_000));
    assert!(soon("(a+)+$", || evil.check(&text)).is_err());
    for pattern in [r"(?=a)b", r"(a)\\1", r"(?<!a)b", r"[", r"a{99999}", r"((a{999}){999}){999}"] {
        let bad = refusal(&format!(r#"{{"properties":{{"x":{{"pattern":"{pattern}"}}}}}}"#));
        assert!(bad.starts_with("#/properties/x/pattern "), "{bad}");
        let names = format!(r#"{{"patternProperties":{{"{pattern}":{{}}}}}}"#);
        assert!(Schema::compile(&names).is_err(), "{pattern}");
    }
    let usual =
        [r"^[\\p{L} ]+$", r"^.{1,40}$", r"^[\\w.-]{1,64}$", r"^\\S+@\\S+$", r"^\\d{4}-\\d\\d$"];
    for pattern in usual {
        assert!(Schema::compile(&format!(r#"{{"pattern":"{pattern}"}}"#)).is_ok(), "{pattern}");
    }
    // So many active states that the fast engines fall back.
    let heavy = schema(r#"{"pattern":"[01]*1[01]{900}$"}"#);
    for length in [1_000, 1_000_000] {
        let text = format!("\"{}\"", "01".repeat(length / 2));
        let _ = soon("[01]*1[01]{900}$", || heavy.check(&text));
    }
    let many: Vec<_> = (0..65).map(|n| format!(r#""p{n}":{{"pattern":"x{n}"}}"#)).collect();
    let many = format!(r#"{{"properties":{{{}}}}}"#, many.join(","));
    assert!(refusal(&many).contains("more than 64 patterns"));
}

#[test]
fn large_values_and_large_schemas_meet_in_bounded_time() {
    let items = format!("[{}]", (0..9_999).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let mixed = format!(
        "[{}]",
        (0..2_400).map(|n| format!("[{},[[{}]]]", n % 2, n / 1_000)).collect::<Vec<_>>().join(",")
    );
    let big = (0..9_990_u64).map(|n| (u64::MAX - n).to_string()).collect::<Vec<_>>().join(",");
    let big = format!("[{big}]");
    let long = format!("\"{}\"", "é".repeat(500_000));
    let wide =
        |keyword: &str, one: &str| format!(r#"{{"{keyword}":[{}]}}"#, vec![one; 1_500].join(","));
    for text in [
        r#"{"uniqueItems":true}"#.to_owned(),
        wide("allOf", r#"{"uniqueItems":true}"#),
        wide("anyOf", r#"{"items":{"type":"string"}}"#),
        wide("anyOf", r#"{"type":"null"}"#),
        wide("oneOf", r#"{"maxLength":1}"#),
        wide("allOf", r#"{"contains":{"const":"x"}}"#),
        wide("allOf", r#"{"format":"email"}"#),
        r#"{"items":{"anyOf":[{"type":"string"},{"minimum":99999},{"enum":["a","b"]}]}}"#
            .to_owned(),
        r#"{"contains":{"contains":{"contains":{}}},"minContains":999999999}"#.to_owned(),
        r#"{"minItems":999999999999,"minLength":999999999999,"maxProperties":0}"#.to_owned(),
        r#"{"items":{"multipleOf":1e-300}}"#.to_owned(),
        r#"{"format":"regex"}"#.to_owned(),
        format!(
            r#"{{"items":{{"enum":[{}]}}}}"#,
            (10_000..18_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        ),
    ] {
        let what = truncate(&text, 60);
        let schema = schema(&text);
        for instance in [&items, &mixed, &big, &long] {
            let _ = soon(&what, || schema.check(instance));
        }
    }
    assert!(schema(r#"{"uniqueItems":true}"#).check(&items).is_ok());
    assert!(
        schema(r#"{"type":"array","items":{"type":"integer","minimum":0}}"#).check(&items).is_ok()
    );
    assert!(schema(r#"{"type":"string","maxLength":500000}"#).check(&long).is_ok());
    assert!(schema(r#"{"type":"integer"}"#).check("1e400").is_err());
}

#[test]
fn no_format_is_slow_or_deep_on_a_large_text() {
    let evil =
        ["(", "[", "a.", "a@", "%41", "{a}", "/~0", "1:", "\\\\", "é", "P1D", "0", "<", "\\\""];
    for format in [
        "regex",
        "email",
        "idn-email",
        "hostname",
        "idn-hostname",
        "uri",
        "uri-reference",
        "iri",
        "iri-reference",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
        "ipv4",
        "ipv6",
        "date",
        "time",
        "date-time",
        "duration",
        "uuid",
    ] {
        let schema = schema(&format!(r#"{{"format":"{format}"}}"#));
        for unit in evil {
            let text = format!("\"{}\"", unit.repeat(900_000 / unit.len()));
            let _ = soon(format, || schema.check(&text));
        }
    }
}

#[test]
fn the_stack_is_deep_enough_for_what_is_accepted() {
    let nested = |keyword: &str, levels: usize| {
        let mut text = r##"{"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"},"type":["array","object"]}"##.to_owned();
        for _ in 0..levels {
            text = format!(r#"{{"{keyword}":[{text}]}}"#);
        }
        text
    };
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for levels in [1, 3, 5, 8, 12] {
            let schema = schema(&nested(keyword, levels));
            for depth in [10, 30, 62] {
                let lists = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
                let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
                assert!(soon(keyword, || schema.check(&lists)).is_err());
                assert!(soon(keyword, || schema.check(&objects)).is_err());
            }
        }
    }
}

#[test]
fn failures_never_hold_more_than_their_limit() {
    let long = "n".repeat(60_000);
    let key = "k".repeat(500_000);
    let objects = format!("[{}]", vec!["{}"; 9_000].join(","));
    let under = format!(r#"{{"{key}":[{}]}}"#, vec!["0"; 9_000].join(","));
    let names: Vec<_> = (0..9_000).map(|n| format!(r#""{n}-{}":1"#, "x".repeat(90))).collect();
    let names = format!("{{{}}}", names.join(","));
    let all = vec![r#"{"additionalProperties":false}"#; 900].join(",");
    for (text, instance) in [
        (format!(r#"{{"items":{{"required":["{long}"]}}}}"#), &objects),
        (format!(r#"{{"items":{{"not":{{"title":"{long}"}}}}}}"#), &objects),
        (r#"{"additionalProperties":{"items":{"type":"string"}}}"#.to_owned(), &under),
        (format!(r#"{{"allOf":[{all}]}}"#), &names),
    ] {
        let what = truncate(&text, 60);
        let told = soon(&what, || schema(&text).check(instance)).expect_err(&what);
        assert!(
            told[0].message == "does not match its schema"
                || told[0].message.contains("too expensive"),
            "{told:?}"
        );
    }
}
