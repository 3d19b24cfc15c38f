//! clara over the wire: a real hub and real items.

mod accounts;
mod agents;
mod auctions;
mod auctions_later;
mod board;
mod bridged;
mod choice;
mod client;
mod crash;
mod declining;
mod delivering;
mod dialect;
mod elsewhere;
mod foreign;
mod forms;
mod found;
mod items;
pub mod kit;
mod loading;
mod money;
mod once;
mod paging;
mod reads;
mod smoke;
mod tasks;
mod two_hubs;
mod wire;
