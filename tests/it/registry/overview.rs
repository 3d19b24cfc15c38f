//! Overviews: payments, sums, skills, health (section 2.5).

use serde_json::json;

use super::forms::Recorded;
use super::market::{Market, success};
use crate::kit::{assert_malformed, digits};

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_sees_its_own_payments_and_the_operator_all_of_them() {
    let market = Market::keyed(&[]).await;
    let stranger = market.hub.orchestrator("globex").await;
    market.hub.grant("globex", "5.00").await;
    let job = market.pending().await;
    market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    let pay = json!({"from_owner": "globex", "to_owner": "acme", "amount": 2});
    let paid = market.hub.post("/transfer", Some(&stranger.key), &pay).await.expect(200);

    for (key, total) in [
        (&market.asking.key, 1),
        (&stranger.key, 1),
        (&market.working.key, 2),
        (&market.hub.operator, 2),
    ] {
        for path in ["/registry/audit", "/audit"] {
            let reply = market.hub.get(path, Some(key)).await.expect(200);
            assert_eq!(reply.at("/total"), total);
            assert_eq!(reply.at("/transactions").as_array().expect("a list").len(), total);
        }
    }
    let newest = market.hub.get("/audit?limit=1", Some(&market.working.key)).await.expect(200);
    assert_eq!(newest.at("/total"), 2, "all are counted, however many are shown");
    assert_eq!(newest.at("/transactions"), json!([paid.at("/transfer")]), "newest first");
    let one =
        market.hub.get(&format!("/audit?job_id={job}"), Some(&market.asking.key)).await.expect(200);
    assert_eq!(one.at("/total"), 1);
    assert_eq!(one.str("/transactions/0/job_id"), job);
    assert_eq!(one.str("/transactions/0/from_owner"), "o1");
    assert_eq!(one.str("/transactions/0/to_owner"), "acme");
    assert_eq!(digits(&one.text, "amount"), "0.10");
    let named =
        market.hub.get("/audit?owner_id=globex", Some(&market.hub.operator)).await.expect(200);
    assert_eq!(named.at("/total"), 1);

    let all = market.hub.get("/economy", Some(&market.hub.operator)).await.expect(200);
    assert_eq!(
        all.text,
        r#"{"total_accounts":3,"total_volume":2.10,"total_transactions":2,"all_balances":{"acme":2.10,"globex":3.00,"o1":99.90}}"#
    );
    let own = market.hub.get("/registry/economy", Some(&stranger.key)).await.expect(200);
    assert_eq!(own.at("/all_balances"), json!({"globex": 3.0}));
    assert_eq!(digits(&own.text, "total_volume"), "2.10");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_are_listed_oldest_first_where_that_is_asked_for() {
    let market = Market::keyed(&[]).await;
    let stranger = market.hub.orchestrator("globex").await;
    market.hub.grant("globex", "9.00").await;
    for n in 1..=3 {
        let pay = json!({"from_owner": "globex", "to_owner": "acme", "amount": n});
        market.hub.post("/transfer", Some(&stranger.key), &pay).await.expect(200);
        let job = market.pending().await;
        market.report(&success(&job, &market.working, "0.10")).await.expect(200);
    }
    let list = async |path: &str, key: &str| {
        let reply = market.hub.get(path, Some(key)).await.expect(200);
        let list = reply.at("/transactions").as_array().expect("a list").clone();
        (list, reply.json().get("next_from").cloned())
    };
    for key in [&market.working.key, &stranger.key, &market.hub.operator] {
        for prefix in ["/registry", ""] {
            let path = format!("{prefix}/audit");
            let (mut newest, _) = list(&path, key).await;
            newest.reverse();
            let asked = Recorded::of("audit", &[]);
            let (oldest, end) = list(&format!("{prefix}{}", asked.path), key).await;
            assert_eq!((oldest.len() >= 3, end), (true, None));
            assert_eq!(oldest, newest, "the same, the other way round");
            let (named, _) = list(&format!("{path}?order=newest&limit=1"), key).await;
            assert_eq!(named, oldest[oldest.len() - 1..]);
            // The pages together are the same list.
            let (mut paged, mut from) = (Vec::new(), String::new());
            loop {
                let (page, next) = list(&format!("{path}?order=oldest&limit=2{from}"), key).await;
                paged.extend(page);
                let Some(next) = next else { break };
                from = format!("&from={next}");
            }
            assert_eq!(paged, oldest);
        }
    }
    // A start position at another owner's line reveals nothing of it.
    let (own, _) = list("/audit?order=oldest&from=1", &stranger.key).await;
    assert!(own.iter().all(|one| one["from_owner"] == "globex"), "{own:?}");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_of_very_many_payments_reads_them_oldest_first_too() {
    let market = Market::keyed(&[]).await;
    // More lines than one response scans.
    let grants = (0..2_100).map(|_| rialto_core::command::Command::Grant {
        name: "o1".to_owned(),
        amount: rialto_core::money::Credits::from_micros(10_000),
    });
    for grant in grants {
        market.hub.engine.run(grant).await.expect("granted");
    }
    let pay = json!({"from_owner": "o1", "to_owner": "acme", "amount": 2});
    let paid = market.hub.post("/transfer", Some(&market.asking.key), &pay).await.expect(200);
    let (mut found, mut from, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("/audit?order=oldest{from}");
        let reply = market.hub.get(&path, Some(&market.asking.key)).await.expect(200);
        found.extend(reply.at("/transactions").as_array().expect("a list").clone());
        pages += 1;
        let Some(next) = reply.json().get("next_from").cloned() else { break };
        from = format!("&from={next}");
    }
    assert_eq!(found, [paid.at("/transfer")]);
    assert!(pages > 1, "no page scans all lines");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_question_about_payments_is_refused_by_its_name() {
    let market = Market::keyed(&[]).await;
    for (query, field) in [
        ("?limit=0", "?limit"),
        ("?order=up", "?order"),
        ("?order=", "?order"),
        ("?limit=501", "?limit"),
        ("?limit=all", "?limit"),
        ("?job_id=mine", "?job_id"),
    ] {
        for path in ["/registry/audit", "/audit"] {
            let reply = market.hub.get(&format!("{path}{query}"), Some(&market.asking.key)).await;
            assert_malformed(&reply, field);
        }
    }
    market.hub.get("/audit?limit=500", Some(&market.asking.key)).await.expect(200);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_skills_tell_how_many_there_are() {
    for market in Market::both(&[]).await {
        let health = market.hub.get("/registry/health", None).await.expect(200);
        assert_eq!(
            health.text,
            r#"{"service":"registry","status":"healthy","agents_online":2,"total_skills":1}"#
        );
        for path in ["/registry/skills", "/skills"] {
            let skills = market.hub.get(path, None).await.expect(200);
            assert_eq!(skills.text, r#"{"skills":["analyze_text"],"total_agents":2}"#);
        }
        market.stop().await;
    }
}
