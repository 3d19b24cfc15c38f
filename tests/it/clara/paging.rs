//! All results, page by page, in both orders (2.1, R65).

use rialto_core::time::Millis;
use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::ResultPage;

use super::kit::{Hub, Wallet};

/// Seven agents, registered with Errors and reads without messages between them.
async fn market() -> Hub {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    for n in 0..7 {
        hub.agent(&by, &format!("A{n}"), "tweet", "1").await;
        hub.pass(Millis(1_000));
        assert!(hub.task(&by, "tweet", "0", "cheapest").await.result.error.is_some());
        hub.act(&by, "Balance", &[], "").await;
        hub.act(&by, "Nothing", &[], "").await;
    }
    hub
}

fn names(page: &ResultPage) -> Vec<String> {
    let words = page.edges.iter().map(|edge| {
        assert_eq!(edge.node.error, None, "errored evaluations are left out");
        let [sent] = edge.node.messages.as_slice() else { panic!("{edge:?}") };
        sent.data.as_deref().expect("data").split(' ').nth(1).expect("an id").to_owned()
    });
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_cursor_goes_on_before_anything_is_written() {
    let hub = market().await;
    let first = hub.results("?limit=1").await;
    let from = format!("?from={}", first.edges[0].cursor);
    let rest = hub.results(&from).await;
    assert_eq!(names(&rest), (1..7).map(|n| format!("A{n}")).collect::<Vec<_>>());
    let hub = Hub(hub.0.restart(rialto_hub::config::Profile::Serve, &[]).await);
    let newest = crate::kit::newest_event(&hub);
    assert_eq!(names(&hub.results(&from).await), names(&rest));
    assert_eq!(crate::kit::newest_event(&hub), newest, "nothing was written meanwhile");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_lead_through_everything_in_both_orders() {
    let hub = market().await;
    let all: Vec<String> = (0..7).map(|n| format!("A{n}")).collect();
    let whole = hub.results("").await;
    assert_eq!((names(&whole), whole.page_info.has_next_page), (all.clone(), false));
    for limit in [1, 2, 3, 7, 1000] {
        let (mut seen, mut from) = (Vec::new(), String::new());
        loop {
            let page = hub.results(&format!("?sort=ASC&limit={limit}&from={from}")).await;
            assert!(page.edges.len() <= limit);
            seen.extend(names(&page));
            from = page.edges.last().expect("an edge").cursor.clone();
            if !page.page_info.has_next_page {
                break;
            }
        }
        assert_eq!(seen, all, "{limit}");
    }
    let reversed: Vec<String> = all.iter().rev().cloned().collect();
    assert_eq!(names(&hub.results("?sort=DESC").await), reversed);
    let newest = hub.results("?sort=DESC&limit=3").await;
    assert_eq!((names(&newest), newest.page_info.has_next_page), (reversed[..3].to_vec(), true));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_is_exclusive_and_to_is_inclusive_in_both_orders() {
    let hub = market().await;
    let whole = hub.results("").await;
    let cursor = |n: usize| whole.edges[n].cursor.as_str();
    for (sort, wanted) in [("ASC", ["A3", "A4", "A5"]), ("DESC", ["A5", "A4", "A3"])] {
        let page = hub.results(&format!("?sort={sort}&from={}&to={}", cursor(2), cursor(5))).await;
        assert_eq!(names(&page), wanted);
    }
    assert_eq!(names(&hub.results(&format!("?from={}", cursor(6))).await), [""; 0]);
    assert_eq!(names(&hub.results(&format!("?to={}", cursor(0))).await), ["A0"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_border_may_be_a_time() {
    let hub = market().await;
    let whole = hub.results("").await;
    let at = |n: usize| {
        let cursor = rialto_protocols::clara::ResultCursor::read(&whole.edges[n].cursor);
        cursor.expect("a cursor").at.0
    };
    for (sort, wanted) in [("ASC", ["A3", "A4"]), ("DESC", ["A4", "A3"])] {
        let page = hub.results(&format!("?sort={sort}&from={}&to={}", at(2), at(4))).await;
        assert_eq!(names(&page), wanted, "{sort}");
    }
    let mixed = hub.results(&format!("?from={}&to={}", at(2), whole.edges[4].cursor)).await;
    assert_eq!(names(&mixed), ["A3", "A4"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_25_unless_asked_and_1000_at_most() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    for _ in 0..27 {
        hub.send(&by, "List-Agents", &[], "").await;
    }
    let page = hub.results("").await;
    assert_eq!((page.edges.len(), page.page_info.has_next_page), (25, true));
    let rest = hub.results(&format!("?from={}", page.edges[24].cursor)).await;
    assert_eq!((rest.edges.len(), rest.page_info.has_next_page), (2, false));
    for bad in ["limit=0", "limit=1001", "limit=x", "sort=UP", "from=x", "to=!", "from=-1"] {
        let path = format!("/clara/cu/results/{PROCESS}?{bad}");
        let reply = hub.get(&path, None).await.expect(400);
        assert!(!reply.str("/error").is_empty(), "{bad}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postings_that_are_looked_at_in_vain_count_against_the_reader() {
    let hub = Hub::serve(&[("limits.read_bytes_per_minute", "200000")]).await;
    let by = Wallet::of(1);
    hub.agent(&by, "A", "tweet", "1").await;
    for _ in 0..200 {
        hub.act(&by, "Nothing", &[], "").await;
    }
    let status = async |query: &str| {
        hub.get(&format!("/clara/cu/results/{PROCESS}{query}"), None).await.status
    };
    // A time is found without a scan of everything before it.
    for _ in 0..20 {
        assert_eq!(status("?limit=1&from=9999999999999").await, 200);
        assert_eq!(status("?limit=1&sort=DESC&to=1").await, 200);
    }
    let mut answers = 0;
    while status("?limit=1&sort=DESC").await == 200 {
        answers += 1;
        assert!(answers < 100, "each scans two hundred records");
    }
    hub.0.stop().await;
}
