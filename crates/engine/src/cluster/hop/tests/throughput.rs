//! How many frames one connection carries; run by hand, as it depends on the machine:
//! `cargo test --release -p rialto-engine --lib -- --ignored --nocapture frames_per_second`

use std::time::Instant;

use super::*;

const ASKS: u64 = 500_000;
/// How many commands are without a reply at a time, as at a busy node.
const WINDOW: u64 = 512;

#[tokio::test]
#[ignore = "a measurement"]
async fn frames_per_second() {
    let (mut writer, mut follower) = connected_pair(5).await;
    let text = "x".repeat(64);
    let began = Instant::now();
    let (mut sent, mut replied) = (0, 0);
    while replied < ASKS {
        while sent < ASKS && sent - replied < WINDOW {
            follower.hop.ask(5, ask(sent, &text));
            sent += 1;
        }
        tokio::select! {
            Some(event) = writer.received.recv() => {
                if let Event::Asked(_, node, ask) = event {
                    writer.hop.reply(node, 5, done(ask.number));
                }
            }
            Some(event) = follower.received.recv() => {
                replied += u64::from(matches!(event, Event::Replied(..)));
            }
        }
    }
    let rate = 2.0 * ASKS as f64 / began.elapsed().as_secs_f64();
    println!("{rate:.0} frames per second, half of them commands and half replies, one thread");
}
