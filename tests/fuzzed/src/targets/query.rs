//! Query strings, and the cursors in them.

use rialto_protocols::clara::wire::message::{read_assign, read_process};
use rialto_protocols::clara::{Paging, ResultCursor};
use rialto_protocols::kit::query::{PAIRS_MAX, Query};

use super::text;

/// Checks every parser of query strings.
pub fn query(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(query) = Query::read(text) {
        let given = text.split('&').filter(|pair| !pair.is_empty()).count();
        assert!(given <= PAIRS_MAX, "{given} parameters");
        for name in ["limit", "cursor", "skill", "a", ""] {
            let limit = query.integer(name, 1..=200);
            assert!(
                limit.is_err() || limit.is_ok_and(|n| n.is_none_or(|n| (1..=200).contains(&n)))
            );
            let score = query.score(name);
            assert!(score.is_err() || score.is_ok_and(|n| n.is_none_or(|n| n <= 100_000_000)));
            let _ = query.credits(name, 2);
        }
    }
    if let Ok(paging) = Paging::read(text) {
        assert!((1..=1_000).contains(&paging.limit));
        let _ = paging.contains(ResultCursor { at: rialto_core::time::Timestamp(1), ordinate: 1 });
    }
    if let Some(cursor) = ResultCursor::read(text) {
        assert_eq!(ResultCursor::read(&cursor.write()), Some(cursor));
    }
    let _ = (read_assign(text), read_process(text));
}
