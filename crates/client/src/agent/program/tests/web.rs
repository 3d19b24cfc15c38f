//! Your own HTTP servers as handlers.

use super::super::http_program::key;
use super::job;
use crate::agent::Job;

#[test]
fn every_try_at_a_job_has_one_key_and_no_other_job_has_it() {
    let first = job("a", "{}");
    assert_eq!(key(&first), key(&Job { epoch: 2, ..first.clone() }));
    for other in [
        Job { id: "b".to_owned(), ..first.clone() },
        Job { requester: "stranger".to_owned(), ..first.clone() },
        Job { skill: "other".to_owned(), ..first.clone() },
        Job { id: "aal".to_owned(), requester: "ice".to_owned(), ..first.clone() },
    ] {
        assert_ne!(key(&first), key(&other), "{other:?}");
    }
}
