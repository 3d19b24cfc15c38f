//! `rialto job answer`, `report`, `part` and `ask`, and what `watch`, `show` and `post --wait` show of a
//! dialogue.

use serde_json::json;

use super::kit::CliFixture;
use crate::kit::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_hands_over_and_asks_and_the_requester_sees_all_and_answers() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "plan", "0.05", None).await;
    let id = fixture.posted("plan", &[]).await;
    let work = async |line: &[&str]| fixture.run_for(&worker, line).await.ok();
    let ran = work(&["job", "report", &id, "reading", "--fraction", "0.25"]).await;
    assert_eq!(ran.out, format!("{id} running\n"));
    work(&["job", "report", &id]).await;
    work(&["job", "part", &id, r#"{"page": 1.0}"#]).await;
    work(&["job", "part", &id, r#"{"page": 2}"#, "--append"]).await;
    let ran = work(&["job", "ask", &id, "Which city?", "--json"]).await;
    assert_eq!(
        (ran.str("/state"), &ran.json()["question"]["number"]),
        ("asking".into(), &json!(1))
    );

    let shown = fixture.run(&["job", "show", &id]).await.ok().out;
    for line in [
        "progress   25 %, reading",
        &format!("question   asks: Which city? (`rialto job answer {id} TEXT`)"),
        "part",
        r#"  "page": 1.0"#,
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in {shown}");
    }
    // Only the requester can answer, and only what is asked.
    fixture.run_for(&worker, &["job", "answer", &id, "Lugano"]).await.failed(3, "");
    fixture.run(&["job", "answer", &id, "Lugano", "--question", "7"]).await.failed(5, "");
    let ran = fixture.run(&["job", "answer", &id, "Lugano"]).await.ok();
    assert_eq!(ran.out, format!("{id} running\n"));
    fixture.run(&["job", "answer", &id, "Lugano", "--question", "1"]).await.ok();
    let shown = fixture.run(&["job", "show", &id]).await.ok().out;
    let asked = r#"asked      Which city? -> {"text":"Lugano"}"#;
    assert!(shown.lines().any(|line| line == asked), "{shown}");
    assert!(!shown.contains("question  "), "{shown}");
    work(&["job", "submit", &id, "--output", "{}"]).await;
    fixture.run_for(&worker, &["job", "report", &id, "late"]).await.failed(5, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_waits_for_the_answer_and_a_watcher_sees_the_dialogue() {
    let fixture = CliFixture::start().await;
    let worker = fixture.agent("shop", "plan", "0.05", None).await;
    let id = fixture.posted("plan", &[]).await;
    let watch = ["job", "watch", &id];
    let watch = fixture.run(&watch);
    let work = async {
        fixture.run_for(&worker, &["job", "part", &id, r#"{"page":1}"#]).await.ok();
        let schema = r#"{"type":"object","required":["city"]}"#;
        let ask = ["job", "ask", &id, "Which city?", "--schema", schema, "--wait"];
        let ran = fixture.run_for(&worker, &ask).await.ok();
        assert_eq!(ran.json(), json!({"city": "Lugano"}));
        fixture.run_for(&worker, &["job", "submit", &id, "--output", "{}"]).await.ok();
    };
    let answer = async {
        let state = async || {
            let shown = fixture.get(&format!("/v1/jobs/{id}"), Some(&fixture.boss.key)).await;
            shown.expect(200).str("/state")
        };
        eventually(async || state().await == "asking").await;
        fixture.run(&["job", "answer", &id, "Lugano"]).await.failed(2, "");
        let input = ["job", "answer", &id, "--input", r#"{"city":"Lugano"}"#];
        fixture.run(&input).await.ok();
    };
    let (watched, (), ()) = tokio::join!(watch, work, answer);
    let watched = watched.ok().err;
    for line in [r#"part: {"page":1}"#, r#"answered: Which city? -> {"city":"Lugano"}"#] {
        assert!(watched.lines().any(|shown| shown == line), "{line} is not in {watched}");
    }
}
