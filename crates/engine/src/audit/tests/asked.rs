//! Breaches planted in negotiated jobs and in their claims.

use rialto_core::alias::{Digest, claim};
use rialto_core::id::AgentId;

use super::planted::plant;
use super::*;
use crate::fixtures::signed_orders::KEYS;

fn agent(db: &Connection, native: &str) -> AgentId {
    let sql = format!("SELECT id FROM agents WHERE body ->> 'native' = '{native}'");
    AgentId(number(db, &sql).unsigned_abs())
}

/// The newest claim of an id.
fn named(db: &Connection, digest: Digest) -> i64 {
    let sql = "SELECT max(id) FROM claims WHERE digest = ?1";
    db.query_row(sql, [digest.0], |row| row.get(0)).expect("the id was used")
}

/// A job of the buyer's, and the table it is in.
fn job(db: &Connection, id: &str) -> (&'static str, i64) {
    let find = |table| {
        let sql = format!("SELECT id FROM {table} WHERE body ->> 'foreign' = 'buyer/{id}'");
        db.query_row(&sql, [], |row| row.get(0)).ok().map(|id| (table, id))
    };
    find("jobs").or_else(|| find("archive")).expect("the job was requested")
}

/// Corrupts one of the buyer's jobs.
fn spoil(id: &'static str, change: impl FnOnce(&mut Value)) -> impl FnOnce(&Connection) {
    move |db| {
        let (table, at) = job(db, id);
        rewrite(db, table, at, change);
    }
}

#[test]
fn who_was_asked_finds_what_it_was_asked() {
    let asked = |db: &Connection| claim::invited_job(agent(db, "seller"), "ask-1");
    for (what, target) in [
        ("released", "\"Free\""),
        ("pointing to no job", "{\"Job\":999999}"),
        ("pointing to another job", "{\"Job\":1}"),
        ("ambiguous without a second job", "\"Several\""),
    ] {
        plant("claims", what, |db| retarget(db, named(db, asked(db)), target));
    }
    plant("claims", "claim of a declining agent lost", |db| {
        let digest = claim::invited_job(agent(db, "rival"), "ask-5");
        retarget(db, named(db, digest), "\"Free\"");
    });
    plant("claims", "one of two lost", |db| {
        let digest = claim::invited_job(agent(db, "seller"), "ask-6");
        let last = named(db, digest);
        let (_, mine) = job(db, "ask-6");
        retarget(db, last, &format!("{{\"Job\":{mine}}}"));
    });
}

#[test]
fn an_offer_leads_to_its_place() {
    let made = |db: &Connection, with: bool| {
        let (buyer, rival) = (agent(db, "buyer"), agent(db, "rival"));
        named(db, claim::offer(buyer, with.then_some(rival), "better"))
    };
    for with in [true, false] {
        for place in [0, 99] {
            plant("claims", "another index", |db| {
                let target =
                    format!("{{\"Offer\":{{\"job\":{},\"place\":{place}}}}}", job(db, "ask-1").1);
                retarget(db, made(db, with), &target);
            });
        }
        plant("claims", "an offer released", |db| retarget(db, made(db, with), "\"Free\""));
        plant("claims", "an offer pointing to no job", |db| {
            retarget(db, made(db, with), "{\"Offer\":{\"job\":999999,\"place\":0}}");
        });
    }
    plant(
        "claims",
        "an offer missing",
        spoil("ask-1", |job| {
            job["offers"].as_array_mut().expect("a list").pop();
        }),
    );
}

#[test]
fn a_signed_order_is_used_up_for_ever() {
    let order = |db: &Connection| named(db, claim::signed_order(KEYS, "buyer", "ask-1"));
    plant("claims", "an order that can be repeated", |db| retarget(db, order(db), "\"Free\""));
    plant("claims", "an order pointing to another job", |db| {
        let sql = format!("SELECT target FROM claims WHERE id = {}", order(db));
        let target: String = db.query_row(&sql, [], |row| row.get(0)).expect("there");
        let mut target: Value = serde_json::from_str(&target).expect("JSON");
        target["Heard"]["job"] = 1.into();
        retarget(db, order(db), &target.to_string());
    });
    plant("claims", "an order executed twice", |db| {
        // A later claim gets the same digest.
        let later = named(db, claim::signed_order(KEYS, "buyer", "ask-7"));
        let sql =
            "UPDATE claims SET digest = (SELECT digest FROM claims WHERE id = ?1) WHERE id = ?2";
        db.execute(sql, [order(db), later]).expect("moved");
        let sql = format!("SELECT target FROM claims WHERE id = {later}");
        let target: String = db.query_row(&sql, [], |row| row.get(0)).expect("there");
        retarget(db, later, &target);
    });
    plant(
        "claims",
        "a job under another requester's name",
        spoil("ask-1", |job| {
            job["foreign"] = "rival/ask-1".into();
        }),
    );
}

#[test]
fn money_is_set_aside_for_what_was_agreed() {
    plant("holds", "less than agreed", spoil("ask-3", |job| job["assignment"]["price"] = 2.into()));
    plant("holds", "a hold missing", spoil("ask-6", |job| job["held"] = 0.into()));
    plant(
        "holds",
        "a hold before an agreement",
        spoil("ask-6", |job| {
            job["state"] = "Negotiating".into();
        }),
    );
    plant("holds", "an unneeded hold", spoil("ask-7", |job| job["held"] = 5.into()));
    plant(
        "holds",
        "held twice without an offer",
        spoil("ask-3", |job| job["offers"] = Vec::<Value>::new().into()),
    );
}

#[test]
fn only_who_was_asked_has_it() {
    plant(
        "jobs.states",
        "a worker that was not asked",
        spoil("ask-3", |job| {
            job["asked"] = Vec::<Value>::new().into();
        }),
    );
    plant(
        "jobs.states",
        "open, but no agent asked",
        spoil("ask-6", |job| {
            job["asked"] = Vec::<Value>::new().into();
        }),
    );
    plant(
        "jobs.states",
        "negotiating without an offer",
        spoil("ask-7", |job| {
            job["offers"] = Vec::<Value>::new().into();
        }),
    );
    plant(
        "jobs.states",
        "asked again after it declined",
        spoil("ask-7", |job| {
            job["declined"] = job["asked"].clone();
        }),
    );
    plant(
        "jobs.states",
        "at a price that was not offered",
        spoil("ask-3", |job| {
            job["offers"][0]["price"] = 7.into();
        }),
    );
}

#[test]
fn a_script_of_signed_orders_is_clean() {
    let dir = tempfile::tempdir().expect("a directory can be created");
    let mut store = SqliteStore::open(dir.path()).expect("free");
    let mut script = crate::fixtures::ModelHub::default();
    for order in signed_orders::negotiation_commands() {
        let (answer, changes) = script.run(order.clone());
        assert!(matches!(answer, Answer::SignedOrder { repeated: false, .. }), "{order:?}");
        store.commit(&changes, &ExpiredRows::default()).expect("there is space");
        // A repeat has no effect and returns the same answer.
        let (again, nothing) = script.run(order);
        assert!(matches!(again, Answer::SignedOrder { repeated: true, .. }) && nothing.is_empty());
    }
    let report = audit_dir(dir.path()).expect("readable");
    assert!(report.is_clean(), "{report:#?}");
    // And the store returns all of it.
    drop(store);
    let mut store = SqliteStore::open(dir.path()).expect("free");
    let world = crate::store::suite::rebuild_world(&script, &mut store);
    let seen = |world| crate::fixtures::snapshot(world, script.now);
    assert_eq!(seen(&world), seen(&script.world));
}
