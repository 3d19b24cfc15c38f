//! Checks the WAL before SQLite reads it: no committed frame may follow a damaged one.
//!
//! SQLite treats the first frame that fails its checksum as the end of the log, because an
//! unfinished commit looks like that. A corrupted byte looks the same, and then everything after
//! it, synced and acknowledged, would be lost silently. The difference: a transaction starts only
//! when the commit before it has been synced. So a frame that continues from a commit proves that
//! this commit was complete.
//!
//! Nothing is proved about the newest transaction, because no frame continues from it.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::{DB_FILE, io_error};
use crate::store::StoreError;

/// Bytes of the log's header, and of the header of every frame, which a page follows.
const HEAD: usize = 32;
const FRAME: usize = 24;
/// The first bytes of a log; the last bit is the byte order in which words are summed.
const MAGIC: u32 = 0x377f_0682;
const BIG_ENDIAN: u32 = 1;

type WalChecksum = [u32; 2];

/// Refuses a log in which synced data is damaged. Only for logs that are not being written.
pub fn check_wal(dir: &Path) -> Result<(), StoreError> {
    match File::open(dir.join(format!("{DB_FILE}-wal"))) {
        Ok(file) => scan_frames(&mut BufReader::with_capacity(1 << 16, file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(error)),
    }
}

fn scan_frames(log: &mut impl Read) -> Result<(), StoreError> {
    let mut head = [0; HEAD];
    if !fill(log, &mut head)? {
        return Ok(());
    }
    let [magic, _, page, _, salts @ .., one, two] = words::<8>(&head);
    let big = magic & BIG_ENDIAN != 0;
    let known = magic | BIG_ENDIAN == MAGIC | BIG_ENDIAN;
    let sound = known && sum([0; 2], &head[..24], big) == [one, two];
    if known && !sound && is_half_restarted(head, [one, two], big) {
        return Ok(());
    }
    let mut frame = vec![0; FRAME + if sound { page as usize } else { 0 }];
    let mut before = PreviousFrame { sums: [[one, two]; 2], is_commit: false };
    let (mut number, mut is_whole) = (0_u64, sound);
    while fill(log, &mut frame)? {
        // The header is synced before the first frame is written.
        if !sound {
            return Err(StoreError::Corrupt("the WAL header fails its checksum".to_owned()));
        }
        number += 1;
        let ([_, pages, own @ .., one, two], content) =
            (words::<6>(&frame[..FRAME]), &frame[FRAME..]);
        let summed = |from| sum(sum(from, &frame[..8], big), content, big);
        let [has, should_have] = before.sums;
        let own_sum = summed(has);
        let fits = own_sum == [one, two];
        let goes_on =
            own == salts && (fits || has != should_have && summed(should_have) == [one, two]);
        if goes_on && before.is_commit && !is_whole {
            let why = format!("frame {} of the WAL, or an earlier one, is damaged", number - 1);
            return Err(StoreError::Corrupt(why));
        }
        is_whole &= goes_on && fits;
        before = PreviousFrame { sums: [[one, two], own_sum], is_commit: pages != 0 };
    }
    Ok(())
}

/// Whether the header is one of which only the first half was replaced. A WAL is used again from its
/// beginning, with the next number, once everything in it is in the database: nothing is lost.
fn is_half_restarted(mut head: [u8; HEAD], sums: WalChecksum, big: bool) -> bool {
    let [_, _, _, number, ..] = words::<8>(&head);
    head[12..16].copy_from_slice(&number.wrapping_sub(1).to_be_bytes());
    sum([0; 2], &head[..24], big) == sums
}

/// The frame before another.
struct PreviousFrame {
    /// Its stored checksum and its computed one: if one of the two is corrupted, the next frame
    /// still continues from the other.
    sums: [WalChecksum; 2],
    is_commit: bool,
}

/// Fills the buffer; false if less data is left.
fn fill(log: &mut impl Read, room: &mut [u8]) -> Result<bool, StoreError> {
    match log.read_exact(room) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(io_error(error)),
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = word_of(bytes, true);
    }
    words
}

fn word_of(bytes: &[u8], big: bool) -> u32 {
    let [a, b, c, d] = *bytes else { return 0 };
    if big { u32::from_be_bytes([a, b, c, d]) } else { u32::from_le_bytes([a, b, c, d]) }
}

/// The checksum of SQLite's log (file format, section 4.2), continued from another.
fn sum([mut one, mut two]: WalChecksum, bytes: &[u8], big: bool) -> WalChecksum {
    for pair in bytes.chunks_exact(8) {
        one = one.wrapping_add(word_of(&pair[..4], big)).wrapping_add(two);
        two = two.wrapping_add(word_of(&pair[4..], big)).wrapping_add(one);
    }
    [one, two]
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// The log of three commits, and where each of them ends.
    fn log() -> (Vec<u8>, [usize; 3]) {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join(DB_FILE)).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
        let path = dir.path().join(format!("{DB_FILE}-wal"));
        let ends =
            ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "CREATE TABLE u (a)"].map(|sql| {
                db.execute_batch(sql).unwrap();
                std::fs::metadata(&path).unwrap().len() as usize
            });
        (std::fs::read(&path).unwrap(), ends)
    }

    fn is_refused(mut log: &[u8]) -> bool {
        matches!(scan_frames(&mut log), Err(StoreError::Corrupt(_)))
    }

    #[test]
    fn a_log_that_ends_anywhere_is_one_that_was_not_finished() {
        let (log, _) = log();
        for end in (0..log.len()).step_by(61) {
            assert!(!is_refused(&log[..end]), "{end}");
        }
        assert!(!is_refused(&log));
    }

    #[test]
    fn any_rotten_byte_that_another_commit_follows_is_found() {
        let (log, [_, newest, _]) = log();
        for at in (0..newest).step_by(7) {
            let mut log = log.clone();
            log[at] ^= 0x10;
            assert!(is_refused(&log), "{at} of {newest}");
        }
    }

    #[test]
    fn the_newest_commit_may_be_one_that_was_not_finished() {
        let (log, [_, newest, end]) = log();
        assert!(end - newest > FRAME + 4_096, "more than one frame");
        for at in (newest..end).step_by(FRAME + 4_096) {
            for lost in [at..at + FRAME, at + FRAME..at + FRAME + 4_096, at..at + FRAME + 4_096] {
                let mut log = log.clone();
                log[lost.clone()].fill(0);
                assert!(!is_refused(&log), "{lost:?}");
            }
        }
    }

    #[test]
    fn a_header_that_was_being_replaced_has_nothing_behind_it_that_is_needed() {
        let (mut log, _) = log();
        log[15] += 1;
        assert!(!is_refused(&log), "the next number, and everything else is old");
        log[15] += 1;
        assert!(is_refused(&log));
    }

    #[test]
    fn what_an_earlier_log_left_behind_the_end_is_not_looked_at() {
        let ((mut newer, [end, ..]), (older, _)) = (log(), log());
        newer.truncate(end);
        newer.extend_from_slice(&older[end..]);
        assert!(!is_refused(&newer));
    }
}
