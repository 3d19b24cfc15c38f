//! `rialto agent run`: any program becomes an agent.

mod file;
mod flags;
mod peers;
mod plan;
mod seat;
mod tell;

use std::sync::Arc;

use rialto_client::agent::post::{Post, Told};
use rialto_client::agent::{Workshop, record::Records};
use rialto_client::{CallError, Hub};
use rialto_hub::shutdown::Shutdown;

use super::super::access::Access;
use super::super::trouble::Trouble;
use crate::exit::Exit;
pub use flags::Args;
use plan::Plan;
use seat::Seat;
use tell::Teller;

/// Runs an agent until it is told to stop.
pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let stop = Shutdown::on_signals().map_err(|error| Trouble::failed(error.to_string(), "run it again"))?;
    let plan = Plan::read(args)?;
    let seat = Seat::take(access, args, &plan)?;
    let teller = Arc::new(Teller::new(access.json));
    let records = Records::at(seat.jobs()).map_err(|error| seat.unwritable(&error))?;
    let shop = plan.open(&records, &teller)?;
    let direct = async {
        match args.direct {
            Some(address) => peers::serve(&seat, &shop, address, &teller, &stop).await,
            None => Ok(()),
        }
    };
    // Peers need no hub, so with them there is one only if it was named.
    let at_hub = args.direct.is_none() || access.hub.is_some();
    let at_post = async {
        match at_hub {
            true => work(access, &plan, &seat, &shop, &records, &teller, &stop).await,
            false => Ok(()),
        }
    };
    tokio::try_join!(direct, at_post)?;
    Ok(Exit::Ok)
}

/// Works for the hub.
async fn work(
    access: &Access,
    plan: &Plan,
    seat: &Seat,
    shop: &Workshop,
    records: &Records,
    teller: &Arc<Teller>,
    stop: &Shutdown,
) -> Result<(), Trouble> {
    let hub = Hub::new(seat.hub(access))?;
    loop {
        let enrolled = tokio::select! {
            () = stop.wait() => return Ok(()),
            enrolled = seat.enrol(&hub, plan, shop, teller) => enrolled?,
        };
        teller.is_at_work(seat.name(), &hub, &enrolled);
        let tell = {
            let teller = Arc::clone(teller);
            Arc::new(move |told: Told| teller.tell(&told))
        };
        let post = Post::new(hub.with_key(&enrolled.key), shop.clone(), records.clone(), tell);
        match post.work(stop.wait()).await {
            Ok(()) => return Ok(()),
            // A hub that was set up anew does not know the key. It is asked once whether it ever
            // knew the agent; if it did, the key is really no good.
            Err(CallError::Refused { status: 401, .. }) => teller.was_forgotten(),
            Err(error) => return Err(error.into()),
        }
    }
}
