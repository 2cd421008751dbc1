//! The address in a refresh, of a `meta` element or of the `Refresh` header:
//! <https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps>.

/// Time and address of a refresh, if it has an address.
pub fn target(refresh: &str) -> Option<(&str, &str)> {
    let at = refresh.find(|character: char| !(character.is_ascii_digit() || character == '.' || character == ' '))?;
    let (time, rest) = refresh.split_at_checked(at)?;
    let rest = rest.trim_start_matches([';', ',', ' ']);
    let url = match rest.split_at_checked(3) {
        Some((name, after)) if name.eq_ignore_ascii_case("url") => {
            after.trim_start().strip_prefix('=').map_or(rest, str::trim_start)
        }
        _ => rest,
    };
    let url = match url.chars().next() {
        Some(quote @ ('"' | '\'')) => url.get(1..)?.split(quote).next()?,
        _ => url,
    };
    Some((time.trim(), url))
}
