//! Rows of the store: as written, or corrupt; never something else.
//!
//! The input is the name of a table, a line end, and a body.

use rialto_engine::store::StoreError;
use rialto_engine::store::sqlite::row_probe::RowProbe;

thread_local! {
    static PROBE: RowProbe = RowProbe::new().expect("a store in memory");
}

/// Checks the readers of all tables.
pub fn stored_row(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let Ok(table) = std::str::from_utf8(&bytes[..end]) else { return };
    let body = bytes.get(end + 1..).unwrap_or_default();
    PROBE.with(|probe| match table {
        "notices" => {
            refused(probe.reread_notice("", body, 1));
            let _ = corrupt(probe.reread_notice("", body, 0));
            let _ = corrupt(probe.reread_notice("relay", body, 0));
        }
        "claims" => {
            refused(probe.reread_claim([3; 16], body, 1 << 31));
            let _ = corrupt(probe.reread_claim([3; 16], body, 0));
        }
        _ => row(probe, table, body),
    });
}

fn row(probe: &RowProbe, table: &str, body: &[u8]) {
    let Ok(read) = corrupt(probe.reread_row(table, 17, body, 0)) else { return };
    let Some(written) = read else { return };
    for spoilt in [1, 1 << 16, u32::MAX] {
        refused(probe.reread_row(table, 17, body, spoilt));
    }
    let again = probe.reread_row(table, 17, written.as_bytes(), 0).expect("what we write we read");
    assert_eq!(again, Some(written), "it changes when it is written again");
}

/// The only possible error is that the row is corrupt.
fn corrupt<T>(read: Result<T, StoreError>) -> Result<T, ()> {
    read.map_err(|error| match error {
        StoreError::Corrupt(why) => assert!(!why.is_empty()),
        other => panic!("{other:?}"),
    })
}

fn refused<T: std::fmt::Debug>(read: Result<T, StoreError>) {
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "a wrong checksum was accepted: {read:?}");
}
