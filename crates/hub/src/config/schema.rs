//! Every key of the hub itself with its type, its meaning and its defaults.
//!
//! Each protocol adds its own keys (`settings.rs` in its folder). `rialto.example.toml` repeats all
//! of them for operators, and a test compares the two.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use rialto_config::{ByteSize, ConfigDuration, Layers, Limit, NonZeroDuration};
use rialto_core::money::Credits;
use rialto_protocols::adapter::settings::{self, HubSettings, McpSettings, ProtocolSettings};

use super::choices::{Backend, Level, LogFormat};
use super::database_url::DatabaseUrl;
use super::names::{BaseUrl, HostName, HostPort, Origin};

/// Turns the table below into one struct per section, one struct of all sections, and the function
/// that fills them. A default is written like the value of an environment variable; `or` gives the
/// default of `rialto dev` where that differs.
macro_rules! settings {
    ($($(#[$about:meta])* $section:ident: $Section:ident {
        $($(#[$doc:meta])* $key:ident: $kind:ty = $serve:literal $(or $dev:literal)?;)+
    })+) => {
        /// All settings.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[$about])* pub $section: $Section,)+
            /// The protocols, each with its own settings.
            pub protocols: Vec<Arc<dyn ProtocolSettings>>,
        }

        $($(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Section {
            $($(#[$doc])* pub $key: $kind,)+
        })+

        impl Config {
            pub(super) fn resolve(layers: &mut Layers<'_>) -> Self {
                Self {$($section: $Section {$(
                    $key: layers.resolve(
                        concat!(stringify!($section), ".", stringify!($key)),
                        settings!(@default $serve $($dev)?),
                    ),
                )+},)+
                protocols: settings::read_all(layers)}
            }
        }
    };
    (@default $serve:literal) => { $serve };
    (@default $serve:literal $dev:literal) => { ($serve, $dev) };
}

settings! {
    /// The HTTP server.
    http: Http {
        /// The address and port to listen on.
        listen: SocketAddr = "127.0.0.1:7425";
        /// The URL at which agents reach the hub. If unset, it is the URL of the listen address,
        /// which must then not be a wildcard address.
        public_url: Option<BaseUrl> = "";
        /// `Host` values accepted besides the known ones while bound to loopback, and origins whose
        /// pages may call the hub (C13).
        allowed_hosts: Vec<HostName> = "";
        /// The largest request body; a protocol may have its own, smaller limit (C1).
        body_limit: ByteSize = "1048576";
        /// How long a request's headers may take to arrive.
        header_timeout: NonZeroDuration = "10s";
        /// How long a request's body may take to arrive.
        body_timeout: NonZeroDuration = "30s";
        /// Minimum rate at which a body must arrive, in bytes per second; slower requests get a
        /// 408.
        min_body_bytes_per_second: Limit = "240";
        /// How long a body may fall behind that rate, which is also the longest pause.
        body_grace: NonZeroDuration = "10s";
        /// How long a connection may stay open without a request.
        idle_timeout: NonZeroDuration = "60s";
        /// Connections open at once.
        max_connections: NonZeroU32 = "10000";
        /// Connections open at once from one address.
        max_connections_per_address: NonZeroU32 = "1024";
    }

    /// Where the hub's files are.
    data: Data {
        /// The directory of the store and the hub's secret, relative to the working directory. With
        /// a database, it holds only what belongs to the node.
        dir: PathBuf = "./rialto-data";
    }

    /// Limits per caller (C11).
    limits: Limits {
        /// Registrations from one address.
        registrations_per_minute: Limit = "60" or "0";
        /// Registrations from all addresses together.
        registrations_per_minute_total: Limit = "600" or "0";
        /// Writes of one agent, with all of its keys together.
        writes_per_minute: Limit = "600" or "0";
        /// Bytes of long responses to one agent, or to one address without a key.
        read_bytes_per_minute: Limit = "268435456" or "0";
        /// Requests with an invalid key from one address.
        wrong_keys_per_minute: Limit = "60";
        /// How long an agent that registered without proof is kept if it never authenticates;
        /// unset, it is kept forever.
        unproven_ttl: Option<NonZeroDuration> = "";
        /// Unread messages in one inbox; notices about the agent's own jobs do not count.
        inbox_pending: Limit = "10000";
        /// Saved answers for the idempotency keys of one caller, each kept for a day.
        kept_answers: Limit = "50000";
        /// Bytes of those answers.
        kept_answer_bytes: Limit = "33554432";
        /// Saved answers of all callers; callers without a key may use a quarter.
        kept_answers_total: Limit = "500000";
        /// Bytes of those answers; callers without a key may use a quarter.
        kept_answer_bytes_total: Limit = "536870912";
        /// Open invitations of one requester: agents asked for an offer that have not answered.
        invitations: NonZeroU32 = "10000";
    }

    /// How credits are issued.
    ledger: Ledger {
        /// Credits every new owner gets, once (C15).
        welcome_grant: Credits = "0" or "100.00";
    }

    /// What counts for or against an agent.
    reputation: Reputation {
        /// Minimum time a worker has a job before silence counts against it; a skill with a longer
        /// declared duration gets that duration. Set it lower only to test the formulas.
        fair_time: ConfigDuration = "30s";
    }

    /// Outbound HTTP calls of the hub (C8).
    egress: Egress {
        /// Private networks that may be called, also over plain `http`.
        allow: Vec<IpNet> = "" or "127.0.0.0/8,::1/128";
        /// Total timeout of a call.
        timeout: NonZeroDuration = "30s";
        /// Timeout for connecting.
        connect_timeout: NonZeroDuration = "5s";
        /// Connections open at once to one host.
        per_host: NonZeroU32 = "16";
        /// Calls to one host per minute; further calls wait.
        per_host_per_minute: Limit = "6000" or "0";
    }

    /// How jobs are assigned and end.
    jobs: Jobs {
        /// How long an assigned worker may be silent; unset, each protocol has its own value.
        lease: Option<NonZeroDuration> = "";
        /// How long offers are collected before one is accepted.
        auction_window: ConfigDuration = "2s";
        /// How long a requester may take to answer its worker's question.
        answer_window: NonZeroDuration = "1h";
        /// How many workers a job is assigned to before it fails.
        max_attempts: NonZeroU32 = "16";
    }

    /// The Model Context Protocol.
    mcp: Mcp {
        /// Whether `/mcp` is served.
        enabled: bool = "true";
        /// Whether callers without a key act as one guest agent.
        guest: bool = "false" or "true";
        /// What a key without limits of its own may spend on one job or transfer when it comes
        /// through MCP; 0 is no limit. The guest has no key, so it is not bound.
        per_job: Credits = "10.00" or "0";
        /// What such a key may spend through MCP in one day (UTC); 0 is no limit.
        per_day: Credits = "100.00" or "0";
        /// Origins of web pages that may call `/mcp`.
        allowed_origins: Vec<Origin> = "";
        /// How long a call is waited for before it is answered with a task.
        task_after: ConfigDuration = "500ms";
        /// The highest price of a skill that is listed and callable as a tool, unless the address
        /// of the tools names another.
        max_price: Credits = "1.00";
    }

    /// The hub's log.
    log: Log {
        /// The format of the lines.
        format: LogFormat = "auto";
        /// The least important lines still written.
        level: Level = "info";
    }

    /// Where the hub stores its data.
    store: Store {
        /// The kind of store.
        backend: Backend = "sqlite";
        /// The database of the backend `postgres`; setting it chooses that backend.
        database_url: Option<DatabaseUrl> = "";
        /// Memory for agents, open jobs and accounts, in bytes.
        memory: ByteSize = "1073741824";
        /// Memory for the rows of one owner, in bytes.
        memory_per_owner: ByteSize = "134217728";
    }

    /// This node, where several nodes share a database.
    cluster: Cluster {
        /// The address and port to take commands of other nodes on.
        listen: SocketAddr = "127.0.0.1:7426";
        /// Where other nodes reach this one. If unset, it is the listen address, which must then
        /// not be a wildcard address.
        advertise: Option<HostPort> = "";
        /// How long the writer may show no sign of life before another node takes over.
        lease: NonZeroDuration = "3s";
    }
}

impl Http {
    /// The public URL of the hub. `bound` is the address it really listens on: if the configured
    /// port is 0, only `bound` has the actual port.
    pub fn base_url(&self, bound: SocketAddr) -> String {
        self.public_url.as_ref().map_or_else(|| format!("http://{bound}"), BaseUrl::to_string)
    }
}

impl Mcp {
    /// The settings that its tools need.
    fn settings(&self) -> McpSettings {
        let limit = |amount: Credits| Some(amount).filter(|amount| *amount > Credits::ZERO);
        McpSettings {
            enabled: self.enabled,
            guest: self.guest,
            per_job: limit(self.per_job),
            per_day: limit(self.per_day),
            task_after: self.task_after.millis(),
            max_price: self.max_price,
        }
    }
}

impl Config {
    /// The settings that concern every protocol.
    pub fn for_protocols(&self) -> HubSettings {
        HubSettings {
            lease: self.jobs.lease.map(NonZeroDuration::millis),
            auction_window: self.jobs.auction_window.millis(),
            writes_per_minute: self
                .limits
                .writes_per_minute
                .max()
                .map_or(0, |max| max.get().into()),
            mcp: self.mcp.settings(),
        }
    }
}
