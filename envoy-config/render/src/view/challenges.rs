//! ACME challenges for the proxy's own names.

use longhaul_config::{ChallengeResponses, Settings};
use serde::Serialize;

use super::Socket;
use crate::Artifacts;

/// The values of the routes and of the listener for challenges.
#[derive(Debug, Serialize)]
pub(super) struct Challenges {
    /// The values of `Host` that a request for a challenge may have. An ACME server sends the name alone (RFC 8555
    /// section 8.3), and some send port 80 too.
    authorities: Vec<String>,
    /// The server with the responses.
    server: Socket,
    /// The socket that serves challenges and nothing else.
    listen: Option<Socket>,
}

impl Challenges {
    /// Returns the values of `tls.acme`. None: `off`.
    pub(super) fn of(settings: &Settings, artifacts: &Artifacts) -> Option<Self> {
        let acme = settings.acme.as_ref()?;
        let server = match acme.responses {
            ChallengeResponses::Webroot(_) => artifacts.near.challenges,
            ChallengeResponses::Forward(server) => server,
        };
        let names = settings.proxy.secure_names.iter();
        let authorities = names.flat_map(|name| {
            let name = name.authority(HTTP_PORT, HTTP_PORT);
            let with_port = format!("{name}:{HTTP_PORT}");
            [name, with_port]
        });
        Some(Self { authorities: authorities.collect(), server: server.into(), listen: acme.listen.map(Socket::from) })
    }
}

/// The port to which an ACME server connects.
const HTTP_PORT: u16 = 80;
