//! Followers: the same rows and the same world, whichever node writes the tables.

use super::*;
use crate::store::postgres::CheckpointLimits;

/// Everything in the tables but random values, and the places in the log.
fn dump(cluster: &Cluster) -> String {
    let tables = [
        "agents",
        "desks",
        "owners",
        "keys",
        "aliases",
        "jobs",
        "archive",
        "pushes",
        "memories",
        "entries",
        "transfers",
        "notices",
        "arrivals",
        "mailboxes",
        "outcomes",
        "lines",
        "postings",
        "claims",
        "checkpoint",
    ];
    let mut text = String::new();
    for table in tables {
        let key = if table == "checkpoint" { "seq" } else { "id" };
        let rows = cluster.sql(&format!("SELECT t FROM {table} AS t ORDER BY {key}"));
        text.push_str(&format!("{table}\n{rows}\n"));
    }
    text + &cluster.sql("SELECT t FROM turns AS t ORDER BY skill; ")
        + &cluster.sql("SELECT t FROM state AS t ORDER BY name")
}

#[test]
fn a_follower_loads_every_row_that_the_writer_does() {
    let Some(cluster) = Cluster::create("a_follower_loads_every_row_that_the_writer") else {
        return;
    };
    let mut writer = cluster.open_writer();
    let mut follower = Follower::start(&cluster);
    let mut script = ModelHub::default();
    let batches = sample_batches(&mut script, 20);
    for (n, batch) in batches.iter().enumerate() {
        commit_batch(&mut writer, batch);
        if n % 7 == 0 {
            follower.catch_up();
        }
        if n % 10 == 0 {
            writer.write_tables();
        }
    }
    follower.catch_up();
    assert_same_world(&follower.world, &script);
    let keys = all_keys(&script);
    let expected = all_rows(&mut writer, &keys);
    assert_eq!(all_rows(&mut follower.store, &keys), expected, "partly in memory");
    writer.write_tables();
    assert_eq!(all_rows(&mut follower.store, &keys), expected, "in memory and in the tables");
    assert!(!follower.store.checkpointer.is_done());
    follower.catch_up();
    assert!(follower.store.checkpointer.is_done(), "the look showed that the tables have it");
    assert_eq!(all_rows(&mut follower.store, &keys), expected, "in the tables");
    for _ in 0..200 {
        if follower.store.shared.claims.read().is_filter_complete() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(follower.store.shared.claims.read().is_filter_complete());
    assert_eq!(all_rows(&mut follower.store, &keys), expected, "through the filter");
    let late = Follower::start(&cluster);
    assert_same_world(&late.world, &script);
    assert_eq!(late.store.place(), writer.place());
}

#[test]
fn a_start_between_two_checkpoints_has_everything_once() {
    let Some(cluster) = Cluster::create("a_start_between_two_checkpoints_has") else { return };
    let mut writer = cluster.open_writer();
    let mut script = ModelHub::default();
    for (n, batch) in sample_batches(&mut script, 6).iter().enumerate() {
        commit_batch(&mut writer, batch);
        if n % 4 == 0 {
            // It opens before the tables move on, and loads its world after that.
            let mut node = cluster.open();
            writer.write_tables();
            let mut world = World::new(script.world.rules);
            node.load_world(&mut world).unwrap();
            assert_eq!(node.place(), writer.place());
            assert_eq!(world.next, batch.changes.next.unwrap_or(world.next));
        }
    }
    let late = Follower::start(&cluster);
    assert_same_world(&late.world, &script);
    let mut writer_keys = all_keys(&script);
    writer_keys.truncate(40);
    assert_eq!(all_rows(&mut { late }.store, &writer_keys), all_rows(&mut writer, &writer_keys));
}

#[test]
fn two_nodes_that_write_in_turns_give_the_same_tables_as_one() {
    let name = "two_nodes_that_write_in_turns_give_the_same";
    let (Some(one), Some(two)) = (Cluster::create(name), Cluster::create(name)) else { return };
    let mut script = ModelHub::default();
    let batches = sample_batches(&mut script, 15);
    let mut alone = one.open_writer();
    for batch in &batches {
        commit_batch(&mut alone, batch);
    }
    alone.write_tables();
    let mut writer = two.open();
    let mut follower = Follower::start(&two);
    for (n, batch) in batches.iter().enumerate() {
        commit_batch(&mut writer, batch);
        // Generations of different lengths on the two nodes.
        if n % 3 == 0 {
            follower.catch_up();
        }
        if n % 5 == 0 {
            writer.shared.unwritten.write().freeze();
        }
        if n % 7 == 0 {
            follower.store.shared.unwritten.write().freeze();
        }
        match n % 11 {
            2 => {
                writer.set_writing(true);
                writer.write_tables();
            }
            5 => {
                follower.store.set_writing(true);
                follower.store.write_tables();
            }
            8 => {
                // Both at the same time.
                follower.catch_up();
                std::thread::scope(|scope| {
                    for store in [&mut writer, &mut follower.store] {
                        store.set_writing(true);
                        scope.spawn(|| store.write_tables());
                    }
                });
            }
            _ => {
                writer.set_writing(false);
                follower.store.set_writing(false);
            }
        }
    }
    follower.catch_up();
    follower.store.set_writing(true);
    follower.store.write_tables();
    assert_eq!(dump(&two), dump(&one));
    assert_same_world(&follower.world, &script);
    assert_same_world(&Follower::start(&two).world, &script);
}

#[test]
fn the_lane_waits_for_tables_that_are_far_behind() {
    let Some(cluster) = Cluster::create("the_lane_waits_for_tables_that_are_far") else { return };
    let limits = CheckpointLimits { log_bytes: 500, log_bytes_max: 1_000 };
    let mut store = PostgresStore::open(&cluster.url(), PostgresOptions { limits }).unwrap();
    store.set_writing(true);
    for n in 1..=200 {
        commit(&mut store, &line(n));
        let unwritten = store.shared.unwritten.read();
        let frozen: u64 = unwritten.frozen.iter().map(|one| one.bytes).sum();
        assert!(frozen + unwritten.active.bytes < 2_000);
    }
    drop(store);
    assert_eq!(cluster.sql("SELECT seq FROM checkpoint"), "200");
    assert_eq!(cluster.sql("SELECT count(*) FROM lines"), "200");
}

#[test]
fn tables_that_went_back_are_not_written_to() {
    let Some(cluster) = Cluster::create("tables_that_went_back_are_not_written_to") else { return };
    let mut store = cluster.open_writer();
    for n in 1..=3 {
        commit(&mut store, &line(n));
        store.write_tables();
    }
    cluster.sql("UPDATE checkpoint SET seq = 1");
    commit(&mut store, &line(4));
    store.checkpointer.write_rest();
    let error = store.make_room().unwrap_err();
    assert!(matches!(error, StoreError::LostPlace(_)), "{error}");
    assert_eq!(cluster.sql("SELECT count(*) FROM lines"), "3");
}
