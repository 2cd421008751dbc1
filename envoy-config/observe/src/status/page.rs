//! The status page: HTML and JSON of one [`Status`], for `listen.status`.
//!
//! The page is complete without its script, which replaces the content every two seconds. Every text in it is escaped:
//! names of files and hosts come from others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, HtmlEscape, context};
use url_mapping::{Reason, Refusal};
use url_rewriting::BailOut;

use super::Status;
use super::past::utc;
use super::words::{millis, size, time};
use crate::report::RunReport;

/// The age up to which a status is shown again. Several open pages cost Envoy no more than one.
const FRESH: Duration = Duration::from_secs(1);
/// The page, and what it includes.
const TEMPLATES: [(&str, &str); 3] = [
    ("page", include_str!("page/status.html.j2")),
    ("tables", include_str!("page/tables.html.j2")),
    ("macros", include_str!("page/macros.html.j2")),
];

/// The pages about a run.
#[derive(Debug, Default)]
pub struct StatusPage {
    last: Mutex<Option<(Instant, Arc<Status>)>>,
}

impl StatusPage {
    /// Returns the media type and the content of the page, or of a file of it, at `path`. None if there is none. May wait for the children.
    pub fn page(&self, run: RunReport, path: &str) -> Option<(&'static str, String)> {
        let resource = |media_type, body| Some((media_type, body));
        match path {
            "/" => resource("text/html; charset=utf-8", html(&self.status(run)).ok()?),
            "/status.json" => {
                let json = self.status(run).json().ok()?;
                resource("application/json", json + "\n")
            }
            "/page.js" => resource("text/javascript; charset=utf-8", include_str!("page/page.js").to_owned()),
            "/page.css" => resource("text/css; charset=utf-8", include_str!("page/page.css").to_owned()),
            _ => None,
        }
    }

    /// Returns the status of now. Others wait meanwhile, and get the same.
    fn status(&self, run: RunReport) -> Arc<Status> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, status)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(status);
        }
        let status = Arc::new(Status::gather(run));
        *last = Some((Instant::now(), Arc::clone(&status)));
        status
    }
}

fn html(status: &Status) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("time", time);
    environment.add_filter("size", size);
    environment.add_filter("meaning", meaning);
    environment.add_filter("millis", millis);
    environment.add_filter("utc", utc);
    environment.add_filter("code", code);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    environment.get_template("page")?.render(context! {
        s => minijinja::value::Serde(status),
        sparks => minijinja::value::Serde(&status.sparks),
    })
}

/// Marks what stands between backticks as code. Everything is escaped.
fn code(text: &str) -> Value {
    let part = |(number, part): (usize, &str)| {
        let escaped = HtmlEscape(part);
        if number % 2 == 1 { format!("<code>{escaped}</code>") } else { escaped.to_string() }
    };
    Value::from_safe_string(text.split('`').enumerate().map(part).collect())
}

/// Returns the sentence about the `label` of a count. The sentence is empty for a label of a later version.
fn meaning(label: &str, of: &str) -> &'static str {
    let found = match of {
        "urls_left" => Reason::ALL.iter().find(|it| it.as_str() == label).map(|it| it.explanation()),
        "bail_outs" => BailOut::ALL.iter().find(|it| it.as_str() == label).map(|it| it.sentence()),
        "refused" => Refusal::ALL.iter().find(|it| it.as_str() == label).map(|it| it.explanation()),
        _ => None,
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::PastProblem;
    use super::super::path;
    use super::super::tests::{compared, healthy, hostile, measured};
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::report::{ProblemKind, ProblemRecord};
    use crate::why::{Measured, Way, explain};

    #[test]
    fn a_page_says_that_everything_works_or_what_does_not() {
        for role in ["edge", "remote", "ground"] {
            let page = html(&healthy(role)).unwrap();
            assert!(
                page.contains("Everything works.") && page.contains(&format!(": Longhaul {role}: ok</title>")),
                "{page}"
            );
            assert!(!page.contains("Problem:") && page.contains("None is recorded."), "{page}");
        }
    }

    #[test]
    fn the_sockets_of_a_key_stand_in_one_line() {
        let mut status = healthy("edge");
        status.listen.http = serde_json::from_str(r#"["0.0.0.0:80","[::]:80"]"#).unwrap();
        status.listen.status = Some("127.0.0.1:9900".parse().unwrap());
        status.listen.admin = Endpoint::Unix("@longhaul/admin".into());
        status.listen.dns_metrics = Some(Endpoint::Unix("@longhaul/names".into()));
        let page = html(&status).unwrap();
        assert!(page.contains(">0.0.0.0:80, [::]:80</td>") && page.contains(">127.0.0.1:9900</td>"), "{page}");
        assert!(!page.contains("@longhaul"), "sockets between the programs are not of the operator's: {page}");
    }

    #[test]
    fn code_is_marked_and_everything_is_escaped() {
        assert_eq!(code("write `mtu: <1280>` & more").to_string(), "write <code>mtu: &lt;1280&gt;</code> &amp; more");
        assert_eq!(code("<b>").to_string(), "&lt;b&gt;");
    }

    #[test]
    fn the_path_has_a_light_with_a_word_at_each_part() {
        for (role, parts) in [("edge", 4), ("remote", 5), ("ground", 5)] {
            let mut status = healthy(role);
            status.path = path::path(&status);
            let page = html(&status).unwrap();
            assert_eq!(page.matches("<p class=\"light\">").count(), parts, "{role}: {page}");
            assert_eq!(page.matches(" here\"><svg").count(), 1, "{role}: {page}");
        }
    }

    #[test]
    fn causes_stand_with_figures_and_advice_and_a_healthy_box_has_none() {
        let mut status = healthy("remote");
        let way = Way { is_alone: false, rtt_us: 600_000, down_bps: 20_000_000, up_bps: 5_000_000 };
        status.why = explain(&measured(), &way);
        let page = html(&status).unwrap();
        assert!(page.contains("Nothing takes more time than it should") && !page.contains("Why it is slow"), "{page}");
        status.why = explain(&Measured { queue_us: Some(500_000), ..measured() }, &way);
        let page = html(&status).unwrap();
        assert!(page.contains("Why it is slow") && page.contains("packets wait 500 ms"), "{page}");
    }

    #[test]
    fn the_last_problems_stand_with_their_times() {
        let mut status = healthy("remote");
        let kind = ProblemKind::LinkSilent;
        let record =
            |began, ended| ProblemRecord { kind, of: String::new(), text: "the silence".to_owned(), began, ended };
        status.last_problems =
            vec![PastProblem::of(record(600, None), 609), PastProblem::of(record(60, Some(112)), 609)];
        let page = html(&status).unwrap();
        assert!(page.contains(r"1970-01-01T00:10:00Z</th><td>9 s so far</td><td>the silence</td>"), "{page}");
        assert!(page.contains(r"1970-01-01T00:01:00Z</th><td>52 s</td><td>the silence</td>"), "{page}");
    }

    #[test]
    fn a_measured_link_stands_beside_the_configured_one_and_an_unknown_one_has_no_column() {
        let mut status = healthy("edge");
        assert!(!html(&status).unwrap().contains("Measured"));
        status.link_measured.rtt = Some("82ms".to_owned());
        let page = html(&status).unwrap();
        assert!(page.contains("Measured") && page.contains("<td>82ms</td>"), "{page}");
    }

    #[test]
    fn reasons_have_their_sentences() {
        assert_eq!(meaning("empty", "urls_left"), "The value is empty.");
        assert_eq!(meaning("growth", "bail_outs"), "It grew by `limits.output_growth_bytes`.");
        assert!(meaning("loop", "refused").contains("this proxy itself"));
        assert_eq!((meaning("later", "urls_left"), meaning("empty", "refused")), ("", ""));
        let page = html(&hostile("scheme")).unwrap();
        assert!(
            page.contains("<th scope=\"col\">Meaning</th>") && page.contains("Its scheme is neither http"),
            "{page}"
        );
    }

    #[test]
    fn compared_groups_are_shown_from_enough_connections_on() {
        let mut status = healthy("edge");
        assert!(!html(&status).unwrap().contains("Does it help?"));
        status.compared = Some(compared(12));
        let page = html(&status).unwrap();
        assert!(page.contains("Does it help?") && page.contains("12 of 30 connections"), "{page}");
        status.compared = Some(compared(40));
        let page = html(&status).unwrap();
        assert!(
            page.contains("600 ms (600 ms to 600 ms, 40 connections)") && page.contains("599 ms shorter"),
            "{page}"
        );
    }

    #[test]
    fn names_of_others_are_text_and_never_markup() {
        let page = html(&hostile("<script>alert(1)</script>'\"&")).unwrap();
        assert!(page.contains("Problem: ") && page.contains("&lt;script&gt;alert(1)&lt;"), "{page}");
        assert_eq!(page.matches("<script").count(), 1, "the page's own: {page}");
    }
}
