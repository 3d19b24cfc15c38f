//! What must hold after every restart.

use std::collections::BTreeSet;

use serde_json::Value;

use super::book::{Book, Fate, Job, Payment};
use super::clients::{
    BUDGET, Cast, Line, PRICE, SKILL, STARTING_CREDITS, job, payment, registration, result,
};
use crate::kit::{digits, operator_key, together};

/// Checks everything in the record, repeats operations with unknown outcome, and counts the
/// acknowledged ones of this round.
pub async fn all(url: &str, cast: &Cast, book: &Book, round: usize) -> usize {
    let line = Line::new(&cast.http, url);
    let counted = agents(&line, book).await
        + payments(&line, cast, book).await
        + jobs(&line, cast, book).await;
    println!("round {round}: {counted} acknowledged");
    counted
}

async fn ask(line: &Line<'_>, path: &str, key: Option<&str>) -> (u16, String) {
    line.get(path, key).await.expect("the hub answers after a restart")
}

/// Available and held credits, in cents.
async fn balance(line: &Line<'_>, owner: &str) -> (u64, u64) {
    let (status, text) = ask(line, &format!("/accounts/{owner}"), Some(&operator_key())).await;
    assert_eq!(status, 200, "{text}");
    let cents = |name| digits(&text, name).replace('.', "").parse().expect("an amount");
    (cents("balance"), cents("held"))
}

/// Every acknowledged agent exists with its key; every other exists completely or not at all.
async fn agents(line: &Line<'_>, book: &Book) -> usize {
    let fresh: Vec<(String, Fate<String>)> = {
        let pages = book.open();
        let checked: BTreeSet<&String> = pages.settled.0.iter().collect();
        pages
            .agents
            .iter()
            .filter(|(id, _)| !checked.contains(id))
            .map(|(id, fate)| (id.clone(), fate.clone()))
            .collect()
    };
    together(fresh.iter().map(|(id, fate)| agent(line, id, fate))).await;
    let mut pages = book.open();
    pages.settled.0.extend(fresh.iter().map(|(id, _)| id.clone()));
    fresh.iter().filter(|(_, fate)| fate.is_done()).count()
}

async fn agent(line: &Line<'_>, id: &str, fate: &Fate<String>) {
    let (status, text) = ask(line, &format!("/registry/agents/{id}"), None).await;
    if let Fate::Done(key) = fate {
        assert_eq!(status, 200, "an acknowledged agent is gone: {text}");
        let account = format!("/accounts/owner%20{id}");
        assert_eq!(ask(line, &account, Some(key)).await.0, 200, "its key does not work");
    }
    let (_, found) = ask(line, &format!("/discover?skill={id}"), None).await;
    let shown: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(shown["total"], u64::from(status == 200), "an incomplete agent: {text} {found}");
    let expected = if status == 200 { 409 } else { 201 };
    let again = line.post("/register", None, &registration(id)).await.expect("an answer");
    assert_eq!(again.0, expected, "{}", again.1);
}

/// Every acknowledged payment gets its first answer again; the balances are the sum of all.
async fn payments(line: &Line<'_>, cast: &Cast, book: &Book) -> usize {
    let (all, checked) = {
        let pages = book.open();
        (pages.payments.clone(), pages.settled.1.iter().cloned().collect::<BTreeSet<_>>())
    };
    let sum = |only: fn(&Payment) -> bool| {
        all.values().filter(|one| only(one)).map(|one| one.cents).sum::<u64>()
    };
    let (done, sent) = (sum(|one| one.fate.is_done()), sum(|_| true));
    let moved = STARTING_CREDITS - balance(line, "payer").await.0;
    assert!((done..=sent).contains(&moved), "{moved} moved, {done} acknowledged, {sent} sent");
    assert_eq!(balance(line, "payee").await.0, moved);

    let fresh: Vec<_> = all.iter().filter(|(id, _)| !checked.contains(*id)).collect();
    let answers = together(fresh.iter().map(|(id, one)| async move {
        let (key, body) = (Some(cast.payer.key.as_str()), payment(id, one.cents));
        let first = line.post("/transfer", key, &body).await.expect("an answer");
        assert_eq!(first.0, 200, "{}", first.1);
        let second = line.post("/transfer", key, &body).await.expect("an answer");
        assert_eq!(second, first, "a repeat gets the first answer");
        first.1
    }))
    .await;
    for ((id, one), answer) in fresh.iter().zip(&answers) {
        if let Fate::Done(first) = &one.fate {
            assert_eq!(answer, first, "{id} is not the same payment");
        }
    }
    assert_eq!(balance(line, "payer").await, (STARTING_CREDITS - sent, 0));
    assert_eq!(balance(line, "payee").await, (sent, 0));
    let counted = fresh.iter().filter(|(_, one)| one.fate.is_done()).count();
    let mut pages = book.open();
    for ((id, one), answer) in fresh.iter().zip(answers) {
        pages
            .payments
            .insert((*id).clone(), Payment { cents: one.cents, fate: Fate::Done(answer) });
        pages.settled.1.push((*id).clone());
    }
    counted
}

/// Every acknowledged job, report and cancel is still there; money and jobs agree to the cent.
async fn jobs(line: &Line<'_>, cast: &Cast, book: &Book) -> usize {
    let open: Vec<(String, Job)> = {
        let pages = book.open();
        pages
            .jobs
            .iter()
            .filter(|(_, page)| page.ended.is_none())
            .map(|(id, page)| (id.clone(), page.clone()))
            .collect()
    };
    let ended = together(open.iter().map(|(id, page)| one_job(line, cast, id, page))).await;
    let counted = open.iter().map(|(_, page)| {
        usize::from(matches!(&page.posted, Fate::Done(text) if !text.is_empty()))
            + usize::from(matches!(page.reported, Some((_, Fate::Done(())))))
            + usize::from(matches!(page.cancelled, Some(Fate::Done(()))))
    });
    let counted = counted.sum();
    let (paid, waiting) = {
        let mut pages = book.open();
        for ((id, _), ended) in open.iter().zip(ended) {
            let page = pages.jobs.get_mut(id).expect("it is recorded");
            // It was acknowledged just now, so from here on it is known, and not counted again.
            page.posted = Fate::Done(String::new());
            page.cancelled = page.cancelled.take().filter(Fate::is_done);
            page.ended = ended;
        }
        let paid: u64 = pages.jobs.values().filter_map(|page| page.ended).sum();
        (paid, pages.jobs.values().filter(|page| page.ended.is_none()).count() as u64)
    };
    let held = waiting * BUDGET;
    assert_eq!(balance(line, "requester").await, (STARTING_CREDITS - paid - held, held));
    assert_eq!(balance(line, "worker").await, (paid, 0));
    counted
}

/// One job after a restart: the amount paid, if it has ended.
async fn one_job(line: &Line<'_>, cast: &Cast, id: &str, page: &Job) -> Option<u64> {
    let key = Some(cast.requester.key.as_str());
    let path = format!("/jobs/{id}");
    let (status, found) = ask(line, &path, key).await;
    match (status, &page.posted) {
        (200 | 202, _) => {}
        (404, Fate::Unknown) => {
            assert_eq!(page.reported, None, "a missing job was reported")
        }
        _ => panic!("{id} was acknowledged and is {status} {found}"),
    }
    // The same id returns the existing job, or opens it for the first time.
    let (again, text) = line.post("/jobs", key, &job(cast, id)).await.expect("an answer");
    assert_eq!(again, if status == 404 { 202 } else { status }, "{text}");
    if status != 404 {
        assert_eq!(text, found, "a repeat opened another job");
    }
    if let Some((good, Fate::Unknown)) = page.reported {
        let body = result(cast, id, good);
        let (status, text) =
            line.post("/results", Some(&cast.worker.key), &body).await.expect("an answer");
        assert_eq!(status, 200, "{text}");
    }
    let (status, text) = ask(line, &path, key).await;
    let shown: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(shown["job_id"], id);
    match &page.reported {
        Some((true, _)) => {
            assert_eq!((status, &shown["status"]), (200, &"SUCCESS".into()), "{text}");
            assert_eq!(shown["output_data"]["echo"], id);
            assert_eq!(page.cancelled.as_ref().filter(|fate| fate.is_done()), None);
            return Some(PRICE);
        }
        Some((false, _)) => {
            assert_eq!((status, &shown["error_message"]), (200, &id.into()), "{text}");
            return Some(0);
        }
        None => {}
    }
    if status == 200 {
        assert_eq!(shown["error_message"], "cancelled by requester", "{SKILL} {text}");
        assert!(page.cancelled.is_some(), "{id} was never cancelled");
        return Some(0);
    }
    assert_eq!(
        page.cancelled.as_ref().filter(|fate| fate.is_done()),
        None,
        "a cancel was lost: {text}"
    );
    None
}
