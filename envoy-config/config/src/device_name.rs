//! Names of network interfaces.

use std::fmt;

/// The longest name of the kernel (`IFNAMSIZ`), in bytes without the final zero.
const LONGEST: usize = 15;

/// The name of a network interface, with nothing that a shell, tc or nft would read as more than a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName(String);

impl DeviceName {
    /// Parses a name. Returns None for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
        // The kernel refuses the names of folders, and a program would read a first `-` as an option.
        let is_name = (1..=LONGEST).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with('-')
            && !matches!(text, "." | "..");
        is_name.then(|| Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_the_kernel_takes_and_no_program_misreads() {
        for name in ["wan0", "lan0.20", "ppp0", "gre-ship@x", "abcdefghijklmno"] {
            assert_eq!(DeviceName::parse(name).map(|name| name.to_string()).as_deref(), Some(name));
        }
        for other in ["", ".", "..", "-batch", "abcdefghijklmnop", "wan 0", "wan0;", "a/b", "wan\u{e9}"] {
            assert_eq!(DeviceName::parse(other), None, "{other}");
        }
    }
}
