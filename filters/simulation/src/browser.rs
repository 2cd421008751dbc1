//! The clients: what they request, and what they check in each response.

use crate::exchange::Asked;
use crate::laws::Broken;
use crate::orders::CLIENTS;
use crate::origin::{Origins, Path, Url, When, field, pair, secret};
use crate::vm::Field;

/// The cookie that a client has for a site, if it has one.
pub(crate) fn cookie(client: u8, site: u8) -> Option<String> {
    (!(client + site).is_multiple_of(3)).then(|| format!("c{client}-s{site}"))
}

/// The request for `url`, on behalf of the page `referer`.
pub(crate) fn request(client: u8, url: &Url, referer: Option<&Url>) -> (Vec<Field>, Option<String>) {
    let is_personal = matches!(url.path, Path::Personal(_) | Path::PersonalObject(_));
    let cookie = cookie(client, url.site).filter(|_| is_personal || client.is_multiple_of(2));
    let accept = if url.is_page() { "text/html,*/*;q=0.8" } else { "*/*" };
    let mut fields = vec![
        pair(":method", "GET"),
        pair(":scheme", "http"),
        pair(":authority", &url.authority()),
        pair(":path", &url.path()),
        pair("user-agent", &format!("Browser/{client} (simulated; rv:{client}.0)")),
        pair("accept", accept),
        pair("accept-language", "en"),
        pair("accept-encoding", "gzip, deflate"),
    ];
    if let Some(page) = referer {
        fields.push(pair("referer", &format!("http://{}{}", page.authority(), page.path())));
    }
    if let Some(cookie) = &cookie {
        fields.push(pair("cookie", cookie));
    }
    (fields, cookie)
}

/// Judges a request that reached an origin: whose credentials does it carry?
pub(crate) fn judge_request(fields: &[Field]) -> Result<(), Broken> {
    let Some(cookie) = field(fields, "cookie") else { return Ok(()) };
    let agent = field(fields, "user-agent").unwrap_or_default();
    let site = Url::of(fields).map(|url| url.site);
    let is_own = (0..CLIENTS).any(|client| {
        let own = site.and_then(|site| self::cookie(client, site));
        own.as_deref().map(str::as_bytes) == Some(cookie) && agent.starts_with(format!("Browser/{client} ").as_bytes())
    });
    if is_own { Ok(()) } else { Err(Broken::LentCredential(words(fields))) }
}

/// Judges a whole response of status 200.
pub(crate) fn judge_response(
    asked: &Asked,
    fields: &[Field],
    body: &[u8],
    origins: &Origins,
    transit_ms: u64,
    now_ms: u64,
) -> Result<(), Broken> {
    let what = || {
        format!(
            "client {} at {} ms, {}{}: {}",
            asked.client,
            asked.at_ms,
            asked.url.authority(),
            asked.url.path(),
            words(fields)
        )
    };
    let text = String::from_utf8_lossy(body);
    let others = (0..CLIENTS).filter(|client| *client != asked.client);
    let mut foreign = others.filter_map(|client| cookie(client, asked.url.site));
    if foreign.any(|cookie| text.contains(&secret(&cookie))) {
        return Err(Broken::ForeignSecret(what()));
    }
    if let Some((name, _)) = fields.iter().find(|(name, _)| name.starts_with(b"x-longhaul-")) {
        return Err(Broken::LeakedField(format!("{} in {}", String::from_utf8_lossy(name), what())));
    }
    if field(fields, "content-encoding").is_some() {
        return Err(Broken::UntrueFields(what()));
    }
    let length = field(fields, "content-length").map(|value| String::from_utf8_lossy(value).into_owned());
    if length.is_some_and(|length| length != body.len().to_string()) {
        return Err(Broken::UntrueFields(format!("{} bytes, {}", body.len(), what())));
    }
    let when = When { at_ms: asked.at_ms, transit_ms };
    if origins.was(&asked.url, asked.cookie.as_deref(), body, when, now_ms) {
        Ok(())
    } else {
        Err(Broken::OtherBytes(format!("{} bytes, {}", body.len(), what())))
    }
}

/// Fields in one line.
pub(crate) fn words(fields: &[Field]) -> String {
    let word = |(name, value): &Field| format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
    fields.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a personal page of client 0 in which the name of `whose` stands.
    fn verdict(whose: u8) -> Result<(), Broken> {
        let url = Url { site: 1, path: Path::Personal(0) };
        let (request, cookie) = request(0, &url, None);
        assert_eq!(judge_request(&request), Ok(()));
        let asked = Asked { client: 0, url: url.clone(), cookie: cookie.clone(), at_ms: 5 };
        let origins = Origins::default();
        let body = origins.answer(&request, 5).body;
        let name = |client| secret(&super::cookie(client, 1).unwrap());
        let body = String::from_utf8(body).unwrap().replace(&name(0), &name(whose));
        judge_response(&asked, &[pair(":status", "200")], body.as_bytes(), &origins, 0, 5)
    }

    #[test]
    fn a_page_with_another_client_s_name_breaks_the_law() {
        assert_eq!(verdict(0), Ok(()));
        assert!(matches!(verdict(4), Err(Broken::ForeignSecret(_))));
    }
}
