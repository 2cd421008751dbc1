//! The rules for one request: method, host, path, and the fields of every response.

use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
};
use hyper::{Method, Response, StatusCode, Uri};

use super::host_name::HostPolicy;

/// The script and the style sheet of a page are files of this server. Nothing else is loaded, and nobody frames a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";

/// A page or a file of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub body: String,
    status: StatusCode,
}

impl Resource {
    /// A page or file that is there.
    pub(crate) fn ok(media_type: &'static str, body: String) -> Self {
        Self { media_type, body, status: StatusCode::OK }
    }

    /// The reason, in a line of text, why something is not available now (status 503).
    pub(crate) fn unavailable(reason: String) -> Self {
        Self { media_type: TEXT, body: reason, status: StatusCode::SERVICE_UNAVAILABLE }
    }

    /// A line of text.
    pub(crate) fn text(line: String) -> Self {
        Self::ok(TEXT, line)
    }
}

/// The pages of a server by their paths. It is called on a thread that may wait.
pub(crate) type Pages = Arc<dyn Fn(&str) -> Option<Resource> + Send + Sync>;

/// The pages of a server, and the names under which it serves them.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) hosts: HostPolicy,
    pub(crate) pages: Pages,
}

impl Site {
    /// Responds to a request. Nothing here changes anything, so a body has no effect and is not read.
    pub(super) fn respond(&self, method: &Method, uri: &Uri, fields: &HeaderMap) -> Response<Full<Bytes>> {
        if let Err((status, why)) = self.refusal(method, uri, fields) {
            return response(status, TEXT, format!("{why}\n"));
        }
        match (self.pages)(uri.path()) {
            Some(resource) => response(resource.status, resource.media_type, resource.body),
            None => response(StatusCode::NOT_FOUND, TEXT, "404 there is no such page\n".to_owned()),
        }
    }

    /// Refuses a request of a page from elsewhere. Its browser would not show it the response, but also must not cost
    /// the work.
    fn refuse_foreign_pages(&self, fields: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        if fields.get_all(ORIGIN).iter().all(|origin| self.hosts.allows(host_of(origin))) {
            Ok(())
        } else {
            Err((StatusCode::FORBIDDEN, "403 a page of another origin may not read this"))
        }
    }

    fn refusal(&self, method: &Method, uri: &Uri, fields: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "405 these pages are only read"));
        }
        if self.hosts.allows_all() {
            return Ok(());
        }
        // A target with a host is valid instead of the field (RFC 9112 section 3.2.2). Two fields are an attack.
        let mut hosts = fields.get_all(HOST).iter();
        let (field, second) = (hosts.next(), hosts.next());
        let host = match uri.authority() {
            Some(authority) => Some(authority.as_str()),
            None => field.and_then(|field| field.to_str().ok()),
        };
        match host {
            Some(host) if second.is_none() && self.hosts.allows(host) => self.refuse_foreign_pages(fields),
            Some(_) => Err((StatusCode::MISDIRECTED_REQUEST, "421 this server has another name; use its address")),
            None => Err((StatusCode::BAD_REQUEST, "400 the request names no host")),
        }
    }
}

/// Returns the host of an origin (RFC 6454 section 6.1). Empty for `null`, which is the origin of a sandboxed page.
fn host_of(origin: &HeaderValue) -> &str {
    origin.to_str().ok().and_then(|origin| origin.split_once("://")).map_or("", |(_, host)| host)
}

fn response(status: StatusCode, media_type: &'static str, body: String) -> Response<Full<Bytes>> {
    const OTHERS: [(HeaderName, &str); 6] = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let mut made = Response::builder().status(status).header(CONTENT_TYPE, media_type);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        made = made.header(ALLOW, "GET, HEAD");
    }
    for (name, value) in OTHERS {
        made = made.header(name, value);
    }
    made.body(Full::new(Bytes::from(body))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let pages: Pages =
            Arc::new(|path| (path == "/").then(|| Resource::ok("text/html; charset=utf-8", "hello".to_owned())));
        Site { hosts: HostPolicy::of([]), pages }
    }

    fn status(method: &Method, target: &str, hosts: &[&str]) -> u16 {
        let fields = hosts.iter().map(|host| (HOST, HeaderValue::from_str(host).unwrap())).collect();
        site().respond(method, &target.parse().unwrap(), &fields).status().as_u16()
    }

    #[test]
    fn pages_are_read_under_own_names_alone() {
        assert_eq!(status(&Method::GET, "/", &["localhost:9900"]), 200);
        assert_eq!(status(&Method::HEAD, "/?again", &["127.0.0.1:9900"]), 200);
        assert_eq!(status(&Method::GET, "/absent", &["localhost"]), 404);
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::CONNECT, Method::TRACE] {
            assert_eq!(status(&method, "/", &["localhost"]), 405);
        }
        assert_eq!(status(&Method::GET, "/", &["evil.test"]), 421);
        assert_eq!(status(&Method::GET, "/absent", &["evil.test"]), 421);
        assert_eq!(status(&Method::GET, "http://evil.test/", &["localhost"]), 421);
        assert_eq!(status(&Method::GET, "/", &["localhost", "evil.test"]), 421);
        assert_eq!(status(&Method::GET, "/", &[]), 400);
    }

    #[test]
    fn pages_of_other_origins_read_nothing() {
        let status = |origins: &[&str]| {
            let host = (HOST, HeaderValue::from_static("127.0.0.1:9153"));
            let origins = origins.iter().map(|origin| (ORIGIN, HeaderValue::from_str(origin).unwrap()));
            let fields = [host].into_iter().chain(origins).collect();
            site().respond(&Method::GET, &"/".parse().unwrap(), &fields).status().as_u16()
        };
        for own in [&[][..], &["http://127.0.0.1:9153"], &["http://localhost"]] {
            assert_eq!(status(own), 200, "{own:?}");
        }
        for foreign in [&["https://evil.test"][..], &["null"], &[""], &["http://localhost", "http://evil.test:9153"]] {
            assert_eq!(status(foreign), 403, "{foreign:?}");
        }
    }

    #[test]
    fn every_response_forbids_scripts_of_others_frames_and_copies() {
        for (method, target) in [(Method::GET, "/"), (Method::GET, "/absent"), (Method::POST, "/")] {
            let fields = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
            let response = site().respond(&method, &target.parse().unwrap(), &fields);
            let policy = response.headers().get(CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"));
            assert!(!policy.contains("unsafe"));
            assert_eq!(response.headers().get(CACHE_CONTROL).unwrap(), "no-store");
            assert_eq!(response.headers().get("x-content-type-options").unwrap(), "nosniff");
        }
    }
}
