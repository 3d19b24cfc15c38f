//! Shutdown signal, shared by all tasks.
//!
//! This module only passes the signal on. Each task decides what stopping means to it and how long
//! it may take.

use std::future::pending;
use std::io;

use tokio::sync::watch;

/// Receives the shutdown signal. Clones receive the same signal.
#[derive(Clone, Debug)]
pub struct Shutdown {
    triggered: watch::Receiver<bool>,
}

/// Sends the shutdown signal. Dropping the last clone sends it as well, because nothing could send
/// it afterwards.
#[derive(Clone, Debug)]
pub struct ShutdownTrigger {
    asked: watch::Sender<bool>,
}

impl Shutdown {
    /// A shutdown signal that only its trigger can send.
    pub fn manual() -> (ShutdownTrigger, Self) {
        let (asking, asked) = watch::channel(false);
        (ShutdownTrigger { asked: asking }, Self { triggered: asked })
    }

    /// A shutdown signal sent by SIGTERM and SIGINT. From this call on they no longer kill the
    /// process, so call it before anything needs a clean stop.
    pub fn on_signals() -> io::Result<Self> {
        Self::on_signals_or_trigger().map(|(_, shutdown)| shutdown)
    }

    /// The same signal, which its trigger can send too. Dropping this trigger sends nothing.
    pub fn on_signals_or_trigger() -> io::Result<(ShutdownTrigger, Self)> {
        let (trigger, shutdown) = Self::manual();
        let (signal, by_signal) = (stop_signal()?, trigger.clone());
        tokio::spawn(async move {
            signal.await;
            by_signal.trigger();
        });
        Ok((trigger, shutdown))
    }

    /// Waits for the shutdown signal.
    pub async fn wait(&self) {
        // An error means that the trigger was dropped, which counts as the signal.
        let _ = self.triggered.clone().wait_for(|asked| *asked).await;
    }

    /// The same signal, for the responses of protocols.
    pub fn for_responses(&self) -> rialto_protocols::adapter::shutdown::Shutdown {
        rialto_protocols::adapter::shutdown::Shutdown::new(self.triggered.clone())
    }

    /// Whether the hub is already stopping.
    pub fn is_triggered(&self) -> bool {
        *self.triggered.borrow() || self.triggered.has_changed().is_err()
    }
}

impl ShutdownTrigger {
    /// Sends the signal; repeated calls do nothing.
    pub fn trigger(&self) {
        self.asked.send_replace(true);
    }
}

#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let heard = tokio::select! {
            heard = terminate.recv() => heard,
            heard = interrupt.recv() => heard,
        };
        // `None` means that the runtime delivers no more signals, not that one arrived.
        if heard.is_none() {
            pending().await
        }
    })
}

#[cfg(not(unix))]
fn signal() -> io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            pending().await
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_hears_the_trigger_even_late() {
        let (trigger, shutdown) = Shutdown::manual();
        let clone = shutdown.clone();
        let waiting = tokio::spawn(async move { clone.wait().await });
        assert!(!shutdown.is_triggered());
        trigger.trigger();
        waiting.await.expect("the waiting task does not panic");
        shutdown.wait().await;
        assert!(shutdown.is_triggered());
    }

    #[tokio::test]
    async fn a_lost_trigger_counts_as_asked() {
        let (trigger, shutdown) = Shutdown::manual();
        drop(trigger);
        shutdown.wait().await;
        assert!(shutdown.is_triggered());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_sigterm_is_heard_and_does_not_kill() {
        let shutdown = Shutdown::on_signals().expect("handlers can be installed");
        let id = std::process::id().to_string();
        let sent = tokio::process::Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.expect("kill can be run").success());
        shutdown.wait().await;
    }
}
