//! A responder asks its requester, which sees the question with the collaboration (R108 and R109 of
//! a2a).

use serde_json::json;

use super::kit::Hub;
use super::scene::credits;

#[tokio::test(flavor = "multi_thread")]
async fn a_running_collaboration_shows_the_question_until_it_is_answered() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) =
        (hub.node("asker").await, hub.able_node("worker", json!({"price": 0.5})).await);
    hub.fund(&asker, "10").await;
    let work = hub.accepted(&asker, &worker, json!({"budget": 2})).await;
    let before = hub.view(&asker, &work.id).await;
    assert_eq!(before["question"], json!(null));
    let job = format!("/v1/jobs/{}", work.id);
    let asked = json!({"text": "Which city?"});
    hub.post(&format!("{job}/ask"), Some(&worker.key), &asked).await.expect(200);
    for party in [&asker, &worker] {
        let shown = hub.view(party, &work.id).await;
        assert_eq!(shown["state"], before["state"], "{shown}");
        assert_eq!(
            (&shown["question"]["number"], &shown["question"]["text"]),
            (&json!(1), &json!("Which city?"))
        );
    }
    assert_eq!(hub.account(&asker).await, credits("8.00", "2.00"), "the hold stays");
    let answer = json!({"text": "Lugano"});
    hub.post(&format!("{job}/answer"), Some(&worker.key), &answer).await.expect(404);
    hub.post(&format!("{job}/answer"), Some(&asker.key), &answer).await.expect(200);
    assert_eq!(hub.view(&asker, &work.id).await["question"], json!(null));
    let path = format!("/v1/work?known={}.1.0", work.id);
    let work_items = hub.get(&path, Some(&worker.key)).await.expect(200);
    assert_eq!(work_items.str("/answers/0/text"), "Lugano");
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.view(&asker, &work.id).await["state"], "completed");
    assert_eq!(hub.account(&asker).await, credits("9.50", "0.00"));
    hub.0.stop().await;
}
