//! Accounts, grants and payments, also of missing credits, twice, and for jobs done elsewhere.

use rialto_core::command::{Command, Pay};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_core::testkit::TestHub;

use crate::cast::{REGISTRY, amount, digest};
use crate::dice::Dice;

/// The accounts to use: also a missing one, and the issuing account that no caller may use.
const ACCOUNTS: [&str; 7] =
    ["owner-0", "owner-1", "owner-2", "wallet-0", "agora:agora-1", "nobody", Owner::ISSUANCE_NAME];
/// More than any account can hold twice.
const HOARD: Credits = Credits::from_micros(i64::MAX / 3 * 2);

pub fn next(dice: &mut Dice, scene: &TestHub) -> Option<Command> {
    Some(match dice.roll(20) {
        0..=3 => Command::Grant { name: dice.of(ACCOUNTS).to_owned(), amount: amount(dice) },
        4 if dice.chance(10) => Command::Grant { name: "hoard".to_owned(), amount: HOARD },
        4 | 5 => Command::Burn { name: dice.of(ACCOUNTS).to_owned(), amount: amount(dice) },
        6 => Command::OpenAccount { name: account(dice) },
        _ => Command::Pay(Box::new(pay(dice, scene))),
    })
}

fn pay(dice: &mut Dice, scene: &TestHub) -> Pay {
    let made = dice.any();
    let mut order = Pay {
        origin: REGISTRY,
        foreign_id: format!("transfer-{made:016x}"),
        id_given: dice.chance(85),
        from: dice.of(ACCOUNTS).to_owned(),
        to: dice.of(ACCOUNTS).to_owned(),
        amount: amount(dice),
        job: None,
        open_payee: dice.chance(40),
        content: digest(made),
    };
    if order.id_given && dice.chance(20) {
        // An id from a small pool, with content that may or may not be the same.
        order.foreign_id = format!("shared-{}", dice.roll(5));
        order.content = digest(dice.roll(2));
    }
    match dice.roll(10) {
        0..=4 => for_a_job(dice, scene, &mut order),
        5 => order.job = Some(format!("elsewhere-{}", dice.roll(5))),
        _ => {}
    }
    order
}

/// For a job requested here, sometimes exactly what was paid.
fn for_a_job(dice: &mut Dice, scene: &TestHub, order: &mut Pay) {
    let newest = scene.world.next.job.0;
    let first = newest.saturating_sub(30);
    let ours = (first..newest).map(rialto_core::id::JobId);
    let ours = ours.filter_map(|id| scene.store.rows.jobs.get(&id));
    let ours: Vec<_> = ours.filter(|job| job.request.origin == REGISTRY).collect();
    let Some(job) = dice.pick(&ours) else { return };
    order.job = Some(job.request.foreign_id.clone());
    let owner = |id| scene.world.owner(id).map(|owner| owner.name.clone());
    let payer = job.payment.payer.and_then(owner);
    let payee = job.assignment.and_then(|turn| owner(turn.owner));
    if let (Some(payer), Some(payee), Some(report), true) =
        (payer, payee, &job.result, dice.chance(70))
    {
        (order.from, order.to) = (payer, payee);
        order.amount = if dice.chance(85) { report.paid } else { amount(dice) };
    }
}

/// An account's name; now and then one that is confusable with another.
fn account(dice: &mut Dice) -> String {
    let name = format!("account-{}", dice.roll(8));
    if dice.chance(10) { name.to_uppercase() } else { name }
}
