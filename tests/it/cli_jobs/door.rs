//! A proxy in front of hubs: its address stays while the hub behind it is replaced.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// What happens to incoming connections.
#[derive(Clone, Debug, Default)]
enum Behind {
    /// They are closed at once.
    #[default]
    Nobody,
    /// They are forwarded to the hub at this address.
    Hub(String),
    /// They are forwarded, but the first response is dropped.
    Deaf(String),
}

/// A proxy on its own port.
pub struct Door {
    pub url: String,
    behind: Arc<Mutex<Behind>>,
    task: tokio::task::JoinHandle<()>,
}

impl Door {
    pub async fn to(hub: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let behind = Arc::new(Mutex::new(Behind::Hub(address(hub))));
        let shared = behind.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, shared.clone()));
            }
        });
        Self { url, behind, task }
    }

    /// From now on, drops the next response.
    pub fn lose_an_answer(&self, hub: &str) {
        self.set(Behind::Deaf(address(hub)));
    }

    pub fn close(&self) {
        self.set(Behind::Nobody);
    }

    pub fn open_to(&self, hub: &str) {
        self.set(Behind::Hub(address(hub)));
    }

    /// Whether the response was dropped.
    pub fn lost_it(&self) -> bool {
        matches!(*self.behind.lock().expect("no panic"), Behind::Hub(_))
    }

    fn set(&self, behind: Behind) {
        *self.behind.lock().expect("no panic") = behind;
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("http://").to_owned()
}

async fn pass(mut client: TcpStream, behind: Arc<Mutex<Behind>>) {
    let now = behind.lock().expect("no panic").clone();
    match now {
        Behind::Nobody => {}
        Behind::Hub(hub) => {
            if let Ok(mut hub) = TcpStream::connect(hub).await {
                let _ = copy_bidirectional(&mut client, &mut hub).await;
            }
        }
        Behind::Deaf(at) => {
            let Ok(hub) = TcpStream::connect(&at).await else { return };
            let (mut from_hub, mut to_hub) = hub.into_split();
            let (mut from_client, _to_client) = client.into_split();
            let asking =
                tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_hub).await });
            // The first byte of a response proves that the hub has executed the request.
            let _ = from_hub.read(&mut [0; 1]).await;
            *behind.lock().expect("no panic") = Behind::Hub(at);
            asking.abort();
        }
    }
}
