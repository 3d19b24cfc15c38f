//! Rows of the log: read in order, and checked hash by hash.

use rialto_core::encoding::{EncodingError, decode_batch};
use tokio_postgres::Row;

use super::schema::check_format;
use super::session::store_error;
use crate::cluster::known_formats;
use crate::store::StoreError;
use crate::store::log::record::chain_hash;
use crate::store::log::{ChainHash, LoggedBatch, Place};

/// A row of the log that is not checked yet, from its number, epoch, format, body and hash.
pub struct LogRow<'r> {
    pub place: Place,
    pub epoch: u64,
    format: i32,
    body: &'r [u8],
}

impl<'r> LogRow<'r> {
    pub fn read(row: &'r Row) -> Result<Self, StoreError> {
        let number = |at: usize| row.try_get::<_, i64>(at).map_err(store_error);
        let (number, epoch) = (number(0)?.unsigned_abs(), number(1)?.unsigned_abs());
        Ok(Self {
            place: Place { number, hash: read_hash(row, 4)? },
            epoch,
            format: row.try_get(2).map_err(store_error)?,
            body: row.try_get(3).map_err(store_error)?,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.body.len() as u64
    }

    /// Whether its hash is that of this row after a place.
    pub fn continues(&self, before: Place) -> bool {
        chain_hash(before.hash, self.place.number, self.epoch, self.body) == self.place.hash
    }

    /// Checks that it continues a place, and decodes it.
    pub fn decode(self, before: Place) -> Result<LoggedBatch, StoreError> {
        let number = self.place.number;
        if number != before.number + 1 {
            return Err(StoreError::Corrupt(format!(
                "batch {} of the log is missing, and batch {number} follows; restore a backup",
                before.number + 1
            )));
        }
        if !self.continues(before) {
            return Err(StoreError::Corrupt(format!(
                "batch {number} of the log is damaged or does not continue batch {}; restore a \
                 backup",
                before.number
            )));
        }
        let Self { place, epoch, format, body } = self;
        check_format(format)?;
        let batch = decode_batch(body).map_err(|error| match error {
            EncodingError::UnknownBatchVersion { found } if check_format(found.into()).is_err() => {
                StoreError::NewerFormat { found: found.into(), known: known_formats().1 }
            }
            error => StoreError::Corrupt(format!("batch {number} of the log: {error}")),
        })?;
        Ok(LoggedBatch { place, epoch, batch })
    }
}

/// A hash in a column.
pub fn read_hash(row: &Row, column: usize) -> Result<ChainHash, StoreError> {
    let bytes: &[u8] = row.try_get(column).map_err(store_error)?;
    let bytes = bytes
        .try_into()
        .map_err(|_| StoreError::Corrupt("a hash does not have 32 bytes".to_owned()))?;
    Ok(ChainHash(bytes))
}
