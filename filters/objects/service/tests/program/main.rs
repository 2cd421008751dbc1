//! The program as Envoy sees it: real processes, an origin that the test plays, and clients on the program's socket.
//!
//! No test waits for a response to become stale: the origin sends it with an `Age`.

#![cfg(test)]

mod bed;
mod client;
mod faults;
mod fills;
mod gate;
mod groups;
mod hits;
mod lives;
mod origin;
mod parts;
mod ranges;
mod sandbox;
mod sharing;
mod slices;
mod slices_broken;
mod validation;
