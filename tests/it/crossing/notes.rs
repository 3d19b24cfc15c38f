//! The trace of a job covers every member of its request and its result (B11, B18).

use serde_json::Value;

use super::cells::{Cell, FLAGS, Meeting, walk};
use super::matrix::order;
use super::party::{Members, Sent, Terms, Ticket};
use super::raw::pointer;
use crate::kit::TestHub;

/// The trace of a job.
struct Trace(Value);

impl Trace {
    fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("JSON"))
    }

    /// The notes of a hop between these two.
    #[track_caller]
    fn notes(&self, what: &str, from: &str, to: &str) -> &[Value] {
        let hops = self.0["hops"].as_array().expect("hops");
        let hop = hops.iter().find(|hop| hop["what"] == what);
        let hop = hop.unwrap_or_else(|| panic!("no {what} in {}", self.0));
        assert_eq!((hop["from"].as_str(), hop["to"].as_str()), (Some(from), Some(to)), "{hop}");
        hop["notes"].as_array().expect("notes")
    }

    /// The fate of every field, which is the same for every reader.
    fn fates(&self) -> Vec<(&Value, &Value, &Value)> {
        let hops = self.0["hops"].as_array().expect("hops").iter();
        let notes = hops.flat_map(|hop| hop["notes"].as_array().expect("notes"));
        notes.map(|note| (&note["field"], &note["fate"], &note["to"])).collect()
    }
}

/// The members of a worker's last message that the hub does not keep, so that no note covers them:
/// the message's own metadata. If the hub starts to keep one, remove it here.
fn forgotten(worker: &str) -> &'static [&'static str] {
    match worker {
        "agora" => &["/id", "/protocol", "/sender/id", "/sender/signature", "/timestamp"],
        "relay" => &["/sender_culture", "/turn_number"],
        _ => &[],
    }
}

/// The members that no note covers. No member has two notes; for an object, the notes may cover its
/// members instead.
#[track_caller]
fn untold(members: &Members, notes: &[Value]) -> Vec<String> {
    let mut untold = Vec::new();
    for (name, value) in members {
        let about = |note: &&Value| note["field"] == name.as_str() && note["fate"] != "defaulted";
        match (notes.iter().filter(about).count(), value) {
            // Null means that a member is absent.
            (1, _) | (0, Value::Null) => {}
            (0, Value::Object(inner)) if !inner.is_empty() => {
                let inner = inner.iter();
                let inner = inner.map(|(own, value)| (pointer(name, own), value.clone())).collect();
                untold.extend(self::untold(&inner, notes));
            }
            (0, _) => untold.push(name.clone()),
            (count, _) => panic!("{name} has {count} notes in {notes:?}"),
        }
    }
    untold
}

/// Checks that both parties see the fate of every member of the request, and of the worker's
/// message if there is one.
pub async fn assert_told(
    hub: &TestHub,
    (cell, meeting): (Cell, &Meeting),
    ticket: &Ticket,
    sent: Option<&Sent>,
) {
    let (from, to) = (cell.from.id(), cell.to.id());
    let mine = Trace::read(&meeting.requester.trace(hub, &ticket.uuid).await);
    let theirs = Trace::read(&meeting.worker.trace(hub, &ticket.uuid).await);
    assert_eq!(mine.0["job"], ticket.uuid.as_str());
    assert_eq!(mine.fates(), theirs.fates(), "both parties see the same fates");
    let request = mine.notes("request", from, to);
    assert_eq!(untold(&ticket.members, request), [""; 0], "{request:?}");
    if let Some(sent) = sent {
        let result = mine.notes("result", to, from);
        assert_eq!(untold(&sent.members, result), forgotten(to), "{result:?}");
    }
    if cell.crosses() {
        assert_aside(cell, ticket, request);
    }
}

/// A member unknown to all protocols is forwarded under `meta`, except to clara, whose tasks cannot
/// carry it.
fn assert_aside(cell: Cell, ticket: &Ticket, notes: &[Value]) {
    let is_aside = |name: &str| name == "aside" || name.ends_with("/aside");
    let asked = String::from_utf8_lossy(&ticket.body).contains("aside");
    let about = notes.iter().find(|note| note["field"].as_str().is_some_and(is_aside));
    assert_eq!(about.is_some(), asked, "{notes:?}");
    let Some(note) = about else { return };
    match cell.to.id() {
        "clara" => assert_eq!(note["fate"], "dropped", "{note}"),
        _ => {
            let to = note["to"].as_str().unwrap_or_else(|| panic!("{note}"));
            assert!(to.ends_with("/meta/aside"), "{note}");
        }
    }
}

/// A requester can look up a job by its own id (B18), while it runs and after it has ended.
async fn named(cells: Vec<Cell>, is_over: bool) {
    let hub = TestHub::serve(FLAGS).await;
    walk(&hub, cells, async |hub, cell| {
        let meeting = cell.meet(hub, Terms::at(cell.to.price())).await;
        let found = cell.from.find(hub, meeting.worker.as_ref()).await;
        let ticket = meeting.requester.hire(hub, &found, &order()).await.expect("it is hired");
        let given = meeting.received(hub).await;
        if is_over {
            assert!(meeting.worker.deliver(hub, &given).await.taken);
            meeting.requester.ended(hub, &ticket).await;
        }
        let own = Trace::read(&meeting.requester.trace(hub, &ticket.id).await);
        assert_eq!(own.0["job"], ticket.uuid.as_str());
        let theirs = Trace::read(&meeting.worker.trace(hub, &given.id).await);
        assert_eq!(theirs.0["job"], ticket.uuid.as_str());
    })
    .await;
    hub.stop().await;
}

/// The crossings with a relay requester, or all others.
fn crossings(of_the_relay: bool) -> Vec<Cell> {
    let wanted = |cell: &Cell| cell.crosses() && (cell.from.id() == "relay") == of_the_relay;
    Cell::all().into_iter().filter(wanted).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_find_a_job_by_their_own_name_of_it() {
    named([crossings(true), crossings(false)].concat(), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_find_a_finished_job_by_their_own_name_of_it() {
    named(crossings(false), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_job_of_the_relay_is_found_by_its_conversation() {
    named(crossings(true), true).await;
}
