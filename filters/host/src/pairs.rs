//! A list of headers as the host serialises it.

/// Headers in the host's serialisation, read without copying.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    data: Vec<u8>,
}

impl Pairs {
    /// Serialises headers, in their order.
    pub fn of<Name: AsRef<[u8]>, Value: AsRef<[u8]>>(headers: &[(Name, Value)]) -> Self {
        // A count; then for each header two lengths and two zero bytes.
        let texts = headers.iter().map(|(name, value)| name.as_ref().len() + value.as_ref().len() + 10);
        let mut data = Vec::with_capacity(texts.sum::<usize>() + 4);
        let number = |data: &mut Vec<u8>, value: usize| {
            data.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
        };
        number(&mut data, headers.len());
        for (name, value) in headers {
            number(&mut data, name.as_ref().len());
            number(&mut data, value.as_ref().len());
        }
        for (name, value) in headers {
            data.extend_from_slice(name.as_ref());
            data.push(0);
            data.extend_from_slice(value.as_ref());
            data.push(0);
        }
        Self { data }
    }

    /// Takes a serialisation of the host. One that is malformed reads as a shorter list.
    pub fn of_host(data: Vec<u8>) -> Self {
        Self { data }
    }

    /// Returns the serialisation of the ABI.
    pub fn as_bytes(&self) -> &[u8] {
        &self.data
    }

    /// Returns the first value of `name`, in whatever case it stands.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Iterates over the names and values, in order. It ends early if the serialisation is malformed.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        // Layout (ABI 0.2.1): count, then count times (name length, value length), then names and values, each
        // followed by a zero byte; numbers are 32-bit little endian.
        let count = read_u32(&self.data, 0).unwrap_or(0);
        let lengths_end = 4_usize.saturating_add(count.saturating_mul(8));
        let mut sizes_at = 4_usize;
        let mut at = lengths_end;
        std::iter::from_fn(move || {
            if sizes_at >= lengths_end {
                return None;
            }
            let name = next(&self.data, &mut sizes_at, &mut at)?;
            let value = next(&self.data, &mut sizes_at, &mut at)?;
            Some((name, value))
        })
    }
}

fn next<'a>(data: &'a [u8], sizes_at: &mut usize, at: &mut usize) -> Option<&'a [u8]> {
    let size = read_u32(data, *sizes_at)?;
    let end = at.checked_add(size)?;
    let bytes = data.get(*at..end)?;
    *sizes_at = sizes_at.checked_add(4)?;
    *at = end.checked_add(1)?;
    Some(bytes)
}

fn read_u32(data: &[u8], at: usize) -> Option<usize> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_read_back_what_was_serialised() {
        let headers: [(&str, &[u8]); 4] =
            [(":status", b"200"), ("x", b""), ("content-type", b"text/html"), ("x", b"\xff\x80")];
        let pairs = Pairs::of(&headers);
        let read: Vec<_> = pairs.iter().collect();
        let expected: Vec<(&[u8], &[u8])> = headers.iter().map(|(name, value)| (name.as_bytes(), *value)).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn a_broken_serialisation_ends_the_list_and_nothing_else() {
        let whole = Pairs::of(&[("a", "1"), ("bb", "22")]).data;
        for length in 0..whole.len() {
            let pairs = Pairs::of_host(whole.get(..length).unwrap().to_vec());
            assert!(pairs.iter().count() <= 2);
        }
        let lying = Pairs { data: vec![0xff; 64] };
        assert_eq!(lying.iter().count(), 0);
    }
}
