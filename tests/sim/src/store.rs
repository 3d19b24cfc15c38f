//! A store that can crash before or after a write, run out of space, and lag like the real one.
//!
//! Rows are in the memory store and survive the engine. Inboxes are written late, as in the SQLite
//! store: a start catches up from the notices, and loses positions that were only presented.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::id::AgentId;
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::store::{Reader, Row, RowKey, Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The disk is full; nothing is written.
    Full,
    /// It fails, and nothing is written.
    LostBefore,
    /// It is written, but fails.
    LostAfter,
}

/// What one commit wrote.
#[derive(Clone)]
pub struct Written {
    pub batch: Changes,
    pub forgotten: ExpiredRows,
}

impl Written {
    /// How it differs from what was decided, as text.
    pub fn differs(&self, batch: &Changes, forgotten: &ExpiredRows) -> Vec<String> {
        let mut all = Vec::new();
        macro_rules! compare {
            ($($field:ident),+) => {$(
                if self.batch.$field != batch.$field {
                    let (is, should) = (&self.batch.$field, &batch.$field);
                    let field = stringify!($field);
                    all.push(format!("{field}: written {is:?}, decided {should:?}"));
                }
            )+};
        }
        compare!(
            agents,
            agent_states,
            inboxes,
            inboxes_to_persist,
            owners,
            jobs,
            keys,
            rotations,
            deliveries,
            idempotency_records
        );
        compare!(
            aliases,
            claims,
            entries,
            transfers,
            notices,
            completed_deliveries,
            outcomes,
            history_lines,
            market_records
        );
        compare!(next, idempotency_entries);
        if self.forgotten != *forgotten {
            all.push(format!("expired {:?}, not {forgotten:?}", self.forgotten));
        }
        all
    }
}

/// What the engine's store shares with the simulation.
#[derive(Default)]
struct StoredAgentState {
    fault: Fault,
    fired: bool,
    written: Option<Written>,
    behind: Behind,
    /// The rows that the last start read.
    reopened: Option<Changes>,
    starts: u64,
}

/// Every this many starts each row is parsed from its text again.
const REREAD: u64 = 4;

/// Inboxes as they are on disk, and the notices since.
#[derive(Default)]
struct Behind {
    table: BTreeMap<AgentId, Inbox>,
    current: BTreeMap<AgentId, Inbox>,
    since: Vec<Arc<Notice>>,
}

/// The store, and the controls of its faults.
#[derive(Clone, Default)]
pub struct SimStore {
    rows: MemoryStore,
    agent_state: Arc<Mutex<StoredAgentState>>,
}

impl SimStore {
    /// Sets what happens to the next commit.
    pub fn arm(&self, fault: Fault) {
        let mut agent_state = self.agent_state.lock();
        (agent_state.fault, agent_state.fired, agent_state.written) = (fault, false, None);
    }

    /// What the last commit wrote, and whether the fault occurred.
    pub fn outcome(&self) -> (Option<Written>, bool) {
        let mut agent_state = self.agent_state.lock();
        agent_state.fault = Fault::None;
        (agent_state.written.take(), agent_state.fired)
    }

    /// Writes the inboxes, as when the lane is idle.
    pub fn catch_up(&self) {
        self.agent_state.lock().behind.catch_up();
    }

    /// The rows that the last start read.
    pub fn reopened(&self) -> Option<Changes> {
        self.agent_state.lock().reopened.take()
    }

    /// Everything a start reads, now and then with each row parsed from its text again.
    fn at_hand(&mut self) -> Changes {
        let mut rows = self.rows.load_hot_rows().expect("maps can be read");
        let mut agent_state = self.agent_state.lock();
        rows.inboxes = agent_state.behind.reopened();
        agent_state.starts += 1;
        if agent_state.starts.is_multiple_of(REREAD) {
            Self::reread(&mut rows);
        }
        agent_state.reopened = Some(rows.clone());
        rows
    }

    fn reread(rows: &mut Changes) {
        rows.agents.values_mut().for_each(reread);
        rows.agent_states.values_mut().for_each(reread);
        rows.owners.values_mut().for_each(reread);
        rows.jobs.values_mut().for_each(reread);
        rows.keys.values_mut().for_each(reread);
        rows.rotations.values_mut().for_each(reread);
        rows.deliveries.values_mut().flatten().for_each(reread);
    }
}

impl Behind {
    fn keep(&mut self, batch: &Changes) {
        self.current.extend(batch.inboxes.iter().map(|(id, one)| (*id, *one)));
        self.since.extend(batch.notices.iter().cloned());
        for id in &batch.inboxes_to_persist {
            if let Some(mailbox) = batch.inboxes.get(id) {
                self.table.insert(*id, *mailbox);
            }
        }
    }

    fn catch_up(&mut self) {
        self.table.clone_from(&self.current);
        self.since.clear();
    }

    /// The table, caught up from the notices; anything else that was not written is lost.
    fn reopened(&mut self) -> BTreeMap<AgentId, Inbox> {
        for notice in &self.since {
            if let Some(to) = notice.to {
                self.table.entry(to).or_insert_with(|| Inbox::new(to)).receive(notice);
            }
            if let NoticeKind::Message { from: Some(from), .. } = notice.news {
                self.table.entry(from).or_insert_with(|| Inbox::new(from)).record_sent(notice.id);
            }
        }
        self.since.clear();
        self.current.clone_from(&self.table);
        self.table.clone()
    }
}

fn reread<R: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(row: &mut Arc<R>) {
    let text = serde_json::to_string(&**row).expect("rows can be written");
    let read: R = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(read, **row, "a row changed when it was stored and read");
    *row = Arc::new(read);
}

impl Store for SimStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        Ok(self.at_hand())
    }

    fn commit(&mut self, batch: &Changes, forgotten: &ExpiredRows) -> Result<(), StoreError> {
        let mut agent_state = self.agent_state.lock();
        assert!(agent_state.written.is_none(), "a batch is committed once");
        let fault = std::mem::take(&mut agent_state.fault);
        agent_state.fired = fault != Fault::None;
        if fault == Fault::Full {
            return Err(StoreError::Full);
        }
        let broken = || Err(StoreError::Failed("as planned".to_owned()));
        if fault == Fault::LostBefore {
            return broken();
        }
        self.rows.commit(batch, forgotten)?;
        agent_state.behind.keep(batch);
        agent_state.written = Some(Written { batch: batch.clone(), forgotten: forgotten.clone() });
        if fault == Fault::LostAfter { broken() } else { Ok(()) }
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        Store::load(&mut self.rows, key)
    }

    fn run_maintenance(&mut self) -> Result<bool, StoreError> {
        self.catch_up();
        Ok(false)
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.open_reader()
    }
}
