//! Agents on probation: being seen once is written to the store and survives a restart.

use rialto_core::command::Actor;

use super::*;
use crate::fixtures::enrol;

const MONTH: Millis = Millis::hours(24 * 30);

fn strict(dir: &Path, clock: &Arc<StandingClock>) -> Hub {
    let store = SqliteStore::open(dir).expect("no other process has it open");
    let rules = Rules { unproven_ttl: Some(MONTH), ..Rules::default() };
    let started = engine(Box::new(store), rules, clock.clone()).expect("the store can be read");
    let Started { engine, lane } = started;
    Hub { engine, clock: clock.clone(), lane }
}

fn unproven(native: &str) -> Enrol {
    Enrol { actor: Actor::Nobody, ..enrol(native, native, &[("sum", "0")]) }
}

fn is_active(engine: &Engine, id: AgentId) -> bool {
    engine.look(|world| world.agent(id).is_some_and(|agent| agent.active))
}

#[tokio::test]
async fn a_ghost_goes_by_itself_and_whoever_showed_its_key_once_stays_also_after_a_restart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let clock = StandingClock::at(DAWN);
    let hub = strict(dir.path(), &clock);
    let [ghost, shy] = [hub.enrol(unproven("ghost")).await, hub.enrol(unproven("shy")).await];
    // Immediately, when being seen would usually not be recorded.
    hub.engine.seen(shy);
    let shown = |engine: &Engine| {
        engine.look(|world| world.agent(shy).is_some_and(|shy| shy.probation.is_none()))
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
