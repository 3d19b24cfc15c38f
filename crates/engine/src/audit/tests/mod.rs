//! The audit finds nothing in an intact store, and reports every planted breach.

mod asked;
mod planted;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rialto_core::agent::Liveness;
use rialto_core::agent::key::Holder;
use rialto_core::answer::Answer;
use rialto_core::changes::ExpiredRows;
use rialto_core::command::{
    AskQuestion, Command, DeliveryResult, JobRef, OpenJob, ReportProgress, SendToWorker,
};
use rialto_core::envelope::Envelope;
use rialto_core::id::{AgentId, JobId, NoticeId};
use rialto_core::job::progress::{ProgressUpdate, ResultPart};
use rialto_core::job::{Policy, Selection};
use rialto_core::job::{Queueing, Reassignment, RequesterOptions};
use rialto_core::notice::Notice;
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::{BREACHES_MAX, Report, audit_dir};
use crate::fixtures::market::{markets, submit_decline, submit_offer, submit_task};
use crate::fixtures::{
    RandomWorkload, START, agent_in, credits, enrol, grant, job_in, message, open, pay, report,
    signed_orders,
};
use crate::run::{Engine, EngineParts, RunningEngine};
use crate::secret::HubSecret;
use crate::store::sqlite::{DB_FILE, SqliteStore, notices, row};
use crate::store::{Store, StoreError};
use crate::testkit::{ManualClock, SeededRandom};

/// A store with a long and valid history, built once and only ever copied.
fn honest() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory can be created");
        // One thread, so that the same seed gives the same history.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be created").block_on(grow(dir.path()));
        dir
    })
    .path()
}

async fn grow(dir: &Path) {
    let clock = ManualClock::at(START);
    let first = start(dir, &clock);
    RandomWorkload::new(11).run(&first.engine, &clock, 160).await;
    // Enough transfers to fill a slice of the claim index.
    for name in ["ada", "bob"] {
        first.engine.run(grant(name, "20")).await.expect("granted");
    }
    let pays = (0..600).map(|n| pay(2_000_000 + n, "ada", "bob", "0.01"));
    let run = |order| {
        let engine = first.engine.clone();
        tokio::spawn(async move { engine.run(Command::Pay(Box::new(order))).await })
    };
    for one in pays.map(run).collect::<Vec<_>>() {
        one.await.expect("no panic").expect("the balance suffices");
    }
    stop(first).await;
    SqliteStore::open(dir).expect("free").write_tables();
    // And then a live job with a hold, a pending delivery, and claims outside the index.
    let second = start(dir, &clock);
    let run = |command: Command| second.engine.run(command);
    let asker = enrol("asker", "asker", &[]);
    let asker = agent_in(&run(Command::Register(Box::new(asker))).await.expect("a new name"));
    let mut helper = enrol("helper", "helper", &[("help", "1")]);
    (helper.liveness, helper.endpoint) =
        (Liveness::ByEndpoint, Some("https://h.example".to_owned()));
    let helper = agent_in(&run(Command::Register(Box::new(helper))).await.expect("a new name"));
    let order = open(1_000_000, asker, "help", "2", second.engine.now());
    let job = run(Command::OpenJob(Box::new(order))).await.expect("an agent accepts it");
    for text in ["reading", "writing"] {
        let update = ProgressUpdate { text: Some(text.to_owned()), ..ProgressUpdate::default() };
        let (job, epoch) = (JobRef::Id(job_in(&job)), None);
        let order = ReportProgress { job, by: helper, epoch, update };
        run(Command::ReportProgress(Box::new(order))).await.expect("it is assigned");
    }
    talk(&second.engine, asker, helper, job_in(&job)).await;
    // A job within one owner, which does not count for reputation.
    let own = enrol("cousin", "helper", &[]);
    let own = agent_in(&run(Command::Register(Box::new(own))).await.expect("a new name"));
    let order = open(1_000_001, own, "help", "2", second.engine.now());
    let job = run(Command::OpenJob(Box::new(order))).await.expect("an agent accepts it");
    run(report(job_in(&job), helper, true, "1")).await.expect("it is assigned");
    // A message that was delivered to its receiver's endpoint.
    let mut sent = message(helper, own, "hello");
    sent.url = Some("https://cousin.example/in".to_owned());
    let Ok(Answer::Message { notice, .. }) = run(Command::SendMessage(Box::new(sent))).await else {
        panic!("there is space")
    };
    let ended = DeliveryResult::Delivered { reply: Some("{}".to_owned()) };
    run(Command::RecordDelivery { notice, result: ended, report: None })
        .await
        .expect("it was in flight");
    // And signed requests, some of them still in progress.
    for order in signed_orders::negotiation_commands() {
        second
            .engine
            .run(order.clone())
            .await
            .unwrap_or_else(|refused| panic!("{refused}: {order:?}"));
    }
    posts(&second.engine).await;
    stop(second).await;
}

/// A question that a message answers, a part, a sign-in, another part, and another message.
async fn talk(engine: &Engine, asker: AgentId, helper: AgentId, job: JobId) {
    let run = async |order: Command| engine.run(order).await.expect("these are never refused");
    let (wanted, epoch) = (JobRef::Id(job), None);
    let (holder, hash) = (Holder::Agent(asker), [9; 32]);
    run(Command::IssueKey { holder, hash, retire_others: false, by_operator: false }).await;
    let ask = |text: &str| {
        let (job, text) = (wanted.clone(), text.to_owned());
        Box::new(AskQuestion { job, by: helper, epoch, text, schema: None })
    };
    let say = |text: &str| {
        let (job, input) = (wanted.clone(), format!("{{\"text\":\"{text}\"}}"));
        let order = SendToWorker { job, by: asker, body: input.clone(), input };
        Command::SendToWorker(Box::new(order))
    };
    let part = |append: bool| {
        let part = Some(ResultPart { content: "{\"n\":1}".to_owned(), append });
        let update = ProgressUpdate { part, ..ProgressUpdate::default() };
        let order = ReportProgress { job: wanted.clone(), by: helper, epoch, update };
        Command::ReportProgress(Box::new(order))
    };
    run(Command::AskQuestion(ask("which city?"))).await;
    run(say("Lugano")).await;
    run(part(false)).await;
    for _ in 0..2 {
        run(Command::AskToSignIn(ask("sign in elsewhere"))).await;
        run(part(true)).await;
    }
    run(say("and cheap")).await;
}

/// What a market does: unpaid broadcast tasks, and an auction that is held twice.
async fn posts(engine: &Engine) {
    let run = async |order: Envelope| engine.run(order).await.expect("these are never refused");
    let enrolled = async |native: &str, skills: &[(&str, &str)]| {
        let order = Command::Register(Box::new(enrol(native, native, skills)));
        agent_in(&engine.run(order).await.expect("a new name"))
    };
    let asks = enrolled("asks", &[]).await;
    let [one, two] =
        [enrolled("one", &[("bid", "3")]).await, enrolled("two", &[("bid", "2")]).await];
    let policy = Policy {
        reassignment: Reassignment { when_declined: true, ..Reassignment::default() },
        queueing: Queueing { after_failure: true, ..Queueing::default() },
        ..Policy::default()
    };
    let task = |n: u64, selection: Selection| {
        let order = open(1_100_000 + n, asks, "bid", "5", engine.now());
        OpenJob { selection, policy, ..order }
    };
    let newest = || engine.with_world(|world| JobId(world.next.job.0 - 1));
    let unpaid =
        Policy { requester: RequesterOptions { unpaid: true, ..policy.requester }, ..policy };
    run(submit_task(OpenJob { policy: unpaid, ..task(1, Selection::Cheapest) })).await;
    run(report(newest(), two, true, "2").into()).await;
    run(submit_task(OpenJob { policy: unpaid, ..task(2, Selection::Cheapest) })).await;
    run(submit_task(task(3, Selection::BroadcastToProtocol))).await;
    run(submit_decline("no-1", newest(), two)).await;
    run(submit_task(OpenJob {
        skill: "not offered here".to_owned(),
        ..task(4, Selection::Cheapest)
    }))
    .await;
    let closes = engine.now().plus(Millis::seconds(2));
    run(submit_task(task(5, Selection::Auction { closes }))).await;
    let job = newest();
    run(submit_offer("offer-1", job, one, "4")).await;
    run(submit_offer("offer-2", job, two, "3")).await;
    run(submit_decline("no-2", job, two)).await;
    run(submit_decline("no-3", job, one)).await;
    // Held again for any bidder, and ended again.
    let three = enrolled("three", &[("bid", "9")]).await;
    run(submit_offer("offer-3", job, three, "5")).await;
    let won = engine.with_world(|world| world.job(job).and_then(|job| job.worker()));
    assert_eq!(won, Some(three));
}

fn start(dir: &Path, clock: &Arc<ManualClock>) -> RunningEngine {
    let store = SqliteStore::open(dir).expect("no other process has it open");
    let rules = Rules { welcome_grant: credits("40"), ..Rules::default() };
    let (clock, ids) = (clock.clone(), SeededRandom::new(1));
    let (secret, markets) = (HubSecret::from_bytes([7; 32]), markets());
    let setup = EngineParts {
        store: Box::new(store),
        rules,
        clock,
        random: ids,
        secret,
        markets,
        cluster: None,
    };
    Engine::start(setup).expect("it can be read")
}

async fn stop(RunningEngine { engine, lane }: RunningEngine) {
    engine.stop().await;
    drop(engine);
    tokio::task::spawn_blocking(|| lane.join()).await.expect("joins").expect("without a panic");
}

/// A copy of the intact store.
pub fn copy() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::copy(honest().join(DB_FILE), dir.path().join(DB_FILE)).expect("copied");
    dir
}

fn behind(dir: &Path) -> Connection {
    Connection::open(dir.join(DB_FILE)).expect("the file exists")
}

/// Changes the text of a row and updates its checksum, as a deliberate attacker would.
fn rewrite(db: &Connection, table: &str, id: i64, change: impl FnOnce(&mut Value)) {
    let (key, body): (rusqlite::types::Value, String) = db
        .query_row(&format!("SELECT rowid, body FROM {table} WHERE id = {id}"), [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("the row exists");
    let mut value: Value = serde_json::from_str(&body).expect("rows are JSON");
    change(&mut value);
    let body = value.to_string();
    let crc = row::checksum((&key).into(), body.as_bytes());
    let sql = format!("UPDATE {table} SET body = ?1, crc = ?2 WHERE id = ?3");
    db.execute(&sql, rusqlite::params![body, crc, id]).expect("rewritten");
}

/// Changes a notice and updates its checksum.
fn retell(db: &Connection, id: i64, change: impl FnOnce(&mut Notice)) {
    let id = NoticeId(id.unsigned_abs());
    let mut notice = notices::load_notice(db, id).expect("readable").expect("the row exists");
    change(&mut notice);
    db.execute("DELETE FROM notices WHERE id = ?1", [id.0 as i64]).expect("deleted");
    notices::append_notices(db, &[Arc::new(notice)]).expect("written");
}

/// Points a claim elsewhere and updates its checksum.
fn retarget(db: &Connection, id: i64, target: &str) {
    let digest: Vec<u8> = db
        .query_row("SELECT digest FROM claims WHERE id = ?1", [id], |row| row.get(0))
        .expect("there");
    let guarded = [&digest[..], target.as_bytes()].concat();
    let crc = row::checksum(rusqlite::types::ValueRef::Integer(id), &guarded);
    db.execute(
        "UPDATE claims SET target = ?1, crc = ?2 WHERE id = ?3",
        rusqlite::params![target, crc, id],
    )
    .expect("rewritten");
}

/// The first number a query returns.
fn number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The names of the checks that failed.
fn failed(report: &Report) -> Vec<&'static str> {
    let bad = report.checks.iter().filter(|check| check.breaches_total > 0);
    bad.map(|check| check.name).collect()
}

#[test]
fn an_honest_store_is_clean_and_every_check_had_something_to_look_at() {
    let report = audit_dir(honest()).expect("readable");
    assert!(report.is_clean(), "{report:#?}");
    let names: Vec<_> = report.checks.iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        [
            "file",
            "ledger.chain",
            "ledger.sums",
            "ledger.history",
            "transfers",
            "holds",
            "jobs.states",
            "reputation",
            "inbox",
            "claims",
            "aliases",
            "keys",
            "checksums",
            "counters"
        ]
    );
    for check in &report.checks {
        assert!(check.rows > 9, "{check:?}");
    }
    let json = serde_json::to_value(&report).expect("it can be serialized");
    assert_eq!(json["checks"][1]["name"], "ledger.chain");
    let db = behind(honest());
    assert!(number(&db, "SELECT count(*) FROM claim_index") > 500, "some are in the index");
    assert!(
        number(&db, "SELECT count(*) FROM claims")
            > number(&db, "SELECT count(*) FROM claim_index")
    );
}

#[test]
fn an_empty_store_is_clean() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    drop(SqliteStore::open(dir.path()).expect("free"));
    let report = audit_dir(dir.path()).expect("readable");
    assert!(report.is_clean(), "{report:#?}");
}

#[test]
fn a_hub_that_runs_or_was_killed_can_be_audited() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    let mut store = SqliteStore::open(dir.path()).expect("free");
    let mut script = crate::fixtures::ModelHub::default();
    crate::store::suite::write_sample_history(&mut script, &mut store);
    let report = audit_dir(dir.path()).expect("a running hub does not block it");
    assert!(report.is_clean(), "{report:#?}");
    assert!(report.checks.iter().any(|check| check.name == "ledger.chain" && check.rows > 5));
    let killed = tempfile::tempdir().expect("a directory can be created");
    for file in std::fs::read_dir(dir.path()).expect("a directory") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), killed.path().join(file.file_name())).expect("copied");
    }
    let after = audit_dir(killed.path()).expect("readable");
    assert!(after.is_clean(), "{after:#?}");
    let rows = |report: &Report| report.checks.iter().map(|check| check.rows).collect::<Vec<_>>();
    assert_eq!(rows(&after)[1..], rows(&report)[1..], "the same rows except for the file's pages");
    store
        .commit(&script.run(grant("ada", "1")).1, &ExpiredRows::default())
        .expect("and the audit does not block the hub");
}

#[test]
fn what_is_no_store_of_ours_is_an_error_and_no_report() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    assert!(matches!(audit_dir(dir.path()), Err(StoreError::Missing(_))));
    assert!(!dir.path().join(DB_FILE).exists(), "the audit creates nothing");
    std::fs::write(dir.path().join(DB_FILE), vec![b'?'; 9_000]).expect("written");
    assert!(matches!(audit_dir(dir.path()), Err(StoreError::Corrupt(_))));
    let newer = copy();
    behind(newer.path()).execute_batch("PRAGMA user_version = 99").expect("done");
    assert!(matches!(audit_dir(newer.path()), Err(StoreError::NewerSchema { .. })));
}

#[test]
fn many_breaches_are_counted_and_the_first_hundred_told() {
    let dir = copy();
    let rotten = behind(dir.path()).execute("UPDATE lines SET body = body || ' '", []);
    let rotten = rotten.expect("corrupted") as u64;
    let report = audit_dir(dir.path()).expect("readable");
    let check = report.checks.iter().find(|check| check.name == "checksums").expect("there");
    assert!(rotten > BREACHES_MAX as u64, "there were {rotten}");
    assert_eq!((check.breaches.len(), check.breaches_total), (BREACHES_MAX, rotten));
    assert!(!report.is_clean());
}
