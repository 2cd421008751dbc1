//! The settings of the machine around the proxy: packet rules, routes to the clients, kernel settings, the queue of the link.
//!
//! [`plan()`] computes the steps from the settings and the state of the machine. [`script()`] prints them as a shell
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
    instant_map::{Mapping, Truth, keep},
    link_device::{LinkDevice, QueueKind, RootQueue},
    machine::{ClientInterface, Machine, SYSCTLS},
    nft::{Counted, TABLE, counted},
    plan::plan,
    queue::{lost_queue, wide_device},
    routes::device_of_neighbour,
    script::script,
    siblings::names as sibling_tables,
    step::{Action, LeftOut, Plan, Step},
};
