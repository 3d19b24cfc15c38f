//! Direct mode: peers that call this agent themselves.

use std::net::SocketAddr;

use rialto_client::agent::Workshop;
use rialto_client::agent::direct::{self, Identity};
use rialto_hub::shutdown::Shutdown;
use tokio::net::TcpListener;

use super::super::super::trouble::Trouble;
use super::seat::Seat;
use super::tell::Teller;

/// Answers peers until it is told to stop.
pub async fn serve(
    seat: &Seat,
    shop: &Workshop,
    address: SocketAddr,
    teller: &Teller,
    stop: &Shutdown,
) -> Result<(), Trouble> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot listen at {address}: {error}");
        Trouble::failed(message, "choose another address with --direct")
    })?;
    let identity = Identity::new(seat.name(), &seat.seed()?);
    if let Ok(address) = listener.local_addr() {
        teller.serves_peers(seat.name(), &format!("http://{address}"));
    }
    direct::serve(listener, shop.clone(), identity, stop.wait()).await?;
    Ok(())
}
