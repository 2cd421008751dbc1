//! Compares a rewritten body with its original byte by byte, independently of the rewriter.

use url_mapping::{Mapper, Reverse};

use super::{PROXY, Seen};

/// Checks that `output` is `input` except for the URLs that moved according to `seen`, in the places it names. Each of
/// them must lead back.
pub fn only_moved_urls_differ(input: &[u8], output: &[u8], seen: &[Seen], mapper: &Mapper) -> Result<(), String> {
    let mut moved = seen.iter().filter_map(|url| url.moved().map(|moved| (url, moved))).peekable();
    let (mut at, mut out) = (0, 0);
    loop {
        // The next moved URL in the output begins with the proxy name, which no test page contains.
        let next = find(&output[out..], PROXY.as_bytes()).map(|distance| out + distance);
        let before = &output[out..next.unwrap_or(output.len())];
        let Some(same) = same_text(&input[at..], before, next.is_none()) else {
            return Err(format!("bytes outside URLs changed near {at}: {}", excerpt(input, at)));
        };
        at += same;
        let Some(begin) = next else { break };
        let Some((original, new)) = moved.next() else {
            return Err(format!("a URL moved that was not told of, near {at}: {}", excerpt(input, at)));
        };
        if original.offset > at {
            return Err(format!("{original:?} was changed at {at}"));
        }
        leads_back(new, mapper)?;
        let read_in = length_of(&input[at..], &original.url);
        let read_out = length_of(&output[begin..], new);
        let (Some(read_in), Some(read_out)) = (read_in, read_out) else {
            return Err(format!("{original:?} is not what stands at {at}: {}", excerpt(input, at)));
        };
        at += read_in;
        out = begin + read_out;
    }
    match moved.next() {
        None => Ok(()),
        Some((url, _)) => Err(format!("{url:?} did not move")),
    }
}

fn leads_back(moved: &str, mapper: &Mapper) -> Result<(), String> {
    let rest = moved.strip_prefix("https://pep.example.net").ok_or_else(|| format!("{moved} is not on the proxy"))?;
    match mapper.reverse(b"pep.example.net", rest.as_bytes()) {
        Reverse::Origin(_) => Ok(()),
        other => Err(format!("{moved} leads to {other:?}")),
    }
}

/// Returns how many bytes of `input` mean the same as all of `output`. Character references may be written differently.
fn same_text(input: &[u8], output: &[u8], to_the_end: bool) -> Option<usize> {
    let (mut at, mut out) = (0, 0);
    while out < output.len() {
        if input.get(at) == output.get(out) && output[out] != b'&' {
            at += 1;
            out += 1;
            continue;
        }
        let ((one, step), (other, out_step)) = (character(&input[at..])?, character(&output[out..])?);
        if one != other {
            return None;
        }
        at += step;
        out += out_step;
    }
    (!to_the_end || at == input.len()).then_some(at)
}

/// Reads the first character, as (ASCII value or 0, bytes). Decodes the references that this crate writes.
fn character(text: &[u8]) -> Option<(u8, usize)> {
    let first = *text.first()?;
    if first != b'&' {
        return Some((first, 1));
    }
    let end = text.iter().take(10).position(|&byte| byte == b';');
    let Some(name) = end.map(|end| &text[1..end]) else { return Some((b'&', 1)) };
    let decoded = match name {
        b"amp" | b"#38" | b"#038" | b"AMP" => b'&',
        b"quot" | b"#34" | b"#034" | b"QUOT" => b'"',
        b"apos" | b"#39" | b"#039" | b"#x27" | b"#X27" => b'\'',
        b"lt" | b"#60" => b'<',
        b"gt" | b"#62" => b'>',
        _ => return Some((b'&', 1)),
    };
    Some((decoded, name.len() + 2))
}

/// Returns how many bytes of `text` say `url`, including characters that may stand around it. Only ASCII is compared,
/// because encodings differ.
fn length_of(text: &[u8], url: &str) -> Option<usize> {
    let wanted: Vec<u8> = url.bytes().filter(|byte| byte.is_ascii() && !is_blank(*byte)).collect();
    let mut said = 0;
    let mut at = 0;
    while said < wanted.len() {
        let (byte, step) = character(&text[at..])?;
        let escaped = byte == b'\\' && text.get(at + 1) == Some(&wanted[said]);
        if escaped {
            at += 1;
        } else if !byte.is_ascii() || is_blank(byte) {
            at += step;
        } else if byte == wanted[said] {
            said += 1;
            at += step;
        } else if let Some((character, step)) = numeric(&text[at..]) {
            said += usize::from(character == wanted[said]);
            at += step;
        } else {
            return None;
        }
    }
    // Characters outside ASCII at the end belong to the URL as well. White space does not.
    Some(at + text[at..].iter().take_while(|byte| !byte.is_ascii()).count())
}

fn numeric(text: &[u8]) -> Option<(u8, usize)> {
    let text = std::str::from_utf8(&text[..text.len().min(12)]).ok()?;
    let end = text.find(';')?;
    let digits = text[..end].strip_prefix("&#")?;
    let code = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some((u8::try_from(code).ok()?, end + 1))
}

fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

fn excerpt(text: &[u8], at: usize) -> String {
    String::from_utf8_lossy(&text[at..text.len().min(at + 160)]).into_owned()
}
