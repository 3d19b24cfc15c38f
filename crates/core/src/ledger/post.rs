//! Posting ledger entries: the only place where balances change.

use super::{Entry, EntryHash, EntryKind, SubAccount};
use crate::agent::key_limits;
use crate::draft::Draft;
use crate::id::{JobId, OwnerId, TransferId};
use crate::job::Job;
use crate::money::Credits;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// What an entry is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryContext {
    pub job: Option<JobId>,
    pub transfer: Option<TransferId>,
}

/// Moves `amount` between two sub-accounts and adds the entry. Nothing moves if it is not covered.
pub fn post(
    draft: &mut Draft<'_>,
    kind: EntryKind,
    from: SubAccount,
    to: SubAccount,
    amount: Credits,
    about: EntryContext,
) -> Result<(), Refusal> {
    if amount.is_zero() {
        return Ok(());
    }
    if amount < Credits::ZERO {
        return Err(Refusal::AmountNotPositive);
    }
    let left = balance_after_debit(draft, from, amount)?;
    let before_from = set_balance(draft, from, left)?.newest_entry;
    // Read after the debit: both sub-accounts may belong to one owner.
    let grown = balance(draft, to)?.checked_add(amount).ok_or(Refusal::Overflow)?;
    let before_to = set_balance(draft, to, grown)?.newest_entry;

    let mut entry = Entry {
        id: draft.next.entry,
        at: draft.now,
        kind,
        from,
        to,
        amount,
        job: about.job,
        transfer: about.transfer,
        before_from,
        before_to,
        hash: EntryHash::default(),
    };
    entry.hash = entry.chain_hash(draft.next.chain);
    draft.next.chain = entry.hash;
    draft.next.entry = entry.id.next();
    for owner in [from.owner, to.owner] {
        draft.owner_mut(owner).newest_entry = Some(entry.id);
    }
    if kind.is_payment() {
        draft.owner_mut(from.owner).payment_count += 1;
        if to.owner != from.owner {
            draft.owner_mut(to.owner).payment_count += 1;
        }
        draft.next.payments += 1;
        // A statistic that overflows stays at its maximum; it never blocks a payment.
        let full = Credits::from_micros(i64::MAX);
        draft.next.volume = draft.next.volume.checked_add(amount).unwrap_or(full);
    }
    draft.entries.push(entry);
    Ok(())
}

fn balance(draft: &Draft<'_>, pocket: SubAccount) -> Result<Credits, Refusal> {
    let owner = draft.owner(pocket.owner).ok_or(Refusal::NotFound)?;
    Ok(if pocket.held { owner.held } else { owner.available })
}

/// The balance after the debit; only the issue account may go below zero.
fn balance_after_debit(
    draft: &Draft<'_>,
    pocket: SubAccount,
    amount: Credits,
) -> Result<Credits, Refusal> {
    let have = balance(draft, pocket)?;
    if pocket == SubAccount::available(Owner::ISSUANCE) {
        return have.checked_sub(amount).ok_or(Refusal::Overflow);
    }
    have.checked_pay(amount).ok_or(Refusal::TooFewCredits)
}

fn set_balance<'d>(
    draft: &'d mut Draft<'_>,
    pocket: SubAccount,
    amount: Credits,
) -> Result<&'d Owner, Refusal> {
    let owner = draft.owner_mut(pocket.owner);
    if pocket.held {
        owner.held = amount;
    } else {
        owner.available = amount;
    }
    Ok(owner)
}

/// Holds credits for a job, if the limits of the key it was requested with allow that.
pub fn hold(
    draft: &mut Draft<'_>,
    job: &mut Job,
    payer: OwnerId,
    amount: Credits,
) -> Result<(), Refusal> {
    key_limits::check_hold(draft, job, amount)?;
    let about = EntryContext { job: Some(job.id), ..EntryContext::default() };
    post(
        draft,
        EntryKind::Hold,
        SubAccount::available(payer),
        SubAccount::held(payer),
        amount,
        about,
    )?;
    key_limits::count_hold(draft, job, amount);
    job.payment.held = amount;
    Ok(())
}

/// Ends the hold of a job: what is paid goes to the worker's owner, the rest back to the payer.
pub fn resolve_hold(
    draft: &mut Draft<'_>,
    job: &mut Job,
    payer: OwnerId,
    pay: Option<(OwnerId, Credits)>,
) -> Result<(), Refusal> {
    let about = EntryContext { job: Some(job.id), ..EntryContext::default() };
    let mut rest = job.payment.held;
    if let Some((payee, paid)) = pay {
        rest = rest.checked_pay(paid).ok_or(Refusal::TooFewCredits)?;
        post(
            draft,
            EntryKind::Capture,
            SubAccount::held(payer),
            SubAccount::available(payee),
            paid,
            about,
        )?;
    }
    post(
        draft,
        EntryKind::Release,
        SubAccount::held(payer),
        SubAccount::available(payer),
        rest,
        about,
    )?;
    key_limits::count_release(draft, job, rest);
    job.payment.held = Credits::ZERO;
    Ok(())
}
