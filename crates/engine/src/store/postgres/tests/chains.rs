//! Chains: one query finds what following the links one by one finds.

use rialto_core::id::{NoticeId, OwnerId};

use super::*;
use crate::store::chain::{Chain, follow};

#[test]
fn a_chain_read_at_once_is_the_chain_followed_row_by_row() {
    let Some(cluster) = Cluster::create("a_chain_read_at_once_is_the_chain") else { return };
    let mut script = ModelHub::default();
    let batches = sample_batches(&mut script, 25);
    let mut store = cluster.open_writer();
    let half = batches.len() / 2;
    for (n, batch) in batches.iter().enumerate() {
        commit_batch(&mut store, batch);
        if n == half {
            store.write_tables();
            compare(&store, &script, "half of the rows, all in the tables");
        }
    }
    compare(&store, &script, "partly in memory");
    store.write_tables();
    compare(&store, &script, "in the tables");
    let invented = RowKey::Notice(NoticeId(999_999));
    let mut reader = store.open_reader().unwrap();
    assert!(reader.load_chain(Chain::Inbox, invented, 9).unwrap().is_empty());
}

fn compare(store: &PostgresStore, script: &ModelHub, stage: &str) {
    let rows = &script.rows;
    let mut reader = store.open_reader().unwrap();
    let owner = OwnerId(1);
    let newest_entry = rows.entries.iter().rev().find(|entry| entry.from.owner == owner).unwrap();
    let job = *rows.jobs.keys().next_back().unwrap();
    let outcome = rows.outcomes.last().unwrap();
    let inbox = rows.notices.iter().rev().find(|notice| notice.to == Some(AgentId(2))).unwrap();
    let starts = [
        (Chain::Inbox, RowKey::Notice(inbox.id)),
        (Chain::Entries(owner), RowKey::Entry(newest_entry.id)),
        (Chain::Entries(OwnerId(2)), RowKey::Entry(newest_entry.id)),
        (Chain::RequestedJobs, RowKey::Job(job)),
        (Chain::WorkedJobs, RowKey::Job(job)),
        (Chain::Outcomes, RowKey::Outcome(outcome.id)),
    ];
    for (chain, from) in starts {
        for limit in [1, 2, 7, 300] {
            let one_by_one = follow(chain, from, limit, |key| reader.load(key)).unwrap();
            let at_once = reader.load_chain(chain, from, limit).unwrap();
            assert_eq!(format!("{at_once:?}"), format!("{one_by_one:?}"), "{chain:?}, {stage}");
            if stage != "half of the rows, all in the tables" {
                let enough = limit.min(10);
                assert!(
                    at_once.len() >= enough || chain == Chain::Entries(OwnerId(2)),
                    "{chain:?}"
                );
            }
        }
    }
}

#[test]
fn a_part_of_a_chain_ends_where_it_becomes_long() {
    let Some(cluster) = Cluster::create("a_part_of_a_chain_ends_where_it_becomes") else { return };
    let mut script = ModelHub::default();
    let mut store = cluster.open_writer();
    let mut run = |command| {
        let (answer, changes) = script.run(command);
        commit(&mut store, &changes);
        answer
    };
    let ada = agent_in(&run(Command::Register(Box::new(enrol("ada", "ada", &[])))));
    let bob = agent_in(&run(Command::Register(Box::new(enrol("bob", "bob", &[])))));
    let long = "x".repeat(300_000);
    for _ in 0..6 {
        run(send_message(ada, bob, &long));
    }
    let newest = script.rows.notices.last().unwrap().id;
    for is_written in [false, true] {
        if is_written {
            store.write_tables();
        }
        let mut reader = store.open_reader().unwrap();
        let part = reader.load_chain(Chain::Inbox, RowKey::Notice(newest), 99).unwrap();
        assert_eq!(part.len(), 4, "a little more than a megabyte");
    }
}
