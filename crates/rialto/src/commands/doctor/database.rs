//! `rialto doctor --database-url`: names what a PostgreSQL is configured to lose, and shows how the
//! hub in it is.

use jiff::{SignedDuration, Timestamp};
use rialto_engine::store::StoreError;
use rialto_engine::store::postgres::admin::DatabaseAdmin;
use rialto_engine::store::postgres::inspect::{HubReport, ServerReport};

use super::HealthCheck;
use crate::commands::database;

/// A node that is further behind is slow, or its connection to the database is.
const BATCHES_BEHIND_MAX: u64 = 1_000;
/// Differences below this are harmless: nodes use the clock of the database.
const SKEW_FINE: SignedDuration = SignedDuration::from_secs(2);
/// A log that is kept for ten minutes is rarely larger.
const LOG_BYTES_MAX: u64 = 8 << 30;
/// Connections of one node.
const CONNECTIONS_PER_NODE: u64 = 9;

/// All checks of a database.
pub fn checks(url: &str) -> Vec<HealthCheck> {
    let failed =
        |error: &StoreError| vec![HealthCheck::from_error("database", database::cli_error(error))];
    let mut admin = match DatabaseAdmin::connect(url) {
        Ok(admin) => admin,
        Err(error) => return failed(&error),
    };
    let before = Timestamp::now();
    let server = match admin.inspect_server() {
        Ok(server) => server,
        Err(error) => return failed(&error),
    };
    let mut checks = server_checks(&server);
    checks.push(check_clock(&server, before, Timestamp::now()));
    match admin.has_hub().and_then(|has_hub| has_hub.then(|| admin.inspect_hub()).transpose()) {
        Ok(Some(hub)) => checks.extend(hub_checks(&hub)),
        Ok(None) => {
            let next = "a first `rialto serve --database-url URL` creates it";
            checks.push(HealthCheck::warn("hub", format!("none in {}", admin.name()), next));
        }
        Err(error) => checks.extend(failed(&error)),
    }
    checks
}

fn server_checks(server: &ServerReport) -> Vec<HealthCheck> {
    let version = format!("PostgreSQL {} accepts writes", server.version);
    vec![
        HealthCheck::ok("database", version),
        check_on(
            "fsync",
            &server.fsync,
            "a crash of its machine loses or damages acknowledged changes",
        ),
        check_on(
            "pages",
            &server.full_page_writes,
            "a crash of its machine can damage pages (full_page_writes)",
        ),
        check_commit(server),
        check_standbys(server),
        check_wal_level(server),
        check_checksums(server),
        check_connections(server),
    ]
}

/// A setting that must be on.
fn check_on(name: &'static str, value: &str, loss: &str) -> HealthCheck {
    match value {
        "on" => HealthCheck::ok(name, "on"),
        _ => {
            let setting = if name == "pages" { "full_page_writes" } else { name };
            let next = format!(
                "set {setting} = on and reload the server; nodes refuse to start until then"
            );
            HealthCheck::fail(name, format!("{value}: {loss}"), next)
        }
    }
}

fn check_commit(server: &ServerReport) -> HealthCheck {
    let has_standbys = !server.synchronous_standby_names.is_empty();
    match server.synchronous_commit.as_str() {
        "on" | "remote_apply" => HealthCheck::ok("commit", server.synchronous_commit.clone()),
        "remote_write" if has_standbys => HealthCheck::fail(
            "commit",
            "remote_write: a standby has received a commit, but not synced it; a fail-over after a \
             power cut on both sides loses acknowledged changes",
            "set synchronous_commit = on",
        ),
        "remote_write" => {
            HealthCheck::ok("commit", "remote_write, without a standby as good as on")
        }
        other => HealthCheck::ok("commit", format!("{other}; nodes use on for their own sessions")),
    }
}

fn check_standbys(server: &ServerReport) -> HealthCheck {
    const NAME: &str = "standby";
    if server.is_aurora {
        return HealthCheck::ok(NAME, "Aurora replicates every commit in its storage");
    }
    let names = &server.synchronous_standby_names;
    let total = server.standbys.len();
    let count = |states: &[&str]| {
        let is_one = |state: &Option<String>| state.as_deref().is_some_and(|s| states.contains(&s));
        server.standbys.iter().filter(|standby| is_one(&standby.sync_state)).count()
    };
    let synchronous = count(&["sync", "quorum"]);
    let hidden = server.standbys.iter().filter(|standby| standby.sync_state.is_none()).count();
    let asynchronous = count(&["async", "potential"]);
    let loss = "a fail-over to it may lose acknowledged changes; the nodes then stop, and `rialto \
                cluster accept` goes on from what is left";
    let set = "set synchronous_standby_names, with Patroni `synchronous_mode: true` and \
               `synchronous_mode_strict: true`";
    if hidden > 0 {
        let finding =
            format!("{hidden} of {total} standbys, and this user may not see their state");
        return HealthCheck::warn(
            NAME,
            finding,
            "GRANT pg_monitor to the user, and run this again",
        );
    }
    match (names.is_empty(), synchronous, asynchronous) {
        (true, 0, 0) => HealthCheck::ok(
            NAME,
            "none that PostgreSQL knows of: what is committed is on this server's disk (storage \
             that replicates by itself, as with RDS Multi-AZ, does not show here)",
        ),
        (true, _, some) => HealthCheck::fail(NAME, format!("{some} asynchronous: {loss}"), set),
        (false, 0, _) => HealthCheck::warn(
            NAME,
            format!("no synchronous standby is connected, and commits wait for one ({names})"),
            "start one, or nothing is acknowledged",
        ),
        (false, some, 0) => HealthCheck::ok(NAME, format!("{some} synchronous ({names})")),
        (false, some, others) => HealthCheck::warn(
            NAME,
            format!("{some} synchronous ({names}), and {others} that may lack the newest changes"),
            "fail over to a synchronous one only",
        ),
    }
}

fn check_wal_level(server: &ServerReport) -> HealthCheck {
    match server.wal_level.as_str() {
        "minimal" => HealthCheck::warn(
            "wal",
            "minimal: there can be no standby and no continuous archive",
            "set wal_level = replica if you want either",
        ),
        level => HealthCheck::ok("wal", level.to_owned()),
    }
}

fn check_checksums(server: &ServerReport) -> HealthCheck {
    match server.data_checksums.as_str() {
        "on" => HealthCheck::ok("checksum", "on"),
        _ => HealthCheck::warn(
            "checksum",
            "off: PostgreSQL does not notice pages that the disk has damaged; `rialto audit` does",
            "`pg_checksums --enable` while the server is stopped",
        ),
    }
}

fn check_connections(server: &ServerReport) -> HealthCheck {
    let (used, max) = (server.connections, server.connections_max);
    let finding = format!("{used} of {max} in use");
    match max.saturating_sub(used) >= CONNECTIONS_PER_NODE {
        true => HealthCheck::ok("sessions", finding),
        false => {
            HealthCheck::warn("sessions", finding, "raise max_connections: a node uses up to 9")
        }
    }
}

/// The server has read its clock between `before` and `after`.
fn check_clock(server: &ServerReport, before: Timestamp, after: Timestamp) -> HealthCheck {
    let there = Timestamp::from_millisecond(server.clock.0).unwrap_or(before);
    let ahead = if before > there {
        before.duration_since(there)
    } else if there > after {
        after.duration_since(there)
    } else {
        SignedDuration::ZERO
    };
    if ahead.abs() <= SKEW_FINE {
        return HealthCheck::ok("clock", "same as the database's");
    }
    let direction = if ahead.is_negative() { "behind" } else { "ahead of" };
    let finding = format!("{} s {direction} the database's", ahead.abs().as_secs());
    let next = "set both clocks with NTP: signed messages are valid for a minute";
    HealthCheck::warn("clock", finding, next)
}

fn hub_checks(hub: &HubReport) -> Vec<HealthCheck> {
    vec![check_nodes(hub), check_versions(hub), check_lag(hub), check_log(hub)]
}

fn check_nodes(hub: &HubReport) -> HealthCheck {
    let has_writer = hub.nodes.iter().any(|node| node.report.node.0 == hub.writer);
    let finding = format!("{} running, epoch {}", hub.nodes.len(), hub.epoch);
    match (hub.nodes.len(), has_writer) {
        (0, _) => HealthCheck::warn(
            "nodes",
            "none has reported in the last ten seconds",
            "start them with `rialto serve --database-url URL`",
        ),
        (_, false) => HealthCheck::warn(
            "nodes",
            format!("{finding}, and none of them writes"),
            "wait a moment for a fail-over; the nodes' logs say what keeps them from it",
        ),
        (1, true) => HealthCheck::warn(
            "nodes",
            finding,
            "start a second one: nothing takes over if this one ends",
        ),
        (_, true) => HealthCheck::ok("nodes", finding),
    }
}

fn check_versions(hub: &HubReport) -> HealthCheck {
    let mut versions: Vec<&str> =
        hub.nodes.iter().map(|node| node.report.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let finding = format!("{} (batches of format {})", versions.join(", "), hub.format);
    match versions.len() {
        0 | 1 => HealthCheck::ok("versions", finding),
        _ => HealthCheck::warn("versions", finding, "complete the upgrade of all nodes"),
    }
}

fn check_lag(hub: &HubReport) -> HealthCheck {
    let behind = hub.nodes.iter().map(|node| hub.head.saturating_sub(node.report.applied)).max();
    let behind = behind.unwrap_or(0);
    let tables = hub.head.saturating_sub(hub.checkpoint);
    let finding = format!("nodes up to {behind} batches behind, tables {tables}");
    match behind <= BATCHES_BEHIND_MAX {
        true => HealthCheck::ok("lag", finding),
        false => HealthCheck::warn("lag", finding, "check the load of that node and its network"),
    }
}

fn check_log(hub: &HubReport) -> HealthCheck {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let (log, all) = (mib(hub.log_bytes), mib(hub.bytes));
    let finding =
        format!("batches {} to {}, {log} MiB of {all} MiB in the schema", hub.oldest, hub.head);
    match hub.log_bytes <= LOG_BYTES_MAX {
        true => HealthCheck::ok("log", finding),
        false => HealthCheck::warn(
            "log",
            finding,
            "it is truncated only as far as every live node has read and autovacuum frees it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use rialto_engine::store::postgres::inspect::Standby;

    use super::*;

    fn safe() -> ServerReport {
        ServerReport {
            fsync: "on".to_owned(),
            full_page_writes: "on".to_owned(),
            synchronous_commit: "on".to_owned(),
            wal_level: "replica".to_owned(),
            data_checksums: "on".to_owned(),
            connections_max: 100,
            ..ServerReport::default()
        }
    }

    fn standby(sync_state: Option<&str>) -> Standby {
        Standby { name: "b".to_owned(), sync_state: sync_state.map(str::to_owned) }
    }

    /// The checks that are not fine, as status and name.
    fn found(server: &ServerReport) -> Vec<(&'static str, &'static str)> {
        let checks = server_checks(server).into_iter();
        checks
            .filter(|check| check.status != "ok")
            .map(|check| (check.status, check.name))
            .collect()
    }

    #[test]
    fn only_what_can_lose_acknowledged_changes_is_a_failure() {
        assert_eq!(found(&safe()), []);
        let with = |change: &dyn Fn(&mut ServerReport)| {
            let mut server = safe();
            change(&mut server);
            found(&server)
        };
        assert_eq!(with(&|server| server.fsync = "off".to_owned()), [("fail", "fsync")]);
        assert_eq!(with(&|server| server.full_page_writes = "off".to_owned()), [("fail", "pages")]);
        // Nodes choose for their own sessions.
        assert_eq!(with(&|server| server.synchronous_commit = "off".to_owned()), []);
        assert_eq!(
            with(&|server| server.data_checksums = "off".to_owned()),
            [("warn", "checksum")]
        );
        assert_eq!(with(&|server| server.wal_level = "minimal".to_owned()), [("warn", "wal")]);
        assert_eq!(with(&|server| server.connections = 95), [("warn", "sessions")]);
    }

    #[test]
    fn a_standby_that_a_commit_does_not_wait_for_can_lose_it() {
        let with = |names: &str, states: &[Option<&str>]| {
            let mut server = safe();
            server.synchronous_standby_names = names.to_owned();
            server.standbys = states.iter().map(|state| standby(*state)).collect();
            found(&server)
        };
        assert_eq!(with("", &[Some("async")]), [("fail", "standby")]);
        assert_eq!(with("b", &[Some("sync")]), []);
        assert_eq!(with("ANY 1 (*)", &[Some("quorum"), Some("quorum")]), []);
        assert_eq!(with("b", &[Some("sync"), Some("async")]), [("warn", "standby")]);
        assert_eq!(with("b", &[]), [("warn", "standby")], "commits wait");
        assert_eq!(with("", &[None]), [("warn", "standby")], "it is not known");
        let mut weak = safe();
        weak.synchronous_standby_names = "b".to_owned();
        weak.standbys = vec![standby(Some("sync"))];
        weak.synchronous_commit = "remote_write".to_owned();
        assert_eq!(found(&weak), [("fail", "commit")]);
        let mut server = safe();
        server.is_aurora = true;
        server.standbys = vec![standby(Some("async"))];
        assert_eq!(found(&server), [], "replicas of Aurora share its storage");
    }
}
