//! Errors while the tables are written behind and the WAL is moved into the database: the hub ends,
//! or waits for disk space, and nothing is lost either way, for it is in the log (G21, T52).

use serde_json::json;

use super::disk::{DataDir, DiskFault, Fault};
use super::errors::assert_complained;
use super::hub::{Caller, Hub, Request, audit, wait_for};
use super::scene::scene;
use crate::relay::kit::turn;

/// The database file itself, and its WAL.
const FILE: &str = "rialto.db";
const WAL: &str = "rialto.db-wal";
/// Length of a message, by which the log grows at least.
const LONG: usize = 48 * 1024;
/// More messages than the log can hold.
const MANY: u64 = 2_000;

/// Writes long messages until something happens, and counts the accepted ones.
async fn write_until(
    caller: &Caller,
    hub: &Hub,
    taken: &mut u64,
    happens: impl Fn(&Option<u16>) -> bool,
) {
    let (alice, bob) = (&scene().alice, &scene().bob);
    for n in *taken..*taken + MANY {
        // Few messages in each conversation, or the hub would detect a loop.
        let words = turn(&alice.id, &"a".repeat(LONG), &n.to_string(), 1);
        let body = json!({"receiver_id": bob.id, "envelope": words});
        let request = Request::post("/relay/messages", Some(&alice.key), &body);
        let status = caller.send(hub.url(), &request).await.map(|(status, _)| status);
        *taken += u64::from(status.is_some_and(|status| (200..300).contains(&status)));
        if happens(&status) {
            return;
        }
    }
    panic!("nothing happened in {MANY} messages");
}

/// The number of stored messages.
async fn arrived(caller: &Caller, url: &str) -> u64 {
    let me = caller.must(url, &Request::get("/v1/me", Some(&scene().bob.key))).await;
    me["inbox"]["head"].as_u64().expect("a number")
}

async fn a_failed_checkpoint_ends_the_hub(class: &str, file: &str) {
    let (caller, room) = (Caller::new(), DataDir::with(&scene().data()));
    let hub = Hub::start(&room, &Fault::switched(DiskFault::Eio, &room).only(class).on(file));
    room.switch_on();
    let mut taken = 0;
    write_until(&caller, &hub, &mut taken, |status| status.is_none_or(|status| status >= 300))
        .await;
    let (status, complaint) = hub.ended();
    assert_complained(status, &complaint);
    assert!(room.boundaries().iter().any(|one| one.failed && one.name == file));
    assert_eq!(audit(&room.data()).0, 0);
    room.switch_off();
    let hub = Hub::start(&room, &Fault::none());
    let found = arrived(&caller, hub.url()).await;
    assert!((taken..=taken + 1).contains(&found), "{taken} accepted, {found} found");
}

#[test]
fn a_checkpoint_that_cannot_be_synced_ends_the_hub_and_loses_nothing() {
    for file in [FILE, WAL] {
        wait_for(a_failed_checkpoint_ends_the_hub("sync", file));
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_ends_the_hub_and_loses_nothing() {
    for file in [FILE, WAL] {
        wait_for(a_failed_checkpoint_ends_the_hub("write", file));
    }
}

#[test]
fn tables_without_disk_space_refuse_no_message_until_the_log_is_at_its_limit() {
    wait_for(async {
        let (caller, room) = (Caller::new(), DataDir::with(&scene().data()));
        let fault = Fault::switched(DiskFault::Enospc, &room).only("write").on(WAL);
        let hub = Hub::start(&room, &fault);
        room.switch_on();
        let mut taken = 0;
        write_until(&caller, &hub, &mut taken, |status| {
            assert!(matches!(status, Some(200..300 | 507)), "{status:?}");
            *status == Some(507)
        })
        .await;
        assert!(taken > 0, "the log has space");
        assert_eq!(arrived(&caller, hub.url()).await, taken);
        room.switch_off();
        write_until(&caller, &hub, &mut taken, |status| {
            assert!(matches!(status, Some(200..300)), "{status:?}");
            true
        })
        .await;
        assert_eq!(arrived(&caller, hub.url()).await, taken);
        let (status, complaint) = hub.stop();
        assert!(status.success(), "{complaint}");
        assert_eq!(audit(&room.data()).0, 0);
    });
}

#[test]
fn a_checkpoint_without_disk_space_waits_and_delays_no_other_work() {
    wait_for(async {
        let (caller, room) = (Caller::new(), DataDir::with(&scene().data()));
        let fault = Fault::switched(DiskFault::Enospc, &room).only("write").on(FILE);
        let hub = Hub::start(&room, &fault);
        room.switch_on();
        let mut taken = 0;
        let tried = |fails: bool| {
            room.boundaries().iter().any(|one| one.name == FILE && one.failed == fails)
        };
        write_until(&caller, &hub, &mut taken, |status| {
            assert!(matches!(status, Some(200..300)), "{status:?}");
            tried(true)
        })
        .await;
        assert!(!tried(false), "nothing was copied");
        room.switch_off();
        write_until(&caller, &hub, &mut taken, |status| {
            assert!(matches!(status, Some(200..300)), "{status:?}");
            tried(false)
        })
        .await;
        assert_eq!(arrived(&caller, hub.url()).await, taken);
        let (status, complaint) = hub.stop();
        assert!(status.success(), "{complaint}");
        assert_eq!(audit(&room.data()).0, 0);
    });
}
