//! `longhaul explain FILE --url URL [PAGE]`: the fate of every URL of a page. `--name NAME`: the fate of a DNS name.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use longhaul_config::Settings;
use longhaul_derive::{HostFacts, derive};
use longhaul_observe::table;
use serde::Serialize;
use url::Url;

use super::{ConfigFile, Outcome, fail, load_or_refuse, print};
use crate::explain::{
    Count, Explanation, Fetcher, PageFate, Question, Response, Transcript, UrlFate, explain, explain_name,
    explain_port, source_of,
};
use crate::run::{local_addresses, trusted_ca};
use crate::terminal::width;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// The page's own URL; or tcp://HOST:PORT, for a connection to another port
    #[arg(long, value_name = "URL", required_unless_present = "name", default_value = "", hide_default_value = true)]
    url: String,
    /// A DNS name: asks the running box if it is steered, and why not
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "page", "fetch", "header", "status"])]
    name: Option<String>,
    /// The page as its origin sends it, or the output of `curl -si URL`; - or none reads standard input
    #[arg(value_name = "PAGE")]
    page: Option<PathBuf>,
    /// Get the page from its origin, as the box would: through upstream.resolvers and the guard, with a browser's
    /// headers and at most 5 redirects
    #[arg(long, conflicts_with = "page")]
    fetch: bool,
    /// A response header of the page, such as 'Content-Security-Policy: img-src *'; may be given several times, and
    /// replaces those of the same name
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// The response's status; default: that of the page, or 200
    #[arg(long, value_parser = clap::value_parser!(u16).range(100..600))]
    status: Option<u16>,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let loaded = load_or_refuse(&arguments.config.file)?;
    if let Some(name) = &arguments.name {
        return match explain_name(&loaded.settings, name) {
            Ok(fate) if arguments.json => print_json(&fate),
            Ok(fate) => print(&fate.to_string()),
            Err(error) => fail(&error),
        };
    }
    if let Some(fate) = explain_port(&loaded.settings, &arguments.url) {
        return if arguments.json { print_json(&fate.trim_end()) } else { print(&fate) };
    }
    let derived = derive(&loaded.settings, &HostFacts::of_this_machine());
    let (url, response) = match page(arguments, &loaded.settings) {
        Ok(page) => page,
        Err(error) => return fail(&error),
    };
    let question = Question {
        url: &url,
        headers: &response.headers,
        status: arguments.status.unwrap_or(response.status),
        page: &response.body,
    };
    let explanation = match explain(&loaded.settings, &derived, &question) {
        Ok(explanation) => {
            let host = Url::parse(&explanation.url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let name = host.and_then(|host| source_of(&loaded.settings, &host));
            Explanation { name, ..explanation }
        }
        Err(error) => return fail(&error.to_string()),
    };
    if arguments.json {
        return print_json(&explanation);
    }
    print(&describe(&explanation))
}

fn print_json(what: &impl Serialize) -> Outcome {
    match serde_json::to_string_pretty(what) {
        Ok(json) => print(&format!("{json}\n")),
        Err(error) => fail(&format!("internal fault: {error}")),
    }
}

fn read_page(path: Option<&Path>) -> Result<Vec<u8>, String> {
    if let Some(path) = path.filter(|path| path.as_os_str() != "-") {
        return fs::read(path).map_err(|error| format!("cannot read the page {}: {error}", path.display()));
    }
    let mut page = Vec::new();
    io::stdin().read_to_end(&mut page).map_err(|error| format!("cannot read the page from standard input: {error}"))?;
    Ok(page)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected `NAME: VALUE`")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

/// Returns the page with its headers, and its URL after redirects. They go to stderr, because the result is about the
/// last URL alone.
fn page(arguments: &Arguments, settings: &Settings) -> Result<(String, Response), String> {
    let (url, response) = if arguments.fetch {
        fetch(settings, &arguments.url)?
    } else {
        let bytes = read_page(arguments.page.as_deref())?;
        match Transcript::read(&bytes) {
            Some(transcript) => {
                let transcript = transcript.map_err(|error| error.to_string())?;
                (transcript.url(&arguments.url), transcript.last)
            }
            None => (arguments.url.clone(), Response { status: 200, headers: Vec::new(), body: bytes }),
        }
    };
    let response = response.decompressed().map_err(|error| error.to_string())?;
    Ok((url, Response { headers: with_given(arguments, response.headers), ..response }))
}

fn fetch(settings: &Settings, url: &str) -> Result<(String, Response), String> {
    let authorities = trusted_ca().map_err(|error| error.to_string())?;
    let fetcher = Fetcher::new(settings, &local_addresses(), authorities);
    let page = fetcher.fetch(url).map_err(|error| error.to_string())?;
    for redirect in &page.redirects {
        eprintln!("{} redirects with {} to {}", redirect.from, redirect.status, redirect.to);
    }
    Ok((page.url.into(), page.response))
}

/// Returns the headers with those of the command line. A page without a Content-Type gets the type that its name says,
/// as at a server.
fn with_given(arguments: &Arguments, mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.retain(|(name, _)| !arguments.header.iter().any(|(given, _)| given == name));
    headers.extend(arguments.header.iter().cloned());
    if !headers.iter().any(|(name, _)| name == "content-type") {
        let path =
            arguments.page.as_deref().filter(|path| path.as_os_str() != "-").unwrap_or(Path::new(&arguments.url));
        let sheet = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("css"));
        headers.push(("content-type".to_owned(), if sheet { "text/css" } else { "text/html" }.to_owned()));
    }
    headers
}

fn describe(explanation: &Explanation) -> String {
    let url = &explanation.url;
    let mut lines = vec![match &explanation.page {
        PageFate::Rewritten => format!("{url}: read and rewritten"),
        PageFate::Untouched { reason, explanation } => format!("{url}: passes unchanged ({reason}): {explanation}"),
    }];
    lines.extend(explanation.name.iter().map(|source| format!("  name {source}")));
    lines.extend(explanation.cache.iter().map(|cache| format!("  {}", cache.explanation)));
    lines.extend(explanation.images.iter().map(|images| format!("  {}", images.explanation)));
    lines.extend(explanation.delta.iter().map(|delta| format!("  {}", delta.explanation)));
    lines.extend(explanation.headers.iter().map(|change| match &change.value {
        Some(value) => format!("  header {}: {value}", change.name),
        None => format!("  header {} is removed", change.name),
    }));
    if !explanation.urls.is_empty() {
        let rows: Vec<Vec<String>> = explanation.urls.iter().map(row).collect();
        lines.push(String::new());
        lines.push(table(&["line", "where", "fate", "URL, and the result"], &rows, width()));
    }
    if explanation.page == PageFate::Rewritten {
        lines.push(counts(explanation.moved, &explanation.left));
    }
    if let Some(why) = &explanation.stopped {
        lines.push(format!("rewriting would stop before the end: {why}"));
    }
    lines.join("\n") + "\n"
}

/// Returns the counts in words: `3 moved, 2 left: 1 same_host, 1 level`.
fn counts(moved: u64, left: &[Count]) -> String {
    let reasons: Vec<String> = left.iter().map(|count| format!("{} {}", count.urls, count.reason)).collect();
    match left.iter().map(|count| count.urls).sum() {
        0_u64 => format!("{moved} moved, 0 left"),
        sum => format!("{moved} moved, {sum} left: {}", reasons.join(", ")),
    }
}

fn row(url: &UrlFate) -> Vec<String> {
    let place =
        if url.attribute == "#text" { url.element.to_owned() } else { format!("{} {}", url.element, url.attribute) };
    let shown = if url.url.is_empty() { "(not read)" } else { &url.url };
    let (fate, what) = match (&url.to, url.reason) {
        (Some(to), None) => ("moved", format!("{shown} -> {to}")),
        (Some(to), Some(_)) => ("pinned", format!("{shown} -> {to} {}", url.explanation.unwrap_or_default())),
        (None, reason) => (reason.unwrap_or("left"), format!("{shown} {}", url.explanation.unwrap_or_default())),
    };
    vec![format!("{}:{}", url.line, url.column), place, fate.to_owned(), what]
}
