//! Loading whole tables at a start: one thread reads rows, several check and decode them.
//!
//! Reading a row takes a fraction of the time of decoding it, so one connection keeps several
//! threads busy. Rows travel in slices, of which only a few exist at a time.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Rows};
use serde::de::DeserializeOwned;

use super::row::{column_error, decode_row, row_parts};
use super::store_error;
use crate::store::StoreError;

/// Rows of one slice.
const SLICE_ROWS: usize = 512;
/// Bytes after which a slice is passed on whatever its number of rows.
const SLICE_BYTES: usize = 1 << 20;
/// Threads that decode; more do not help, because one thread reads.
const DECODERS_MAX: usize = 8;

/// Rows as they are stored.
#[derive(Default)]
struct Slice {
    bodies: String,
    rows: Vec<StoredRow>,
}

/// The key and checksum of a row, and where its body ends in the slice.
struct StoredRow {
    key: i64,
    end: usize,
    crc: Option<i64>,
}

/// All rows of a table whose keys are ids, in their order, each as `convert` makes it. The first
/// row that is not as it was written is an error.
pub fn load_table<R: DeserializeOwned, T: Send>(
    db: &Connection,
    table: &'static str,
    convert: impl Fn(R) -> T + Sync,
) -> Result<Vec<T>, StoreError> {
    let sql = format!("SELECT id, body, crc FROM {table} ORDER BY id");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    let decode = |slice: &Slice| slice.decode(table, &convert);
    let (first, has_more) = read_slice(&mut rows, table)?;
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
        let read = send_slices(sender, first, &failed_at, || read_slice(&mut rows, table));
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

/// The next rows, and whether more may follow.
fn read_slice(rows: &mut Rows<'_>, table: &str) -> Result<(Slice, bool), StoreError> {
    let mut slice = Slice::default();
    while slice.rows.len() < SLICE_ROWS && slice.bodies.len() < SLICE_BYTES {
        let Some(row) = rows.next().map_err(store_error)? else { return Ok((slice, false)) };
        let (key, body, crc) = row_parts(table, row)?;
        let key = key.as_i64().map_err(column_error)?;
        slice.bodies.push_str(body);
        slice.rows.push(StoredRow { key, end: slice.bodies.len(), crc });
    }
    Ok((slice, true))
}

impl Slice {
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
            decoded.push(convert(decode_row(table, ValueRef::Integer(row.key), body, row.crc)?));
        }
        Ok(decoded)
    }
}
