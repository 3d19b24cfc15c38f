//! Hops: how the Reader's job was translated into another protocol and back, field by field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::agents::reader::Reader;

/// One translation between two protocols.
#[derive(Clone, Debug, Serialize)]
pub struct Hop {
    pub what: String,
    pub from: String,
    pub to: String,
    /// Number of fields by outcome: kept, renamed, defaulted, dropped.
    pub fields: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Trace {
    hops: Vec<HopView>,
}

#[derive(Deserialize)]
struct HopView {
    what: String,
    from: String,
    to: String,
    notes: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    fate: String,
}

/// The hops of the Reader's job.
pub async fn read_hops(reader: &Reader, job: &str) -> Result<Vec<Hop>, rialto_client::CallError> {
    let trace = reader.hub().get(&format!("/v1/jobs/{job}/trace")).await?;
    let trace: Trace = serde_json::from_value(trace).map_err(super::balance::unreadable)?;
    Ok(trace.hops.into_iter().map(Hop::from_view).collect())
}

impl Hop {
    fn from_view(shown: HopView) -> Self {
        let mut fields = BTreeMap::new();
        for note in shown.notes {
            *fields.entry(note.fate).or_default() += 1;
        }
        Self { what: shown.what, from: shown.from, to: shown.to, fields }
    }

    /// One line of text.
    pub fn describe(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(fate, count)| format!("{count} {fate}")).collect();
        format!("{:<8} {} -> {}: fields {}", self.what, self.from, self.to, fields.join(", "))
    }
}
