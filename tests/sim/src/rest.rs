//! The end of a life: all jobs end, nothing is missing, and the audit is clean.

use rialto_core::changes::ExpiredRows;
use rialto_core::command::{Command, DeliveryResult};
use rialto_core::time::Millis;
use rialto_engine::audit::audit_dir;
use rialto_engine::store::sqlite::SqliteStore;
use rialto_engine::store::{Row, RowKey, Store};

use crate::ask::Ask;
use crate::hub::{End, Hub};
use crate::log::Log;
use crate::model::Model;

/// More timers than any hub has left when no agent acts any more.
const MOMENTS_MAX: usize = 20_000;

/// Every job ends by itself, and every hold is released or captured.
pub fn comes_to_rest(hub: &mut Hub, log: &mut Log) {
    hub.wait(Millis::seconds(2));
    for _ in 0..MOMENTS_MAX {
        let Some(at) = hub.world().next_timer_at() else { break };
        hub.wait(at.since(hub.now()));
        log.ended(&hub.turn(Vec::new(), End::Well));
    }
    assert_eq!(hub.world().live_jobs().count(), 0, "a job never ends");
    let held: i64 = hub.world().owners().map(|owner| owner.held.micros()).sum();
    assert_eq!(held, 0, "credits are held without a job");
    let mut pushes: Vec<_> = hub.world().deliveries().map(|push| push.notice).collect();
    pushes.sort_unstable();
    let over = |notice| {
        Ask::from(Command::RecordDelivery {
            notice,
            result: DeliveryResult::Obsolete,
            report: None,
        })
    };
    let asks: Vec<Ask> = pushes.into_iter().map(over).collect();
    log.ended(&hub.turn(asks, End::Well));
    assert_eq!(hub.world().deliveries().count(), 0, "a finished delivery remains");
}

/// Every row that was ever written is in the store, as it was last written.
pub fn everything_is_kept(hub: &mut Hub) {
    let rows = hub.model.scene.store.rows.clone();
    let store = hub.store();
    for agent in rows.agents.values() {
        let kept = store.load(RowKey::Agent(agent.id));
        assert!(matches!(kept, Ok(Some(Row::Agent(kept))) if kept == *agent));
    }
    for job in rows.jobs.values() {
        assert!(
            matches!(store.load(RowKey::Job(job.id)), Ok(Some(Row::Job(kept))) if kept == *job)
        );
    }
    for entry in &rows.entries {
        let kept = store.load(RowKey::Entry(entry.id));
        assert!(matches!(kept, Ok(Some(Row::Entry(kept))) if kept == *entry));
    }
    for transfer in &rows.transfers {
        let kept = store.load(RowKey::Transfer(transfer.id));
        assert!(matches!(kept, Ok(Some(Row::Transfer(kept))) if kept == *transfer));
    }
    for notice in &rows.notices {
        let kept = store.load(RowKey::Notice(notice.id));
        assert!(matches!(kept, Ok(Some(Row::Notice(kept))) if kept == **notice));
    }
    for outcome in &rows.outcomes {
        let kept = store.load(RowKey::Outcome(outcome.id));
        assert!(matches!(kept, Ok(Some(Row::Outcome(kept))) if kept == *outcome));
    }
    for posting in &rows.market_records {
        let kept = store.load(RowKey::MarketRecord(posting.id));
        assert!(matches!(kept, Ok(Some(Row::Posting(kept))) if kept == *posting));
    }
    for claim in &rows.claims {
        let newest = hub.model.scene.store.claim(claim.digest);
        let kept = hub.store().load(RowKey::Claim(claim.digest));
        assert!(matches!(kept, Ok(Some(Row::Claim(kept))) if Some(kept) == newest));
    }
}

/// The whole life, written to a real file, is audited without a breach.
pub fn audit_is_clean(model: &Model) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut store = SqliteStore::open(dir.path()).expect("no other process has it open");
    store.commit(&model.scene.store.rows, &ExpiredRows::default()).expect("there is space");
    drop(store);
    let report = audit_dir(dir.path()).expect("the file can be read");
    let breaches: Vec<_> = report.checks.iter().flat_map(|check| &check.breaches).collect();
    assert!(report.is_clean(), "{breaches:?}");
}
