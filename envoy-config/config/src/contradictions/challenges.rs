//! Checks of `tls.acme` with the proxy's names, the listeners and the certificates.

use super::{Places, reaches};
use crate::diagnostic::Problem;
use crate::settings::{Acme, ChallengeResponses, Listen, Proxy, Termination};

/// Refuses challenges without a name of the proxy, and challenges that would come back to this box.
pub(super) fn check(places: &Places<'_>, listen: &Listen, proxy: &Proxy, acme: &Acme, problems: &mut Vec<Problem>) {
    if proxy.secure_names.is_empty() {
        problems.push(
            Problem::error("`tls.acme` without an https name", places.of(&["tls", "acme"]), "answers challenges for the proxy's own names")
                .and(places.of(&["proxy", "secure_names"]), "`proxy.secure_names` gives none")
                .help("add the name under `proxy.secure_names`, or remove `tls.acme`: challenges for other names go to their origins"),
        );
    }
    for (index, entry) in &acme.awaited {
        awaited(places, proxy, *index, entry, problems);
    }
    let ChallengeResponses::Forward(target) = acme.responses else { return };
    let own = listen.http_sockets().map(|(key, socket)| (["listen", key], socket));
    let hit = own
        .chain(acme.listen.map(|socket| (["tls", "acme"], socket)))
        .find(|(_, socket)| reaches(*socket, target, &proxy.addresses));
    if let Some((key, socket)) = hit {
        problems.push(
            Problem::error(
                "`tls.acme.forward` leads to this box itself",
                places.of(&["tls", "acme", "forward"]),
                format!("{target}"),
            )
            .and(places.of(&key), format!("this box listens on {socket}"))
            .help("name the address on which the ACME client listens, such as 127.0.0.1:8099"),
        );
    }
}

/// Warns of a certificate that the ACME client has not made yet. Refuses it if the client cannot get it here.
fn awaited(places: &Places<'_>, proxy: &Proxy, index: usize, entry: &Termination, problems: &mut Vec<Problem>) {
    let place = places.of(&["tls", "terminate", &index.to_string(), "cert"]);
    let label = format!("no file {}", if entry.cert.exists() { &entry.key } else { &entry.cert }.display());
    let foreign = entry.names.iter().find(|name| !proxy.secure_names.contains(name));
    problems.push(match foreign {
        None => Problem::warning(format!("`tls.terminate[{index}]` has no certificate yet"), place, label)
            .help("get it with the ACME client while `longhaul run` serves; it applies as soon as both files exist"),
        Some(name) => {
            Problem::error(format!("`tls.terminate[{index}]` names a file that does not exist"), place, label).help(
                format!(
                    "challenges for {name} go to its origin, so the ACME client cannot get a certificate for it here"
                ),
            )
        }
    });
}
