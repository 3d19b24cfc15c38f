//! Concurrent payments: each moves exactly as often as it may.

use super::*;
use crate::fixtures::{grant, pay};

async fn places() -> [(Hub, Option<tempfile::TempDir>); 2] {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let disk = Hub::on_disk(dir.path(), &ManualClock::at(START));
    [(Hub::in_memory(), None), (disk, Some(dir))]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_transfers_with_one_id_move_once() {
    for (hub, _dir) in places().await {
        hub.run(grant("ada", "90")).await.expect("granted");
        hub.run(grant("bob", "0")).await.expect("opened");
        let order = || Command::Pay(Box::new(pay(7, "ada", "bob", "1.5")));
        let answers = together(&hub.engine, (0..200).map(|_| order())).await;
        let fresh = |answer: &Result<Answer, Failure>| match answer {
            Ok(Answer::Transfer { transfer, repeated }) => {
                assert_eq!(transfer.id.0, 1, "all get the same transfer");
                !repeated
            }
            other => panic!("expected a transfer, got {other:?}"),
        };
        assert_eq!(answers.iter().filter(|answer| fresh(answer)).count(), 1);
        assert_eq!((hub.account("ada").0, hub.account("bob").0), ("98.50".into(), "11.50".into()));
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_payments_only_what_is_there_is_paid() {
    for (hub, _dir) in places().await {
        hub.run(grant("ada", "0")).await.expect("opened");
        hub.run(grant("bob", "0")).await.expect("opened");
        let spare = Command::Pay(Box::new(pay(0, "ada", "bob", "9")));
        hub.run(spare).await.expect("the welcome grant covers that");
        assert_eq!(hub.account("ada").0, "1.00");
        let orders = (1..=100).map(|n| Command::Pay(Box::new(pay(n, "ada", "bob", "0.03"))));
        let answers = together(&hub.engine, orders).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 33);
        assert_eq!((hub.account("ada").0, hub.account("bob").0), ("0.01".into(), "19.99".into()));
        hub.stop().await;
    }
}
