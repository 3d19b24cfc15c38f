//! Who may report a result: unrelated callers, second reports and misused callback URLs (R47).

use serde_json::{Value, json};

use super::market::{Market, failure, fresh_id, success};
use crate::kit::{TestHub, assert_malformed, assert_refused, digits, snapshot};

#[tokio::test(flavor = "multi_thread")]
async fn a_result_for_an_unknown_job_or_by_the_wrong_agent_is_not_there() {
    for market in Market::both(&[]).await {
        let other = market.hub.agent("globex", "other", "0.10", None).await;
        let mate = json!({"agent_name": "mate", "owner_id": "acme", "skills": []});
        let mate = market.hub.enrol(&mate, Some(&market.working.key)).await;
        let job = market.pending().await;
        let before = snapshot(&market.hub).await;
        let unknown = market.report(&success(&fresh_id(), &market.working, "0.10")).await;
        assert_refused(&unknown, 404, "NOT_FOUND");
        for wrong in [&other, &mate, &market.asking] {
            let body = success(&job, wrong, "0.10");
            for path in ["/registry/results", "/results"] {
                let reply = market.hub.post(path, market.key(wrong), &body).await;
                assert_refused(&reply, 404, "NOT_FOUND");
                assert_eq!(reply.text, unknown.text);
            }
        }
        assert_eq!(snapshot(&market.hub).await, before);
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_in_another_agents_name_is_forbidden_even_for_its_requester() {
    let market = Market::keyed(&[]).await;
    let other = market.hub.agent("globex", "other", "0.10", None).await;
    let job = market.pending().await;
    let before = snapshot(&market.hub).await;
    let body = success(&job, &market.working, "0.10");
    for liar in [&other, &market.asking] {
        let reply = market.hub.post("/registry/results", Some(&liar.key), &body).await;
        assert_refused(&reply, 403, "FORBIDDEN");
    }
    let operator = market.hub.post("/registry/results", Some(&market.hub.operator), &body).await;
    assert_refused(&operator, 403, "FORBIDDEN");
    // The worker itself must not name another agent or an unknown one.
    for named in [other.id.clone(), fresh_id()] {
        let mut body = body.clone();
        body["agent_id"] = named.into();
        assert_refused(&market.report(&body).await, 403, "FORBIDDEN");
    }
    assert_eq!(snapshot(&market.hub).await, before);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyless_result_must_say_whose_it_is() {
    let market = Market::open(&[]).await;
    let job = market.pending().await;
    let mut body = success(&job, &market.working, "0.10");
    body["agent_id"] = Value::Null;
    assert_malformed(&market.report(&body).await, "/agent_id");
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_final_result_stands_and_its_repeat_gets_the_first_answer() {
    for market in Market::both(&[]).await {
        let job = market.pending().await;
        let callback = market.callback(&market.working, &job).await;
        let body = success(&job, &market.working, "0.04");
        let first = market.report(&body).await.expect(200);
        assert_eq!(digits(&first.text, "paid"), "0.04");
        let before = snapshot(&market.hub).await;
        let mut reordered = body.clone();
        reordered["timestamp_utc"] = "2026-02-12T00:00:00Z".into();
        for again in [&body, &reordered] {
            assert_eq!(market.report(again).await.expect(200).text, first.text);
            assert_eq!(market.hub.post(&callback, None, again).await.expect(200).text, first.text);
        }
        let mut other_output = body.clone();
        other_output["output_data"] = json!({"entities": [1]});
        let others = [
            success(&job, &market.working, "0.10"),
            failure(&job, &market.working, None),
            other_output,
            json!({"job_id": job, "agent_id": market.working.id, "status": "PENDING"}),
        ];
        for other in others {
            assert_refused(&market.report(&other).await, 409, "CONFLICT");
            assert_refused(&market.hub.post(&callback, None, &other).await, 409, "CONFLICT");
        }
        assert_eq!(snapshot(&market.hub).await, before);
        assert_eq!(market.shown(&job).await.expect(200).str("/status"), "SUCCESS");
        market.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_address_is_good_for_its_own_job_and_agent_alone() {
    let market = Market::keyed(&[]).await;
    let other = market.hub.agent("globex", "other", "0.10", None).await;
    let (job, next) = (market.pending().await, market.pending().await);
    let callback = market.callback(&market.working, &job).await;
    let before = snapshot(&market.hub).await;
    let reply = market.hub.post(&callback, None, &success(&next, &market.working, "0.10")).await;
    assert_malformed(&reply, "/job_id");
    let reply = market.hub.post(&callback, None, &success(&job, &other, "0.10")).await;
    assert_refused(&reply, 403, "FORBIDDEN");
    assert_malformed(
        &market.hub.post(&callback, None, &json!({"status": "DONE"})).await,
        "/status",
    );
    assert_eq!(snapshot(&market.hub).await, before);

    // The callback URL identifies the job and the worker; the body need not.
    let bare = json!({"status": "SUCCESS", "output_data": {}, "execution_cost": 0.10});
    market.hub.post(&callback, None, &bare).await.expect(200);
    assert_eq!(market.shown(&job).await.expect(200).str("/status"), "SUCCESS");
    assert_eq!(market.shown(&next).await.status, 202);
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_callback_token_is_not_found() {
    let market = Market::keyed(&[]).await;
    let job = market.pending().await;
    let callback = market.callback(&market.working, &job).await;
    let (front, token) = callback.rsplit_once('/').expect("a path");
    let body = success(&job, &market.working, "0.10");
    let elsewhere = Market::keyed(&[]).await;
    let foreign = elsewhere.pending().await;
    let foreign = elsewhere.callback(&elsewhere.working, &foreign).await;
    let mut forged: Vec<String> =
        vec!["x".to_owned(), "A".repeat(48), token.to_uppercase(), format!("{token}A")];
    forged.push(foreign.rsplit_once('/').expect("a path").1.to_owned());
    // Every character counts: with any one changed, the token is invalid.
    for at in 0..token.len() {
        let other = if token.as_bytes()[at] == b'A' { "E" } else { "A" };
        forged.push(format!("{}{other}{}", &token[..at], &token[at + 1..]));
    }
    forged.retain(|one| one != token);
    let before = snapshot(&market.hub).await;
    let nothing = market.hub.post(&format!("{front}/nothing"), None, &body).await;
    assert_refused(&nothing, 404, "NOT_FOUND");
    for token in forged {
        let reply = market.hub.post(&format!("{front}/{token}"), None, &body).await;
        assert_eq!((reply.status, &reply.text), (404, &nothing.text), "{token}");
    }
    assert_eq!(snapshot(&market.hub).await, before);
    market.hub.post(&callback, None, &body).await.expect(200);
    elsewhere.stop().await;
    market.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_from_before_a_restart_still_works() {
    let Market { hub, asking, working, .. } = Market::keyed(&[]).await;
    let job =
        hub.hire(&asking, &working, super::market::SKILL, "0.15").await.expect(202).str("/job_id");
    let path = format!("/registry/agents/{}/jobs", working.id);
    let work = hub.get(&path, Some(&working.key)).await.expect(200);
    let url = work.str("/jobs/0/callback_url");
    let callback = url.strip_prefix(&hub.url).expect("our address").to_owned();
    let hub: TestHub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    hub.post(&callback, None, &success(&job, &working, "0.10")).await.expect(200);
    assert_eq!(hub.balance("acme").await.0, "0.10");
    hub.stop().await;
}
