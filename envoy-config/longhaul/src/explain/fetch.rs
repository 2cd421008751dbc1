//! Gets a page as the box would for a browser: through `upstream.resolvers` and the guard, redirects included.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_config::{HostName, Settings};
use longhaul_render::{Guard, Refused};
use rustls::crypto::ring;
use ureq::config::Config;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use url::Url;

use super::transcript::Response;
use crate::dns_query::{LookupError, lookup};

/// The redirects that are followed.
const MOST_REDIRECTS: usize = 5;
/// The most bytes of a body as the origin sends it.
const MOST_BYTES: u64 = 8 << 20;
/// The time for one response, from the connection to its last byte.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The request headers of a browser that navigates to a page. The box replaces Accept-Encoding by gzip.
const HEADERS: [(&str, &str); 5] = [
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.9"),
    ("accept-encoding", "gzip"),
    ("upgrade-insecure-requests", "1"),
];
/// Browsers send these headers over https alone.
const SECURE_HEADERS: [(&str, &str); 4] = [
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
    ("sec-fetch-user", "?1"),
];

/// A page, with its way.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The URL of the page, after the redirects.
    pub url: Url,
    /// The redirects that were followed, in order.
    pub redirects: Vec<Redirect>,
    /// The response. Its body is as the origin sent it.
    pub response: Response,
}

/// A response that sends the browser to another URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// The URL that was requested.
    pub from: Url,
    /// The status code.
    pub status: u16,
    /// The URL in Location.
    pub to: Url,
}

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The URL is not http or https.
    #[error("`{0}` is not the URL of a page; expected a URL such as http://www.example.org/")]
    Url(String),
    /// The name has no address.
    #[error("{0}")]
    Lookup(#[from] LookupError),
    /// The guard refuses every address of the host. The box refuses it, too.
    #[error("the box refuses to connect to {host}: {destination} is {reason}")]
    Refused {
        /// The host in the URL.
        host: String,
        /// Its first address, with the port.
        destination: SocketAddr,
        /// The reason for this address.
        reason: Refused,
    },
    /// The bundle of certificate authorities cannot be read.
    #[error("cannot read the certificate authorities in {}: {error}", path.display())]
    Authorities {
        /// The bundle.
        path: PathBuf,
        /// The reason.
        error: String,
    },
    /// The connection or the response failed.
    #[error("no response from {url} ({destination}): {reason}")]
    NoResponse {
        /// The URL that was requested.
        url: String,
        /// The first address.
        destination: SocketAddr,
        /// The reason, with a remedy if there is one.
        reason: String,
    },
    /// The redirects do not end.
    #[error("more than {MOST_REDIRECTS} redirects; the last one leads to {0}. Type --url with the URL that you want")]
    TooManyRedirects(String),
}

/// The settings and the facts of this machine that decide about a fetch.
#[derive(Debug)]
pub(crate) struct Fetcher<'a> {
    settings: &'a Settings,
    guard: Guard,
    authorities: PathBuf,
}

impl<'a> Fetcher<'a> {
    /// `local` holds the addresses of this machine. `authorities` is a bundle of certificate authorities in PEM.
    pub(crate) fn new(settings: &'a Settings, local: &[IpAddr], authorities: PathBuf) -> Self {
        Self { settings, guard: Guard::new(settings, local), authorities }
    }

    /// Gets the page at `url`. Follows at most 5 redirects. Each host on the way is resolved and guarded.
    ///
    /// # Errors
    /// The box could not get the page either, or the response is too large or too slow.
    pub(crate) fn fetch(&self, url: &str) -> Result<Fetched, FetchError> {
        let mut url = Url::parse(url).map_err(|_| FetchError::Url(url.to_owned()))?;
        let mut redirects = Vec::new();
        loop {
            url = plain(url)?;
            let response = self.get(&url)?;
            let Some(to) = target(&url, &response) else { return Ok(Fetched { url, redirects, response }) };
            if redirects.len() == MOST_REDIRECTS {
                return Err(FetchError::TooManyRedirects(to.into()));
            }
            redirects.push(Redirect { from: url, status: response.status, to: to.clone() });
            url = to;
        }
    }

    /// Returns the addresses for a URL that the box may connect to, at least one.
    fn destinations(&self, url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        let bad_url = || FetchError::Url(url.to_string());
        let port = url.port_or_known_default().ok_or_else(bad_url)?;
        let addresses = match url.host().ok_or_else(bad_url)? {
            url::Host::Ipv4(address) => vec![address.into()],
            url::Host::Ipv6(address) => vec![address.into()],
            url::Host::Domain(name) => {
                let mapped = HostName::parse(name).ok().and_then(|name| self.settings.upstream.map.get(&name));
                if let Some(mapped) = mapped {
                    return Ok(vec![*mapped]);
                }
                lookup(&self.settings.upstream.resolvers, name)?
            }
        };
        let destinations = addresses.into_iter().map(|address| SocketAddr::new(address, port));
        let host = url.host_str().unwrap_or_default();
        allowed(&self.guard, destinations, host)
    }

    fn get(&self, url: &Url) -> Result<Response, FetchError> {
        let destinations = self.destinations(url)?;
        let destination = *destinations.first().ok_or_else(|| FetchError::Url(url.to_string()))?;
        let secure = url.scheme() == "https";
        let tls = if secure { tls(&self.authorities)? } else { TlsConfig::default() };
        let config = Config::builder()
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIMEOUT))
            .tls_config(tls)
            .build();
        let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), Fixed(destinations));
        let headers = HEADERS.into_iter().chain(SECURE_HEADERS.into_iter().filter(|_| secure));
        let request = headers.fold(agent.get(url.as_str()), |request, (name, value)| request.header(name, value));
        let fail = |error| FetchError::NoResponse { url: url.to_string(), destination, reason: reason(error) };
        let mut response = request.call().map_err(fail)?;
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(fail)?;
        let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok(Response { status: response.status().as_u16(), headers, body })
    }
}

/// Returns an http or https URL without fragment and credentials. A browser sends no fragment, and this program lends
/// no credentials.
fn plain(mut url: Url) -> Result<Url, FetchError> {
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(FetchError::Url(url.into()));
    }
    url.set_fragment(None);
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    cleared.map_err(|()| FetchError::Url(url.to_string())).map(|()| url)
}

/// Returns the target of a redirect. None for any other response.
fn target(url: &Url, response: &Response) -> Option<Url> {
    let redirects = matches!(response.status, 301 | 302 | 303 | 307 | 308);
    response.header("location").filter(|_| redirects).and_then(|location| url.join(location).ok())
}

/// Returns the destinations that the guard allows, or the reason for the first one.
fn allowed(
    guard: &Guard,
    destinations: impl Iterator<Item = SocketAddr>,
    host: &str,
) -> Result<Vec<SocketAddr>, FetchError> {
    let mut refused = None;
    let mut allowed = Vec::new();
    for destination in destinations {
        match guard.refusal(destination) {
            None => allowed.push(destination),
            Some(reason) => {
                refused.get_or_insert(FetchError::Refused { host: host.to_owned(), destination, reason });
            }
        }
    }
    match refused {
        Some(error) if allowed.is_empty() => Err(error),
        _ => Ok(allowed),
    }
}

fn tls(authorities: &Path) -> Result<TlsConfig, FetchError> {
    let unreadable = |error: String| FetchError::Authorities { path: authorities.to_owned(), error };
    let bundle = fs::read(authorities).map_err(|error| unreadable(error.to_string()))?;
    let roots: Vec<_> = parse_pem(&bundle)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if roots.is_empty() {
        return Err(unreadable("it holds no certificate".to_owned()));
    }
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

/// Returns the reason of a failed request, with the remedy for those that have one.
fn reason(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("timed out after {} s", TIMEOUT.as_secs()),
        ureq::Error::BodyExceedsLimit(bytes) => {
            format!("the page has more than {} MiB; save it with `curl -si` and pass the file", bytes >> 20)
        }
        ureq::Error::Rustls(error) => handshake(&error),
        // A certificate that is refused arrives inside an I/O error.
        ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => handshake(error),
            None => error.to_string(),
        },
        other => other.to_string(),
    }
}

fn handshake(error: &rustls::Error) -> String {
    format!(
        "the TLS handshake failed ({error}). The box trusts the same authorities; SSL_CERT_FILE names another bundle"
    )
}

/// Resolves every name to addresses that are known already.
#[derive(Debug)]
struct Fixed(Vec<SocketAddr>);

impl Resolver for Fixed {
    fn resolve(&self, _: &ureq::http::Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        for address in &self.0 {
            // Addresses beyond those that ureq tries are left out.
            let _ = addresses.try_push(*address);
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn settings(more: &str) -> Settings {
        let text = format!(
            "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53], {more} }}\n"
        );
        longhaul_config::load_text(Path::new("longhaul.yaml"), text).unwrap().settings
    }

    /// Serves the responses in order. Returns its address and the requests that came.
    fn origin(responses: Vec<String>) -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move |response: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            stream.write_all(response.as_bytes()).unwrap();
            request.join("\n")
        };
        (address, thread::spawn(move || responses.into_iter().map(serve).collect()))
    }

    fn page(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\nX-Y: Z\r\n\r\n{body}", body.len())
    }

    fn redirect(to: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    fn fetched(settings: &Settings, url: &str) -> Result<Fetched, FetchError> {
        Fetcher::new(settings, &[], PathBuf::from("none.pem")).fetch(url)
    }

    #[test]
    fn a_page_comes_with_a_browsers_headers_after_its_redirects() {
        let (address, requests) = origin(vec![redirect("/b#c"), page("<p>")]);
        let settings = settings(&format!("map: {{ www.example.org: \"{address}\" }}"));
        let fetched = fetched(&settings, "http://me:secret@www.example.org/a").unwrap();
        let requests = requests.join().unwrap();
        assert!(requests[0].starts_with("GET /a HTTP/1.1"), "{}", requests[0]);
        assert!(
            requests[0].contains("Mozilla/5.0") && requests[0].contains("accept-encoding: gzip"),
            "{}",
            requests[0]
        );
        assert!(!requests[0].contains("authorization") && !requests[0].contains("sec-fetch"), "{}", requests[0]);
        assert!(requests[1].starts_with("GET /b HTTP/1.1"), "{}", requests[1]);
        assert_eq!(fetched.url.as_str(), "http://www.example.org/b");
        assert_eq!((fetched.redirects.len(), fetched.redirects[0].status), (1, 302));
        assert_eq!((fetched.response.body.as_slice(), fetched.response.header("x-y")), (&b"<p>"[..], Some("Z")));
    }

    #[test]
    fn redirects_without_end_and_pages_without_end_are_refused() {
        let (address, _) = origin(vec![redirect("/"); MOST_REDIRECTS + 1]);
        let round = settings(&format!("map: {{ www.example.org: \"{address}\" }}"));
        assert!(matches!(fetched(&round, "http://www.example.org/"), Err(FetchError::TooManyRedirects(_))));
        let (address, _) = origin(vec![page(&"a".repeat(usize::try_from(MOST_BYTES).unwrap() + 1))]);
        let large = settings(&format!("map: {{ www.example.org: \"{address}\" }}"));
        let refused = fetched(&large, "http://www.example.org/").unwrap_err().to_string();
        assert!(refused.contains("more than 8 MiB"), "{refused}");
    }

    #[test]
    fn each_hop_is_guarded() {
        let refused = |more: &str, url: &str| fetched(&settings(more), url).unwrap_err().to_string();
        let loopback = refused("ports: [80]", "http://127.0.0.1/");
        assert!(loopback.contains("127.0.0.1:80 is an address of this host"), "{loopback}");
        assert!(refused("ports: [80]", "http://10.0.0.1/").contains("upstream.allow_private"));
        assert!(refused("ports: [80]", "http://8.8.8.8:8080/").contains("upstream.ports"));
        assert!(refused("ports: [80]", "ftp://8.8.8.8/").contains("expected a URL such as"));
        for target in ["http://[::1]/", "http://192.168.1.1/", "ftp://example.org/"] {
            let (address, _) = origin(vec![redirect(target)]);
            let mapped = format!("map: {{ www.example.org: \"{address}\" }}");
            let said = refused(&mapped, "http://www.example.org/");
            assert!(said.contains("refuses to connect") || said.contains("expected a URL"), "{target}: {said}");
        }
    }

    #[test]
    fn a_handshake_that_fails_and_a_missing_bundle_say_so() {
        let (address, _) = origin(vec![page("no TLS")]);
        let mapped = settings(&format!("map: {{ www.example.org: \"{address}\" }}"));
        let missing = fetched(&mapped, "https://www.example.org/").unwrap_err().to_string();
        assert!(missing.contains("cannot read the certificate authorities in none.pem"), "{missing}");
    }
}
