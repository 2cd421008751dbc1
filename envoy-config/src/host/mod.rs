//! The settings of the machine around the proxy: packet rules, routes to the clients, kernel settings.
//!
//! [`plan()`] computes the steps from the settings and the state of the machine. [`script()`] prints them as a shell
//! script. [`apply()`] does them, and leaves a record that undoes exactly these steps. A reboot removes everything.

mod apply;
mod comparison;
mod listener;
mod machine;
mod nft;
mod plan;
mod routes;
mod script;
mod siblings;
mod this_machine;

pub use apply::{HostError, NotDone, RECORD, apply, undo, undo_command};
pub use machine::Machine;
pub use plan::{Action, Plan, Step, plan};
pub use script::script;
pub use this_machine::{interfaces, this_machine};
