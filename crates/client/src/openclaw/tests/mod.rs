mod agent;
mod duty;
mod hub;
mod pushes;
mod request;
mod serve;
