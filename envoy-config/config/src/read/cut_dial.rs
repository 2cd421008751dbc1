//! `split.peer` beside `dial: ground`, a cut key of earlier releases. The ground opened the connections then, and each end
//! named the other as the other names it now. Such a file still starts. The two ends do not meet until it is changed.

use crate::diagnostic::Problem;
use crate::names::{Host, HostPort};
use crate::peer_name::PeerName;
use crate::reader::{Reader, Section, Setting};
use crate::yaml::NodeValue;

/// A name that no certificate has (RFC 6761 section 6.4).
const NOBODY: &str = "nobody.invalid";

/// Returns the grounds of a remote whose `peer` has names of certificates: none. Returns None if the rules of this
/// release apply.
pub(super) fn grounds(reader: &mut Reader, section: &Section<'_>) -> Option<Vec<HostPort>> {
    let peer = peer_beside_it(section)?;
    let is_address = |text: &str| HostPort::parse(text).is_some();
    let dials = match &peer.node.value {
        NodeValue::Scalar(text) => is_address(text),
        NodeValue::List(items) => {
            items.iter().any(|item| matches!(&item.value, NodeValue::Scalar(text) if is_address(text)))
        }
        _ => true,
    };
    if dials {
        return None;
    }
    let problem = Problem::warning(
        "`split.peer` has no address of a ground",
        peer.place(),
        "names of certificates: no ground is used, as if none responded",
    );
    let help = "write the address of the ground inside the tunnel, such as `peer: \"10.9.0.2:8443\"`; the ground's certificate must be for it";
    reader.problems.push(problem.help(help));
    if let Some(listen) = section.get("listen") {
        let title = "`split.listen` has no effect at this end of the link";
        reader
            .problems
            .push(Problem::warning(title, listen.key_place, "the ground listens, this end dials").help("remove it"));
    }
    Some(Vec::new())
}

/// Returns the names that a ground accepts whose `peer` is the address of its remote: the name in it, or nobody's. Returns
/// None if the rules of this release apply.
pub(super) fn remotes(reader: &mut Reader, section: &Section<'_>) -> Option<Vec<PeerName>> {
    let peer = peer_beside_it(section)?;
    let (name, label, help) = match HostPort::parse(peer.text()?)?.host {
        Host::Name(name) => {
            let help = format!("write the name in its certificate: `peer: [{name}]`");
            (PeerName::Exact(name), "this ground now listens, for a remote with a certificate for this host", help)
        }
        Host::Address(_) => {
            let help =
                "write the name in its certificate, such as `peer: [ship.example]`; `longhaul pair init` makes one";
            (PeerName::parse(NOBODY).ok()?, "no name: this ground accepts no remote", help.to_owned())
        }
    };
    reader.problems.push(Problem::warning("`split.peer` is the address of a remote", peer.place(), label).help(help));
    Some(vec![name])
}

/// Returns `split.peer` of a file with `dial: ground`.
fn peer_beside_it<'n>(section: &Section<'n>) -> Option<Setting<'n>> {
    section.get("dial").filter(|dial| dial.text() == Some("ground"))?;
    section.get("peer")
}
