//! Tests of paging.

use rialto_core::time::Timestamp;

use crate::clara::wire::result::{PageBound, Paging, ResultCursor, SortOrder};
use crate::kit::base64url;

fn at(millis: i64, place: u64) -> ResultCursor {
    ResultCursor { at: Timestamp(millis), ordinate: place }
}

#[test]
fn nothing_said_is_the_first_page_oldest_first() {
    let first = Paging { from: None, to: None, sort: SortOrder::Ascending, limit: 25 };
    for raw in ["", "from=&to=&sort=&limit=", "sort=ASC", "limit=25", "x=1"] {
        assert_eq!(Paging::read(raw), Ok(first), "{raw}");
    }
    let last = Paging { sort: SortOrder::Descending, limit: 1_000, ..first };
    assert_eq!(Paging::read("sort=DESC&limit=1000"), Ok(last));
}

#[test]
fn what_is_no_page_is_told_why() {
    let limit = "limit must be a whole number from 1 to 1000";
    let from = "from must be a cursor or milliseconds since 1970";
    for (raw, text) in [
        ("limit=0", limit),
        ("limit=1001", limit),
        ("limit=-1", limit),
        ("limit=x", limit),
        ("sort=asc", "sort must be ASC or DESC"),
        ("from=x", from),
        ("from=-5", from),
        ("from=1.5", from),
        ("from=99999999999999999999", from),
        ("to=%20", "to must be a cursor or milliseconds since 1970"),
        ("to=1&to=2", "to is given more than once"),
    ] {
        let failure = Paging::read(raw).expect_err(raw);
        assert_eq!((failure.status, &*failure.text), (400, text), "{raw}");
    }
}

#[test]
fn a_border_is_a_cursor_or_a_time() {
    let cursor = at(1_794_766_893_510, 2);
    let raw = format!("from={}&to=1737047831122", cursor.write());
    let paging = Paging::read(&raw).expect("a page");
    assert_eq!(paging.from, Some(PageBound::Cursor(cursor)));
    assert_eq!(paging.to, Some(PageBound::Time(Timestamp(1_737_047_831_122))));
}

#[test]
fn borders_are_exclusive_below_and_inclusive_above() {
    let among = |raw: &str| {
        let paging = Paging::read(raw).expect("a page");
        let all = [at(10, 1), at(10, 2), at(20, 3), at(30, 4)];
        all.into_iter().filter(|at| paging.contains(*at)).map(|at| at.ordinate).collect::<Vec<_>>()
    };
    let (one, three) = (at(10, 1).write(), at(20, 3).write());
    assert_eq!(among(""), [1, 2, 3, 4]);
    for sort in ["ASC", "DESC"] {
        assert_eq!(among(&format!("from={one}&to={three}&sort={sort}")), [2, 3]);
        assert_eq!(among(&format!("from=10&to=20&sort={sort}")), [3]);
        assert_eq!(among(&format!("from=9&to={three}&sort={sort}")), [1, 2, 3]);
    }
    assert!(among(&format!("from={three}&to={one}")).is_empty());
}

#[test]
fn a_cursor_has_one_text_and_others_are_none() {
    let cursor = at(1_794_766_893_510, 2);
    let real = "eyJ0aW1lc3RhbXAiOjE3OTQ3NjY4OTM1MTAsIm9yZGluYXRlIjoiMiIsImNyb24iOm51bGwsInNvcnQiOiJBU0MifQ";
    assert_eq!(cursor.write(), real);
    assert_eq!(ResultCursor::read(&format!("{real}==")), Some(cursor), "as compute units write it");
    for text in [
        "{}",
        r#"{"timestamp":1}"#,
        r#"{"timestamp":1,"ordinate":2}"#,
        "[]",
        "x",
        r#"{"timestamp":1,"ordinate":"-2"}"#,
        r#"{"timestamp":"1","ordinate":"2"}"#,
    ] {
        assert_eq!(ResultCursor::read(&base64url::encode(text.as_bytes())), None, "{text}");
    }
    let long = format!(r#"{{"timestamp":1,"ordinate":"2","x":"{}"}}"#, "x".repeat(300));
    assert_eq!(ResultCursor::read(&base64url::encode(long.as_bytes())), None);
}
