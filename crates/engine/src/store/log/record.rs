//! Records: one per batch, in the form in which it is appended to the log.
//!
//! ```text
//! bytes   0..8    magic: "rialtolg"
//!         8..16   number of the batch, little-endian like all numbers here
//!        16..24   epoch of the writer
//!        24..28   length of the body
//!        28..32   zero
//!        32..48   id of the log: random, so that no text inside a body can pass for a record
//!        48..80   hash of the record before it
//!        80..112  its own hash: SHA-256 of the hash before, number, epoch and body
//!       112..     body (see `rialto_core::encoding`), then zeros
//!   last 8 bytes  number of the batch again: a record that was written in part is never whole
//! ```
//!
//! Its length is a multiple of 4,096 bytes. So appending never rewrites a page with records that are
//! already synced, and a record is found even if the length of the one before it is damaged.

use rialto_core::changes::Batch;
use rialto_core::encoding;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::StoreError;

/// Records begin at multiples of this.
pub const PAGE_BYTES: usize = 4_096;
const HEADER_BYTES: usize = 112;
const END_BYTES: usize = 8;
const MAGIC: &[u8; 8] = b"rialtolg";

/// A position in the chain of batches: how many there were, and the hash of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub number: u64,
    pub hash: ChainHash,
}

/// Tells the records of one log from any other bytes.
pub type LogId = [u8; 16];

/// The hash of a record.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHash(#[serde(with = "hex::serde")] pub [u8; 32]);

impl std::fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// One batch of the log.
#[derive(Clone, Debug)]
pub struct LoggedBatch {
    pub place: Place,
    /// The epoch of its writer.
    pub epoch: u64,
    pub batch: Batch,
}

/// What a record says besides its batch.
#[derive(Clone, Copy, Debug)]
pub struct RecordHeader {
    pub log: LogId,
    pub before: Place,
    pub epoch: u64,
}

/// Encodes a batch as the record after `before`, in a buffer that may be reused, and returns its
/// place.
pub fn encode_record(
    header: RecordHeader,
    batch: &Batch,
    buffer: &mut Vec<u8>,
) -> Result<Place, StoreError> {
    let RecordHeader { log, before, epoch } = header;
    let mut bytes = std::mem::take(buffer);
    bytes.clear();
    bytes.resize(HEADER_BYTES, 0);
    let encoded = encoding::encode_batch(batch, bytes);
    *buffer = encoded.map_err(|error| StoreError::Failed(error.to_string()))?;
    let length = u32::try_from(buffer.len() - HEADER_BYTES)
        .map_err(|_| StoreError::Failed("a batch is too long for the log".to_owned()))?;
    let number = before.number + 1;
    let hash = chain_hash(before.hash, number, epoch, &buffer[HEADER_BYTES..]);
    buffer[..8].copy_from_slice(MAGIC);
    buffer[8..16].copy_from_slice(&number.to_le_bytes());
    buffer[16..24].copy_from_slice(&epoch.to_le_bytes());
    buffer[24..28].copy_from_slice(&length.to_le_bytes());
    buffer[32..48].copy_from_slice(&log);
    buffer[48..80].copy_from_slice(&before.hash.0);
    buffer[80..112].copy_from_slice(&hash.0);
    buffer.resize(padded_length(length as usize) - END_BYTES, 0);
    buffer.extend_from_slice(&number.to_le_bytes());
    Ok(Place { number, hash })
}

/// The length of a record whose body has this length.
fn padded_length(body: usize) -> usize {
    (HEADER_BYTES + body + END_BYTES).next_multiple_of(PAGE_BYTES)
}

/// The hash of a record, which chains it to the one before.
pub fn chain_hash(before: ChainHash, number: u64, epoch: u64, body: &[u8]) -> ChainHash {
    let mut hash = Sha256::new();
    hash.update(before.0);
    hash.update(number.to_le_bytes());
    hash.update(epoch.to_le_bytes());
    hash.update(body);
    ChainHash(hash.finalize().into())
}

/// A record as it was found, not decoded yet.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    place: Place,
    epoch: u64,
    before: ChainHash,
    body: Vec<u8>,
    /// Where the next record begins.
    end: usize,
}

impl FoundRecord {
    pub fn number(&self) -> u64 {
        self.place.number
    }

    pub fn end(&self) -> u64 {
        self.end as u64
    }

    fn decode(&self) -> Result<LoggedBatch, StoreError> {
        let batch = encoding::decode_batch(&self.body).map_err(|error| {
            StoreError::Corrupt(format!("record {} of the log: {error}", self.place.number))
        })?;
        Ok(LoggedBatch { place: self.place, epoch: self.epoch, batch })
    }
}

/// Every whole record of this log in the bytes of a log file, wherever it begins. Files are used
/// again from their beginning, so older records may come after newer ones.
pub fn find_records(log: LogId, bytes: &[u8]) -> Vec<FoundRecord> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at = match record_at(log, bytes, at) {
            Some(record) => {
                let next = record.end;
                records.push(record);
                next
            }
            None => at + PAGE_BYTES,
        };
    }
    records
}

/// Whether a file begins as one of this log does: with a record, whole or not, or with nothing. The
/// beginning of a record is written at once, for it is shorter than a sector.
pub fn is_start_of_log(log: LogId, bytes: &[u8]) -> bool {
    match bytes.get(..HEADER_BYTES) {
        Some(header) if header[..8] == [0; 8] => true,
        Some(header) => &header[..8] == MAGIC && header[32..48] == log,
        None => bytes.iter().all(|byte| *byte == 0),
    }
}

/// The whole record that begins at an offset.
fn record_at(log: LogId, bytes: &[u8], at: usize) -> Option<FoundRecord> {
    let header = bytes.get(at..at + HEADER_BYTES)?;
    if &header[..8] != MAGIC || header[28..32] != [0; 4] || header[32..48] != log {
        return None;
    }
    let word = |from: usize| header[from..from + 8].try_into().map(u64::from_le_bytes).ok();
    let (number, epoch) = (word(8)?, word(16)?);
    let length = u32::from_le_bytes(header[24..28].try_into().ok()?) as usize;
    let before = ChainHash(header[48..80].try_into().ok()?);
    let hash = ChainHash(header[80..112].try_into().ok()?);
    let end = at + padded_length(length);
    let trailer = bytes.get(end - END_BYTES..end)?;
    let body = &bytes[at + HEADER_BYTES..at + HEADER_BYTES + length];
    if trailer != number.to_le_bytes() || chain_hash(before, number, epoch, body) != hash {
        return None;
    }
    let place = Place { number, hash };
    Some(FoundRecord { place, epoch, before, body: body.to_vec(), end })
}

/// The batches after a place, decoded, in order.
///
/// A record is written only after the one before it was synced. So a record proves that all before
/// it were there, and one that is missing or does not continue the chain means damage.
pub fn chain_after(
    place: Place,
    mut records: Vec<FoundRecord>,
) -> Result<Vec<LoggedBatch>, StoreError> {
    records.retain(|record| record.place.number > place.number);
    records.sort_by_key(|record| record.place.number);
    let (mut last, mut batches) = (place, Vec::with_capacity(records.len()));
    for record in records {
        let number = record.place.number;
        if number != last.number + 1 {
            return Err(StoreError::Corrupt(format!(
                "batch {} of the log is missing or damaged, and batch {number} follows it; restore \
                 a backup",
                last.number + 1
            )));
        }
        if record.before != last.hash {
            return Err(StoreError::Corrupt(format!(
                "batch {number} of the log does not continue batch {}; restore a backup",
                last.number
            )));
        }
        last = record.place;
        batches.push(record.decode()?);
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use rialto_core::alias::{Alias, Protocol};
    use rialto_core::changes::{Changes, ExpiredRows};
    use rialto_core::id::{AgentId, AliasId, AnswerId};

    use super::*;

    const LOG: LogId = [7; 16];

    /// A batch whose record takes at least that many bytes.
    fn batch(id: u64, bytes: usize) -> Changes {
        let alias = Alias {
            id: AliasId(id),
            protocol: Protocol::new("relay"),
            name: "x".repeat(bytes).into(),
            agent: AgentId(id),
        };
        Changes { aliases: vec![alias], ..Changes::default() }
    }

    /// A log of batches with these lengths, and where each record ends.
    fn log(lengths: &[usize]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends, mut before) = (Vec::new(), Vec::new(), Place::default());
        for (id, length) in (1..).zip(lengths) {
            let mut record = Vec::new();
            let header = RecordHeader { log: LOG, before, epoch: 1 };
            let expired = ExpiredRows { answers: vec![AnswerId(id)], ..ExpiredRows::default() };
            let batch = Batch::new(batch(id, *length), expired);
            before = encode_record(header, &batch, &mut record).unwrap();
            bytes.extend(record);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn read(bytes: &[u8]) -> Result<Vec<LoggedBatch>, StoreError> {
        chain_after(Place::default(), find_records(LOG, bytes))
    }

    #[test]
    fn batches_come_back_as_they_were_appended() {
        let lengths = [1, 3_900, 4_096, 9_000, 0];
        let (bytes, _) = log(&lengths);
        assert_eq!(bytes.len() % PAGE_BYTES, 0);
        let found = read(&bytes).unwrap();
        assert_eq!(found.len(), 5);
        for (id, (one, length)) in (1..).zip(found.iter().zip(lengths)) {
            assert_eq!((one.place.number, &one.batch.changes), (id, &batch(id, length)));
            assert_eq!(one.batch.expired.answers, [AnswerId(id)]);
        }
        let third = found[2].place;
        let rest = chain_after(third, find_records(LOG, &bytes)).unwrap();
        assert_eq!(rest.iter().map(|one| one.place.number).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn a_log_that_ends_anywhere_has_every_record_before() {
        let (bytes, ends) = log(&[10, 5_000, 10]);
        for end in (0..=bytes.len()).step_by(97) {
            let whole = ends.iter().filter(|one| **one <= end).count();
            assert_eq!(read(&bytes[..end]).unwrap().len(), whole, "{end}");
        }
    }

    #[test]
    fn any_damaged_byte_of_a_record_that_another_follows_is_found() {
        let (bytes, ends) = log(&[10, 9_000, 10]);
        for at in (0..ends[1]).step_by(13) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let found = read(&bytes);
            // The zeros behind the body mean nothing.
            let same = found.as_ref().is_ok_and(|found| found.len() == 3);
            assert!(same || matches!(found, Err(StoreError::Corrupt(_))), "{at}: {found:?}");
        }
        let mut bytes = bytes.clone();
        bytes[ends[2] - PAGE_BYTES + 200] ^= 1;
        assert!(read(&bytes).unwrap().len() >= 2, "the newest may be one that was not finished");
    }

    #[test]
    fn records_of_another_log_or_branch_are_not_taken() {
        let (bytes, ends) = log(&[10, 10]);
        assert!(find_records([8; 16], &bytes).is_empty());
        let mut fork = Vec::new();
        let before = Place { number: 1, hash: ChainHash([9; 32]) };
        let header = RecordHeader { log: LOG, before, epoch: 1 };
        let second = Batch::new(batch(2, 1), ExpiredRows::default());
        encode_record(header, &second, &mut fork).unwrap();
        let forked = [&bytes[..ends[0]], &fork].concat();
        assert!(matches!(read(&forked), Err(StoreError::Corrupt(_))));
        assert!(
            matches!(read(&bytes[ends[0]..]), Err(StoreError::Corrupt(_))),
            "the first is missing"
        );
    }

    #[test]
    fn a_record_inside_a_text_is_no_record() {
        let (inner, _) = log(&[10]);
        let text = String::from_utf8_lossy(&inner).into_owned();
        let (bytes, _) = log(&[10]);
        let mut outer = bytes;
        // Only its id is unknown to the author of a text.
        outer.extend(text.replace(std::str::from_utf8(&LOG).unwrap(), "another log's id").bytes());
        assert_eq!(read(&outer).unwrap().len(), 1);
    }
}
