//! The settings of the machine around the proxy: packet rules, routes to the clients, kernel settings.
//!
//! A plan is made first, from the settings and the machine as it is ([`plan`]). Printed, it is a shell script to read or
//! keep ([`script`]). Applied, it leaves a record that undoes exactly its steps ([`apply`]). A reboot removes everything.

mod apply;
mod nft;
mod plan;
mod routes;
mod script;

pub use apply::{HostError, NotDone, RECORD, apply, undo, undo_command};
pub use plan::{Action, Machine, Plan, Step, interfaces, plan};
pub use script::script;
