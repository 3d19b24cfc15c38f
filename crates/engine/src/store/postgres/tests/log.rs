//! Appending and following: one chain, whichever node appends.

use rialto_core::alias::{Alias, Protocol};
use rialto_core::changes::ForNodes;
use rialto_core::id::AliasId;

use super::*;
use crate::store::log::ChainHash;

fn query(after: Place) -> LookQuery {
    LookQuery { after, with_batches: true }
}

#[test]
fn of_two_stores_at_the_same_place_one_appends() {
    let Some(cluster) = Cluster::create("of_two_stores_at_the_same_place_one_appends") else {
        return;
    };
    let (mut first, mut second) = (cluster.open(), cluster.open());
    for n in 1..=3 {
        commit(&mut first, &line(n));
        let batch = Batch::new(line(n), ExpiredRows::default());
        let log = second.log();
        let taken = log.lock().append(&batch).unwrap_err();
        assert!(matches!(taken, StoreError::Taken { number } if number == n), "{taken}");
        let again = log.lock().append(&batch).unwrap_err();
        assert!(matches!(again, StoreError::Unreachable(_)), "only after it has followed: {again}");
        let look = shared_log(&second).look(query(second.place())).unwrap();
        let LoggedBatch { place, batch, .. } = &look.batches[0];
        second.publish(Some(*place), &batch.changes, &batch.expired);
        log.lock().continue_at(*place, n, batch.changes.next.unwrap());
    }
    commit(&mut second, &line(4));
    let lost = first.log().lock().confirm_head().unwrap_err();
    assert!(matches!(lost, StoreError::Taken { number: 4 }), "{lost}");
    second.log().lock().confirm_head().unwrap();
}

#[test]
fn batches_read_back_equal_what_was_appended() {
    let Some(cluster) = Cluster::create("batches_read_back_equal_what_was_appended") else {
        return;
    };
    let (store, mut place) = (cluster.open(), Place::default());
    let log = store.log();
    log.lock().continue_at(place, 7, Counters::default());
    let mut appended = Vec::new();
    for n in 1..=300 {
        let for_nodes = ForNodes {
            at: Timestamp(5),
            last_seen: vec![(AgentId(n), Timestamp(6))],
            ..ForNodes::default()
        };
        let batch = Batch { changes: line(n), for_nodes, ..Batch::default() };
        place = log.lock().append(&batch).unwrap();
        appended.push((place, batch));
    }
    let mut shared = shared_log(&store);
    let first = shared.look(query(Place::default())).unwrap();
    // There is no row for the place before the first batch.
    assert!(first.has_more && first.batches.len() == 257);
    let second = shared.look(query(first.head)).unwrap();
    assert!(!second.has_more && second.head == place && second.head_epoch == 7);
    let found: Vec<_> = first.batches.into_iter().chain(second.batches).collect();
    assert!(found.iter().all(|logged| logged.epoch == 7));
    let found: Vec<_> = found.into_iter().map(|logged| (logged.place, logged.batch)).collect();
    assert_eq!(found, appended);
    let head = |after| shared_log(&store).look(LookQuery { after, with_batches: false }).unwrap();
    for after in [Place::default(), appended[4].0, place] {
        let look = head(after);
        assert_eq!((look.head, look.head_epoch, look.batches.len()), (place, 7, 0));
    }
    let nothing = shared.look(query(place)).unwrap();
    assert!(nothing.batches.is_empty() && nothing.head == place && nothing.head_epoch == 7);
}

#[test]
fn long_batches_are_read_a_few_at_a_time() {
    let Some(cluster) = Cluster::create("long_batches_are_read_a_few_at_a_time") else { return };
    let mut store = cluster.open();
    for n in 1..=4 {
        let alias = Alias {
            id: AliasId(n),
            protocol: Protocol::new("relay"),
            name: "x".repeat(9 << 20).into(),
            agent: AgentId(n),
        };
        commit(&mut store, &Changes { aliases: vec![alias], ..line(n) });
    }
    let (mut shared, mut head) = (shared_log(&store), Place::default());
    for n in 1..=4 {
        let look = shared.look(query(head)).unwrap();
        assert_eq!((look.batches.len(), look.has_more), (1, n < 4));
        head = look.head;
    }
}

#[test]
fn an_empty_log_can_be_looked_at() {
    let Some(cluster) = Cluster::create("an_empty_log_can_be_looked_at") else { return };
    let store = cluster.open();
    for with_batches in [true, false] {
        let after = Place::default();
        let look = shared_log(&store).look(LookQuery { after, with_batches }).unwrap();
        assert_eq!((look.head, look.head_epoch, look.has_more), (after, 0, false));
    }
    store.log().lock().confirm_head().unwrap();
}

#[test]
fn a_changed_row_of_the_log_stops_every_look() {
    let Some(cluster) = Cluster::create("a_changed_row_of_the_log_stops_every_look") else {
        return;
    };
    let mut store = cluster.open();
    for n in 1..=3 {
        commit(&mut store, &line(n));
    }
    let changed = [
        (
            "body = set_byte(body, 9, get_byte(body, 9) # 1)",
            "body = set_byte(body, 9, get_byte(body, 9) # 1)",
        ),
        ("body = body || '\\x00'", "body = substr(body, 1, length(body) - 1)"),
        ("epoch = epoch + 1", "epoch = epoch - 1"),
        (
            "hash = set_byte(hash, 9, get_byte(hash, 9) # 1)",
            "hash = set_byte(hash, 9, get_byte(hash, 9) # 1)",
        ),
    ];
    let mut shared = shared_log(&store);
    for (change, back) in changed {
        cluster.sql(&format!("UPDATE log SET {change} WHERE seq = 2"));
        let found = shared.look(query(Place::default())).unwrap_err();
        let named = matches!(&found, StoreError::Corrupt(text) if text.contains("batch 2"));
        assert!(named, "{change}: {found}");
        let start = PostgresStore::open(&cluster.url(), PostgresOptions::default());
        assert!(matches!(start, Err(StoreError::Corrupt(_))));
        cluster.sql(&format!("UPDATE log SET {back} WHERE seq = 2"));
        shared.look(query(Place::default())).unwrap();
    }
    cluster.sql("UPDATE log SET format = 99 WHERE seq = 3");
    let newer = shared.look(query(Place::default())).unwrap_err();
    assert!(matches!(newer, StoreError::NewerFormat { found: 99, .. }), "{newer}");
    cluster.sql("UPDATE log SET seq = 9 WHERE seq = 3");
    let missing = shared.look(query(Place::default())).unwrap_err();
    assert!(missing.to_string().contains("batch 3 of the log is missing"), "{missing}");
}

#[test]
fn a_database_that_lost_batches_is_noticed() {
    let Some(cluster) = Cluster::create("a_database_that_lost_batches_is_noticed") else { return };
    let mut store = cluster.open();
    let places: Vec<Place> = (1..=3).map(|n| commit(&mut store, &line(n))).collect();
    let mut shared = shared_log(&store);
    let mut lost = |after| match shared.look(query(after)) {
        Err(StoreError::LostPlace(text)) => text,
        other => panic!("{other:?}"),
    };
    let fork = Place { number: 3, hash: ChainHash([7; 32]) };
    let text = lost(fork);
    assert!(text.contains("0707") && text.contains(&format!("{:?}", places[2].hash)), "{text}");
    cluster.sql("DELETE FROM log WHERE seq = 3");
    let text = lost(places[2]);
    assert!(text.contains("batch 3") && text.contains("newest is 2"), "{text}");
    // The log goes on without it.
    let appended = Batch::new(line(4), ExpiredRows::default());
    let taken = store.log().lock().append(&appended).unwrap_err();
    assert!(matches!(taken, StoreError::Taken { number: 4 }), "{taken}");
    let head = store.log().lock().confirm_head().unwrap_err();
    assert!(matches!(head, StoreError::Taken { .. }), "{head}");
    cluster.sql("DELETE FROM log WHERE seq = 1");
    assert!(lost(places[0]).contains("the next one it has is 2"));
    assert!(lost(Place::default()).contains("the next one it has is 2"));
}

#[test]
fn nothing_is_appended_after_a_place_that_was_truncated() {
    let Some(cluster) = Cluster::create("nothing_is_appended_after_a_place_that_was") else {
        return;
    };
    let (mut writer, mut sleeper) = (cluster.open_writer(), cluster.open());
    let mut late = cluster.open();
    commit(&mut writer, &line(1));
    let look = shared_log(&sleeper).look(query(Place::default())).unwrap();
    let next = look.batches[0].batch.changes.next.unwrap();
    sleeper.publish(Some(look.head), &look.batches[0].batch.changes, &ExpiredRows::default());
    sleeper.log().lock().continue_at(look.head, 1, next);
    for n in 2..=9 {
        commit(&mut writer, &line(n));
    }
    writer.write_tables();
    cluster.sql("UPDATE log SET at = at - interval '1 hour'");
    shared_log(&writer).truncate().unwrap();
    assert_eq!(cluster.sql("SELECT string_agg(seq::text, ' ') FROM log"), "9", "the newest stays");
    for (store, number) in [(&mut sleeper, 2), (&mut late, 1)] {
        let batch = Batch::new(line(number), ExpiredRows::default());
        let taken = store.log().lock().append(&batch).unwrap_err();
        assert!(matches!(taken, StoreError::Taken { .. }), "{taken}");
    }
    // A node that starts now goes on behind it.
    drop(writer);
    let mut next = cluster.open();
    assert_eq!(commit(&mut next, &line(10)).number, 10);
}

#[test]
fn a_batch_that_would_repeat_history_is_not_appended() {
    let Some(cluster) = Cluster::create("a_batch_that_would_repeat_history_is_not") else { return };
    let mut store = cluster.open();
    commit(&mut store, &line(1));
    let again = store.commit(&line(1), &ExpiredRows::default()).unwrap_err();
    assert!(again.to_string().contains("history line 1 would be written twice"), "{again}");
    assert_eq!(cluster.sql("SELECT count(*) FROM log"), "1");
}
