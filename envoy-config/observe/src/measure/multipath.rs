//! Tells Multipath TCP (RFC 8684) from TCP in the kernel's attributes of a socket: `INET_DIAG_ULP_INFO` of
//! `linux/inet_diag.h`, and in it the flags of `linux/mptcp.h`. The kernel shows them to those with `CAP_NET_ADMIN`.

use netlink_packet_core::{Nla as Attribute, NlasIterator};
use netlink_packet_sock_diag::inet::nlas::Nla;

/// The attribute of the protocol above TCP.
const UPPER: u16 = 19;
/// Its part of Multipath TCP.
const MULTIPATH: u16 = 3;
/// The flags in it.
const FLAGS: u16 = 8;
/// The other end has agreed: with the first path of a connection, or with a further one.
const AGREED: u32 = 1 | 1 << 2;

/// Returns true if both ends carry a socket's bytes by Multipath TCP. A socket that has fallen back to TCP has the
/// attribute, and no agreement.
pub(super) fn is_agreed(attributes: &[Nla]) -> bool {
    attributes.iter().any(|attribute| match attribute {
        Nla::Other(upper) if upper.kind() == UPPER => {
            let mut parts = vec![0; upper.value_len()];
            upper.emit_value(&mut parts);
            flags(&parts).is_some_and(|flags| flags & AGREED != 0)
        }
        _ => false,
    })
}

fn flags(upper: &[u8]) -> Option<u32> {
    let flags = part(&part(upper, MULTIPATH)?, FLAGS)?;
    Some(u32::from_ne_bytes(flags.try_into().ok()?))
}

/// Returns the value of the first attribute of this kind.
fn part(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    NlasIterator::new(attributes).flatten().find(|one| one.kind() == kind).map(|one| one.value().to_vec())
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::DefaultNla;

    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len() + 4).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// Returns the attributes of a socket with these flags, as the kernel nests them.
    fn socket(flags: u32) -> Vec<Nla> {
        const NESTED: u16 = 1 << 15;
        let parts = [attribute(1, &7_u32.to_ne_bytes()), attribute(FLAGS, &flags.to_ne_bytes())].concat();
        let upper = [attribute(1, b"mptcp\0"), attribute(MULTIPATH | NESTED, &parts)].concat();
        vec![Nla::Other(DefaultNla::new(UPPER, upper))]
    }

    #[test]
    fn a_path_is_one_of_multipath_tcp_if_the_other_end_agreed() {
        const WISHED: u32 = 1 << 1 | 1 << 7;
        assert!(is_agreed(&socket(WISHED | 1)), "the first path");
        assert!(is_agreed(&socket(1 << 2 | 1 << 3)), "a further one");
        assert!(!is_agreed(&socket(WISHED)), "a firewall removed the option");
        assert!(!is_agreed(&[]), "TCP");
        let broken = |bytes: &[u8]| is_agreed(&[Nla::Other(DefaultNla::new(UPPER, bytes.to_vec()))]);
        assert!(!broken(&[]) && !broken(&[9, 0, 3, 0]) && !broken(&attribute(MULTIPATH, &attribute(FLAGS, &[1]))));
    }
}
