//! Metrics of the engine since it started, with labels and buckets.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use rialto_engine::Engine;
use rialto_engine::metrics::{Histogram, HistogramSnapshot};

/// Collects the metrics of one engine.
pub struct EngineCollector(pub Engine);

impl Collector for EngineCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let numbers = self.0.metrics();
        let sent = &numbers.deliveries;
        let outcomes = [
            ("delivered", &sent.delivered),
            ("failed", &sent.failed),
            ("given_up", &sent.given_up),
        ];
        let outcomes = outcomes.map(|(name, count)| (name.to_owned(), count.load(Relaxed)));
        counters(
            &mut encoder,
            ("rialto_deliveries", "Delivery attempts, by outcome", "outcome"),
            outcomes,
        )?;
        let about = ("rialto_refusals", "Commands refused, by code", "code");
        counters(&mut encoder, about, numbers.refusals())?;
        let ended = numbers.jobs_ended().into_iter().map(|(state, n)| (state.to_owned(), n));
        counters(&mut encoder, ("rialto_jobs_ended", "Jobs ended, by state", "state"), ended)?;
        let about = "Rows that commits changed or added";
        let rows =
            encoder.encode_descriptor("rialto_rows_written", about, None, MetricType::Counter)?;
        ConstCounter::new(numbers.rows.load(Relaxed)).encode(rows)?;
        let about = "Commands committed in one batch";
        histogram(&mut encoder, "rialto_batch_commands", about, &numbers.batches)?;
        let about = "Time to write and sync one batch";
        histogram(&mut encoder, "rialto_commit_seconds", about, &numbers.commits)?;
        match &numbers.syncs {
            Some(syncs) => {
                let about = "Time to sync one transaction to disk";
                histogram(&mut encoder, "rialto_fsync_seconds", about, syncs)
            }
            None => Ok(()),
        }
    }
}

fn counters(
    encoder: &mut DescriptorEncoder,
    (name, help, label): (&str, &str, &'static str),
    counts: impl IntoIterator<Item = (String, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in counts {
        let labels = [(label, value)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn histogram(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    histogram: &Histogram,
) -> fmt::Result {
    let HistogramSnapshot { buckets, sum } = histogram.snapshot();
    let count = buckets.iter().map(|(_, count)| count).sum();
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    metric.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

impl fmt::Debug for EngineCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}
