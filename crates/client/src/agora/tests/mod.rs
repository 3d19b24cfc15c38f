mod hub;
mod inbox;
mod negotiate;
mod send;
mod serve;
mod socket;
