//! Runs a whole demo and checks that missing or wrong parts are detected.

use std::sync::OnceLock;

use rialto_core::money::Credits;

use super::*;

/// One demo run for all tests, since it takes seconds.
fn story() -> &'static DemoReport {
    static STORY: OnceLock<DemoReport> = OnceLock::new();
    STORY.get_or_init(|| {
        let runtime = runtime().expect("a runtime");
        let report = runtime.block_on(async {
            let (_trigger, shutdown) = Shutdown::manual();
            run_to_end(DisplayMode::Silent, &shutdown).await
        });
        report.expect("a demo run")
    })
}

/// The names of the checks that fail after `change` is applied to the report.
fn broken(change: impl FnOnce(&mut DemoReport)) -> Vec<String> {
    let mut report = story().clone();
    change(&mut report);
    let checks = check::run_all(&report).into_iter();
    checks.filter(|check| !check.holds).map(|check| check.name).collect()
}

fn one_micro_more(credits: &mut Credits) {
    *credits = Credits::from_micros(credits.micros() + 1);
}

#[test]
fn a_story_that_went_as_planned_passes_every_check() {
    assert_eq!(broken(|_| {}), Vec::<String>::new());
}

#[test]
fn every_step_that_is_left_out_or_told_twice_is_named() {
    assert_eq!(story().events.len(), plan::STEPS.len());
    for (place, event) in story().events.iter().enumerate() {
        let step = plan::STEPS.iter().find(|step| step.matches(event)).expect("planned").describe();
        let missing = broken(|report| drop(report.events.remove(place)));
        assert_eq!(missing, [step.as_str()]);
        let twice = broken(|report| report.events.push(event.clone()));
        assert_eq!(twice, [step.as_str()]);
    }
}

#[test]
fn a_step_with_another_amount_or_another_party_is_refused() {
    let dearer = |report: &mut DemoReport| {
        let amount = report.events.iter_mut().find_map(|event| event.amount.as_mut());
        one_micro_more(&mut amount.expect("an amount").0);
    };
    assert_eq!(broken(dearer), ["Reader hires Editor"]);
    let other = broken(|report| report.events[1].with = Some(plan::Role::Herald));
    assert_eq!(other, ["Editor defers Reader", "nothing happens that is not planned"]);
}

#[test]
fn whatever_is_missing_from_the_hubs_history_is_missed() {
    for place in 0..story().records.history.len() {
        let fact = &story().records.history[place];
        let missing = broken(|report| drop(report.records.history.remove(place)));
        assert!(!missing.is_empty(), "{fact:?}");
        let twice = broken(|report| report.records.history.push(fact.clone()));
        assert!(!twice.is_empty(), "{fact:?}");
    }
}

#[test]
fn a_movement_that_is_missing_or_a_micro_credit_too_much_is_found() {
    for place in 0..story().records.ledger.entries.len() {
        let missing = broken(|report| drop(report.records.ledger.entries.remove(place)));
        let recount = "every account equals the sum of its movements".to_owned();
        assert!(missing.contains(&recount), "{missing:?}");
    }
    let sum = "all accounts add up to zero".to_owned();
    for place in 0..story().records.ledger.accounts.len() {
        let account = |report: &mut DemoReport| {
            one_micro_more(&mut report.records.ledger.accounts[place].balance.available);
        };
        assert!(broken(account).contains(&sum));
    }
    let rich = |report: &mut DemoReport| {
        let scout = report.after.get_mut(&plan::Role::Scout).expect("it is there");
        one_micro_more(&mut scout.balance.available);
    };
    assert_eq!(broken(rich), ["every agent has exactly the expected credits"]);
    let held = |report: &mut DemoReport| {
        let account = &mut report.records.ledger.accounts[0].balance;
        account.held = std::mem::take(&mut account.available);
    };
    assert!(broken(held).contains(&"no credits are held at the end".to_owned()));
}

#[test]
fn reputations_that_stand_still_and_lost_hops_are_found() {
    let moved = "both reputations of every worker move the right way";
    for (role, agent) in &story().after {
        let still = |report: &mut DemoReport| {
            let before = report.before[role].scores.clone();
            report.after.get_mut(role).expect("it is there").scores = before;
        };
        let works = agent.scores != story().before[role].scores;
        let expected: &[&str] = if works { &[moved] } else { &[] };
        assert_eq!(broken(still), expected, "{role}");
    }
    let untraced = broken(|report| drop(report.records.hops.pop()));
    assert_eq!(untraced, ["the Reader's job is traced there and back"]);
    let audited = broken(|report| report.breaches.push("a breach".to_owned()));
    assert_eq!(audited, ["the audit of the hub's data finds nothing"]);
    let unwritten = broken(|report| report.bulletin = serde_json::Value::Null);
    assert_eq!(unwritten, ["the bulletin contains every contribution"]);
}

#[test]
fn the_verdict_is_an_exit_code() {
    let check = |holds| Check { name: "x".to_owned(), holds, found: None };
    assert_eq!(report_checks(&[check(true)], true), Exit::Ok);
    assert_eq!(report_checks(&[check(true), check(false)], true), Exit::Failed);
}

#[test]
fn what_did_not_happen_can_be_named_at_any_time() {
    let next = |count: usize| plan::next_step(&story().events[..count]).map(plan::Step::describe);
    assert_eq!(next(0).as_deref(), Some("Reader hires Editor"));
    assert_eq!(next(1).as_deref(), Some("Editor defers Reader"));
    assert_eq!(next(story().events.len()), None);
}
