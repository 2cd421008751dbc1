//! The packet filter and the kernel settings of this machine.

use std::fs;
use std::process::{Command, Stdio};

use super::super::firewall::Ruleset;

/// The rules of the packet filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Rules {
    /// They could be read.
    Read(Ruleset),
    /// Only root may read them.
    NeedsRoot,
    /// There is no program `nft`.
    NoNft,
    /// Another failure, in the words of nft.
    Unreadable(String),
}

/// Reads the rules with `nft -j list ruleset`.
pub(crate) fn rules() -> Rules {
    if !rustix::process::geteuid().is_root() {
        return Rules::NeedsRoot;
    }
    let output = Command::new("nft").args(["-j", "list", "ruleset"]).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Rules::NoNft,
        Err(error) => return Rules::Unreadable(error.to_string()),
    };
    if !output.status.success() {
        return Rules::Unreadable(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ruleset::parse(&text).map_or_else(|error| Rules::Unreadable(error.to_string()), Rules::Read)
}

/// Reads a kernel setting. None if this kernel does not have it.
pub(crate) fn sysctl(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
