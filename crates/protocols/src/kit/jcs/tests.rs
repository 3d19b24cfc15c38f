//! Tests: the worked values of RFC 8785 and of the agora book, the laws, and two other
//! implementations: the serde canonicaliser on whole values, and Node on a million doubles.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::kit::ijson;

fn of(text: &str) -> Result<String, CanonicalError> {
    canonicalize(&ijson::read(text.as_bytes()).expect(text))
}

#[test]
fn the_books_numbers_are_printed_as_it_says() {
    for (given, wanted) in [
        ("5.0", "5"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e5", "0"),
        ("4.50", "4.5"),
        ("2e-3", "0.002"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1E30", "1e+30"),
        ("333333333.33333329", "333333333.3333333"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("9007199254740993.0", "9007199254740992"),
        ("1e-400", "0"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ] {
        assert_eq!(of(given).as_deref(), Ok(wanted), "{given}");
        assert_eq!(canonical_number(given).as_deref(), Ok(wanted), "{given}");
    }
    assert_eq!(
        (format_double(-0.0), format_double(1e21), format_double(f64::NAN)),
        ("0".into(), "1e+21".into(), "null".into())
    );
}

#[test]
fn integers_two_of_which_share_a_double_are_refused() {
    let huge = "9".repeat(400);
    for given in ["9007199254740992", "9007199254740993", "-9007199254740992", huge.as_str()] {
        assert_eq!(canonical_number(given), Err(BadNumber::UnsafeInteger), "{given}");
    }
    for given in ["1e309", "-1e309", "1.8e308", "1e99999999999999999999"] {
        assert_eq!(canonical_number(given), Err(BadNumber::NotFinite), "{given}");
    }
}

#[test]
fn a_refused_number_is_pointed_at() {
    let bad = of(r#"{"a":1,"payload":{"cost":9007199254740992}}"#).expect_err("too large");
    assert_eq!(bad.to_string(), "/payload/cost is an integer beyond 9007199254740991");
    assert_eq!(Malformed::from(bad).message, "cost is an integer beyond 9007199254740991");
    let bad = of(r#"{"a/b~":[0,{"x":[1e999]}]}"#).expect_err("too large");
    assert_eq!(bad.field, "/a~1b~0/1/x/0");
    let bad = of("1e999").expect_err("too large");
    assert_eq!(
        (bad.field.as_str(), Malformed::from(bad.clone()).message.as_str()),
        ("", "body is not a finite double")
    );
    let long = format!(r#"{{"{}":1e999}}"#, "n".repeat(1_000));
    assert_eq!(of(&long).expect_err("too large").field.len(), 65);
}

#[test]
fn members_stand_in_the_order_of_their_utf_16_units() {
    let text = r#"{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"\u00f6":4,"1":5,"\r":6}"#;
    let wanted = "{\"\\r\":6,\"1\":5,\"ö\":4,\"€\":3,\"😀\":2,\"\u{fb33}\":1}";
    assert_eq!(of(text).as_deref(), Ok(wanted));
    assert_eq!(of(r#"{"aa":1,"":2,"a":3,"B":4}"#).as_deref(), Ok(r#"{"":2,"B":4,"a":3,"aa":1}"#));
}

#[test]
fn only_what_must_be_escaped_is() {
    let text = r#""\u20ac\/$\u000F\u000aA'\u0042\u0022\u005c\\\"\b\f\t\u007f\u2028\u00E9""#;
    let wanted = "\"€/$\\u000f\\nA'B\\\"\\\\\\\\\\\"\\b\\f\\t\u{7f}\u{2028}é\"";
    assert_eq!(of(text).as_deref(), Ok(wanted));
}

#[test]
fn one_member_can_be_written_otherwise_or_left_out() {
    let json =
        ijson::read(br#"{"s":{"z":1,"t":"x","a":2},"t":"y","r":{"s":{"t":3}}}"#).expect("JSON");
    let edited = |path: &[&str], to| {
        canonicalize_with(&json, Edit { path, replacement: to }).expect("numbers")
    };
    assert_eq!(
        edited(&["s", "t"], Some("\"\"")),
        r#"{"r":{"s":{"t":3}},"s":{"a":2,"t":"","z":1},"t":"y"}"#
    );
    assert_eq!(edited(&["s", "t"], None), r#"{"r":{"s":{"t":3}},"s":{"a":2,"z":1},"t":"y"}"#);
    assert_eq!(edited(&["r"], None), r#"{"s":{"a":2,"t":"x","z":1},"t":"y"}"#);
    for path in [&["x"][..], &["s", "x"], &["t", "s"], &["s", "t", "x"], &[]] {
        assert_eq!(edited(path, Some("7")), canonicalize(&json).expect("numbers"), "{path:?}");
    }
}

/// JSON of every kind, with names that are hard to sort.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-SAFE_MAX..=SAFE_MAX).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let name = prop_oneof![any::<String>(), "[\\u{d7f0}-\\u{10010}a\"\\\\\u{1}]{0,4}"];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value with the members of every object reversed and whitespace everywhere.
fn shuffled(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(shuffled).collect();
            format!("[ {}\n]", items.join(" ,\t"))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .rev()
                .map(|(name, value)| {
                    format!("{} :\r{}", Value::from(name.as_str()), shuffled(value))
                })
                .collect();
            format!("{{ {} }}", members.join(" , "))
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn the_canonical_text_of_a_canonical_text_is_itself(value in any_json()) {
        let once = of(&value.to_string()).expect("numbers");
        match of(&once) {
            Ok(twice) => prop_assert_eq!(&twice, &once),
            Err(bad) => prop_assert_eq!(bad.reason, BadNumber::UnsafeInteger),
        }
        let back: Value = serde_json::from_str(&once).expect("JSON");
        prop_assert_eq!(serde_json_canonicalizer::to_string(&back).expect("JSON"), once);
    }

    #[test]
    fn a_canonical_number_is_refused_only_where_it_has_become_a_large_integer(
        exponent in 50..72_i32,
        mantissa in 1.0..2.0_f64,
        sign in prop::sample::select(vec![-1.0, 1.0]),
    ) {
        let value = sign * mantissa * 2_f64.powi(exponent);
        let large = value.abs() > SAFE_MAX as f64 && value.abs() < 1e21;
        prop_assert_eq!(canonical_number(&format_double(value)).is_err(), large, "{}", value);
    }

    #[test]
    fn order_and_white_space_do_not_matter(value in any_json()) {
        prop_assert_eq!(of(&shuffled(&value)), of(&value.to_string()));
    }

    #[test]
    fn the_serde_canonicaliser_agrees(value in any_json()) {
        let theirs = serde_json_canonicalizer::to_string(&value).expect("numbers");
        prop_assert_eq!(of(&value.to_string()), Ok(theirs));
    }

    #[test]
    fn names_compare_as_their_utf_16_forms(a in any::<String>(), b in any::<String>()) {
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        prop_assert_eq!(compare_utf16(&a, &b), units(&a).cmp(&units(&b)));
    }

    #[test]
    fn names_around_the_surrogates_do_too(
        a in "[a\\u{d7fe}-\\u{e003}\\u{fffe}-\\u{10002}]{0,4}",
        b in "[a\\u{d7fe}-\\u{e003}\\u{fffe}-\\u{10002}]{0,4}",
    ) {
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        prop_assert_eq!(compare_utf16(&a, &b), units(&a).cmp(&units(&b)));
    }

    #[test]
    fn a_printed_double_is_read_as_the_same_double(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        prop_assert_eq!(format_double(value).parse::<f64>(), Ok(value));
    }
}

/// Doubles at which the printed form changes, and their neighbours.
fn boundaries() -> impl Iterator<Item = f64> {
    let powers = (-324..=308).map(|e| format!("1e{e}").parse::<f64>().expect("a number"));
    let twos = (-1074..=1023).map(|e| 2_f64.powi(e));
    let named =
        [0.0, -0.0, 333_333_333.333_333_3, 1.0 / 3.0, f64::MAX, f64::MIN_POSITIVE, 0.1 + 0.2];
    powers.chain(twos).chain(named).flat_map(|v| [v, v.next_up(), v.next_down(), -v])
}

/// All bit patterns are equally likely, and the sequence is always the same.
fn scattered(count: u64) -> impl Iterator<Item = f64> {
    (1..=count).map(|n| {
        let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from_bits(z ^ (z >> 31))
    })
}

#[test]
fn node_prints_a_million_doubles_as_we_do() {
    const SCRIPT: &str = "const b = require('fs').readFileSync(0);
        const v = new Float64Array(b.buffer, b.byteOffset, b.length / 8);
        const out = new Array(v.length);
        for (let i = 0; i < v.length; i++) out[i] = String(v[i]);
        require('fs').writeFileSync(1, out.join('\\n'));";
    let values: Vec<f64> =
        boundaries().chain(scattered(1_010_000)).filter(|value| value.is_finite()).collect();
    assert!(values.len() > 1_000_000, "{}", values.len());
    let mut node = Command::new("node")
        .args(["-e", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect(
            "this test asks `node` how ECMAScript prints numbers; install it and put it on PATH",
        );
    let mut stdin = node.stdin.take().expect("its input was asked for");
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    stdin.write_all(&bytes).expect("node reads all before it writes");
    drop(stdin);
    let printed = node.wait_with_output().expect("node ends");
    assert!(printed.status.success(), "node failed");
    let printed = String::from_utf8(printed.stdout).expect("text");
    let mut buffer = ryu_js::Buffer::new();
    let mut lines = printed.lines();
    for value in &values {
        let theirs = lines.next().expect("one line each");
        assert_eq!(buffer.format_finite(*value), theirs, "{:x}", value.to_bits());
    }
    assert_eq!(lines.next(), None);
}
