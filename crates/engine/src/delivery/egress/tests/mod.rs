//! Tests of egress. Nothing here connects beyond loopback.

mod calls;
mod failures;
mod hostile;
mod names;
mod onslaught;
mod server;
mod streams;
mod urls;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Short enough for tests that wait for it, long enough for loopback on a busy machine.
const SHORT: Duration = Duration::from_millis(300);
/// Never reached by a test that passes.
const LONG: Duration = Duration::from_secs(30);

fn nets(allow: &[&str]) -> Vec<IpNet> {
    allow.iter().map(|net| net.parse().expect("a network")).collect()
}

fn settings(allow: &[&str], timeout: Duration) -> EgressSettings {
    let limits = EgressSettings { per_host: 4, ..EgressSettings::default() };
    EgressSettings { allow: nets(allow), connect_timeout: timeout, timeout, ..limits }
}

fn egress(allow: &[&str], timeout: Duration) -> Egress {
    Egress::with_resolver(settings(allow, timeout), Names::answering(&[])).expect("good settings")
}

async fn post(egress: &Egress, url: &str) -> Result<HttpResponse, SendError> {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    egress.post(url, headers, Bytes::from_static(b"{}"), 1_000).await
}

/// A resolver that returns its answers in order, repeats the last one, and counts the lookups.
struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names {
    fn answering(answers: &[&[&str]]) -> Arc<Self> {
        let ip = |text: &&str| text.parse().expect("an address");
        let answers = answers.iter().map(|one| one.iter().map(ip).collect()).collect();
        Arc::new(Self { answers, asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Names {
    fn resolve(&self, _name: &str) -> ResolveFuture {
        let at = self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.get(at).or(self.answers.last()).cloned().unwrap_or_default();
        Box::pin(async move { Ok(answer) })
    }
}
