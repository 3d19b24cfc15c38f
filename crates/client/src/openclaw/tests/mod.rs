mod agent;
mod hub;
mod presence;
mod request;
mod serve;
