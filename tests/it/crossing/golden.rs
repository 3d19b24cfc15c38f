//! What each side of a crossing saw, in one readable file per pair.
//!
//! `RIALTO_GOLDEN=write` rewrites the files.

pub mod mask;

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::cells::{Cell, FLAGS};
use super::matrix::order;
use super::party::Terms;
use super::raw::{items, text};
use crate::kit::TestHub;
use mask::Mask;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/crossing/golden")
}

/// One crossing from the hire to the result, as both sides saw it.
async fn told(cell: Cell) -> String {
    // A separate hub, so that its counters are the same every time.
    let hub = TestHub::serve(FLAGS).await;
    let meeting = cell.meet(&hub, Terms::at(cell.to.price())).await;
    let (worker, requester) = (meeting.worker.as_ref(), meeting.requester.as_ref());
    let found = cell.from.find(&hub, worker).await;
    let ticket = requester.hire(&hub, &found, &order()).await.expect("it is hired");
    let given = meeting.received(&hub).await;
    let sent = worker.deliver(&hub, &given).await;
    let ended = requester.ended(&hub, &ticket).await;
    let fates = fates(&requester.trace(&hub, &ticket.uuid).await);
    let mut mask = Mask::new(&hub.url);
    for (value, name) in [
        (ticket.id.as_str(), "requester's id of the job"),
        (&ticket.uuid, "hub's id of the job"),
        (&found.alias, "worker"),
        (worker.native(), "worker's own id"),
        (requester.native(), "requester"),
    ] {
        mask.call(value, name);
    }
    let parts = [
        ("The requester sends", ticket.bytes),
        ("The worker gets", given.bytes),
        ("The worker sends", sent.bytes),
        ("The requester gets", ended.bytes),
        ("What became of every field", fates),
    ];
    let parts = parts.map(|(title, bytes)| format!("== {title}\n\n{}\n", bytes.trim_end()));
    hub.stop().await;
    let title = format!("{} hires {}\n\n", cell.from.id(), cell.to.id());
    mask.over(&format!("{title}{}", parts.join("\n")))
}

/// The notes of a trace, one per line.
fn fates(trace: &str) -> String {
    let mut lines = String::new();
    for hop in items(trace, "/hops") {
        let at = |place| text(&hop, place).expect("text");
        lines += &format!("{}: {} to {}\n", at("/what"), at("/from"), at("/to"));
        for note in items(&hop, "/notes") {
            let at = |place| text(&note, place);
            let field = at("/field").expect("a field");
            let fate = at("/fate").expect("a fate");
            let more = match (at("/to"), at("/why")) {
                (Some(to), _) => format!(" {to}"),
                (None, Some(why)) => format!(": {why}"),
                (None, None) => String::new(),
            };
            lines += &format!("  {field} {fate}{more}\n");
        }
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crossing_reads_as_it_is_written_down() {
    let write = std::env::var_os("RIALTO_GOLDEN").is_some_and(|word| word == "write");
    let told = crate::kit::together(Cell::all().into_iter().map(told)).await;
    let mut wrong = Vec::new();
    for (cell, told) in Cell::all().into_iter().zip(told) {
        let path = folder().join(format!("{}.txt", cell.name()));
        if write {
            std::fs::write(&path, &told).expect("it can be written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = kept.lines().zip(told.lines()).find(|(kept, told)| kept != told);
        if kept != told {
            let (kept, told) = lines.unwrap_or(("another number of lines", ""));
            wrong.push(format!("{}:\n- {kept}\n+ {told}", cell.name()));
        }
    }
    assert!(wrong.is_empty(), "{}\nRIALTO_GOLDEN=write rewrites them", wrong.join("\n"));
}

#[test]
fn there_is_a_file_for_every_pair_and_no_other() {
    let files = std::fs::read_dir(folder()).expect("a folder").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let kept: BTreeSet<_> = names.filter(|name| name.ends_with(".txt")).collect();
    let expected = Cell::all().into_iter().map(|cell| format!("{}.txt", cell.name()));
    assert_eq!(kept, expected.collect());
}
