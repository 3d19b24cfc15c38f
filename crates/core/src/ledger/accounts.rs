//! Account commands: opening accounts, grants, payments.

use std::sync::Arc;

use super::post::{About, post};
use super::{Kind, Pocket, Transfer};
use crate::alias::{Target, claim};
use crate::answer::Answer;
use crate::command::{JobRef, Pay};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::OwnerId;
use crate::job::{Job, State, work};
use crate::money::Credits;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// The account of a registering owner, opened if needed, and the welcome grant given now.
///
/// Every owner gets the grant once. If the account was opened by a payment, it gets it when it
/// registers.
pub fn arrive(draft: &mut Draft<'_>, name: &str) -> Result<(OwnerId, Credits), Refusal> {
    let id = match draft.owner_named(name) {
        Some(id) => id,
        None => open_empty(draft, name)?,
    };
    if id == Owner::ISSUANCE {
        return Err(no_such(name));
    }
    if draft.owner(id).is_none_or(|owner| owner.welcomed) {
        return Ok((id, Credits::ZERO));
    }
    draft.owner_mut(id).welcomed = true;
    let welcome = draft.world.rules.welcome_grant;
    if !welcome.is_zero() {
        issue(draft, id, welcome)?;
        draft.event(Event::Granted { owner: id, amount: welcome, welcome: true });
    }
    Ok((id, welcome))
}

/// An empty account. Being paid is not a registration, so there is no welcome grant yet.
fn open_empty(draft: &mut Draft<'_>, name: &str) -> Result<OwnerId, Refusal> {
    // A name must not be confusable with another, or payers could pay the wrong owner.
    if draft.world.owner_like(name).is_some() {
        return Err(Refusal::LooksTaken);
    }
    let id = draft.next.owner;
    draft.next.owner = id.next();
    draft.put_owner(Owner {
        id,
        name: name.to_owned(),
        available: Credits::ZERO,
        held: Credits::ZERO,
        welcomed: false,
        opened_at: draft.now,
        newest: None,
        movements: 0,
        suspended: false,
    });
    draft.event(Event::AccountOpened { owner: id });
    Ok(id)
}

/// The account of that name. Payments from or to the issue account are refused: they would create
/// credits.
fn account_named(draft: &Draft<'_>, name: &str) -> Result<OwnerId, Refusal> {
    let found = draft.owner_named(name).filter(|id| *id != Owner::ISSUANCE);
    found.ok_or_else(|| no_such(name))
}

fn issue(draft: &mut Draft<'_>, owner: OwnerId, amount: Credits) -> Result<(), Refusal> {
    let from = Pocket::open(Owner::ISSUANCE);
    post(draft, Kind::Grant, from, Pocket::open(owner), amount, About::default())
}

/// Opens an account for a name, or returns the existing one.
pub fn open_account(draft: &mut Draft<'_>, name: &str) -> Result<Answer, Refusal> {
    let (id, welcome) = arrive(draft, name)?;
    Ok(account(draft, id, welcome))
}

/// The operator grants credits, to an owner that need not exist yet.
pub fn grant(draft: &mut Draft<'_>, name: &str, amount: Credits) -> Result<Answer, Refusal> {
    let (id, welcome) = arrive(draft, name)?;
    if !amount.is_zero() {
        issue(draft, id, amount)?;
        draft.event(Event::Granted { owner: id, amount, welcome: false });
    }
    let granted = welcome.plus(amount).ok_or(Refusal::Overflow)?;
    Ok(account(draft, id, granted))
}

/// The operator removes credits from circulation.
pub fn burn(draft: &mut Draft<'_>, name: &str, amount: Credits) -> Result<Answer, Refusal> {
    let id = account_named(draft, name)?;
    if amount <= Credits::ZERO {
        return Err(Refusal::NothingToMove);
    }
    let to = Pocket::open(Owner::ISSUANCE);
    post(draft, Kind::Burn, Pocket::open(id), to, amount, About::default())?;
    draft.event(Event::Burned { owner: id, amount });
    Ok(account(draft, id, Credits::ZERO))
}

fn account(draft: &Draft<'_>, id: OwnerId, granted: Credits) -> Answer {
    let owner = draft.owner(id).expect("the account was just found or made").clone();
    Answer::Account { owner: Arc::new(owner), granted }
}

fn no_such(name: &str) -> Refusal {
    Refusal::NoSuchOwner { name: name.to_owned() }
}

/// Moves credits, or confirms that a job's hold already did.
pub fn pay(draft: &mut Draft<'_>, order: Pay) -> Result<Answer, Refusal> {
    let own_id = claim::transfer(order.origin, &order.foreign);
    if let Some(Target::Transfer(id)) = draft.claimed(own_id).filter(|_| order.named) {
        let first = draft.world.transfer(id).ok_or(Refusal::SameIdOtherContent)?.clone();
        return match first.content == order.content {
            true => Ok(Answer::Paid { transfer: first, repeated: true }),
            false => Err(Refusal::SameIdOtherContent),
        };
    }
    if order.amount <= Credits::ZERO {
        return Err(Refusal::NothingToMove);
    }
    let from = account_named(draft, &order.from)?;
    if draft.owner(from).is_some_and(|owner| owner.suspended) {
        return Err(Refusal::Suspended);
    }
    let run_here = order.job.as_ref().and_then(|id| {
        work::find(draft, &JobRef::Foreign { origin: order.origin, id: id.clone() })
    });
    match (&order.job, run_here) {
        (Some(id), Some(job)) => confirm(draft, &order, id, &job, from),
        (Some(id), None) => pay_once(draft, &order, Some(id), from),
        (None, _) => pay_once(draft, &order, None, from),
    }
}

/// The job's hold has paid; this only confirms it, once.
fn confirm(
    draft: &mut Draft<'_>,
    order: &Pay,
    id: &str,
    job: &Job,
    from: OwnerId,
) -> Result<Answer, Refusal> {
    let to = account_named(draft, &order.to)?;
    let owners = job.payer.zip(job.assignment.map(|turn| turn.owner));
    if job.payer != Some(from) {
        // Another owner's job is treated as unknown, but its id can no longer be paid for
        // elsewhere.
        return Err(Refusal::NotWhatWasPaid { paid: Credits::ZERO });
    }
    if job.state != State::Completed {
        return Err(Refusal::JobNotPaid { pending: !job.state.is_final() });
    }
    let paid = job.report.as_ref().map_or(Credits::ZERO, |report| report.paid);
    if owners != Some((from, to)) || order.amount != paid {
        return Err(Refusal::NotWhatWasPaid { paid });
    }
    let payment = claim::payment(order.origin, from, id);
    if let Some(answer) = already_settled(draft, order, payment)? {
        return Ok(answer);
    }
    let transfer = note(draft, order, from, to, true)?;
    draft.claim(payment, Target::Transfer(transfer.id));
    draft.event(Event::SettlementConfirmed { job: job.id });
    Ok(Answer::Paid { transfer, repeated: false })
}

/// A payment for which the hub has no job: between owners, once per job named.
fn pay_once(
    draft: &mut Draft<'_>,
    order: &Pay,
    job: Option<&String>,
    from: OwnerId,
) -> Result<Answer, Refusal> {
    let payment = job.map(|id| claim::payment(order.origin, from, id));
    if let Some(payment) = payment
        && let Some(answer) = already_settled(draft, order, payment)?
    {
        return Ok(answer);
    }
    let to = match account_named(draft, &order.to) {
        Ok(to) => to,
        Err(_) if order.open_payee && order.to != Owner::ISSUANCE_NAME => {
            open_empty(draft, &order.to)?
        }
        Err(unknown) => return Err(unknown),
    };
    if from == to {
        return Err(Refusal::PaysItself);
    }
    let about = About { transfer: Some(draft.next.transfer), ..About::default() };
    post(draft, Kind::Transfer, Pocket::open(from), Pocket::open(to), order.amount, about)?;
    let transfer = note(draft, order, from, to, false)?;
    if let (Some(payment), Some(id)) = (payment, job) {
        draft.claim(payment, Target::Transfer(transfer.id));
        let taken = claim::job(order.origin, id);
        if draft.claimed(taken).is_none() {
            draft.claim(taken, Target::PaidElsewhere(transfer.id));
        }
    }
    draft.event(Event::Transferred { from, to, amount: order.amount });
    Ok(Answer::Paid { transfer, repeated: false })
}

/// The answer if the job was paid before: the first transfer, or its id.
fn already_settled(
    draft: &Draft<'_>,
    order: &Pay,
    payment: crate::alias::Digest,
) -> Result<Option<Answer>, Refusal> {
    let Some(Target::Transfer(id)) = draft.claimed(payment) else { return Ok(None) };
    let first = draft.world.transfer(id).ok_or(Refusal::IdTaken)?.clone();
    if order.named {
        return Err(Refusal::AlreadySettled { by: first.foreign.clone() });
    }
    let same = first.amount == order.amount
        && draft.owner(first.to).is_some_and(|owner| owner.name == order.to);
    if !same {
        return Err(Refusal::SameIdOtherContent);
    }
    Ok(Some(Answer::Paid { transfer: first, repeated: true }))
}

/// Stores the payment forever.
fn note(
    draft: &mut Draft<'_>,
    order: &Pay,
    from: OwnerId,
    to: OwnerId,
    settled_by_hold: bool,
) -> Result<Arc<Transfer>, Refusal> {
    let left = |owner| draft.owner(owner).map(|owner| owner.available).ok_or(Refusal::NotYours);
    let transfer = Transfer {
        id: draft.next.transfer,
        foreign: order.foreign.clone(),
        from,
        to,
        amount: order.amount,
        job: order.job.clone(),
        at: draft.now,
        settled_by_hold,
        payer_left: left(from)?,
        payee_left: left(to)?,
        content: order.content,
    };
    draft.claim(claim::transfer(order.origin, &order.foreign), Target::Transfer(transfer.id));
    Ok(draft.transfer(transfer))
}
