//! The newest batch that a node has applied, in a file of the node.
//!
//! A node compares it with the log when it starts, and so notices a database that lost its newest
//! changes while the node was stopped. A check and no guarantee: the file is written at most once a
//! second and when the node stops, and is not synced.

use std::path::PathBuf;
use std::sync::Weak;
use std::time::Duration;
use std::{fs, io};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::SharedLog;
use super::state::ClusterState;
use crate::store::StoreError;
use crate::store::log::{ChainHash, Place};

/// Its name in the data directory of the node.
pub const PLACE_FILE: &str = "place.json";
/// How often it is written at most.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// What the file contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedPlace {
    /// The id of the hub, as hexadecimal digits.
    hub: String,
    /// How often the hub was restored before. It grows when an operator accepts what was lost.
    epoch: u64,
    batch: u64,
    hash: ChainHash,
}

/// The file of one node.
#[derive(Debug)]
pub struct PlaceFile {
    path: PathBuf,
    hub: String,
    /// The epoch of the hub since this start.
    epoch: u64,
    written: Mutex<Place>,
}

impl PlaceFile {
    /// The file of a node of this hub. Refuses a log that lacks the batch that the file names, unless
    /// an operator has accepted that.
    pub fn open(
        path: PathBuf,
        hub: [u8; 16],
        epoch: u64,
        head: Place,
        log: &mut dyn SharedLog,
    ) -> Result<Self, StoreError> {
        let file = Self { path, hub: hex::encode(hub), epoch, written: Mutex::default() };
        if let Some(saved) = file.read()
            && saved.hub == file.hub
            && saved.epoch >= epoch
        {
            let seen = Place { number: saved.batch, hash: saved.hash };
            check_log(seen, head, log.hash_of(seen.number)?)?;
        }
        Ok(file)
    }

    /// What the file says. One that cannot be read says nothing: a power cut may have damaged it.
    fn read(&self) -> Option<SavedPlace> {
        let read = fs::read(&self.path).and_then(|text| Ok(serde_json::from_slice(&text)?));
        match read {
            Ok(saved) => Some(saved),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%error, %path, "this node does not know at which batch it was");
                None
            }
        }
    }

    /// Writes a place that is not in the file yet. An error is logged: the hub does not depend on it.
    pub fn write(&self, place: Place) {
        let mut written = self.written.lock();
        if *written == place {
            return;
        }
        let saved = SavedPlace {
            hub: self.hub.clone(),
            epoch: self.epoch,
            batch: place.number,
            hash: place.hash,
        };
        let new = self.path.with_extension("new");
        let text = serde_json::to_vec(&saved).expect("numbers and texts");
        let result = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        match result {
            Ok(()) => *written = place,
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%error, %path, "this node's place in the log was not saved");
            }
        }
    }
}

/// Writes the place of a node from time to time, until the node has ended.
pub fn keep_written(state: &Weak<ClusterState>) {
    while let Some(state) = state.upgrade() {
        state.save_place();
        drop(state);
        std::thread::sleep(WRITE_INTERVAL);
    }
}

/// An error if the log ends before a place that the node was at, or has another batch there. A batch
/// that was removed from the beginning of the log proves nothing.
fn check_log(seen: Place, head: Place, found: Option<ChainHash>) -> Result<(), StoreError> {
    let found = match found {
        Some(hash) if hash == seen.hash => return Ok(()),
        Some(hash) => format!("another batch {} (hash {hash:?})", seen.number),
        None if head.number >= seen.number => return Ok(()),
        None => format!("its newest batch is {} (hash {:?})", head.number, head.hash),
    };
    Err(StoreError::LostPlace(format!(
        "this node was at batch {} (hash {:?}) before it stopped, and the log has {found}: the \
         database lost its newest changes, or was restored from a backup; use the database that has \
         them, or stop all nodes and go on without them with `rialto cluster accept --database-url \
         URL`",
        seen.number, seen.hash
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64, byte: u8) -> Place {
        Place { number, hash: ChainHash([byte; 32]) }
    }

    #[test]
    fn a_log_that_lacks_the_place_or_has_another_batch_there_is_refused() {
        let seen = place(7, 1);
        check_log(seen, place(9, 3), Some(seen.hash)).unwrap();
        // Removed from the beginning of the log.
        check_log(seen, place(9, 3), None).unwrap();
        for (head, found) in [(place(5, 2), None), (place(9, 3), Some(ChainHash([2; 32])))] {
            let error = check_log(seen, head, found).unwrap_err().to_string();
            let other = format!("{:?}", ChainHash([2; 32]));
            assert!(error.contains("batch 7") && error.contains(&other), "{error}");
            assert!(error.contains("rialto cluster accept"), "{error}");
        }
    }

    #[test]
    fn the_file_has_what_was_written_last_and_a_damaged_one_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PLACE_FILE);
        let file = PlaceFile { path, hub: "01".to_owned(), epoch: 2, written: Mutex::default() };
        assert_eq!(file.read(), None);
        file.write(place(7, 1));
        file.write(place(8, 2));
        let hash = ChainHash([2; 32]);
        assert_eq!(
            file.read(),
            Some(SavedPlace { hub: "01".to_owned(), epoch: 2, batch: 8, hash })
        );
        fs::write(&file.path, "").unwrap();
        assert_eq!(file.read(), None);
    }
}
