//! The checks of this machine before programs start, and before a change applies.

use longhaul_config::Settings;

use super::child;
use super::error::RunError;
use super::ports::PortError;

/// Returns a warning if the limit of open files is too low. Each connection takes two files, one to the client and one
/// to the origin.
pub(super) fn too_few_files(settings: &Settings) -> Option<String> {
    let connections = settings.limits.connections;
    let wanted = u64::from(connections) * 2;
    child::most_files().filter(|most| *most < wanted).map(|most| {
        format!(
            "`limits.connections` {connections} needs {wanted} open files, but the limit of this process is {most}; raise the limit (systemd: LimitNOFILE={wanted})"
        )
    })
}

pub(super) fn refuse(occupied: Vec<PortError>) -> Result<(), RunError> {
    if occupied.is_empty() { Ok(()) } else { Err(RunError::Ports(occupied)) }
}
