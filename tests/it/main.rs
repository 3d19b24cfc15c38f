//! Integration tests: complete hubs on free ports, called as users call them.

mod a2a;
mod agora;
mod amplification;
mod authority;
mod browser;
mod canary;
mod clara;
mod cli;
mod cli_jobs;
mod clients;
#[cfg(target_os = "linux")]
mod cluster;
mod crash;
mod crossing;
mod demo;
mod direct;
mod fairness;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod hostile;
mod kept;
mod kit;
mod library;
mod openapi;
mod openclaw;
mod operating;
#[cfg(unix)]
mod private;
mod races;
mod readme;
mod registry;
mod relay;
mod runtime;
mod smoke;
mod ssrf;
mod trace;
