//! Sets up a pair: its authority, and a certificate and a configuration file for each end.
//!
//! | module | job |
//! |---|---|
//! | `authority` | makes keys and certificates |
//! | `files` | writes the two configuration files as text |
//! | `check` | tries the handshake with the other end |
//! | `reason` | names the reasons for which an end refuses a certificate |
//! | `folder` | keeps the authority and both ends in one folder, and never overwrites a file unasked |

mod authority;
mod check;
mod files;
mod folder;
mod reason;

pub(crate) use check::{Line, Peer, Topic, Verdict, check};
pub(crate) use check::{names, problem};
pub(crate) use files::{GROUND, LinkText, Site};
pub(crate) use folder::{AUTHORITY_KEY, Added, Folder, Peers};
pub(crate) use reason::Reason;
