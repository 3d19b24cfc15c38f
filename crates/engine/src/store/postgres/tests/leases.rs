//! The lease and the list of nodes.

use super::*;
use crate::cluster::{Lease, NodeId, NodeReport};

fn lease(shared: &mut dyn SharedLog) -> Lease {
    shared.look(LookQuery { after: Place::default(), with_batches: false }).unwrap().lease
}

#[test]
fn of_two_nodes_that_take_the_lease_one_gets_it() {
    let Some(cluster) = Cluster::create("of_two_nodes_that_take_the_lease_one_gets") else {
        return;
    };
    let store = cluster.open();
    let session = store.log().lock().session().unwrap();
    let (mut ours, mut theirs) = (shared_log(&store), shared_log(&cluster.open()));
    let seen = lease(&mut *ours);
    assert_eq!(seen, Lease::default());
    let taken = ours.take_lease(&seen, NodeId(u64::MAX >> 1), "one:7001").unwrap().unwrap();
    let expected = Lease {
        epoch: 1,
        node: NodeId(u64::MAX >> 1),
        address: "one:7001".to_owned(),
        session,
        beat: 1,
    };
    assert_eq!(taken, expected);
    assert_eq!(theirs.take_lease(&seen, NodeId(2), "two:7001").unwrap(), None);
    assert_eq!(lease(&mut *theirs), expected);
    assert!(ours.beat(&taken).unwrap());
    assert_eq!(theirs.take_lease(&taken, NodeId(2), "two:7001").unwrap(), None, "it has moved");
    let seen = lease(&mut *theirs);
    let next = theirs.take_lease(&seen, NodeId(2), "two:7001").unwrap().unwrap();
    assert_eq!((next.epoch, next.session), (2, 0), "its log was never connected");
    assert!(!ours.beat(&taken).unwrap());
    ours.release_lease(&taken).unwrap();
    assert_eq!(lease(&mut *ours), next, "a lease of the past changes nothing");
    theirs.release_lease(&next).unwrap();
    let released = lease(&mut *ours);
    assert_eq!((released.epoch, released.node, &*released.address), (2, NodeId(0), ""));
    assert!(ours.take_lease(&released, NodeId(1), "one:7001").unwrap().is_some());
}

#[test]
fn nodes_see_each_other() {
    let Some(cluster) = Cluster::create("nodes_see_each_other") else { return };
    let store = cluster.open();
    let mut shared = shared_log(&store);
    let report = |node: u64, applied: u64| NodeReport {
        node: NodeId(node),
        address: format!("node{node}:7001"),
        version: "0.1.0".to_owned(),
        formats: (2, 3),
        applied,
    };
    shared.report(&report(1, 5)).unwrap();
    shared.report(&report(2, 6)).unwrap();
    let rows = shared.report(&report(1, 7)).unwrap();
    let reports: Vec<_> = rows.iter().map(|row| row.report.clone()).collect();
    assert_eq!(reports, [report(1, 7), report(2, 6)]);
    let now = shared.database_time().unwrap();
    for row in &rows {
        assert!(row.silent_ms < 5_000 && now.since(row.seen_at).0 < 5_000, "{row:?}");
    }
    cluster.sql("UPDATE nodes SET seen = seen - interval '20 seconds' WHERE node = 2");
    assert_eq!(shared.report(&report(1, 7)).unwrap().len(), 1);
    cluster.sql("UPDATE nodes SET seen = seen - interval '2 hours' WHERE node = 2");
    shared.report(&report(1, 7)).unwrap();
    assert_eq!(cluster.sql("SELECT node FROM nodes"), "1");
}

#[test]
fn the_log_is_kept_for_nodes_that_are_behind() {
    let Some(cluster) = Cluster::create("the_log_is_kept_for_nodes_that_are_behind") else {
        return;
    };
    let mut store = cluster.open_writer();
    let mut shared = shared_log(&store);
    for n in 1..=9 {
        commit(&mut store, &line(n));
    }
    let mut kept = |age: &str| {
        cluster.sql(&format!("UPDATE log SET at = clock_timestamp() - interval '{age}'"));
        assert!(!shared.truncate().unwrap(), "few batches are removed at once");
        cluster.sql("SELECT min(seq) || ' ' || max(seq) FROM log")
    };
    assert_eq!(kept("1 hour"), "1 9", "the tables have nothing yet");
    store.write_tables();
    commit(&mut store, &line(10));
    assert_eq!(kept("1 minute"), "1 10", "too young");
    let behind = NodeReport { node: NodeId(1), applied: 4, ..NodeReport::default() };
    shared_log(&store).report(&behind).unwrap();
    assert_eq!(kept("1 hour"), "4 10", "a live node is there");
    cluster.sql("UPDATE nodes SET seen = seen - interval '2 minutes'");
    assert_eq!(kept("1 hour"), "9 10", "up to what the tables have");
    let look = shared_log(&store).look(LookQuery { after: store.place(), with_batches: true });
    assert!(look.unwrap().batches.is_empty());
}

#[test]
fn a_long_log_is_removed_in_steps_that_look_at_a_few_batches_each() {
    let name = "a_long_log_is_removed_in_steps_that_look_at";
    let Some(cluster) = Cluster::create(name) else { return };
    let store = cluster.open();
    let mut shared = shared_log(&store);
    cluster.sql(
        "INSERT INTO log (seq, epoch, format, body, hash, at)
         SELECT n, 1, 1, '', '', clock_timestamp() - interval '1 hour' FROM generate_series(1, 2500) n;
         UPDATE checkpoint SET seq = 2000",
    );
    let report = NodeReport { node: NodeId(1), applied: 2_500, ..NodeReport::default() };
    shared.report(&report).unwrap();
    // The clock of the database was set back: what follows a batch that is kept is kept, too.
    cluster.sql("UPDATE log SET at = clock_timestamp() WHERE seq = 1500");
    let steps: Vec<bool> = (0..3).map(|_| shared.truncate().unwrap()).collect();
    assert_eq!(steps, [true, false, false]);
    assert_eq!(cluster.sql("SELECT min(seq) || ' ' || count(*) FROM log"), "1500 1001");
}
