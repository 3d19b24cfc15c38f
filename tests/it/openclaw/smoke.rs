//! One collaboration from request to score.

use serde_json::json;

use super::kit::Hub;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_accepted_delivered_done_and_told() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut hears = hub.stream(&asker, "").await;
    let mut works = hub.stream(&worker, "").await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let told = works.until("collaboration_request").await;
    assert_eq!(told.data["collaboration_id"], work.id.as_str());
    assert_eq!(
        (&told.data["accepted"], &told.data["input_data"]),
        (&json!(true), &json!({"a": 0.5}))
    );
    let reply = hub.result(&work, json!({"extra": 5})).await.expect(200);
    assert_eq!(reply.at("/output_valid"), true);
    let result = hears.until("collaboration_result").await;
    assert_eq!((&result.data["output_data"], &result.data["extra"]), (&json!({"r": 1}), &json!(5)));
    let judged = works.until("reputation_update").await;
    assert_eq!(judged.data["reputation_update"]["collaboration_id"], work.id.as_str());
    assert_eq!(hub.view(&asker, &work.id).await["state"], "completed");
    hub.0.stop().await;
}
