//! The facts of this machine on which several links depend.

use std::fs;
use std::path::Path;

use longhaul_config::Settings;
use longhaul_derive::{Derived, MultipathUse};

use super::locate::multipath;

/// The switch of the kernel.
const ENABLED: &str = "mptcp/enabled";

/// Returns what this machine lacks for several links. Without it, connections end with their link.
pub(super) fn missing(settings: &Settings, derived: &Derived, interfaces: Option<&[String]>) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(Path::new("/proc/sys/net").join(name)).ok();
    let mut found: Vec<String> = settings
        .links
        .iter()
        .filter(|link| interfaces.is_some_and(|present| !present.iter().any(|one| one == link.device.as_str())))
        .map(|link| format!("this machine has no interface {}, so the link {} is down", link.device, link.name))
        .collect();
    let without_library = match derived.multipath {
        MultipathUse::Off(_) => return found,
        MultipathUse::Opens(_) => {
            found.extend(of_the_kernel(read(ENABLED).as_deref()));
            "connections to the ground are TCP, and end with their link"
        }
        MultipathUse::Accepts(_) => "pages for remotes with several links are slow after a pause",
    };
    if multipath().is_none() {
        let cure = "Run `make build`, or set LONGHAUL_MULTIPATH";
        found.push(format!("longhaul_multipath.so is not beside this program: {without_library}. {cure}"));
    }
    found
}

/// Returns what the kernel lacks, by the value of its switch.
fn of_the_kernel(enabled: Option<&str>) -> Option<String> {
    match enabled.map(str::trim) {
        None => Some(
            "this kernel has no Multipath TCP (CONFIG_MPTCP): connections to the ground are TCP, and end with their link"
                .to_owned(),
        ),
        Some("0") => Some(
            "Multipath TCP is switched off, so connections to the ground end with their link: sysctl -w net.mptcp.enabled=1"
                .to_owned(),
        ),
        // Kernels that take a cut for a firewall have a switch for that, which `longhaul host` turns off.
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_multipath_tcp_is_named_with_the_cure() {
        let said = |enabled| of_the_kernel(enabled).unwrap_or_default();
        assert!(said(None).contains("CONFIG_MPTCP"));
        assert!(said(Some("0\n")).contains("sysctl -w net.mptcp.enabled=1"));
        assert_eq!(said(Some("1\n")), "");
    }
}
