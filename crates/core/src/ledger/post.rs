//! Posting ledger entries: the only place where balances change.

use super::{Entry, Hash, Kind, Pocket};
use crate::draft::Draft;
use crate::id::{JobId, OwnerId, TransferId};
use crate::money::Credits;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// What an entry is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    pub job: Option<JobId>,
    pub transfer: Option<TransferId>,
}

/// Moves `amount` between two sub-accounts and adds the entry. Nothing moves if it is not covered.
pub fn post(
    draft: &mut Draft<'_>,
    kind: Kind,
    from: Pocket,
    to: Pocket,
    amount: Credits,
    about: About,
) -> Result<(), Refusal> {
    if amount.is_zero() {
        return Ok(());
    }
    if amount < Credits::ZERO {
        return Err(Refusal::NothingToMove);
    }
    let left = taken(draft, from, amount)?;
    let before_from = put(draft, from, left)?.newest;
    // Read after the debit: both sub-accounts may belong to one owner.
    let grown = balance(draft, to)?.plus(amount).ok_or(Refusal::Overflow)?;
    let before_to = put(draft, to, grown)?.newest;

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
        hash: Hash::default(),
    };
    entry.hash = entry.chained(draft.next.chain);
    draft.next.chain = entry.hash;
    draft.next.entry = entry.id.next();
    for owner in [from.owner, to.owner] {
        draft.owner_mut(owner).newest = Some(entry.id);
    }
    if kind.is_payment() {
        draft.owner_mut(from.owner).movements += 1;
        if to.owner != from.owner {
            draft.owner_mut(to.owner).movements += 1;
        }
        draft.next.payments += 1;
        // A statistic that overflows stays at its maximum; it never blocks a payment.
        let full = Credits::from_micros(i64::MAX);
        draft.next.volume = draft.next.volume.plus(amount).unwrap_or(full);
    }
    draft.entries.push(entry);
    Ok(())
}

fn balance(draft: &Draft<'_>, pocket: Pocket) -> Result<Credits, Refusal> {
    let owner = draft.owner(pocket.owner).ok_or(Refusal::NotYours)?;
    Ok(if pocket.held { owner.held } else { owner.available })
}

/// The balance after the debit; only the issue account may go below zero.
fn taken(draft: &Draft<'_>, pocket: Pocket, amount: Credits) -> Result<Credits, Refusal> {
    let have = balance(draft, pocket)?;
    if pocket == Pocket::open(Owner::ISSUANCE) {
        return have.overdraw(amount).ok_or(Refusal::Overflow);
    }
    have.pay(amount).ok_or(Refusal::TooFewCredits)
}

fn put<'d>(
    draft: &'d mut Draft<'_>,
    pocket: Pocket,
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

/// Holds credits for a job.
pub fn hold(
    draft: &mut Draft<'_>,
    payer: OwnerId,
    amount: Credits,
    job: JobId,
) -> Result<(), Refusal> {
    let about = About { job: Some(job), ..About::default() };
    post(draft, Kind::Hold, Pocket::open(payer), Pocket::held(payer), amount, about)
}

/// Ends a hold: `paid` goes to the worker's owner, the rest back to the payer.
pub fn resolve(
    draft: &mut Draft<'_>,
    payer: OwnerId,
    held: Credits,
    pay: Option<(OwnerId, Credits)>,
    job: JobId,
) -> Result<(), Refusal> {
    let about = About { job: Some(job), ..About::default() };
    let mut rest = held;
    if let Some((payee, paid)) = pay {
        rest = held.pay(paid).ok_or(Refusal::TooFewCredits)?;
        post(draft, Kind::Capture, Pocket::held(payer), Pocket::open(payee), paid, about)?;
    }
    post(draft, Kind::Release, Pocket::held(payer), Pocket::open(payer), rest, about)
}
