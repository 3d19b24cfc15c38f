//! Throw-away.
use rialto_core::changes::{Changes, Counters};
use rialto_core::event::Line;
use rialto_core::id::*;
use rialto_core::notice::{News, Notice};
use rialto_core::time::Timestamp;
use rialto_engine::store::sqlite::SqliteStore;
use rialto_engine::store::{Key, Page, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
fn measure() {
    let dir = std::path::PathBuf::from(std::env::var("MDIR").unwrap_or("/work/tmp_measure".into()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let secs: u64 = std::env::var("MSECS").ok().and_then(|s| s.parse().ok()).unwrap_or(10);
    let readers: usize = std::env::var("MREADERS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
    let rows: u64 = std::env::var("MROWS").ok().and_then(|s| s.parse().ok()).unwrap_or(64);
    let mut store = SqliteStore::open(&dir).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let newest = Arc::new(AtomicU64::new(1));
    let reads = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..readers)
        .map(|n| {
            let mut reader = store.reader().unwrap();
            let (stop, newest, reads) = (stop.clone(), newest.clone(), reads.clone());
            std::thread::spawn(move || {
                let mut at = n as u64;
                while !stop.load(Ordering::Relaxed) {
                    at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let id = 1 + (at >> 33) % newest.load(Ordering::Relaxed);
                    if at % 16 == 0 {
                        reader.page(Page::Lines { after: EventId(id), limit: 1000 }).unwrap();
                    } else {
                        reader.load(Key::Notice(NoticeId(id))).unwrap();
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let begun = Instant::now();
    let mut next = 1_u64;
    let mut took = Vec::new();
    let mut wal_max = 0;
    let mut last = Instant::now();
    while begun.elapsed() < Duration::from_secs(secs) {
        let mut batch = Changes::default();
        for _ in 0..rows {
            batch.notices.push(Arc::new(Notice {
                id: NoticeId(next),
                to: Some(AgentId(1)),
                position: next,
                before: None,
                at: Timestamp(1),
                news: News::Message { from: AgentId(1), body: "x".repeat(1000) },
            }));
            batch.lines.push(Arc::new(Line {
                id: EventId(next),
                at: Timestamp(1),
                events: vec![],
            }));
            next += 1;
        }
        batch.next = Some(Counters::default());
        let t = Instant::now();
        store.commit(&batch, &[]).unwrap();
        took.push(t.elapsed());
        newest.store(next - 1, Ordering::Relaxed);
        let wal = std::fs::metadata(dir.join("rialto.db-wal")).map_or(0, |m| m.len());
        wal_max = wal_max.max(wal);
        if last.elapsed() > Duration::from_secs(2) {
            last = Instant::now();
            println!("{:?} wal {} MiB commits {}", begun.elapsed(), wal >> 20, took.len());
        }
    }
    stop.store(true, Ordering::Relaxed);
    for t in threads {
        t.join().unwrap();
    }
    took.sort();
    let at = |p: f64| took[((took.len() - 1) as f64 * p) as usize];
    let db = std::fs::metadata(dir.join("rialto.db")).map_or(0, |m| m.len());
    println!(
        "readers {readers} rows {rows} commits {} reads {} wal_max {} MiB db {} MiB p50 {:?} p99 {:?} p999 {:?} max {:?}",
        took.len(),
        reads.load(Ordering::Relaxed),
        wal_max >> 20,
        db >> 20,
        at(0.5),
        at(0.99),
        at(0.999),
        took.last().unwrap()
    );
    drop(store);
    let _ = std::fs::remove_dir_all(&dir);
}
