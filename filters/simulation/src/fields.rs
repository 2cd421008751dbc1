//! Header lists of the simulation.

/// A header field.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// The value of a header field.
pub(crate) fn field<'f>(fields: &'f [Field], name: &str) -> Option<&'f [u8]> {
    fields.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| &**value)
}

/// A header field as bytes.
pub(crate) fn pair(name: &str, value: &str) -> Field {
    (name.as_bytes().to_vec(), value.as_bytes().to_vec())
}

/// Fields in one line.
pub(crate) fn words(fields: &[Field]) -> String {
    let word = |(name, value): &Field| format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
    fields.iter().map(word).collect::<Vec<_>>().join(" ")
}
