//! Rows that move: jobs into the archive, deliveries removed, claims into an index, whole batches.

use std::sync::Arc;

use rialto_core::agent::Liveness;
use rialto_core::alias::{Claim, ClaimTarget, Digest, claim};
use rialto_core::changes::{Changes, Counters, ExpiredRows};
use rialto_core::command::{Command, DeliveryResult, JobRef};
use rialto_core::event::HistoryLine;
use rialto_core::id::*;
use rialto_core::job::{Job, JobWebhook, Requester, State};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::Timestamp;

use super::{StoreFixture, rebuild_world, reopen};
use crate::fixtures::{self, ModelHub, agent_in, enrol, job_in, open, report, snapshot};
use crate::store::{PageQuery, Row, RowKey, Store};

pub fn a_finished_job_moves_to_the_archive(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut store = place.open();
    let mut run = |script: &mut ModelHub, command| {
        let (answer, changes) = script.run(command);
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
        answer
    };
    let ada = agent_in(&run(&mut script, Command::Register(Box::new(enrol("ada", "ada", &[])))));
    let bob = Command::Register(Box::new(enrol("bob", "bob", &[("sum", "1")])));
    let bob = agent_in(&run(&mut script, bob));
    let order = Command::OpenJob(Box::new(open(1, ada, "sum", "1", fixtures::START)));
    let job = job_in(&run(&mut script, order));
    run(&mut script, Command::Start { job: JobRef::Id(job), by: bob });
    let mut store = reopen(place, store);
    assert_eq!(store.load_hot_rows().unwrap().jobs.into_keys().collect::<Vec<_>>(), [job]);
    let archive = |store: &dyn Store| {
        let mut reader = store.open_reader().expect("readers can be opened");
        reader
            .load_page(PageQuery::Jobs { before: JobId(u64::MAX), limit: 9 })
            .expect("readers can read")
            .len()
    };
    assert_eq!(archive(&*store), 0);
    let (_, changes) = script.run(report(job, bob, true, "1"));
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    let mut store = reopen(place, store);
    assert!(store.load_hot_rows().unwrap().jobs.is_empty());
    assert_eq!(archive(&*store), 1);
    let Some(Row::Job(found)) = store.load(RowKey::Job(job)).unwrap() else { panic!("it exists") };
    assert_eq!(found.state, State::Completed);
}

pub fn a_finished_job_may_still_get_and_lose_webhooks(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut batch = Changes::default();
    let mut run = |script: &mut ModelHub, command| {
        let (answer, changes) = script.run(command);
        batch.merge(changes);
        answer
    };
    let ada = agent_in(&run(&mut script, Command::Register(Box::new(enrol("ada", "ada", &[])))));
    let bob = Command::Register(Box::new(enrol("bob", "bob", &[("sum", "1")])));
    let bob = agent_in(&run(&mut script, bob));
    let order = Command::OpenJob(Box::new(open(1, ada, "sum", "1", fixtures::START)));
    let job = job_in(&run(&mut script, order));
    run(&mut script, report(job, bob, true, "1"));
    let mut store = place.open();
    store.commit(&batch, &ExpiredRows::default()).expect("there is space");
    let webhook = |id: &str| JobWebhook { id: id.into(), url: "u".into(), meta: "{}".into() };
    // Each time the job is in the archive of the tables already.
    for webhooks in [vec![webhook("a")], vec![webhook("a"), webhook("b")], vec![]] {
        store = reopen(place, store);
        let Some(Row::Job(found)) = store.load(RowKey::Job(job)).unwrap() else { panic!("one") };
        let changed = Job { webhooks: webhooks.clone(), ..(*found).clone() };
        let changes = Changes { jobs: [(job, Arc::new(changed))].into(), ..Changes::default() };
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
        store = reopen(place, store);
        let Some(Row::Job(found)) = store.load(RowKey::Job(job)).unwrap() else { panic!("one") };
        assert_eq!(found.webhooks, webhooks);
    }
}

pub fn a_job_opened_and_finished_in_one_batch_is_only_history(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut batch = Changes::default();
    let mut run = |script: &mut ModelHub, command| {
        let (answer, changes) = script.run(command);
        batch.merge(changes);
        answer
    };
    let ada = agent_in(&run(&mut script, Command::Register(Box::new(enrol("ada", "ada", &[])))));
    let bob = Command::Register(Box::new(enrol("bob", "bob", &[("sum", "1")])));
    let bob = agent_in(&run(&mut script, bob));
    let order = Command::OpenJob(Box::new(open(1, ada, "sum", "1", fixtures::START)));
    let job = job_in(&run(&mut script, order));
    run(&mut script, report(job, bob, true, "1"));
    place.open().commit(&batch, &ExpiredRows::default()).expect("there is space");
    let mut store = place.open();
    let world = rebuild_world(&script, &mut *store);
    assert_eq!(snapshot(&world, script.now), snapshot(&script.world, script.now));
    assert_eq!(world.live_jobs().count(), 0);
    let digest = claim::job(fixtures::HOME, "job-1");
    let Some(Row::Claim(found)) = store.load(RowKey::Claim(digest)).unwrap() else {
        panic!("claimed")
    };
    assert_eq!(found.target, ClaimTarget::Job(job));
    let Some(Row::Job(found)) = store.load(RowKey::Job(job)).unwrap() else { panic!("it exists") };
    assert_eq!((found.state, found.payment.held.micros()), (State::Completed, 0));
}

pub fn pushes_appear_and_vanish(place: &mut dyn StoreFixture) {
    let mut script = ModelHub::default();
    let mut store = place.open();
    let mut bob = enrol("bob", "bob", &[("sum", "0")]);
    (bob.liveness, bob.endpoint) = (Liveness::ByEndpoint, Some("https://bob.example".to_owned()));
    let mut order = open(1, AgentId(0), "sum", "0", fixtures::START);
    order.requester = Requester::Guest("https://guest.example".to_owned());
    let mut notice = NoticeId(0);
    for command in [Command::Register(Box::new(bob)), Command::OpenJob(Box::new(order))] {
        let (_, changes) = script.run(command);
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
        notice = changes.deliveries.keys().next().copied().unwrap_or_default();
    }
    drop(store);
    let mut store = place.open();
    assert_eq!(store.load_hot_rows().unwrap().deliveries.into_keys().collect::<Vec<_>>(), [notice]);
    let (_, changes) = script.run(Command::RecordDelivery {
        notice,
        result: DeliveryResult::Delivered { reply: None },
        report: None,
    });
    store.commit(&changes, &ExpiredRows::default()).expect("there is space");
    let mut store = reopen(place, store);
    assert!(store.load_hot_rows().unwrap().deliveries.is_empty());
    // Created and completed within one batch: there is nothing to keep.
    let never = Changes { deliveries: [(NoticeId(9), None)].into(), ..Changes::default() };
    store.commit(&never, &ExpiredRows::default()).expect("there is space");
    drop(store);
    assert!(place.open().load_hot_rows().unwrap().deliveries.is_empty());
}

pub fn the_newest_claim_of_an_id_counts_wherever_it_is_found(place: &mut dyn StoreFixture) {
    let ours = Digest([0xFF; 16]);
    let mut next = 0;
    let mut claimed = |digest: Digest, target: ClaimTarget| {
        next += 1;
        Claim { id: ClaimId(next), digest, target }
    };
    // Enough others to fill several slices of an index, with ours among them.
    let steps = [
        ClaimTarget::Job(JobId(1)),
        ClaimTarget::Released,
        ClaimTarget::Job(JobId(2)),
        ClaimTarget::Released,
    ];
    let crowd = |n: u64| Digest::of(&[&n.to_be_bytes()]);
    let mut store = place.open();
    for (round, step) in (0_u64..).zip(steps) {
        let others =
            (0..700).map(|n| (crowd(round * 1_000 + n), ClaimTarget::Transfer(TransferId(n))));
        let mut claims: Vec<Claim> =
            others.map(|(digest, target)| claimed(digest, target)).collect();
        claims.push(claimed(ours, step));
        // A second time within the same batch, and so within one slice.
        claims.extend([ClaimTarget::Job(JobId(8)), step].map(|target| claimed(ours, target)));
        let newest = *claims.last().expect("not empty");
        let batch = Changes { claims, next: Some(Counters::default()), ..Changes::default() };
        store.commit(&batch, &ExpiredRows::default()).expect("there is space");
        let look = |store: &mut dyn Store| {
            let found = [
                store.load(RowKey::Claim(ours)).unwrap(),
                store.open_reader().unwrap().load(RowKey::Claim(ours)).unwrap(),
            ];
            for found in found {
                let Some(Row::Claim(found)) = found else { panic!("it was claimed") };
                assert_eq!(found, newest);
            }
        };
        look(&mut *store);
        store.run_maintenance().expect("there is space");
        look(&mut *store);
        drop(store);
        store = place.open();
        look(&mut *store);
        for n in [0, 699] {
            let found = store.load(RowKey::Claim(crowd(round * 1_000 + n))).unwrap();
            let Some(Row::Claim(found)) = found else { panic!("it was claimed") };
            assert_eq!(found.target, ClaimTarget::Transfer(TransferId(n)));
        }
    }
}

pub fn a_reader_sees_all_of_a_batch_or_nothing(place: &mut dyn StoreFixture) {
    const BATCHES: u64 = 60;
    let mut store = place.open();
    let mut reader = store.open_reader().expect("readers can be opened");
    let watching = std::thread::spawn(move || {
        let mut seen = 0;
        while seen < BATCHES {
            let lines =
                reader.load_page(PageQuery::Lines { after: EventId(seen), limit: 99 }).unwrap();
            for line in lines {
                let Row::Line(line) = line else { panic!("a page of lines") };
                assert_eq!(line.id, EventId(seen + 1), "in order and without gaps");
                seen = line.id.0;
                let notice = reader.load(RowKey::Notice(NoticeId(seen))).unwrap();
                let claim = reader.load(RowKey::Entry(EntryId(seen))).unwrap();
                assert!(notice.is_some() && claim.is_none());
            }
        }
    });
    for n in 1..=BATCHES {
        let at = Timestamp(1);
        let news = NoticeKind::Queued { job: JobId(n) };
        let notice = Notice { id: NoticeId(n), to: None, position: 0, before: None, at, news };
        let batch = Changes {
            notices: vec![Arc::new(notice)],
            history_lines: vec![Arc::new(HistoryLine {
                id: EventId(n),
                at,
                by_operator: false,
                events: Vec::new(),
            })],
            next: Some(Counters::default()),
            ..Changes::default()
        };
        store.commit(&batch, &ExpiredRows::default()).expect("there is space");
    }
    watching.join().expect("the reader saw no partial batch");
}
