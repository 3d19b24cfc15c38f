//! Well-behaved connections.

use tokio::time::sleep;

use super::kit::{Hub, LONG, SHORT, get_more, get_request, patient};
use crate::edge::Settings;

#[tokio::test]
async fn a_request_is_answered_and_knows_its_peer() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    let own = client.0.local_addr().expect("it is connected");
    client.send(&get_request("/peer")).await;
    let answer = client.rest().await;
    assert!(answer.ends_with(&own.to_string()), "{answer}");
}

#[tokio::test]
async fn requests_may_follow_each_other_even_before_the_answers() {
    let hub = Hub::start(patient());
    let mut client = hub.connect().await;
    client.send(&get_more("/hello")).await;
    client.until("hello").await;
    client.send(&[get_more("/soon"), get_more("/hello"), get_request("/peer")].concat()).await;
    let answers = client.rest().await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3, "{answers}");
    assert!(answers.find("soon") < answers.find("hello"), "{answers}");
}

#[tokio::test]
async fn a_pause_between_requests_is_not_a_slow_head() {
    let hub = Hub::start(Settings { header_timeout: SHORT, ..patient() });
    let mut client = hub.connect().await;
    client.send(&get_more("/hello")).await;
    client.until("hello").await;
    sleep(SHORT * 3).await;
    client.send(&get_request("/hello")).await;
    assert!(client.rest().await.ends_with("hello"));
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_in_the_end() {
    let hub = Hub::start(Settings { idle_timeout: SHORT, ..patient() });
    let mut client = hub.connect().await;
    client.send(&get_more("/hello")).await;
    client.until("hello").await;
    assert_eq!(client.rest().await, "");
    hub.until_open(0).await;
}

#[tokio::test]
async fn answers_and_streams_may_take_longer_than_any_limit_for_silence() {
    let settings = Settings { header_timeout: SHORT, idle_timeout: SHORT, ..patient() };
    let hub = Hub::start(Settings { stall_timeout: SHORT, ..settings });
    let mut reader = hub.connect().await;
    reader.send(&get_more("/events")).await;
    reader.until("data: first\n\n\r\n").await;
    let mut slow = hub.connect().await;
    slow.send(&get_more("/never")).await;
    sleep(SHORT * 3).await;
    assert_eq!(hub.metrics.connection_gauge().get(), 2);
}

#[tokio::test]
async fn a_connection_that_was_taken_over_keeps_its_place_and_is_left_alone() {
    let hub = Hub::start(Settings { header_timeout: SHORT, idle_timeout: SHORT, ..patient() });
    let mut client = hub.connect().await;
    let head = "GET /upgrade HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\n";
    client.send(&format!("{head}Upgrade: echo\r\n\r\n")).await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 101"));
    sleep(SHORT * 3).await;
    client.send("still here").await;
    client.until("still here").await;
    assert_eq!(hub.metrics.connection_gauge().get(), 1);
    drop(client);
    hub.until_open(0).await;
}

#[tokio::test]
async fn the_configuration_sets_the_limits() {
    let flags =
        [("http.header_timeout", "3s"), ("http.idle_timeout", "4s"), ("http.max_connections", "5")];
    let settings = Settings::from(&super::kit::config(&flags).http);
    assert_eq!(settings.header_timeout.as_secs(), 3);
    assert_eq!(settings.idle_timeout.as_secs(), 4);
    assert_eq!(settings.max_connections, 5);
    assert_eq!(settings.max_connections_per_address, 1024);
    assert!(settings.stall_timeout < LONG && settings.grace.as_millis() <= 900);
}
