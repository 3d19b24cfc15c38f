//! Opening: the schema, the secret, and servers that are refused.

use tokio_postgres::error::SqlState;

use super::*;
use crate::store::postgres::session::code_error;

#[test]
fn nodes_that_start_at_the_same_time_create_one_hub() {
    let Some(cluster) = Cluster::create("nodes_that_start_at_the_same_time_create") else { return };
    let hubs: Vec<[u8; 16]> = std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..6).map(|_| scope.spawn(|| cluster.open().hub_id())).collect();
        nodes.into_iter().map(|node| node.join().expect("it starts")).collect()
    });
    assert!(hubs.iter().all(|hub| *hub == hubs[0]) && hubs[0] != [0; 16]);
    let other = Cluster::create("nodes_that_start_at_the_same_time_create").unwrap();
    assert_ne!(other.open().hub_id(), hubs[0]);
}

#[test]
fn a_node_with_another_secret_does_not_start() {
    let Some(cluster) = Cluster::create("a_node_with_another_secret_does_not_start") else {
        return;
    };
    let (first, second) = (cluster.open(), cluster.open());
    first.check_secret([1; 32]).unwrap();
    second.check_secret([1; 32]).unwrap();
    let refused = second.check_secret([2; 32]).unwrap_err();
    assert!(refused.to_string().contains("RIALTO_HUB_SECRET"), "{refused}");
}

#[test]
fn a_schema_of_a_later_version_is_refused() {
    let Some(cluster) = Cluster::create("a_schema_of_a_later_version_is_refused") else { return };
    drop(cluster.open());
    let refused = |change: &str| {
        cluster.sql(&format!("UPDATE meta SET {change}"));
        match PostgresStore::open(&cluster.url(), PostgresOptions::default()) {
            Ok(_) => panic!("{change}"),
            Err(error) => error,
        }
    };
    assert!(matches!(refused("format = 99"), StoreError::NewerFormat { found: 99, .. }));
    assert!(matches!(refused("schema_version = 99"), StoreError::NewerSchema { found: 99, .. }));
}

#[test]
fn tables_and_log_that_do_not_belong_together_are_refused() {
    let Some(cluster) = Cluster::create("tables_and_log_that_do_not_belong_together") else {
        return;
    };
    let mut store = cluster.open_writer();
    for n in 1..=3 {
        commit(&mut store, &line(n));
    }
    drop(store);
    cluster.sql("DELETE FROM log WHERE seq = 3");
    let Err(error) = PostgresStore::open(&cluster.url(), PostgresOptions::default()) else {
        panic!("the tables have batch 3")
    };
    assert!(error.to_string().contains("up to batch 3"), "{error}");
}

#[test]
fn errors_of_the_database_mean_what_the_store_says() {
    let meaning = |code: &str| code_error(&SqlState::from_code(code), String::new());
    assert!(matches!(meaning("53100"), StoreError::Full));
    assert!(matches!(meaning("55P03"), StoreError::Locked(_)));
    for code in ["08000", "08006", "57P01", "57P02", "57P03", "25006", "53300", "40001", "25P03"] {
        assert!(matches!(meaning(code), StoreError::Unreachable(_)), "{code}");
    }
    for code in ["23514", "XX000", "XX001", "42501", "28P01", "3D000"] {
        assert!(matches!(meaning(code), StoreError::Failed(_)), "{code}");
    }
}
