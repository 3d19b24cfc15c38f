//! Accounts, grants and payments.

use super::{Entry, EntryHash, EntryKind};
use crate::alias::Digest;
use crate::answer::Answer;
use crate::command::{Command, OpenJob, Pay};
use crate::event::Event;
use crate::id::JobId;
use crate::job::{Selection, State};
use crate::money::Credits;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, credits, registration_with_endpoint, transfer_in};
use crate::time::Millis;

/// Two owners, the first with a hundred credits.
fn bank() -> TestHub {
    let mut scene = TestHub::default();
    scene.register_client("ann", "o1", "100.00");
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    scene
}

/// A job of o1, done by acme for 0.10.
fn bank_with_job(done: bool) -> (TestHub, OpenJob, JobId) {
    let mut scene = bank();
    let ann = scene.world.agent_by_alias(crate::testkit::HOME, "ann").unwrap();
    let order = scene.job_order(ann, "sum", "0.15");
    let job = scene.open_job(order.clone()).id;
    if done {
        scene.succeed(job, "0.10");
    }
    (scene, order, job)
}

fn open_accounts(scene: &TestHub) -> (String, String) {
    (scene.balance_text("o1").0, scene.balance_text("acme").0)
}

/// A refused payment changes nothing at all.
fn refused(scene: &mut TestHub, order: Pay, why: Refusal) {
    let before = (scene.world.next, open_accounts(scene));
    assert_eq!(scene.pay(order).unwrap_err(), why);
    assert_eq!((scene.world.next, open_accounts(scene)), before);
}

#[test]
fn a_plain_payment_moves_once_for_ever() {
    let mut scene = bank();
    let order = scene.payment("o1", "acme", "30.00");
    let (transfer, repeated) = transfer_in(scene.pay(order.clone()).unwrap());
    assert!(!repeated && !transfer.settled_by_hold);
    assert_eq!(transfer.payer_balance, credits("70"));
    assert_eq!(open_accounts(&scene), ("70.00".to_owned(), "30.00".to_owned()));

    scene.advance_without_timers(Millis::hours(24 * 365));
    let (again, repeated) = transfer_in(scene.pay(order.clone()).unwrap());
    assert_eq!((again, repeated), (transfer, true));
    let other = Pay { content: Digest::of(&[b"other"]), ..order };
    refused(&mut scene, other, Refusal::SameIdOtherContent);
    assert_eq!(open_accounts(&scene), ("70.00".to_owned(), "30.00".to_owned()));
}

#[test]
fn what_cannot_be_paid_changes_nothing() {
    let mut scene = bank();
    let order = scene.payment("o1", "acme", "100.000001");
    refused(&mut scene, order, Refusal::TooFewCredits);
    let order = scene.payment("o1", "acme", "0");
    refused(&mut scene, order.clone(), Refusal::AmountNotPositive);
    let negative = Pay { amount: Credits::from_micros(-1), ..order };
    refused(&mut scene, negative, Refusal::AmountNotPositive);
    let order = scene.payment("o1", "o1", "1");
    refused(&mut scene, order, Refusal::SelfPayment);
    let order = scene.payment("unknown", "acme", "1");
    refused(&mut scene, order, Refusal::NoSuchOwner { name: "unknown".to_owned() });
    let order = scene.payment("o1", "unknown", "1");
    refused(&mut scene, order.clone(), Refusal::NoSuchOwner { name: "unknown".to_owned() });
    // In open mode an unknown payee gets an account, but not for a payment that fails.
    let dear = Pay { open_payee: true, amount: credits("101"), ..order.clone() };
    refused(&mut scene, dear, Refusal::TooFewCredits);
    assert_eq!(scene.world.owner_by_name("unknown"), None);
    scene.pay(Pay { open_payee: true, ..order }).unwrap();
    assert_eq!(scene.balance_text("unknown").0, "1.00");
}

#[test]
fn thirty_three_payments_of_three_cents_fit_into_one_credit() {
    let mut scene = TestHub::default();
    scene.grant("o1", "1.00");
    scene.grant("acme", "0");
    let mut moved = 0;
    for _ in 0..100 {
        let order = scene.payment("o1", "acme", "0.03");
        match scene.pay(order) {
            Ok(_) => moved += 1,
            Err(why) => assert_eq!(why, Refusal::TooFewCredits),
        }
    }
    assert_eq!(moved, 33);
    assert_eq!(open_accounts(&scene), ("0.01".to_owned(), "0.99".to_owned()));
}

#[test]
fn what_is_held_cannot_be_spent() {
    let (mut scene, _, _) = bank_with_job(false);
    let order = scene.payment("o1", "acme", "99.86");
    refused(&mut scene, order, Refusal::TooFewCredits);
    let order = scene.payment("o1", "acme", "99.85");
    scene.pay(order).unwrap();
    assert_eq!(scene.balance_text("o1"), ("0.00".to_owned(), "0.15".to_owned()));
}

#[test]
fn the_issue_account_neither_pays_nor_is_paid() {
    let mut scene = bank();
    let name = Owner::ISSUANCE_NAME.to_owned();
    let none = Refusal::NoSuchOwner { name: name.clone() };
    for open_payee in [false, true] {
        let order = scene.payment(&name, "acme", "1000000");
        refused(&mut scene, Pay { open_payee, ..order }, none.clone());
        let order = scene.payment("o1", &name, "1");
        refused(&mut scene, Pay { open_payee, ..order }, none.clone());
    }
    let amount = credits("1");
    for command in [
        Command::Grant { name: name.clone(), amount },
        Command::Burn { name: name.clone(), amount },
        Command::OpenAccount { name },
    ] {
        assert_eq!(scene.run(command).unwrap_err(), none);
    }
}

#[test]
fn a_settled_job_is_confirmed_and_nothing_moves_again() {
    let (mut scene, order, _) = bank_with_job(true);
    let job = Some(order.foreign_id);
    let pay = Pay { job: job.clone(), ..scene.payment("o1", "acme", "0.10") };
    let wrong = Refusal::PaymentMismatch { paid: credits("0.10") };
    refused(&mut scene, Pay { amount: credits("0.11"), ..pay.clone() }, wrong.clone());
    refused(&mut scene, Pay { to: "o1".to_owned(), ..pay.clone() }, wrong);
    let stranger = Pay { from: "acme".to_owned(), to: "o1".to_owned(), ..pay.clone() };
    refused(&mut scene, stranger, Refusal::PaymentMismatch { paid: Credits::ZERO });

    let before = open_accounts(&scene);
    let (transfer, repeated) = transfer_in(scene.pay(pay.clone()).unwrap());
    assert!(transfer.settled_by_hold && !repeated);
    assert_eq!(open_accounts(&scene), before);
    assert!(transfer_in(scene.pay(pay.clone()).unwrap()).1);

    // A second id for the same settlement gets the first one; without an id, the caller gets the
    // first transfer.
    let second = Pay { job: job.clone(), ..scene.payment("o1", "acme", "0.10") };
    refused(&mut scene, second, Refusal::AlreadySettled { by: pay.foreign_id });
    let unnamed = Pay { job, id_given: false, ..scene.payment("o1", "acme", "0.10") };
    assert_eq!(transfer_in(scene.pay(unnamed).unwrap()), (transfer, true));
    assert_eq!(open_accounts(&scene), before);
}

#[test]
fn a_job_that_has_not_succeeded_is_not_settled() {
    let (mut scene, order, job) = bank_with_job(false);
    let pay = Pay { job: Some(order.foreign_id), ..scene.payment("o1", "acme", "0.10") };
    refused(&mut scene, pay.clone(), Refusal::JobNotPaid { pending: true });
    scene.fail(job);
    refused(&mut scene, pay, Refusal::JobNotPaid { pending: false });
}

#[test]
fn one_owner_may_settle_with_itself() {
    let mut scene = TestHub::default();
    scene.grant("o1", "1.00");
    let ann = scene.register_worker("ann", "o1", &[]);
    scene.register_worker("bob", "o1", &[("sum", "0.10")]);
    let order = scene.job_order(ann, "sum", "0.10");
    let job = scene.open_job(order.clone()).id;
    scene.succeed(job, "0.10");
    let pay = Pay { job: Some(order.foreign_id), ..scene.payment("o1", "o1", "0.10") };
    assert!(transfer_in(scene.pay(pay).unwrap()).0.settled_by_hold);
    assert_eq!(scene.balance_text("o1"), ("1.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn a_direct_hire_is_paid_once_and_its_id_is_used_up() {
    let mut scene = bank();
    let hire = Some("direct-hire".to_owned());
    let pay = Pay { job: hire.clone(), ..scene.payment("o1", "acme", "5.00") };
    let (transfer, _) = transfer_in(scene.pay(pay.clone()).unwrap());
    assert!(!transfer.settled_by_hold);
    assert_eq!(open_accounts(&scene), ("95.00".to_owned(), "5.00".to_owned()));

    assert!(transfer_in(scene.pay(pay.clone()).unwrap()).1);
    let second = Pay { job: hire.clone(), ..scene.payment("o1", "acme", "5.00") };
    refused(&mut scene, second, Refusal::AlreadySettled { by: pay.foreign_id });
    let unnamed = Pay { job: hire.clone(), id_given: false, ..scene.payment("o1", "acme", "5.00") };
    let differs = Pay { amount: credits("6"), ..unnamed.clone() };
    refused(&mut scene, differs, Refusal::SameIdOtherContent);
    assert_eq!(transfer_in(scene.pay(unnamed).unwrap()), (transfer, true));
    assert_eq!(open_accounts(&scene), ("95.00".to_owned(), "5.00".to_owned()));

    let ann = scene.world.agent_by_alias(crate::testkit::HOME, "ann").unwrap();
    let job =
        OpenJob { foreign_id: "direct-hire".to_owned(), ..scene.job_order(ann, "sum", "1.00") };
    assert_eq!(scene.try_open_job(job).unwrap_err(), Refusal::IdTaken);
    // Another payer's job of the same id is another payment.
    let other = Pay { job: hire, ..scene.payment("acme", "o1", "1.00") };
    assert!(scene.pay(other).is_ok());
}

#[test]
fn an_id_that_was_given_back_may_be_paid_for_elsewhere() {
    let mut scene = bank();
    let ann = scene.world.agent_by_alias(crate::testkit::HOME, "ann").unwrap();
    let far =
        scene.register(registration_with_endpoint("far", "acme", &[("fly", "0.10")])).unwrap();
    let order =
        OpenJob { selection: Selection::Direct(far), ..scene.job_order(ann, "fly", "1.00") };
    let job = scene.open_job(order.clone()).id;
    assert_eq!(scene.unreachable(job).state, State::Withdrawn);
    let pay = Pay { job: Some(order.foreign_id), ..scene.payment("o1", "acme", "0.10") };
    assert!(!transfer_in(scene.pay(pay).unwrap()).0.settled_by_hold);
}

#[test]
fn grants_and_burns_are_two_sided() {
    let mut scene = TestHub::default();
    scene.grant("o1", "10.00");
    let burn = |amount| Command::Burn { name: "o1".to_owned(), amount };
    assert_eq!(scene.run(burn(credits("10.01"))).unwrap_err(), Refusal::TooFewCredits);
    for amount in [Credits::ZERO, Credits::from_micros(-1)] {
        assert_eq!(scene.run(burn(amount)).unwrap_err(), Refusal::AmountNotPositive);
    }
    scene.run(burn(credits("4.00"))).unwrap();
    assert_eq!(scene.balance_text("o1").0, "6.00");
    assert_eq!(scene.owner(Owner::ISSUANCE_NAME).available, Credits::from_micros(-6_000_000));
    let missing = Command::Burn { name: "o2".to_owned(), amount: credits("1") };
    assert!(matches!(scene.run(missing).unwrap_err(), Refusal::NoSuchOwner { .. }));
    let negative = Command::Grant { name: "o1".to_owned(), amount: Credits::from_micros(-1) };
    assert_eq!(scene.run(negative).unwrap_err(), Refusal::AmountNotPositive);
}

#[test]
fn a_grant_says_all_that_was_given() {
    let rules = crate::world::Rules { welcome_grant: credits("100"), ..Default::default() };
    let mut scene = TestHub::new(rules);
    let grant = Command::Grant { name: "o1".to_owned(), amount: credits("50") };
    for expected in ["150", "50"] {
        let answer = scene.run(grant.clone()).unwrap();
        let Answer::Account { granted, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(granted, credits(expected));
    }
    assert_eq!(scene.balance_text("o1").0, "200.00");
}

#[test]
fn sums_that_do_not_fit_are_refused_and_nothing_moves() {
    let mut scene = TestHub::default();
    let all = Credits::from_micros(i64::MAX);
    let grant = |name: &str, amount| Command::Grant { name: name.to_owned(), amount };
    scene.run(grant("o1", all)).unwrap();
    let one = Credits::from_micros(2);
    assert_eq!(scene.run(grant("o1", one)).unwrap_err(), Refusal::Overflow);
    assert_eq!(scene.run(grant("o2", one)).unwrap_err(), Refusal::Overflow);
    assert_eq!(scene.world.owner_by_name("o2"), None);
    assert_eq!(scene.owner("o1").available, all);
}

#[test]
fn a_full_statistic_never_stands_in_the_way_of_a_payment() {
    let mut scene = TestHub::default();
    let all = Credits::from_micros(i64::MAX);
    scene.run(Command::Grant { name: "o1".to_owned(), amount: all }).unwrap();
    scene.grant("o2", "0");
    for (from, to) in [("o1", "o2"), ("o2", "o1"), ("o1", "o2")] {
        let order = scene.payment(from, to, "1");
        scene.pay(Pay { amount: all, ..order }).expect("there is enough");
    }
    assert_eq!(scene.world.next.volume, all);
    assert_eq!(scene.world.next.payments, 3);
}

#[test]
fn every_owners_history_can_be_walked_back_from_its_newest_line() {
    let (mut scene, _, _) = bank_with_job(true);
    let order = scene.payment("acme", "o1", "0.05");
    scene.pay(order).unwrap();
    let entries = &scene.store.rows.entries;
    let walk = |name: &str| {
        let owner = scene.owner(name);
        let mut kinds = Vec::new();
        let mut next = owner.newest_entry;
        while let Some(id) = next {
            let entry: &Entry = entries.iter().find(|entry| entry.id == id).unwrap();
            kinds.push(entry.kind);
            next = entry.previous_entry_of(owner.id);
        }
        kinds
    };
    use EntryKind::*;
    assert_eq!(walk("o1"), [Transfer, Release, Capture, Hold, Grant]);
    assert_eq!(walk("acme"), [Transfer, Capture]);
    assert_eq!(scene.owner("acme").payment_count, 2);
}

#[test]
fn a_changed_line_breaks_the_chain() {
    let (scene, _, _) = bank_with_job(true);
    let mut entries = scene.store.rows.entries.clone();
    let whole = |entries: &[Entry]| {
        let mut previous = EntryHash::default();
        entries.iter().all(|entry| {
            let fits = entry.hash == entry.chain_hash(previous);
            previous = entry.hash;
            fits
        })
    };
    assert!(whole(&entries));
    let forgeries: [fn(&mut Entry); 6] = [
        |entry| entry.amount = Credits::from_micros(entry.amount.micros() + 1),
        |entry| entry.at.0 += 1,
        |entry| entry.kind = EntryKind::Burn,
        |entry| entry.to.held = !entry.to.held,
        |entry| entry.from.owner = entry.from.owner.next(),
        |entry| entry.job = None,
    ];
    for forge in forgeries {
        let last = entries.last().unwrap().clone();
        forge(entries.last_mut().unwrap());
        assert!(!whole(&entries), "{:?}", entries.last());
        *entries.last_mut().unwrap() = last;
    }
    entries.remove(1);
    assert!(!whole(&entries), "a removed entry is noticed");
}

#[test]
fn history_tells_of_every_credit_that_came_or_went() {
    let mut scene = TestHub::default();
    scene.grant("o1", "5");
    scene
        .run(Command::Burn { name: "o1".to_owned(), amount: credits("2") })
        .expect("there is that much");
    let owner = scene.owner("o1").id;
    let told: Vec<Event> =
        scene.store.rows.history_lines.iter().flat_map(|line| line.events.clone()).collect();
    let granted = Event::Granted { owner, amount: credits("5"), welcome: false };
    assert!(told.contains(&granted), "{told:?}");
    assert!(told.contains(&Event::Burned { owner, amount: credits("2") }), "{told:?}");
}
