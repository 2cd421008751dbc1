//! The listeners within a box of a pair for connections that pass unread.

use longhaul_config::{Role, Settings};
use serde::Serialize;

use super::share::Share;

/// The listener behind the hops that share the link.
const SHARED: &str = "shared";

/// A listener within this box for clients' bytes.
#[derive(Debug, Serialize)]
pub(super) struct BytesListener {
    name: &'static str,
    /// The Unix socket at which it listens. None: it is an internal listener.
    socket: Option<String>,
    /// True if the remote may name its client, in front of the client's bytes.
    named: bool,
    /// True if it passes them to a hop in which they take their share of the link.
    has_hop: bool,
    /// True if the end of a server comes later than its last byte.
    late: bool,
}

impl BytesListener {
    /// Returns the listeners of clients' bytes. A remote has one while it goes to origins itself.
    pub(super) fn all(settings: &Settings, share: Option<&Share>) -> Vec<Self> {
        let internal = |name, late, named| Self { name, socket: None, named, has_hop: named && share.is_some(), late };
        // Where the end must come later, the hop in front of `shared` sees to it.
        let socket = |name, path: &str| Self {
            name,
            socket: Some(path.to_owned()),
            named: name != SHARED,
            has_hop: false,
            late: name != SHARED,
        };
        match (&settings.role, share) {
            (Role::Remote(_) | Role::Edge, _) => {
                vec![Self { has_hop: false, ..internal("bytes", false, share.is_some()) }]
            }
            (Role::Ground(_), share) => {
                let of_streams = share.and_then(|share| share.streams_socket.as_deref());
                let mut all = vec![
                    internal("bytes", false, false),
                    internal("bytes_late", true, false),
                    internal("introduced", false, true),
                    of_streams.map_or_else(
                        || internal("introduced_late", true, true),
                        |path| socket("introduced_late", path),
                    ),
                ];
                all.extend(share.map(|share| socket(SHARED, &share.socket)));
                all
            }
        }
    }
}
