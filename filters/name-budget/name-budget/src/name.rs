//! The name that Envoy looks up for a request.

use crate::marks;

/// A name that Envoy looks up, byte for byte: Envoy keeps `a.test` and `A.test` apart, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The scheme, which decides the port if the authority has none. Empty for bytes that are passed on unread.
    pub scheme: Vec<u8>,
    /// `HOST[:PORT]`.
    pub authority: Vec<u8>,
}

impl Name {
    /// Reads the name from a request. `field` returns the value of a field, empty if the request lacks it.
    ///
    /// The first attempt of a connection that is passed on unread goes to the address that the client dialled. Envoy keeps
    /// that address in its table instead of the name.
    ///
    /// # Errors
    ///
    /// Returns the first error of `field`.
    pub fn of<E>(field: impl Fn(&str) -> Result<Vec<u8>, E>) -> Result<Self, E> {
        let scheme = field(marks::SCHEME)?;
        // Requests are many, and each field costs a call. Only connections that are passed on unread have no scheme.
        if scheme.is_empty() {
            let instead = if field(marks::ATTEMPT)? == b"1" { field(marks::DIALLED)? } else { field(marks::NAME)? };
            if !instead.is_empty() {
                return Ok(Self { scheme, authority: instead });
            }
        }
        Ok(Self { scheme, authority: field(":authority")? })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::*;

    fn read(fields: &[(&str, &str)]) -> (String, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let field = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            let value = fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
            Ok::<_, Infallible>(value.as_bytes().to_vec())
        };
        let Ok(name) = Name::of(field);
        (String::from_utf8(name.authority).unwrap(), asked.into_inner())
    }

    #[test]
    fn the_first_attempt_of_an_unread_connection_looks_up_the_dialled_address() {
        let unread =
            |attempt| [(":authority", "a.test:443"), (marks::DIALLED, "192.0.2.1:443"), (marks::ATTEMPT, attempt)];
        assert_eq!(read(&unread("1")).0, "192.0.2.1:443");
        assert_eq!(read(&unread("2")).0, "a.test:443");
        assert_eq!(read(&[(":authority", "a.test:443")]).0, "a.test:443");
        let underscore = [(":authority", "name.invalid:443"), (marks::NAME, "a_b.test:443")];
        assert_eq!(read(&underscore).0, "a_b.test:443");
    }

    #[test]
    fn a_request_is_read_in_two_fields() {
        let request = [
            (marks::SCHEME, "http"),
            (":authority", "a.test"),
            (marks::ATTEMPT, "1"),
            (marks::DIALLED, "192.0.2.1:80"),
        ];
        let (authority, asked) = read(&request);
        assert_eq!(authority, "a.test");
        assert_eq!(asked, [marks::SCHEME, ":authority"]);
    }
}
