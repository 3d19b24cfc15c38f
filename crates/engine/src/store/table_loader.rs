//! Loading whole tables at a start: one thread reads rows, several check and decode them.
//!
//! Reading a row takes a fraction of the time of decoding it, so one connection keeps several
//! threads busy. Rows travel in slices, of which only a few exist at a time.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::de::DeserializeOwned;

use super::StoreError;
use super::row::{RowId, decode_row};

/// Rows of one slice.
const SLICE_ROWS: usize = 512;
/// Bytes after which a slice is passed on whatever its number of rows.
const SLICE_BYTES: usize = 1 << 20;
/// Threads that decode; more do not help, because one thread reads.
const DECODERS_MAX: usize = 8;

/// Rows as they are stored.
#[derive(Default)]
pub struct Slice {
    bodies: String,
    rows: Vec<StoredRow>,
}

/// The key and checksum of a row, and where its body ends in the slice.
struct StoredRow {
    key: i64,
    end: usize,
    crc: Option<i64>,
}

/// All rows of a table whose keys are ids, in the order in which `next_slice` returns them, each as
/// `convert` makes it. `next_slice` also returns whether more may follow. The first row that is not
/// as it was written is an error.
pub fn load_table<R: DeserializeOwned, T: Send>(
    table: &'static str,
    convert: impl Fn(R) -> T + Sync,
    mut next_slice: impl FnMut() -> Result<(Slice, bool), StoreError>,
) -> Result<Vec<T>, StoreError> {
    let decode = |slice: &Slice| slice.decode(table, &convert);
    let (first, has_more) = next_slice()?;
    if !has_more {
        return decode(&first);
    }
    let decoders = thread::available_parallelism().map_or(1, NonZero::get).min(DECODERS_MAX);
    let failed_at = AtomicUsize::new(usize::MAX);
    let (sender, receiver) = sync_channel(2 * decoders);
    let receiver = Mutex::new(receiver);
    let (read, mut parts) = thread::scope(|scope| {
        let decoders: Vec<_> = (0..decoders)
            .map(|_| scope.spawn(|| decode_slices(&receiver, &failed_at, &decode)))
            .collect();
        let read = send_slices(sender, first, &failed_at, next_slice);
        let parts = decoders.into_iter().flat_map(|one| match one.join() {
            Ok(parts) => parts,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (read, parts.collect::<Vec<_>>())
    });
    // Every slice before a bad one was decoded, so the first error in order is always the same.
    parts.sort_by_key(|(number, _)| *number);
    let mut all = Vec::with_capacity(parts.len() * SLICE_ROWS);
    for (_, part) in parts {
        all.append(&mut part?);
    }
    read.map(|()| all)
}

/// Passes all slices of a table on, until one turns out to be bad.
fn send_slices(
    sender: SyncSender<(usize, Slice)>,
    first: Slice,
    failed_at: &AtomicUsize,
    mut next: impl FnMut() -> Result<(Slice, bool), StoreError>,
) -> Result<(), StoreError> {
    let (mut slice, mut has_more, mut number) = (first, true, 0);
    loop {
        // The receiver exists as long as this function runs.
        let _ = sender.send((number, slice));
        if !has_more || failed_at.load(Ordering::Relaxed) != usize::MAX {
            return Ok(());
        }
        (slice, has_more) = next()?;
        number += 1;
    }
}

/// Decodes slices until there are no more. After a bad one only earlier ones matter.
fn decode_slices<T>(
    slices: &Mutex<Receiver<(usize, Slice)>>,
    failed_at: &AtomicUsize,
    decode: &impl Fn(&Slice) -> Result<Vec<T>, StoreError>,
) -> Vec<(usize, Result<Vec<T>, StoreError>)> {
    let mut parts = Vec::new();
    loop {
        let next = slices.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, slice)) = next else { return parts };
        if number > failed_at.load(Ordering::Relaxed) {
            continue;
        }
        let part = decode(&slice);
        if part.is_err() {
            failed_at.fetch_min(number, Ordering::Relaxed);
        }
        parts.push((number, part));
    }
}

impl Slice {
    pub fn is_full(&self) -> bool {
        self.rows.len() >= SLICE_ROWS || self.bodies.len() >= SLICE_BYTES
    }

    pub fn push(&mut self, key: i64, body: &str, crc: Option<i64>) {
        self.bodies.push_str(body);
        self.rows.push(StoredRow { key, end: self.bodies.len(), crc });
    }

    fn decode<R: DeserializeOwned, T>(
        &self,
        table: &str,
        convert: &impl Fn(R) -> T,
    ) -> Result<Vec<T>, StoreError> {
        let mut start = 0;
        let mut decoded = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let body = &self.bodies[start..row.end];
            start = row.end;
            decoded.push(convert(decode_row(table, RowId::Number(row.key), body, row.crc)?));
        }
        Ok(decoded)
    }
}
