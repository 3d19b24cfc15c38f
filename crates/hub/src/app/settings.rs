//! Converts the configuration into the settings of each protocol.

use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;
use rialto_protocols::kit::ans104::ItemId;
use rialto_protocols::{agora, clara, openclaw, registry, relay};

use crate::config::{Access, Config, DiscoverEndpoint, FailedStatus, Offline, ProcessId};

/// The lease of a job: `jobs.lease` if it is set, else the protocol's own default.
fn lease(config: &Config, usual: Millis) -> Millis {
    config.jobs.lease.map_or(usual, |span| span.millis())
}

pub fn registry(config: &Config) -> registry::Settings {
    registry::Settings {
        open: config.auth.registry == Access::Open,
        sync_wait: config.registry.sync_wait.millis(),
        lease: lease(config, registry::Settings::default().lease),
        hide_endpoints: config.registry.discover_endpoint == DiscoverEndpoint::Hub,
    }
}

pub fn relay(config: &Config) -> relay::Settings {
    relay::Settings {
        host: config.relay.host.to_string(),
        refuse_offline: config.relay.offline == Offline::Fail,
        failed_is_error: config.relay.failed_status == FailedStatus::Error,
        retention: config.relay.retention.millis(),
        show_endpoints: config.relay.show_endpoints,
        accept_direct: config.relay.accept_direct,
        lease: lease(config, relay::Settings::default().lease),
        writes_per_minute: config.limits.writes_per_minute.max().map_or(0, |max| max.get().into()),
    }
}

pub fn agora(config: &Config) -> agora::Settings {
    agora::Settings {
        window: config.agora.window.millis(),
        fanout: config.agora.fanout.get() as usize,
        default_timeout: config.agora.default_timeout.millis(),
    }
}

pub fn openclaw(config: &Config) -> openclaw::Settings {
    openclaw::Settings {
        open: config.auth.openclaw == Access::Open,
        response_scale: config.openclaw.response_scale.millis(),
        lease: lease(config, openclaw::Settings::default().lease),
    }
}

pub fn clara(config: &Config, secret: &HubSecret) -> clara::Settings {
    let usual = clara::Settings::of(secret);
    // The configuration accepts only valid process ids.
    let process = |id: &ProcessId| ItemId::read(id.as_str());
    clara::Settings {
        processes: clara::Processes {
            spec: config
                .clara
                .process_id
                .as_ref()
                .and_then(process)
                .unwrap_or(usual.processes.spec),
            deployed: config.clara.deployed_process_id.as_ref().and_then(process),
        },
        topics: clara::Topics::with(config.clara.topics.iter()),
        bridged: clara::BridgedTopics::with(bridged(config)),
        queue_unmatched: config.clara.queue_unmatched,
        payments: config.clara.payments,
        task_ttl: config.clara.task_ttl.millis(),
        lease: lease(config, usual.lease),
        auction_window: config.jobs.auction_window.millis(),
    }
}

/// The configured topics for capabilities of other protocols.
fn bridged(config: &Config) -> impl Iterator<Item = (String, String)> {
    config.bridge.topics.iter().map(|(name, topic)| (name.to_owned(), topic.to_owned()))
}
