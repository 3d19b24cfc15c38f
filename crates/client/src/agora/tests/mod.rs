mod hub;
mod inbox;
mod negotiate;
mod pushes;
mod send;
mod serve;
mod socket;
