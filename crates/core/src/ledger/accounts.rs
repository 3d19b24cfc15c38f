//! Account commands: opening accounts, grants, payments.

use std::sync::Arc;

use super::post::{EntryContext, post};
use super::{EntryKind, SubAccount, Transfer};
use crate::agent::key_limits;
use crate::alias::{ClaimTarget, claim};
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
pub fn open_with_welcome_grant(
    draft: &mut Draft<'_>,
    name: &str,
) -> Result<(OwnerId, Credits), Refusal> {
    let id = match draft.owner_by_name(name) {
        Some(id) => id,
        None => open_empty(draft, name)?,
    };
    if id == Owner::ISSUANCE {
        return Err(account_not_found(name));
    }
    if draft.owner(id).is_none_or(|owner| owner.welcomed) {
        return Ok((id, Credits::ZERO));
    }
    draft.owner_mut(id).welcomed = true;
    let welcome = draft.world.rules.welcome_grant;
    if !welcome.is_zero() {
        issue(draft, id, welcome)?;
        draft.add_event(Event::Granted { owner: id, amount: welcome, welcome: true });
    }
    Ok((id, welcome))
}

/// An empty account. Being paid is not a registration, so there is no welcome grant yet.
fn open_empty(draft: &mut Draft<'_>, name: &str) -> Result<OwnerId, Refusal> {
    // A name must not be confusable with another, or payers could pay the wrong owner.
    if draft.world.confusable_owner(name).is_some() {
        return Err(Refusal::NameConfusable);
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
        newest_entry: None,
        payment_count: 0,
        suspended: false,
    });
    draft.add_event(Event::AccountOpened { owner: id });
    Ok(id)
}

/// The account of that name. Payments from or to the issue account are refused: they would create
/// credits.
fn account_named(draft: &Draft<'_>, name: &str) -> Result<OwnerId, Refusal> {
    let found = draft.owner_by_name(name).filter(|id| *id != Owner::ISSUANCE);
    found.ok_or_else(|| account_not_found(name))
}

fn issue(draft: &mut Draft<'_>, owner: OwnerId, amount: Credits) -> Result<(), Refusal> {
    let from = SubAccount::available(Owner::ISSUANCE);
    post(
        draft,
        EntryKind::Grant,
        from,
        SubAccount::available(owner),
        amount,
        EntryContext::default(),
    )
}

/// Opens an account for a name, or returns the existing one.
pub fn open_account(draft: &mut Draft<'_>, name: &str) -> Result<Answer, Refusal> {
    let (id, welcome) = open_with_welcome_grant(draft, name)?;
    Ok(account(draft, id, welcome))
}

/// The operator grants credits, to an owner that need not exist yet.
pub fn grant(draft: &mut Draft<'_>, name: &str, amount: Credits) -> Result<Answer, Refusal> {
    let (id, welcome) = open_with_welcome_grant(draft, name)?;
    if !amount.is_zero() {
        issue(draft, id, amount)?;
        draft.add_event(Event::Granted { owner: id, amount, welcome: false });
    }
    let granted = welcome.checked_add(amount).ok_or(Refusal::Overflow)?;
    Ok(account(draft, id, granted))
}

/// The operator removes credits from circulation.
pub fn burn(draft: &mut Draft<'_>, name: &str, amount: Credits) -> Result<Answer, Refusal> {
    let id = account_named(draft, name)?;
    if amount <= Credits::ZERO {
        return Err(Refusal::AmountNotPositive);
    }
    let to = SubAccount::available(Owner::ISSUANCE);
    post(draft, EntryKind::Burn, SubAccount::available(id), to, amount, EntryContext::default())?;
    draft.add_event(Event::Burned { owner: id, amount });
    Ok(account(draft, id, Credits::ZERO))
}

fn account(draft: &Draft<'_>, id: OwnerId, granted: Credits) -> Answer {
    let owner = draft.owner(id).expect("the account was just found or made").clone();
    Answer::Account { owner: Arc::new(owner), granted }
}

fn account_not_found(name: &str) -> Refusal {
    Refusal::NoSuchOwner { name: name.to_owned() }
}

/// Moves credits, or confirms that a job's hold already did.
pub fn pay(draft: &mut Draft<'_>, order: Pay) -> Result<Answer, Refusal> {
    let own_id = claim::transfer(order.origin, &order.foreign_id);
    if let Some(ClaimTarget::Transfer(id)) = draft.claim_target(own_id).filter(|_| order.id_given) {
        let first = draft.world.transfer(id).ok_or(Refusal::SameIdOtherContent)?.clone();
        return match first.content == order.content {
            true => Ok(Answer::Transfer { transfer: first, repeated: true }),
            false => Err(Refusal::SameIdOtherContent),
        };
    }
    if order.amount <= Credits::ZERO {
        return Err(Refusal::AmountNotPositive);
    }
    let from = account_named(draft, &order.from)?;
    if draft.owner(from).is_some_and(|owner| owner.suspended) {
        return Err(Refusal::Suspended);
    }
    let run_here = order.job.as_ref().and_then(|id| {
        work::find_job(draft, &JobRef::Foreign { origin: order.origin, id: id.clone() })
    });
    match (&order.job, run_here) {
        (Some(id), Some(job)) => confirm_settlement(draft, &order, id, &job, from),
        (Some(id), None) => transfer_once(draft, &order, Some(id), from),
        (None, _) => transfer_once(draft, &order, None, from),
    }
}

/// The job's hold has paid; this only confirms it, once.
fn confirm_settlement(
    draft: &mut Draft<'_>,
    order: &Pay,
    id: &str,
    job: &Job,
    from: OwnerId,
) -> Result<Answer, Refusal> {
    let to = account_named(draft, &order.to)?;
    let owners = job.payment.payer.zip(job.assignment.map(|turn| turn.owner));
    if job.payment.payer != Some(from) {
        // Another owner's job is treated as unknown, but its id can no longer be paid for
        // elsewhere.
        return Err(Refusal::PaymentMismatch { paid: Credits::ZERO });
    }
    if job.state != State::Completed {
        return Err(Refusal::JobNotPaid { pending: !job.state.is_final() });
    }
    let paid = job.result.as_ref().map_or(Credits::ZERO, |report| report.paid);
    if owners != Some((from, to)) || order.amount != paid {
        return Err(Refusal::PaymentMismatch { paid });
    }
    let payment = claim::payment(order.origin, from, id);
    if let Some(answer) = already_settled(draft, order, payment)? {
        return Ok(answer);
    }
    let transfer = record_transfer(draft, order, from, to, true)?;
    draft.add_claim(payment, ClaimTarget::Transfer(transfer.id));
    draft.add_event(Event::SettlementConfirmed { job: job.id });
    Ok(Answer::Transfer { transfer, repeated: false })
}

/// A payment for which the hub has no job: between owners, once per job named.
fn transfer_once(
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
        return Err(Refusal::SelfPayment);
    }
    let key = key_limits::check_transfer(draft, from, order.amount)?;
    let about = EntryContext { transfer: Some(draft.next.transfer), ..EntryContext::default() };
    post(
        draft,
        EntryKind::Transfer,
        SubAccount::available(from),
        SubAccount::available(to),
        order.amount,
        about,
    )?;
    key_limits::count_transfer(draft, key, order.amount);
    let transfer = record_transfer(draft, order, from, to, false)?;
    if let (Some(payment), Some(id)) = (payment, job) {
        draft.add_claim(payment, ClaimTarget::Transfer(transfer.id));
        let taken = claim::job(order.origin, id);
        if draft.claim_target(taken).is_none() {
            draft.add_claim(taken, ClaimTarget::PaidElsewhere(transfer.id));
        }
    }
    draft.add_event(Event::Transferred { from, to, amount: order.amount });
    Ok(Answer::Transfer { transfer, repeated: false })
}

/// The answer if the job was paid before: the first transfer, or its id.
fn already_settled(
    draft: &Draft<'_>,
    order: &Pay,
    payment: crate::alias::Digest,
) -> Result<Option<Answer>, Refusal> {
    let Some(ClaimTarget::Transfer(id)) = draft.claim_target(payment) else { return Ok(None) };
    let first = draft.world.transfer(id).ok_or(Refusal::IdTaken)?.clone();
    if order.id_given {
        return Err(Refusal::AlreadySettled { by: first.foreign_id.clone() });
    }
    let same = first.amount == order.amount
        && draft.owner(first.to).is_some_and(|owner| owner.name == order.to);
    if !same {
        return Err(Refusal::SameIdOtherContent);
    }
    Ok(Some(Answer::Transfer { transfer: first, repeated: true }))
}

/// Stores the payment forever.
fn record_transfer(
    draft: &mut Draft<'_>,
    order: &Pay,
    from: OwnerId,
    to: OwnerId,
    settled_by_hold: bool,
) -> Result<Arc<Transfer>, Refusal> {
    let left = |owner| draft.owner(owner).map(|owner| owner.available).ok_or(Refusal::NotFound);
    let transfer = Transfer {
        id: draft.next.transfer,
        foreign_id: order.foreign_id.clone(),
        from,
        to,
        amount: order.amount,
        job: order.job.clone(),
        at: draft.now,
        settled_by_hold,
        payer_balance: left(from)?,
        payee_balance: left(to)?,
        content: order.content,
    };
    draft.add_claim(
        claim::transfer(order.origin, &order.foreign_id),
        ClaimTarget::Transfer(transfer.id),
    );
    Ok(draft.add_transfer(transfer))
}
