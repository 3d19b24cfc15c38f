//! Breaches planted one by one, each of which must be reported by its check.

use rialto_core::notice::NoticeKind;

use super::*;

/// Plants a breach in a copy; the given check must be among those that fail.
pub fn plant(check: &str, what: &str, how: impl FnOnce(&Connection)) {
    let dir = copy();
    let db = behind(dir.path());
    how(&db);
    drop(db);
    let report = audit_dir(dir.path()).expect("a store with breaches can be read");
    let failed = failed(&report);
    assert!(failed.contains(&check), "{what}: only {failed:?} failed");
}

fn run(sql: &'static str) -> impl FnOnce(&Connection) {
    move |db| {
        let changed = db.execute(sql, []).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(changed > 0, "{sql} found nothing to change");
    }
}

/// Adds to a number in a row.
fn add(value: &mut Value, path: &str, more: i64) {
    let number = value.pointer_mut(path).unwrap_or_else(|| panic!("no {path}"));
    *number = (number.as_i64().unwrap_or(0) + more).into();
}

#[test]
fn the_chain_of_the_ledger() {
    plant("ledger.chain", "an amount changed", |db| {
        rewrite(db, "entries", 3, |entry| add(entry, "/amount", 1));
    });
    plant("ledger.chain", "the last entry missing", |db| {
        run("DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)")(db);
    });
    plant("ledger.chain", "a middle entry missing", run("DELETE FROM entries WHERE id = 5"));
    plant(
        "ledger.chain",
        "a column changed",
        run("UPDATE entries SET amount = amount + 1 WHERE id = 4"),
    );
}

#[test]
fn the_sums_of_the_ledger() {
    plant("ledger.sums", "an owner with more credits", |db| {
        rewrite(db, "owners", 1, |owner| add(owner, "/available", 1));
        run("UPDATE owners SET available = available + 1 WHERE id = 1")(db);
    });
    plant("ledger.sums", "an owner missing", run("DELETE FROM owners WHERE id = 2"));
    plant("ledger.sums", "a column changed", run("UPDATE owners SET held = held + 1 WHERE id = 1"));
    plant("ledger.sums", "a balance below zero", |db| {
        db.execute_batch("PRAGMA ignore_check_constraints = ON").expect("set");
        run("UPDATE owners SET available = -1 WHERE id = 1")(db);
    });
}

#[test]
fn the_file_itself() {
    let dir = copy();
    let path = dir.path().join(DB_FILE);
    let mut bytes = std::fs::read(&path).expect("read");
    // The number of free pages in the header (sqlite.org/fileformat, 1.3).
    bytes[36..40].copy_from_slice(&7_u32.to_be_bytes());
    std::fs::write(&path, bytes).expect("written");
    assert_eq!(failed(&audit_dir(dir.path()).expect("readable")), ["file"]);
}

#[test]
fn the_history_of_each_account() {
    plant("ledger.history", "an entry with a wrong predecessor", |db| {
        let id = number(db, "SELECT max(id) FROM entries WHERE kind = 'hold'");
        rewrite(db, "entries", id, |entry| entry["before_from"] = 1.into());
    });
    plant("ledger.history", "an owner row with a wrong newest entry", |db| {
        rewrite(db, "owners", 1, |owner| owner["newest"] = 1.into());
    });
    plant("ledger.history", "a payment not counted", |db| {
        rewrite(db, "owners", 1, |owner| add(owner, "/movements", -1));
    });
    plant("ledger.history", "the volume", |db| counters(db, |next| add(next, "/volume", 5)));
}

fn counters(db: &Connection, change: impl FnOnce(&mut Value)) {
    let sql = "SELECT body FROM state WHERE name = 'counters'";
    let body: String = db.query_row(sql, [], |row| row.get(0)).expect("there");
    let mut value: Value = serde_json::from_str(&body).expect("JSON");
    change(&mut value);
    let body = value.to_string();
    let crc = row::checksum(rusqlite::types::ValueRef::Text(b"counters"), body.as_bytes());
    db.execute(
        "UPDATE state SET body = ?1, crc = ?2 WHERE name = 'counters'",
        rusqlite::params![body, crc],
    )
    .expect("rewritten");
}

#[test]
fn transfers() {
    plant("transfers", "another amount", |db| {
        let id = number(db, "SELECT min(id) FROM transfers WHERE body ->> 'settled_by_hold' = 0");
        rewrite(db, "transfers", id, |transfer| add(transfer, "/amount", 1));
    });
    plant("transfers", "one that moved nothing", |db| {
        let id = number(db, "SELECT min(id) FROM transfers WHERE body ->> 'settled_by_hold' = 0");
        rewrite(db, "transfers", id, |transfer| transfer["settled_by_hold"] = true.into());
    });
}

const PAID: &str = "SELECT min(id) FROM archive WHERE body ->> '$.report.paid' > 0";
const LIVE: &str =
    "SELECT max(id) FROM jobs WHERE body ->> 'held' > 0 AND body ->> 'state' = 'Assigned'";

#[test]
fn holds() {
    plant("holds", "more reported than captured", |db| {
        rewrite(db, "archive", number(db, PAID), |job| add(job, "/report/paid", 1));
    });
    let paid = |db: &Connection, kind: &str| {
        let sql = format!(
            "SELECT min(id) FROM entries WHERE kind = '{kind}' AND body ->> 'job' = ({PAID})"
        );
        number(db, &sql)
    };
    plant("holds", "paid to an owner that did not do it", |db| {
        rewrite(db, "entries", paid(db, "capture"), |line| add(line, "/to/owner", 1));
    });
    plant("holds", "paid back to the requester", |db| {
        rewrite(db, "entries", paid(db, "capture"), |line| {
            line["to"]["owner"] = line["from"]["owner"].clone();
        });
    });
    plant("holds", "held from an owner other than the requester", |db| {
        rewrite(db, "entries", paid(db, "hold"), |line| {
            add(line, "/from/owner", 1);
            add(line, "/to/owner", 1);
        });
    });
    plant("holds", "the work of another agent", |db| {
        rewrite(db, "archive", number(db, PAID), |job| add(job, "/assignment/owner", 1));
    });
    plant("holds", "a live job without its hold", |db| {
        rewrite(db, "jobs", number(db, LIVE), |job| job["held"] = 0.into());
    });
    plant("holds", "a hold that outlives its job", |db| {
        let id = number(db, LIVE);
        rewrite(db, "jobs", id, |job| {
            job["state"] = "Failed".into();
            job["ended_at"] = 1.into();
        });
        db.execute("INSERT INTO archive SELECT * FROM jobs WHERE id = ?1", [id]).expect("moved");
        db.execute("DELETE FROM jobs WHERE id = ?1", [id]).expect("moved");
    });
}

#[test]
fn the_states_of_jobs() {
    plant("jobs.states", "a finished job among live ones", |db| {
        rewrite(db, "jobs", number(db, LIVE), |job| job["state"] = "Completed".into());
    });
    plant("jobs.states", "a live job among finished ones", |db| {
        rewrite(db, "archive", number(db, PAID), |job| job["state"] = "Running".into());
    });
    plant("jobs.states", "one in both tables", |db| {
        let sql = format!("INSERT INTO archive SELECT * FROM jobs WHERE id = ({LIVE})");
        assert_eq!(db.execute(&sql, []).expect("copied"), 1);
    });
    plant("jobs.states", "no end time", |db| {
        rewrite(db, "archive", number(db, PAID), |job| job["ended_at"] = Value::Null);
    });
    plant("jobs.states", "no result", |db| {
        rewrite(db, "archive", number(db, PAID), |job| job["report"] = Value::Null);
    });
    plant("jobs.states", "a worker that declined", |db| {
        rewrite(db, "jobs", number(db, LIVE), |job| {
            let worker = job["assignment"]["worker"].clone();
            job["declined"] = vec![worker].into();
        });
    });
    plant("jobs.states", "assigned without a worker", |db| {
        rewrite(db, "jobs", number(db, LIVE), |job| job["assignment"] = Value::Null);
    });
    plant("jobs.states", "waiting for an answer to no question", |db| {
        rewrite(db, "jobs", number(db, LIVE), |job| {
            job["state"] = serde_json::json!({"InputRequired": {"until": 5}});
        });
    });
    let talked = "SELECT max(id) FROM jobs WHERE json_array_length(body ->> '$.messages') = 2";
    plant("jobs.states", "an answer that is not the message that gave it", |db| {
        rewrite(db, "jobs", number(db, talked), |job| {
            job["questions"][0]["answer"] = "{\"text\":\"Bern\"}".into();
        });
    });
    plant("jobs.states", "a message out of order", |db| {
        rewrite(db, "jobs", number(db, talked), |job| job["messages"][1]["after"] = 0.into());
    });
    plant("jobs.states", "a requester's history cut", |db| {
        let sql = "SELECT max(id) FROM archive WHERE body ->> 'before_asked' IS NOT NULL";
        rewrite(db, "archive", number(db, sql), |job| job["before_asked"] = Value::Null);
    });
    plant("jobs.states", "a worker's history cut", |db| {
        let sql = "SELECT max(id) FROM archive WHERE body ->> 'before_worked' IS NOT NULL";
        rewrite(db, "archive", number(db, sql), |job| job["before_worked"] = Value::Null);
    });
}

#[test]
fn reputation() {
    let counted = "SELECT max(id) FROM outcomes WHERE body ->> 'counted' = 1";
    plant("reputation", "a better score", |db| {
        rewrite(db, "outcomes", number(db, counted), |one| add(one, "/score_after", 1));
    });
    plant("reputation", "a gap in the numbers", |db| {
        rewrite(db, "outcomes", number(db, counted), |one| add(one, "/number", 1));
    });
    plant("reputation", "a chain with a wrong link", |db| {
        rewrite(db, "outcomes", number(db, counted), |one| one["before"] = 999_999.into());
    });
    plant("reputation", "a failure that became a success", |db| {
        let sql = "SELECT max(id) FROM outcomes WHERE body ->> 'ok' = 0";
        rewrite(db, "outcomes", number(db, sql), |one| one["ok"] = true.into());
    });
    let shown = "SELECT min(id) FROM desks WHERE body ->> '$.window[0]' IS NOT NULL";
    plant("reputation", "an agent state without an outcome", |db| {
        rewrite(db, "desks", number(db, shown), |agent_state| {
            agent_state["window"].as_array_mut().expect("a list").pop();
        });
    });
    plant("reputation", "an agent state with a faster time", |db| {
        rewrite(db, "desks", number(db, shown), |agent_state| add(agent_state, "/window/0", 1));
    });
    let served = "SELECT min(id) FROM desks WHERE body ->> '$.patrons' IS NOT NULL";
    plant("reputation", "an additional customer", |db| {
        rewrite(db, "desks", number(db, served), |agent_state| {
            agent_state["patrons"]["owners"].as_array_mut().expect("a list").push(99.into());
        });
    });
    plant("reputation", "more paid by customers", |db| {
        rewrite(db, "desks", number(db, served), |agent_state| {
            add(agent_state, "/patrons/paid", 1)
        });
    });
    plant("reputation", "an outcome with a wrong on-time flag", |db| {
        rewrite(db, "outcomes", number(db, counted), |one| {
            let on_time = one["on_time"].as_bool().expect("yes or no");
            one["on_time"] = (!on_time).into();
        });
    });
    plant("reputation", "an agent state with a better score", |db| {
        rewrite(db, "desks", 1, |agent_state| add(agent_state, "/standing/score", 1_000_000));
    });
    plant("reputation", "counted within one owner", |db| {
        let sql = "SELECT max(o.id) FROM outcomes o JOIN archive j ON j.id = o.body ->> 'job'
                   WHERE o.body ->> 'counted' = 0
                   AND j.body ->> 'payer' = j.body ->> '$.assignment.owner'";
        rewrite(db, "outcomes", number(db, sql), |one| one["counted"] = true.into());
    });
    plant("reputation", "a duplicate outcome", |db| {
        let several = format!(
            "{counted} AND body ->> 'subject' IN
             (SELECT body ->> 'subject' FROM outcomes GROUP BY 1 HAVING count(*) > 1)"
        );
        let id = number(db, &several);
        let job = number(db, &format!("SELECT body ->> 'job' FROM outcomes WHERE id = {id}"));
        let sql = format!(
            "SELECT max(a.id) FROM outcomes a JOIN outcomes b ON b.id = {id}
             WHERE a.id <> b.id AND a.body ->> 'subject' = b.body ->> 'subject'"
        );
        rewrite(db, "outcomes", number(db, &sql), |one| one["job"] = job.into());
    });
    plant("reputation", "a job that does not exist", |db| {
        rewrite(db, "outcomes", number(db, counted), |one| one["job"] = 999_999.into());
    });
}

#[test]
fn inboxes() {
    let told = "SELECT max(id) FROM notices WHERE position > 1";
    plant("inbox", "a gap", |db| {
        retell(db, number(db, told), |notice| notice.position += 1);
    });
    plant("inbox", "a chain with a wrong link", |db| {
        retell(db, number(db, told), |notice| notice.before = None);
    });
    let said = "SELECT max(id) FROM notices WHERE follows > 0";
    plant("inbox", "a message without a predecessor", |db| {
        retell(db, number(db, said), |notice| {
            let NoticeKind::Message { previous: follows, .. } = &mut notice.news else {
                panic!("a message")
            };
            *follows = None;
        });
    });
    let reported = "SELECT max(id) FROM notices WHERE body LIKE '%\"Progress\"%'";
    plant("inbox", "a gap in a log of reports", |db| {
        retell(db, number(db, reported), |notice| {
            let NoticeKind::Progress { report, .. } = &mut notice.news else { panic!("a report") };
            report.number += 1;
        });
    });
    let logged = "SELECT max(id) FROM jobs WHERE body ->> '$.progress.reports' > 0";
    for (what, place) in
        [("a report too many", "/progress/reports"), ("lost bytes", "/progress/bytes")]
    {
        plant("inbox", what, |db| {
            rewrite(db, "jobs", number(db, logged), |job| add(job, place, 1));
        });
    }
    let talked = "SELECT max(id) FROM jobs WHERE json_array_length(body ->> '$.messages') = 2";
    for (what, place) in [("a lost step", "/progress/steps"), ("a lost part", "/progress/parts")] {
        plant("inbox", what, |db| {
            rewrite(db, "jobs", number(db, talked), |job| add(job, place, 1));
        });
    }
    plant("inbox", "a question that was never asked", |db| {
        rewrite(db, "jobs", number(db, talked), |job| {
            let questions = job["questions"].as_array_mut().expect("questions");
            questions.push(questions[0].clone());
        });
    });
    plant("inbox", "a phase that the log does not have", |db| {
        rewrite(db, "jobs", number(db, talked), |job| {
            job["progress"]["phase"][0] = "Ended".into();
        });
    });
    let some = "SELECT min(id) FROM mailboxes WHERE body ->> 'head' > 0";
    for (what, place, more) in [
        ("a head too high", "/head", 1),
        ("a head too low", "/head", -1),
        ("acknowledged before it came", "/acked", 9_999),
        ("another newest", "/newest", -1),
        ("more waits than exists", "/messages_waiting", 9_999),
    ] {
        plant("inbox", what, |db| {
            rewrite(db, "mailboxes", number(db, some), |mailbox| add(mailbox, place, more));
        });
    }
    plant("inbox", "an inbox row that was lost", |db| {
        let sql = format!("DELETE FROM mailboxes WHERE id = ({some})");
        assert_eq!(db.execute(&sql, []).expect("deleted"), 1);
    });
    plant("inbox", "a completed delivery without a notice", |db| {
        let body = r#"{"notice":999999,"at":1,"attempts":1,"reply":null}"#;
        let crc = row::checksum(rusqlite::types::ValueRef::Integer(999_999), body.as_bytes());
        let sql = "INSERT INTO arrivals (id, body, crc) VALUES (999999, ?1, ?2)";
        db.execute(sql, rusqlite::params![body, crc]).expect("written");
    });
    plant("inbox", "a delivery without a notice", |db| {
        let id = number(db, "SELECT max(id) FROM pushes");
        rewrite(db, "pushes", id, |push| push["news"] = serde_json::json!({"Queued": {"job": 1}}));
    });
}

#[test]
fn claims() {
    plant(
        "claims",
        "lost from the index",
        run("DELETE FROM claim_index WHERE claim = (SELECT min(claim) FROM claim_index)"),
    );
    plant(
        "claims",
        "the index points to another",
        run("UPDATE claim_index SET claim = 2 WHERE claim = 1"),
    );
    let of_job =
        |ends: &str| format!("SELECT {ends}(id) FROM claims WHERE target LIKE '{{\"Job\"%'");
    plant("claims", "an id wrongly released", |db| {
        retarget(db, number(db, &of_job("min")), "\"Free\"");
    });
    plant("claims", "an unindexed id wrongly released", |db| {
        retarget(db, number(db, &of_job("max")), "\"Free\"");
    });
    plant("claims", "an id that points to nothing", |db| {
        retarget(db, number(db, &of_job("max")), "{\"Job\":999999}");
    });
    plant("claims", "a transfer without a claim", |db| {
        let sql = "SELECT min(id) FROM claims WHERE target LIKE '{\"Transfer\"%'";
        let id = number(db, sql);
        let to = number(db, &format!("SELECT target ->> 'Transfer' FROM claims WHERE id = {id}"));
        let sql = format!(
            "SELECT id FROM claims WHERE target ->> 'Transfer' = {to} AND json_valid(target)"
        );
        for id in crate::audit::query_ids(db, &sql).expect("readable") {
            retarget(db, id as i64, "\"Free\"");
        }
    });
    plant("claims", "an id used twice", |db| {
        // An unindexed claim gets the digest of an indexed one.
        let (old, new) = (number(db, &of_job("min")), number(db, &of_job("max")));
        db.execute(
            "UPDATE claims SET digest = (SELECT digest FROM claims WHERE id = ?1) WHERE id = ?2",
            [old, new],
        )
        .expect("moved");
        let target: String = db
            .query_row("SELECT target FROM claims WHERE id = ?1", [new], |row| row.get(0))
            .expect("there");
        retarget(db, new, &target);
    });
}

#[test]
fn postings() {
    let some = "SELECT max(id) FROM claims WHERE target LIKE '{\"Posting\"%'";
    plant("claims", "an order that points to nothing", |db| {
        retarget(db, number(db, some), "{\"Posting\":999999}");
    });
    plant("claims", "an order whose market record is missing", |db| {
        let sql = format!("SELECT target ->> 'Posting' FROM claims WHERE id = ({some})");
        let sql = format!("DELETE FROM postings WHERE id = ({sql})");
        assert_eq!(db.execute(&sql, []).expect("deleted"), 1);
    });
    plant("claims", "an order submitted twice", |db| {
        // The newest order gets the digest of an earlier one.
        let before = format!("{some} AND id < ({some})");
        let (old, new) = (number(db, &before), number(db, some));
        let sql = "SELECT digest FROM claims WHERE id = ?1";
        let digest: Vec<u8> = db.query_row(sql, [old], |row| row.get(0)).expect("there");
        let sql = "SELECT target FROM claims WHERE id = ?1";
        let target: String = db.query_row(sql, [new], |row| row.get(0)).expect("there");
        db.execute("UPDATE claims SET digest = ?1 WHERE id = ?2", rusqlite::params![digest, new])
            .expect("moved");
        retarget(db, new, &target);
    });
    plant("counters", "the last market record missing", |db| {
        run("DELETE FROM postings WHERE id = (SELECT max(id) FROM postings)")(db);
    });
    plant("counters", "a middle record missing", run("DELETE FROM postings WHERE id = 2"));
    plant("counters", "all market records missing", |db| {
        db.execute_batch("DROP TABLE postings; CREATE TABLE postings (id INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL)").expect("dropped");
    });
    plant(
        "checksums",
        "a market record with another content",
        run("UPDATE postings SET body = replace(body, 'true', 'false') WHERE id = 1"),
    );
    plant("checksums", "a market record with another id", |db| {
        rewrite(db, "postings", 1, |posting| posting["id"] = 2.into());
    });
    plant("holds", "credits held for an unpaid job", |db| {
        let sql = "SELECT max(id) FROM jobs WHERE body ->> '$.policy.unpaid' = 1";
        rewrite(db, "jobs", number(db, sql), |job| job["held"] = 1.into());
    });
}

#[test]
fn names_and_keys() {
    plant("aliases", "a name used twice", |db| {
        let name = "SELECT body ->> 'name' FROM aliases WHERE id = 1";
        let name: String = db.query_row(name, [], |row| row.get(0)).expect("there");
        rewrite(db, "aliases", 2, |alias| alias["name"] = name.into());
    });
    plant("aliases", "a name without an agent", |db| {
        rewrite(db, "aliases", 1, |alias| alias["agent"] = 999.into());
    });
    plant("keys", "a duplicate hash", |db| {
        let hash = "SELECT body ->> 'hash' FROM keys ORDER BY id LIMIT 1";
        let hash: String = db.query_row(hash, [], |row| row.get(0)).expect("there");
        rewrite(db, "keys", number(db, "SELECT max(id) FROM keys"), |key| {
            key["hash"] = hash.into()
        });
    });
    plant("keys", "a key that is not a hash", |db| {
        rewrite(db, "keys", number(db, "SELECT min(id) FROM keys"), |key| {
            key["hash"] = "ca_0123".into();
        });
    });
    plant("keys", "a key without an agent", |db| {
        rewrite(db, "keys", number(db, "SELECT min(id) FROM keys"), |key| {
            key["holder"] = serde_json::json!({"Agent": 999});
        });
    });
}

#[test]
fn checksums_of_every_table() {
    let tables = [
        "agents",
        "desks",
        "owners",
        "keys",
        "aliases",
        "turns",
        "jobs",
        "archive",
        "pushes",
        "memories",
        "entries",
        "transfers",
        "notices",
        "mailboxes",
        "arrivals",
        "outcomes",
        "lines",
        "postings",
        "claims",
        "state",
    ];
    for table in tables {
        let body = if table == "claims" { "target" } else { "body" };
        plant("checksums", table, |db| {
            let sql = format!("UPDATE {table} SET {body} = {body} || ' '");
            assert!(db.execute(&sql, []).expect("corrupted") > 0, "{table} is empty");
        });
    }
    plant("checksums", "a row in the wrong place", |db| {
        run("UPDATE notices SET id = 999999 WHERE id = 3")(db);
    });
}

#[test]
fn counters_and_what_was_taken_away() {
    for id in [
        "agent", "owner", "job", "entry", "transfer", "notice", "event", "outcome", "key", "alias",
        "claim", "answer", "posting",
    ] {
        plant("counters", id, |db| counters(db, |next| next[id] = 1.into()));
    }
    for table in ["lines", "notices", "transfers", "agents", "archive", "postings"] {
        plant("counters", table, |db| {
            let sql = format!("DELETE FROM {table} WHERE id = (SELECT min(id) FROM {table})");
            assert_eq!(db.execute(&sql, []).expect("deleted"), 1);
        });
    }
    plant("counters", "no counters at all", run("DELETE FROM state WHERE name = 'counters'"));
}
