//! The settings of the machine around the proxy: packet rules, routes to the clients, kernel settings, the queue of the link.
//!
//! [`Plan::of`] computes the steps from the settings and the state of the machine. [`Plan::script`] prints them as a shell
//! script. `longhaul host` reads the state and does the steps.

mod comparison;
mod designation;
mod instant;
mod instant_map;
mod link_device;
mod listener;
mod machine;
mod nft;
mod other_ports;
mod plan;
mod queue;
mod routes;
mod script;
mod siblings;
mod step;

pub use {
    designation::dhcp_options,
    instant_map::{Truth, keep},
    link_device::{LinkDevice, QueueKind, RootQueue},
    machine::{ClientInterface, Machine},
    nft::{Counted, TABLE},
    siblings::names as sibling_tables,
    step::{Action, LeftOut, Plan, Step},
};
