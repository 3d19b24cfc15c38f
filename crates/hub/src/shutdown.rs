//! Shutdown signal, shared by all tasks.
//!
//! This room only passes the word on. Who hears it decides what stopping means to it, and how long
//! it may take.

use std::future::pending;
use std::io;

use tokio::sync::watch;

/// Hears when the hub is to stop. Clones hear the same.
#[derive(Clone, Debug)]
pub struct Shutdown {
    asked: watch::Receiver<bool>,
}

/// Asks the hub to stop. Dropping the last clone asks too: then nobody could any more.
#[derive(Clone, Debug)]
pub struct Trigger {
    asked: watch::Sender<bool>,
}

impl Shutdown {
    /// One that is asked by its trigger only.
    pub fn manual() -> (Trigger, Self) {
        let (asking, asked) = watch::channel(false);
        (Trigger { asked: asking }, Self { asked })
    }

    /// One that is asked by SIGTERM and SIGINT. Only from here on do these no longer kill the
    /// process, so it is called before anything is worth stopping well.
    pub fn on_signals() -> io::Result<Self> {
        let (trigger, shutdown) = Self::manual();
        let signal = signal()?;
        tokio::spawn(async move {
            signal.await;
            trigger.ask();
        });
        Ok(shutdown)
    }

    /// Waits until the hub is to stop.
    pub async fn wait(&self) {
        // An error means that the trigger is gone, which asks as well.
        let _ = self.asked.clone().wait_for(|asked| *asked).await;
    }

    /// Whether the hub is stopping already.
    pub fn is_asked(&self) -> bool {
        *self.asked.borrow() || self.asked.has_changed().is_err()
    }
}

impl Trigger {
    /// Asks; from the second time on nothing happens.
    pub fn ask(&self) {
        self.asked.send_replace(true);
    }
}

#[cfg(unix)]
fn signal() -> io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let heard = tokio::select! {
            heard = terminate.recv() => heard,
            heard = interrupt.recv() => heard,
        };
        // Without a runtime that listens no signal will come, and none has.
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
        assert!(!shutdown.is_asked());
        trigger.ask();
        waiting.await.expect("the waiting one is not harmed");
        shutdown.wait().await;
        assert!(shutdown.is_asked());
    }

    #[tokio::test]
    async fn a_lost_trigger_counts_as_asked() {
        let (trigger, shutdown) = Shutdown::manual();
        drop(trigger);
        shutdown.wait().await;
        assert!(shutdown.is_asked());
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
