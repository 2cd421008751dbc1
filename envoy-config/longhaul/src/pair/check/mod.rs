//! `longhaul pair check`: one handshake with the other end, as the pipe does it, and its result in words.
//!
//! | module | job |
//! |---|---|
//! | `credentials` | reads the files of this end, and judges them by this machine's clock |
//! | `dial` | resolves, connects, shakes hands, and reads the other end's clock |
//! | `trust` | verifies the certificate of the other end as Envoy does |
//! | `peer` | opens TLS to a ground as the pipe does, for `longhaul netcheck` and `longhaul run` |
//! | `words` | turns the result into lines |

mod credentials;
mod dial;
mod peer;
mod trust;
mod words;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

pub(crate) use peer::Peer;
pub(crate) use words::{Line, Topic, Verdict};

use credentials::Credentials;
use longhaul_config::{HostPort, Identity, Role, Settings};
use longhaul_derive::Timer;

use super::reason::Reason;

/// The reason why there was nothing to check.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// The file is one of an edge.
    #[error("`role: edge` has no other end; `pair check` is for the roles remote and ground")]
    Edge,
    /// A file with a certificate or key cannot be used.
    #[error("cannot use {}: {problem}", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The problem in words.
        problem: String,
    },
    /// The system gave no runtime.
    #[error("cannot set up: {0}")]
    System(#[from] io::Error),
}

/// The result of an attempt to reach the other end.
#[derive(Debug)]
enum Outcome {
    /// Its name has no address.
    Unresolved(String),
    /// No TCP connection.
    Unreached { address: SocketAddr, why: Unreached },
    /// The other end closed the connection or did not speak TLS.
    NoHandshake { address: SocketAddr, why: String },
    /// This end refuses the certificate of the other.
    TheirsRefused { address: SocketAddr, why: Reason, shown: Shown, clock: Option<Clock> },
    /// The other end refuses the certificate of this one.
    OursRefused { address: SocketAddr, why: Reason, shown: Shown },
    /// The handshake was done, and then no response came.
    Silent { address: SocketAddr, why: String },
    /// Both ends accept each other.
    Connected { address: SocketAddr, round_trip: Duration, shown: Shown, clock: Option<Clock> },
}

/// The reason why there is no TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unreached {
    Refused,
    TimedOut(Duration),
    Other(String),
}

/// The facts of a certificate that help to mend a pair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Shown {
    /// Subject alternative names: DNS names as written, and addresses.
    names: Vec<String>,
    /// The validity in Unix time, in seconds.
    from_s: i64,
    until_s: i64,
}

/// The clock of the other end, seen from this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    /// The time that the other end's clock is ahead of this one, in milliseconds. Negative: it is behind.
    ahead_ms: i64,
    /// The bound of the error of `ahead_ms`, in milliseconds.
    within_ms: i64,
}

/// Checks this end's files. At a remote, tries the handshake with each ground, all at once. Each step may take `patience`;
/// None: as long as the link may need.
///
/// # Errors
/// The file is one of an edge, or a certificate or key cannot be used.
pub(crate) fn check(settings: &Settings, patience: Option<Duration>) -> Result<Vec<Line>, CheckError> {
    let patience = patience.unwrap_or_else(|| Timer::pair_check(&settings.slowest_link()).time);
    let identity = settings.role.identity().ok_or(CheckError::Edge)?;
    let own = Credentials::read(identity)?;
    let mut lines = words::files(&own, identity, SystemTime::now());
    match &settings.role {
        Role::Ground(ground) => lines.push(words::dialled(ground.listen)),
        Role::Edge | Role::Remote(_) => {
            let grounds = settings.role.grounds();
            if grounds.is_empty() {
                lines.push(words::no_ground());
            }
            for (one, outcome) in grounds.iter().zip(attempts(grounds, &own, patience)) {
                if grounds.len() > 1 {
                    lines.push(words::heading(one));
                }
                lines.extend(words::outcome(&outcome?, one, &own.shown));
            }
        }
    }
    Ok(lines)
}

/// Returns the names in the certificate of this end. None if it cannot be read.
pub(crate) fn names(identity: &Identity) -> Vec<String> {
    Credentials::read(identity).map(|own| own.shown.names).unwrap_or_default()
}

/// Returns the first problem that [`check`] finds. None if there is none, or nothing to check.
pub(crate) fn problem(settings: &Settings) -> Option<String> {
    let lines = check(settings, None).ok()?;
    lines.into_iter().find(|line| line.verdict == Verdict::Problem).map(|line| line.text)
}

fn attempts(grounds: &[HostPort], own: &Credentials, patience: Duration) -> Vec<io::Result<Outcome>> {
    thread::scope(|scope| {
        let tries: Vec<_> = grounds.iter().map(|at| scope.spawn(move || attempt(at, own, patience))).collect();
        let failed = |_| Err(io::Error::other("the attempt ended without a result"));
        tries.into_iter().map(|attempt| attempt.join().unwrap_or_else(failed)).collect()
    })
}

fn attempt(at: &HostPort, own: &Credentials, patience: Duration) -> io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(dial::attempt(at, own, patience)))
}
