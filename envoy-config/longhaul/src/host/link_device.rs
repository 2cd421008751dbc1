//! Reads the state of the link's device, and tries which queues the kernel makes.

use std::io;
use std::process::{Command, Output, Stdio};

use longhaul_config::DeviceName;
use longhaul_render::host::{LinkDevice, QueueKind, RootQueue};

use super::this_machine::{interfaces, output};

/// Returns the state of the device. `kinds` are those of [`kinds_of_queues`].
pub(crate) fn link_device(name: &DeviceName, kinds: Option<Vec<QueueKind>>) -> LinkDevice {
    if interfaces().is_some_and(|present| !present.iter().any(|one| one == name.as_str())) {
        return LinkDevice::Missing;
    }
    let Ok(shown) = tc(&["qdisc", "show", "dev", name.as_str()]) else { return LinkDevice::NoProgram };
    if !shown.status.success() {
        return LinkDevice::Missing;
    }
    let default = |family| !output(&[family, "route", "show", "default", "dev", name.as_str()]).is_empty();
    LinkDevice::Present {
        root: RootQueue::of(&String::from_utf8_lossy(&shown.stdout)),
        kinds,
        is_default_route: default("-4") || default("-6"),
    }
}

/// Returns the kinds of queue that the kernel makes. None if this user may not try.
pub(crate) fn kinds_of_queues() -> Option<Vec<QueueKind>> {
    let mut made = Vec::new();
    for kind in QueueKind::ALL {
        if is_made(kind)? {
            made.push(kind);
        }
    }
    Some(made)
}

/// Asks the kernel for a queue that it has to refuse: none of these kinds can share a block of filters. The kernel refuses
/// it after it has found the kind, or loaded its module. So nothing is made, and no device is needed but `lo`.
fn is_made(kind: QueueKind) -> Option<bool> {
    let asked = tc(&["qdisc", "add", "dev", "lo", "root", "ingress_block", "1", kind.word()]).ok()?;
    if asked.status.success() {
        // A kernel before 4.16 ignores the block.
        let _ = tc(&["qdisc", "del", "dev", "lo", "root"]);
        return Some(true);
    }
    let why = String::from_utf8_lossy(&asked.stderr);
    // Where `lo` has a queue of its own, the kernel looks no further.
    let may_not_try = ["not permitted", "Exclusivity flag"].iter().any(|words| why.contains(words));
    (!may_not_try).then(|| why.contains("not supported"))
}

fn tc(arguments: &[&str]) -> io::Result<Output> {
    Command::new("tc").args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output()
}
