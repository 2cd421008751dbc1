//! The checks of this machine before programs start, and before a change applies.

use longhaul_config::Settings;
use longhaul_derive::Capacity;

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

/// Returns a warning if the machine has room for fewer URLs than the file allows.
pub(super) fn fewer_urls(settings: &Settings, capacity: &Capacity) -> Option<String> {
    let urls = &capacity.urls;
    settings.limits.urls.filter(|wanted| *wanted > urls.value).map(|wanted| {
        format!(
            "`limits.urls` {wanted} is more than fits: {} is in force ({}); raise that limit, or lower `limits.urls`",
            urls.value, urls.reason
        )
    })
}

pub(super) fn refuse(occupied: Vec<PortError>) -> Result<(), RunError> {
    if occupied.is_empty() { Ok(()) } else { Err(RunError::Ports(occupied)) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_config::load_text;
    use longhaul_derive::{HostFacts, derive};

    use super::*;

    #[test]
    fn more_urls_than_the_open_files_allow_are_a_warning_that_names_the_number_in_force() {
        let warned = |limits: &str| {
            let text = format!(
                "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
                 upstream: {{ resolvers: [192.0.2.53] }}\nlimits: {{ connections: 1000{limits} }}\n"
            );
            let settings = load_text(Path::new("longhaul.yaml"), text).unwrap().settings;
            let host = HostFacts { open_files: Some(20_000), ..HostFacts::unknown() };
            fewer_urls(&settings, &derive(&settings, &host).capacity)
        };
        let text = warned(", urls: 50000").unwrap();
        assert!(text.contains("`limits.urls` 50000") && text.contains("16976 is in force"), "{text}");
        assert_eq!(warned(", urls: 10000"), None);
        assert_eq!(warned(""), None, "nobody asked for a number");
    }
}
