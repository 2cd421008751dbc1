//! Decides which requests belong to one site.
//!
//! A site ends at its registrable domain, because cookies are shared below it. The Public Suffix List gives that domain
//! exactly, but both ends of a pair would have to hold the same list for ever. This module uses the rule of old browsers
//! instead: two labels, or three under suffixes like `co.uk`. Where the rule errs, it joins two neighbouring sites. A
//! caller must be safe then, and must say why.

/// Returns the site of an authority (`host[:port]`). Case does not matter, and an address is its own site.
pub fn of(authority: &[u8]) -> Vec<u8> {
    let host = match authority {
        [b'[', ..] => authority,
        _ => authority.split(|byte| *byte == b':').next().unwrap_or_default(),
    };
    let labels: Vec<&[u8]> = host.split(|byte| *byte == b'.').collect();
    let numeric = labels.iter().all(|label| label.iter().all(u8::is_ascii_digit));
    let kept = match labels.as_slice() {
        _ if numeric || host.first() == Some(&b'[') => labels.len(),
        [.., second, top] if top.len() == 2 && second.len() <= 3 => 3,
        _ => 2,
    };
    let skipped = labels.len().saturating_sub(kept);
    labels.iter().skip(skipped).copied().collect::<Vec<_>>().join(&b'.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_below_one_registrable_domain_are_one_site_and_others_are_not() {
        for (authority, site) in [
            ("example.org", "example.org"),
            ("www.example.org:8080", "example.org"),
            ("a.b.Example.ORG", "example.org"),
            ("shop.example.co.uk", "example.co.uk"),
            ("www.example.com.cn", "example.com.cn"),
            ("localhost", "localhost"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:80", "192.0.2.7"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
            ("", ""),
        ] {
            assert_eq!(of(authority.as_bytes()), site.as_bytes(), "{authority}");
        }
    }
}
