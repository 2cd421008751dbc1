//! The settings of the machine around the proxy: packet rules, routes to the clients, kernel settings, the queue of the link.
//!
//! [`plan()`] computes the steps from the settings and the state of the machine. [`script()`] prints them as a shell
//! script. `longhaul host` reads the state and does the steps.

mod comparison;
mod designation;
mod listener;
mod machine;
mod nft;
mod plan;
mod queue;
mod routes;
mod script;
mod siblings;

pub use {
    designation::dhcp_options,
    machine::{ClientInterface, Machine, SYSCTLS},
    nft::{Counted, TABLE, counted},
    plan::{Action, LeftOut, Plan, Step, plan},
    queue::{LinkDevice, QueueKind, RootQueue},
    routes::device_of_neighbour,
    script::script,
    siblings::names as sibling_tables,
};
