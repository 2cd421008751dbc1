//! The clients: what they request, and what they check in each response.

use crate::exchange::{Asked, Received, Wants};
use crate::fields::{Field, field, pair, words};
use crate::laws::Broken;
use crate::orders::CLIENTS;
use crate::origin::{FORGED, Origins, Path, SITES, Url, When, name, secret, visitor};

/// The cookie that a client has for a site, if it has one.
pub(crate) fn cookie(client: u8, site: u8) -> Option<String> {
    (!(client + site).is_multiple_of(3)).then(|| name(client, site))
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

/// Returns the cookie of a request.
pub(crate) fn cookie_of(fields: &[Field]) -> Option<String> {
    field(fields, "cookie").map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Returns the requests of a client that claims to be an end: pages with its fields, and a slot. Each filter of the remote
/// removes its own fields.
pub(crate) fn forged(client: u8, has_bundling: bool, has_headers: bool) -> Vec<(Vec<Field>, Url)> {
    let url = Url { site: client % crate::origin::SITES, path: Path::Page(client % crate::origin::PAGES) };
    let with = |name| {
        let mut fields = request(client, &url, None).0;
        fields.push(pair(name, FORGED));
        (fields, url.clone())
    };
    let mut slot = request(client, &url, None).0;
    for (name, value) in &mut slot {
        if name == b":authority" {
            *value = page_flights::SLOT_AUTHORITY.as_bytes().to_vec();
        }
    }
    let object = Url { site: url.site, path: Path::Object(0) };
    let mut for_object = request(client, &object, Some(&url)).0;
    for_object.push(pair(page_flights::FLIGHT_FIELD, FORGED));
    let of_bundling = || vec![with(page_flights::FLIGHT_FIELD), (for_object, object), (slot, url.clone())];
    let of_headers = || vec![with("x-longhaul-headers"), with("x-longhaul-retry")];
    let mut requests = if has_bundling { of_bundling() } else { Vec::new() };
    requests.extend(has_headers.then(of_headers).into_iter().flatten());
    requests
}

/// Judges a message on the link: does it hold a word that is of neither end?
pub(crate) fn judge_message(fields: &[Field]) -> Result<(), Broken> {
    if field(fields, page_flights::HOSTS_FIELD).is_some() {
        return Err(Broken::LeakedHosts(format!("on the link: {}", words(fields))));
    }
    let is_forged = |value: &[u8]| value.starts_with(FORGED.as_bytes());
    match fields.iter().find(|(_, value)| is_forged(value)) {
        Some((name, _)) => Err(Broken::Forged(format!("{} in {}", String::from_utf8_lossy(name), words(fields)))),
        None => Ok(()),
    }
}

/// Judges what the ground tells its resolver: hosts of pages, the page's own first, and nothing of a visitor.
pub(crate) fn judge_hosts(fields: &[Field]) -> Result<(), Broken> {
    let list = field(fields, page_flights::HOSTS_FIELD).map(|list| String::from_utf8_lossy(list).into_owned());
    let is_site = |host: &str| (0..SITES).any(|site| host == format!("s{site}.test"));
    let hosts: Vec<&str> = list.iter().flat_map(|list| list.split(',')).collect();
    let are_named = hosts.len() > 1 && hosts.len() <= usize::from(SITES) && hosts.iter().all(|host| is_site(host));
    let has_more = ["cookie", "referer", "user-agent"].iter().any(|name| field(fields, name).is_some());
    if are_named && !has_more { Ok(()) } else { Err(Broken::LeakedHosts(words(fields))) }
}

/// Judges a request that reached an origin: whose credentials does it carry?
pub(crate) fn judge_request(fields: &[Field]) -> Result<(), Broken> {
    if field(fields, page_flights::HOSTS_FIELD).is_some() {
        return Err(Broken::LeakedHosts(format!("at an origin: {}", words(fields))));
    }
    let Some(cookie) = field(fields, "cookie").and_then(|cookie| cookie.split(|byte| *byte == b';').next()) else {
        return Ok(());
    };
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
    response: &Received<'_>,
    origins: &Origins,
    when: When,
    now_ms: u64,
) -> Result<(), Broken> {
    let Received { status, fields, body, .. } = *response;
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
    let mut foreign = others.map(|client| secret(&name(client, asked.url.site)));
    if foreign.any(|secret| text.contains(&secret)) {
        return Err(Broken::ForeignSecret(what()));
    }
    if let Some((name, _)) = fields.iter().find(|(name, _)| name.starts_with(b"x-longhaul-")) {
        return Err(Broken::LeakedField(format!("{} in {}", String::from_utf8_lossy(name), what())));
    }
    if field(fields, "content-encoding").is_some() {
        return Err(Broken::UntrueFields(what()));
    }
    let length = field(fields, "content-length").map(|value| String::from_utf8_lossy(value).into_owned());
    if status != 304 && length.is_some_and(|length| length != body.len().to_string()) {
        return Err(Broken::UntrueFields(format!("{} bytes, {}", body.len(), what())));
    }
    let who = visitor(&asked.url, Some(asked.client), asked.cookie.clone());
    let range = field(fields, "content-range").map(|range| String::from_utf8_lossy(range).into_owned());
    let is_same = |whole: &[u8]| match (&asked.wants, status) {
        (Wants::Part(part), 206) => {
            let end = part.end.min(whole.len());
            let said = format!("bytes {}-{}/{}", part.start, end.saturating_sub(1), whole.len());
            whole.get(part.start..end) == Some(body) && range.as_ref() == Some(&said)
        }
        (Wants::Other(kept), 304) => whole == kept,
        _ => whole == body && range.is_none(),
    };
    if origins.was(&asked.url, who.as_deref(), is_same, when, now_ms) {
        Ok(())
    } else {
        Err(Broken::OtherBytes(format!("{} bytes, {}", body.len(), what())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a personal page of client 0 in which the name of `whose` stands.
    fn verdict(whose: u8) -> Result<(), Broken> {
        let url = Url { site: 1, path: Path::Personal(0) };
        let (request, cookie) = request(0, &url, None);
        assert_eq!(judge_request(&request), Ok(()));
        let wants = Wants::Whole;
        let asked = Asked { client: 0, url: url.clone(), cookie: cookie.clone(), at_ms: 5, is_forged: false, wants };
        let origins = Origins::default();
        let body = origins.answer(&request, 5).body;
        let of = |client| secret(&name(client, 1));
        let body = String::from_utf8(body).unwrap().replace(&of(0), &of(whose));
        let fields = [pair(":status", "200")];
        let body = body.as_bytes();
        let response = Received { status: 200, fields: &fields, body, is_whole: true, is_stale: false };
        let when = When { at_ms: 5, moment_ms: 0, uncertain_ms: 0, is_stale: false };
        judge_response(&asked, &response, &origins, when, 5)
    }

    #[test]
    fn a_page_with_another_client_s_name_breaks_the_law() {
        assert_eq!(verdict(0), Ok(()));
        assert!(matches!(verdict(4), Err(Broken::ForeignSecret(_))));
    }
}
