//! Does the steps of a plan for this machine, and undoes them.
//!
//! [`Watch`] looks whether packets of clients arrive, for `longhaul status`.
//!
//! [`this_machine()`] reads the state from which [`longhaul_render::host`] computes the steps. [`apply()`] does them, and
//! leaves a record that undoes exactly these steps. A reboot removes everything.

mod apply;
mod keeper;
mod link_device;
mod links;
mod ruleset;
mod this_machine;
mod watch;

pub(crate) use apply::{HostError, RECORD, apply, undo, undo_command};
pub(crate) use keeper::Keeper;
pub(crate) use link_device::{kinds_of_queues, link_device};
pub(crate) use links::LinkWatch;
pub(crate) use this_machine::{interfaces, names, this_machine};
pub(crate) use watch::{Watch, warnings};
