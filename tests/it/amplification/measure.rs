//! Memory and disk use of a hub, and the work of its lane.

use std::path::Path;

use rialto_core::time::Timestamp;
use rialto_engine::backup::create_backup;
use rialto_engine::run::LaneStats;
use rusqlite::{Connection, OpenFlags};

use crate::kit::TestHub;

/// A hub's memory, disk use and lane counters.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Bytes of all rows in memory, serialized.
    memory: usize,
    /// Bytes of everything in the store.
    disk: usize,
    effort: LaneStats,
}

/// The cost of some requests, per request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The longest response.
    pub answered: usize,
    /// Bytes kept for each.
    pub memory: usize,
    pub disk: usize,
    /// Commands the lane decided for each, and rows they changed: its work, on any machine.
    pub commands: usize,
    pub rows: usize,
}

impl Standing {
    pub fn of(hub: &TestHub) -> Self {
        // Counted last: work that is still running would count for the next request.
        let (memory, disk) = (memory(hub), disk(hub.dir.path()));
        Self { memory, disk, effort: hub.engine.lane_stats() }
    }

    /// The cost per request since then.
    pub fn cost_of(&self, hub: &TestHub, requests: usize, answered: usize) -> Cost {
        let now = Self::of(hub);
        let each = |now: usize, then: usize| now.saturating_sub(then).div_ceil(requests);
        let each_of =
            |now: u64, then: u64| usize::try_from(now - then).expect("a few").div_ceil(requests);
        Cost {
            answered,
            memory: each(now.memory, self.memory),
            disk: each(now.disk, self.disk),
            commands: each_of(now.effort.commands, self.effort.commands),
            rows: each_of(now.effort.rows, self.effort.rows),
        }
    }
}

/// The rows in memory, as long as they are when serialized.
fn memory(hub: &TestHub) -> usize {
    hub.engine.with_world(|world| {
        let agents = world.agents().map(|row| format!("{row:?}").len());
        let agent_states = world
            .agents()
            .filter_map(|row| Some(format!("{:?}", world.agent_state(row.id)?).len()));
        let keys = world.agents().flat_map(|row| world.keys_of(row.id)).map(|_| 64);
        let owners = world.owners().map(|row| format!("{row:?}").len());
        let jobs = world.live_jobs().map(|row| format!("{row:?}").len());
        let pushes = world.deliveries().map(|row| format!("{row:?}").len());
        let answers = world.idempotency_entries().map(|row| format!("{row:?}").len());
        agents
            .chain(agent_states)
            .chain(keys)
            .chain(owners)
            .chain(jobs)
            .chain(pushes)
            .chain(answers)
            .sum()
    })
}

/// All columns of all rows of all tables, in a copy: the hub writes its own tables later.
fn disk(dir: &Path) -> usize {
    let copies = tempfile::tempdir().expect("a directory");
    let file = copies.path().join("copy.db");
    create_backup(dir, &file, Timestamp(0)).expect("a copy");
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a store");
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    };
    let tables = texts("SELECT name FROM sqlite_schema WHERE type = 'table'");
    let size = |table: &String| -> usize {
        let columns = texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let lengths: Vec<String> = columns
            .iter()
            .map(|name| format!("coalesce(length(CAST({name} AS BLOB)), 0)"))
            .collect();
        let sql = format!("SELECT coalesce(sum({}), 0) FROM {table}", lengths.join(" + "));
        let sum: i64 = db.query_row(&sql, [], |row| row.get(0)).expect(&sql);
        usize::try_from(sum).expect("a length")
    };
    tables.iter().map(size).sum()
}
