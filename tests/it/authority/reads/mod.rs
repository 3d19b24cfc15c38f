//! Read access: every private text of a scenario in all protocols is searched for by every kind of
//! reader at every readable place.
//!
//! Each secret has its permitted readers (docs/guarantees.md), and one list says where they find
//! it. A route that shows a secret elsewhere, or to another reader, fails the suite; so does one
//! that no longer shows it.

mod life;
mod places;
mod shown;

use std::collections::{BTreeMap, BTreeSet};

use rialto_hub::app::operations;

use life::{Life, Reader};
use places::{places, read};
use shown::SHOWN;

/// A private text and its permitted readers.
struct Secret {
    name: &'static str,
    /// As it appears in responses, and nothing else does.
    text: String,
    /// The promise it tests.
    action: &'static str,
    /// Names of readers; a star stands for all.
    readers: &'static [&'static str],
}

/// Where each secret was found, and by which readers.
type Found = BTreeMap<(&'static str, String), BTreeSet<&'static str>>;

#[test]
fn every_place_where_something_private_is_shown_is_one_of_the_hubs() {
    let routes: BTreeSet<String> =
        operations().iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    for (secret, route, _) in SHOWN {
        assert!(routes.contains(*route), "{secret} at {route}: there is no such place");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_data_is_shown_only_to_its_readers() {
    let life = Life::live().await;
    let mut found = Found::new();
    let mut answers = 0;
    let readings = life.readers.iter().map(|reader| everything(&life, reader));
    for (by, (count, seen)) in life.readers.iter().zip(crate::kit::together(readings).await) {
        answers += count;
        for place in seen {
            found.entry(place).or_default().insert(by.name);
        }
    }
    for ((name, route), by) in &found {
        let secret = life.secrets.iter().find(|secret| secret.name == *name).expect("it is one");
        let for_all = secret.readers == ["*"];
        let strangers: Vec<_> =
            by.iter().filter(|one| !for_all && !secret.readers.contains(one)).collect();
        assert!(
            strangers.is_empty(),
            "{name} is shown at {route} to {strangers:?}, but it is to {}: {:?} only",
            secret.action,
            secret.readers
        );
    }
    let found: Vec<(String, String, String)> = found
        .into_iter()
        .map(|((secret, route), by)| {
            let all = by.len() == life.readers.len();
            let by = if all { "*".to_owned() } else { Vec::from_iter(by).join(", ") };
            (secret.to_owned(), route, by)
        })
        .collect();
    let wanted: BTreeSet<_> = SHOWN
        .iter()
        .map(|(secret, route, by)| (secret.to_string(), route.to_string(), by.to_string()))
        .collect();
    let found = BTreeSet::from_iter(found);
    let more: Vec<_> = found.difference(&wanted).collect();
    let less: Vec<_> = wanted.difference(&found).collect();
    assert!(more.is_empty() && less.is_empty(), "unexpected: {more:#?}\nmissing: {less:#?}");
    for secret in &life.secrets {
        for reader in secret.readers.iter().filter(|reader| **reader != "*") {
            let sees = |(name, _, by): &&(&str, &str, &str)| {
                *name == secret.name && by.split(", ").any(|one| one == *reader)
            };
            assert!(
                SHOWN.iter().any(|row| sees(&row)),
                "{}: {reader} finds it nowhere",
                secret.name
            );
        }
    }
    assert!(answers > 5_000, "{answers} answers");
    life.end().await;
}

/// Reads all places as one reader: the number of responses, and the secrets in each.
async fn everything(life: &Life, by: &Reader) -> (usize, Vec<(&'static str, String)>) {
    let (mut answers, mut seen) = (0, Vec::new());
    for place in places(life) {
        let answer = read(life, by, &place).await;
        answers += 1;
        for secret in life.secrets.iter().filter(|secret| answer.contains(&secret.text)) {
            seen.push((secret.name, place.route.clone()));
        }
    }
    (answers, seen)
}
