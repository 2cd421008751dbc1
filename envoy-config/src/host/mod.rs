//! The settings of the machine around the proxy: packet rules, routes to the clients, kernel settings.
//!
//! [`plan()`] computes the steps from the settings and the state of the machine. [`script()`] prints them as a shell
//! script. [`apply()`] does them, and leaves a record that undoes exactly these steps. A reboot removes everything.

mod apply;
mod comparison;
mod nft;
mod plan;
mod routes;
mod script;
mod siblings;

pub use apply::{HostError, NotDone, RECORD, apply, undo, undo_command};
pub use plan::{Action, Machine, Plan, Step, interfaces, plan};
pub use script::script;
