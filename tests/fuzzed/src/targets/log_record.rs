//! Records of the log: any bytes are records or not, and a damaged log is never read as another one.
//!
//! The input is damage, a line that is only `=`, and the text of the batches, one line each. Damage is
//! groups of three bytes: an offset in the log, and what its byte is changed by.

use rialto_core::alias::{Alias, Protocol};
use rialto_core::changes::{Batch, Changes, ExpiredRows};
use rialto_core::id::{AgentId, AliasId, AnswerId};
use rialto_engine::store::StoreError;
use rialto_engine::store::log::record::{RecordHeader, chain_after, encode_record, find_records};
use rialto_engine::store::log::{LogId, LoggedBatch, Place};

use super::halves;

const LOG: LogId = *b"the id of a log.";
/// Batches in a log at most.
const BATCHES_MAX: usize = 3;

/// Checks the reader of records with the bytes themselves, and with a log that they damage.
pub fn log_record(bytes: &[u8]) {
    let _ = read(bytes);
    let (damage, text) = halves(bytes);
    let (log, batches) = log_of(text);
    let damaged = damaged(&log, damage);
    is_a_beginning(&log, &damaged, &batches);
    let cut = damaged.len() - damage.len() % damaged.len();
    is_a_beginning(&log, &damaged[..cut], &batches);
}

/// A batch, and where its record is.
struct Appended {
    batch: Batch,
    from: usize,
    to: usize,
}

fn log_of(text: &[u8]) -> (Vec<u8>, Vec<Appended>) {
    let (mut log, mut all, mut before) = (Vec::new(), Vec::new(), Place::default());
    for (id, line) in (1..).zip(text.split(|byte| *byte == b'\n').take(BATCHES_MAX)) {
        let name = String::from_utf8_lossy(line).into_owned();
        let protocol = Protocol::new("relay");
        let alias = Alias { id: AliasId(id), protocol, name: name.into(), agent: AgentId(id) };
        let changes = Changes { aliases: vec![alias], ..Changes::default() };
        let expired = ExpiredRows { answers: vec![AnswerId(id)], ..ExpiredRows::default() };
        let mut record = Vec::new();
        let header = RecordHeader { log: LOG, before, epoch: 0 };
        let batch = Batch::new(changes, expired);
        before = encode_record(header, &batch, &mut record).expect("it is short");
        let from = log.len();
        log.extend(record);
        all.push(Appended { batch, from, to: log.len() });
    }
    (log, all)
}

fn damaged(log: &[u8], damage: &[u8]) -> Vec<u8> {
    let mut bytes = log.to_vec();
    for group in damage.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([group[0], group[1]])) % bytes.len();
        bytes[at] ^= group[2];
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<LoggedBatch>, StoreError> {
    chain_after(Place::default(), find_records(LOG, bytes))
}

/// Panics unless the first batches are read as they were appended, or the log is refused. A whole
/// record after a missing one must be noticed.
fn is_a_beginning(log: &[u8], bytes: &[u8], batches: &[Appended]) {
    let found = match read(bytes) {
        Ok(found) => found,
        Err(StoreError::Corrupt(_)) => {
            assert_ne!(log, bytes, "an undamaged log is refused");
            return;
        }
        Err(other) => panic!("{other:?}"),
    };
    assert!(found.len() <= batches.len(), "more batches than were appended");
    for (one, batch) in found.iter().zip(batches) {
        assert_eq!(one.batch, batch.batch);
    }
    for lost in batches.iter().skip(found.len()) {
        let is_whole = bytes.get(lost.from..lost.to) == Some(&log[lost.from..lost.to]);
        assert!(!is_whole, "a whole record was left out");
    }
}
