//! Tests of shutdown.

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::kit::{Hub, LONG, SHORT, get_more, patient, until};
use crate::edge::Settings;

#[tokio::test]
async fn what_runs_may_finish_what_waits_is_closed_and_streams_end_properly() {
    let hub = Hub::start(patient());
    let mut idle = hub.connect().await;
    idle.send(&get_more("/hello")).await;
    idle.until("hello").await;
    let mut fresh = hub.connect().await;
    let mut reader = hub.connect().await;
    reader.send(&get_more("/events")).await;
    reader.until("data: first\n\n\r\n").await;
    let mut running = hub.connect().await;
    running.send(&get_more("/soon")).await;
    hub.until_open(4).await;
    hub.until_begun(1).await;

    hub.trigger.trigger();
    assert_eq!(idle.rest().await, "");
    assert_eq!(fresh.rest().await, "");
    assert_eq!(reader.rest().await, "0\r\n\r\n");
    let answer = running.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("soon"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    hub.serving.await.expect("the server stops without an error");
    assert!(TcpStream::connect(hub.address).await.is_err());
}

#[tokio::test]
async fn what_does_not_end_in_time_is_dropped() {
    let hub = Hub::start(Settings { grace: SHORT, ..patient() });
    let mut never = hub.connect().await;
    never.send(&get_more("/never")).await;
    let mut stalled = hub.connect().await;
    stalled.send(&get_more("/flood")).await;
    let mut half = hub.connect().await;
    half.send("GET /he").await;
    hub.until_open(3).await;
    hub.until_begun(1).await;

    hub.trigger.trigger();
    timeout(LONG, hub.serving)
        .await
        .expect("the server stops in time")
        .expect("the server stops without an error");
    assert_eq!(never.rest().await, "");
    until(|| hub.metrics.connection_gauge().get() == 0).await;
}
