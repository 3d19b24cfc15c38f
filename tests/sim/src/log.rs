//! The log of a life: a hash over everything that was asked, answered and written, and counts of
//! it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use rialto_core::changes::Changes;
use rialto_core::envelope::Proof;

use crate::ask::{Ask, Outcome};
use crate::dice::mix;
use crate::hub::Ended;
use crate::names;

/// How often each thing was seen.
#[derive(Clone, Debug, Default)]
pub struct Census(BTreeMap<&'static str, u64>);

impl Census {
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub fn add(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn absorb(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            self.add(what, *times);
        }
    }

    /// Those of these names that were seen less often than that.
    pub fn rarer<'n>(&self, names: &[&'n str], than: u64) -> Vec<&'n str> {
        names.iter().copied().filter(|name| self.of(name) < than).collect()
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (what, times)) in self.0.iter().enumerate() {
            let end = if at % 4 == 3 { "\n" } else { "" };
            write!(f, "{what:>22} {times:<9}{end}")?;
        }
        Ok(())
    }
}

/// Text that is hashed as it is written.
#[derive(Clone, Debug, Default)]
pub struct Hash(u64);

impl Hash {
    pub fn number(&mut self, n: u64) {
        self.0 = mix(self.0, n);
    }

    pub fn value(&self) -> u64 {
        self.0
    }
}

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let (words, rest) = text.as_bytes().as_chunks();
        for word in words {
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(*word))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        for byte in rest {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        Ok(())
    }
}

/// What happened in a life.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub hash: Hash,
    pub census: Census,
    /// Commands decided.
    pub decided: u64,
}

impl Log {
    /// Records the result of a batch, except for its commands.
    pub fn ended(&mut self, ended: &Ended) {
        self.decided += ended.decided;
        self.census.add("Tick", ended.fired);
        self.census.add("Present", ended.handed);
        if let Some(changes) = &ended.changes {
            self.written(changes);
        }
    }

    pub fn asked(&mut self, ask: &Ask, outcome: &Outcome) {
        let hash = &mut self.hash;
        write!(hash, "{:?} {outcome:?}", ask.0).expect("hashing cannot fail");
        self.census.count(names::command(ask.command()));
        match &ask.0.proof {
            Proof::Credential => {}
            Proof::Key(_) => self.census.count("~by key"),
            Proof::Signature(_) => self.census.count(names::signed(ask.command())),
            Proof::Market(_) => self.census.count(names::posted(ask.command())),
        }
        self.census.count(match outcome {
            Outcome::Answered { replayed: false, .. } => "~answered",
            Outcome::Answered { replayed: true, .. } => "~answered again",
            Outcome::Refused(refusal) => names::refusal(refusal),
            Outcome::StillRunning => "~still running",
            Outcome::Full => "~full",
            Outcome::Lost => "~lost",
        });
    }

    /// Everything that was written, by what identifies it.
    pub fn written(&mut self, changes: &Changes) {
        let hash = &mut self.hash;
        write!(hash, "{:?}", changes.next).expect("hashing cannot fail");
        for job in changes.jobs.values() {
            write!(hash, "{:?} {:?}", job.state, job.assignment).expect("hashing cannot fail");
            hash.number(job.id.0 << 32 | u64::from(job.epoch));
            hash.number(job.payment.held.micros().unsigned_abs());
        }
        for notice in &changes.notices {
            write!(hash, "{:?} {:?}", notice.to, notice.news).expect("hashing cannot fail");
        }
        for line in &changes.history_lines {
            write!(hash, "{:?}", line.events).expect("hashing cannot fail");
        }
        for posting in &changes.market_records {
            hash.write_str(&posting.text).expect("hashing cannot fail");
            let refused =
                posting.text.split('|').nth(2).and_then(|one| one.strip_prefix("refused "));
            if let Some(refused) = refused {
                let word = refused.split([' ', '{', '\n']).next().unwrap_or_default();
                let known = names::REFUSALS.iter().find(|name| **name == word);
                known.into_iter().for_each(|name| self.census.count(name));
            }
        }
    }
}
