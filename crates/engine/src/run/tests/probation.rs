//! Agents on probation: being seen once is written to the store and survives a restart.

use rialto_core::command::Actor;

use super::*;
use crate::fixtures::enrol;

const MONTH: Millis = Millis::hours(24 * 30);

fn strict(dir: &Path, clock: &Arc<ManualClock>) -> Hub {
    let store = SqliteStore::open(dir).expect("no other process has it open");
    let rules = Rules { probation_period: Some(MONTH), ..Rules::default() };
    let started =
        start_engine(Box::new(store), rules, clock.clone()).expect("the store can be read");
    let RunningEngine { engine, lane } = started;
    Hub { engine, clock: clock.clone(), lane }
}

fn unproven(native: &str) -> Registration {
    Registration { actor: Actor::Anonymous, ..enrol(native, native, &[("sum", "0")]) }
}

fn is_active(engine: &Engine, id: AgentId) -> bool {
    engine.with_world(|world| world.agent(id).is_some_and(|agent| agent.active))
}

#[tokio::test]
async fn an_unproven_agent_expires_and_one_that_used_its_key_stays_after_a_restart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = ManualClock::at(START);
    let hub = strict(dir.path(), &clock);
    let [ghost, shy] = [hub.enrol(unproven("ghost")).await, hub.enrol(unproven("shy")).await];
    // Immediately, when being seen would usually not be recorded.
    hub.engine.record_seen(shy);
    let shown = |engine: &Engine| {
        engine.with_world(|world| world.agent(shy).is_some_and(|shy| shy.probation.is_none()))
    };
    hub.until(shown).await;
    hub.stop().await;
    let hub = strict(dir.path(), &clock);
    hub.after(MONTH, |engine| !is_active(engine, ghost)).await;
    assert!(is_active(&hub.engine, shy));
    hub.stop().await;
    let hub = strict(dir.path(), &clock);
    assert!(!is_active(&hub.engine, ghost) && is_active(&hub.engine, shy));
    hub.stop().await;
}
