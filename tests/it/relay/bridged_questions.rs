//! Questions of workers to requesters, where one of them is a relay agent.

use serde_json::json;

use super::bridge::{QUICK, account, address, boss, bridged, reader, wish};
use super::kit::turn;
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_a_marked_message_and_the_next_one_of_the_conversation_its_answer() {
    let hub = TestHub::serve(QUICK).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    hub.fund_peer(&ada, "10").await;
    let worker = hub.agent("acme", "plan", "0.50", None).await;
    let to = address(&hub, &worker.id).await;
    let more = json!({"budget": 2, "conversation_id": "trip", "turn_number": 4});
    let sent = hub.mail_to(&ada, &to, &wish(&ada, "plan a trip", more)).await.expect(200);
    let job = sent.header("rialto-job").expect("an id").to_owned();
    let asked = json!({"text": "Which city?"});
    let path = format!("/v1/jobs/{job}/ask");
    hub.post(&path, Some(&worker.key), &asked).await.expect(200);

    let question = inbox.message().await;
    let told = bridged(&question, &to, "registry");
    assert_eq!(told, ("trip".to_owned(), 5, "Which city?".to_owned()));
    assert_eq!(question.data["question"], true);
    assert_eq!(hub.account_of(&ada).await, account("8.00", "2.00"), "the hold stays");

    let said = turn(&ada.id, "Lugano", "trip", 6);
    let first = hub.mail_to(&ada, &to, &said).await.expect(200);
    assert_eq!(first.header("rialto-job"), Some(job.as_str()));
    // The same message again answers nothing new and opens no other job.
    let again = hub.mail_to(&ada, &to, &said).await.expect(200);
    assert_eq!(again.header("rialto-job"), Some(job.as_str()));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let work = hub.get(&format!("/v1/work?known={job}.1.0"), Some(&worker.key)).await.expect(200);
    assert_eq!(work.at("/jobs"), json!([]));
    assert_eq!(work.str("/answers/0/text"), "Lugano");

    // An earlier message that arrives again does not answer the next question.
    let asked = json!({"text": "Delete the old plan?"});
    hub.post(&path, Some(&worker.key), &asked).await.expect(200);
    assert_eq!(bridged(&inbox.message().await, &to, "registry").1, 7);
    let again = hub.mail_to(&ada, &to, &said).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let shown = hub.get(&format!("/v1/jobs/{job}"), Some(&worker.key)).await.expect(200);
    assert_eq!(shown.str("/state"), "asking");
    let answer = turn(&ada.id, "No", "trip", 8);
    hub.mail_to(&ada, &to, &answer).await.expect(200);

    hub.report(&worker, &job, "SUCCESS", "0.50").await.expect(200);
    let ended = bridged(&inbox.message().await, &to, "registry");
    assert_eq!(ended, ("trip".to_owned(), 9, r#"{"done":true}"#.to_owned()));
    assert_eq!(hub.account_of(&ada).await, account("9.50", "0.00"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_worker_asks_with_a_mark_and_gets_the_answer_as_a_message() {
    let hub = TestHub::serve(QUICK).await;
    let boss = boss(&hub).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let worker = hub.registry_name(&bob);
    let body = json!({"orchestrator_id": boss.id, "skill_name": "message",
        "input_data": {"text": "plan a trip"}, "budget": 1});
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let opened = hub.post(&path, Some(&boss.key), &body).await.expect(202);
    let uuid = opened.header("rialto-job").expect("an id").to_owned();
    let given = inbox.message().await;
    let to = given.data["sender_id"].as_str().expect("an address").to_owned();
    let envelope = turn(&bob.id, "Which city?", &uuid, 2);
    let asked = json!({"receiver_id": to, "envelope": envelope, "question": true});
    let asked = hub.post("/relay/messages", Some(&bob.key), &asked).await.expect(200);
    assert_eq!(asked.header("rialto-job"), Some(uuid.as_str()));

    let path = format!("/registry/jobs/{}", opened.str("/job_id"));
    let shown = hub.get(&path, Some(&boss.key)).await.expect(202);
    assert_eq!(shown.str("/status"), "PENDING");
    assert_eq!(
        (shown.at("/question/number"), shown.str("/question/text")),
        (json!(1), "Which city?".to_owned())
    );
    let answer = json!({"text": "Lugano"});
    hub.post(&format!("/v1/jobs/{uuid}/answer"), Some(&boss.key), &answer).await.expect(200);
    let told = bridged(&inbox.message().await, &to, "registry");
    assert_eq!(told, (uuid.clone(), 3, "Lugano".to_owned()));
    let running = hub.get(&path, Some(&boss.key)).await.expect(202);
    assert!(!running.text.contains("\"question\""), "{}", running.text);

    hub.mail_to(&bob, &to, &turn(&bob.id, "go by train", &uuid, 4)).await.expect(200);
    let done = hub.get(&path, Some(&boss.key)).await.expect(200);
    assert_eq!(done.at("/output_data"), json!({"text": "go by train"}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_during_a_sign_in_reaches_the_worker_once_and_answers_nothing() {
    let hub = TestHub::serve(QUICK).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    let worker = hub.agent("acme", "plan", "0", None).await;
    let to = address(&hub, &worker.id).await;
    let more = json!({"conversation_id": "trip", "turn_number": 1});
    let sent = hub.mail_to(&ada, &to, &wish(&ada, "read my mail", more)).await.expect(200);
    let job = sent.header("rialto-job").expect("an id").to_owned();
    let path = format!("/v1/jobs/{job}");
    let asked = json!({"text": "Sign in at mail.example", "auth": true});
    hub.post(&format!("{path}/ask"), Some(&worker.key), &asked).await.expect(200);
    let question = inbox.message().await;
    assert_eq!(
        (question.said(), &question.data["question"]),
        ("Sign in at mail.example", &json!(true))
    );

    let said = turn(&ada.id, "I have signed in", "trip", 3);
    for is_replayed in [false, true] {
        let told = hub.mail_to(&ada, &to, &said).await.expect(200);
        assert_eq!(told.header("rialto-job"), Some(job.as_str()));
        assert_eq!(told.header("idempotency-replayed").is_some(), is_replayed);
    }
    let work = hub.get(&format!("/v1/work?known={job}.1.0.0"), Some(&worker.key)).await.expect(200);
    assert_eq!(work.json()["answers"], json!(null));
    assert_eq!(work.at("/messages").as_array().map(Vec::len), Some(1), "{}", work.text);
    assert_eq!(work.str("/messages/0/text"), "I have signed in");
    assert_eq!(hub.get(&path, Some(&worker.key)).await.expect(200).str("/state"), "asking");
    hub.report(&worker, &job, "SUCCESS", "0").await.expect(200);
    assert_eq!(inbox.message().await.said(), r#"{"done":true}"#);
    hub.stop().await;
}
