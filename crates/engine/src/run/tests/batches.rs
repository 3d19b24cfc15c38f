//! Batches: one commit for many commands, each sees the earlier ones, and refused ones leave no
//! trace.

use rialto_core::command::JobRef;
use rialto_core::id::{EventId, NoticeId};
use rialto_core::refusal::Refusal;

use super::*;
use crate::fixtures::{enrol, grant, pay, report, snapshot};
use crate::store::PageQuery;

#[tokio::test]
async fn one_commit_answers_all_waiting_callers() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    probe.close();
    let engine = hub.engine.clone();
    let first = tokio::spawn(async move { engine.run(grant("first", "1")).await });
    // The lane is blocked in the commit of the first; the others queue behind it.
    probe.held().await;
    let engine = hub.engine.clone();
    let others = tokio::spawn(async move {
        together(&engine, (0..300).map(|n| grant(&format!("owner-{n}"), "1"))).await
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!first.is_finished(), "no reply before the commit");
    assert!(
        hub.engine.with_world(|world| world.owner_by_name("first")).is_none(),
        "nor is it published"
    );
    probe.open();
    assert!(first.await.expect("no panic").is_ok());
    let answers = others.await.expect("no panic");
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 300);
    assert!(probe.commits() <= 4, "{} commits for 301 commands", probe.commits());
    hub.stop().await;
}

#[tokio::test]
async fn commands_of_one_batch_see_each_other() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let ada = hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    probe.close();
    let engine = hub.engine.clone();
    let held = tokio::spawn(async move { engine.run(grant("held", "1")).await });
    probe.held().await;
    let before = probe.commits();
    // Opened, started, paid, confirmed and spent again, all before one commit.
    let mut confirm = pay(1, "ada", "bob", "1");
    confirm.job = Some("job-1".to_owned());
    let named = JobRef::Foreign { origin: crate::fixtures::HOME, id: "job-1".to_owned() };
    let commands = [
        Command::OpenJob(Box::new(hub.ask(1, ada, "sum", "1"))),
        Command::Start { job: named, by: bob },
        report(JobId(1), bob, true, "1"),
        Command::Pay(Box::new(confirm)),
        Command::Pay(Box::new(pay(2, "bob", "ada", "11"))),
        Command::Pay(Box::new(pay(3, "bob", "ada", "0.01"))),
    ];
    let mut answers = Vec::new();
    for command in commands {
        let engine = hub.engine.clone();
        answers.push(tokio::spawn(async move { engine.run(command).await }));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    probe.open();
    assert!(held.await.expect("no panic").is_ok());
    let mut told = Vec::new();
    for answer in answers {
        told.push(answer.await.expect("no panic"));
    }
    assert!(told[..5].iter().all(Result::is_ok), "{told:?}");
    assert!(matches!(told[5], Err(Failure::Refused(Refusal::TooFewCredits))), "{:?}", told[5]);
    assert_eq!(probe.commits(), before + 2, "the blocked one, and one for all of these");
    assert_eq!(hub.account("ada"), ("20.00".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.engine.with_world(|world| world.live_jobs().count()), 0);
    let job = hub.engine.load_job(JobId(1)).await.expect("readable").expect("it is stored");
    assert!(job.result.as_ref().is_some_and(|report| report.ok));
    hub.stop().await;
}

#[tokio::test]
async fn a_refused_command_leaves_no_trace() {
    let (store, probe) = Probed::over(MemoryStore::default());
    let hub = Hub::over(store, ManualClock::at(START));
    let ada = hub.enrol(enrol("ada", "ada", &[("sum", "1")])).await;
    let before = hub.engine.with_world(|world| snapshot(world, START));
    let commits = probe.commits();
    let refused = [
        Command::OpenJob(Box::new(hub.ask(1, ada, "sum", "1"))),
        Command::OpenJob(Box::new(hub.ask(1, ada, "fly", "1"))),
        Command::Pay(Box::new(pay(1, "ada", "nobody", "1"))),
        Command::Pay(Box::new(pay(1, "ada", "ada", "1"))),
        Command::Remove { agent: AgentId(9), by_operator: true },
        report(JobId(1), ada, true, "1"),
    ];
    for command in refused {
        let refusal = hub.run(command).await;
        assert!(matches!(refusal, Err(Failure::Refused(_))), "{refusal:?}");
    }
    assert_eq!(hub.engine.with_world(|world| snapshot(world, START)), before);
    assert_eq!(probe.commits(), commits, "nothing was written for them");
    let page = PageQuery::Lines { after: EventId(1), limit: 9 };
    assert!(hub.engine.load_page(page).await.expect("readable").is_empty());
    hub.stop().await;
}

#[tokio::test]
async fn a_reader_comes_back_when_its_work_panics_or_its_caller_leaves() {
    let hub = Hub::in_memory();
    for _ in 0..10 {
        let panicked = hub.engine.read_store::<()>(|_| panic!("as planned")).await;
        assert!(matches!(panicked, Err(Failure::Fault)), "{panicked:?}");
        let (release, held) = std::sync::mpsc::channel::<()>();
        let slow = hub.engine.read_store(move |_| {
            let _ = held.recv();
            Ok(())
        });
        let left = tokio::time::timeout(Duration::from_millis(2), slow).await;
        drop(release);
        assert!(left.is_err(), "the caller is gone");
    }
    let found = tokio::time::timeout(LONG, hub.engine.load_row(RowKey::Notice(NoticeId(1)))).await;
    assert!(matches!(found, Ok(Ok(None))), "{found:?}");
    assert!(hub.engine.is_writable());
    hub.stop().await;
}

#[tokio::test]
async fn the_lane_ends_with_the_last_handle_and_frees_the_store() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = Hub::on_disk(dir.path(), &clock);
    hub.run(grant("ada", "1")).await.expect("there is space");
    let Hub { engine, lane, .. } = hub;
    drop(engine);
    tokio::task::spawn_blocking(|| lane.join()).await.expect("joins").expect("no panic");
    Hub::on_disk(dir.path(), &clock).stop().await;
}

#[tokio::test]
async fn after_stop_nothing_is_taken_any_more() {
    let hub = Hub::in_memory();
    let engine = hub.engine.clone();
    hub.stop().await;
    assert!(!engine.is_writable());
    assert!(matches!(engine.run(grant("ada", "1")).await, Err(Failure::Unavailable)));
}
