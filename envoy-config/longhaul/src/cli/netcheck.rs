//! `longhaul netcheck [FILE]`: what keeps this box from its work, and what to type.

use std::path::PathBuf;
use std::time::Instant;

use longhaul_config::HostName;
use longhaul_observe::table;
use serde::Serialize;

use super::{FAILED, Outcome, fail, file_or_running, host_name, load_or_refuse, print, printable};
use crate::netcheck::{Finding, Options, Verdict, check};
use crate::terminal::width;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The configuration file; optional if only one box runs
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A public name, with which resolvers, the clock and QUIC are tried
    #[arg(long, value_name = "NAME", default_value = "www.example.org", value_parser = host_name)]
    name: HostName,
    /// The state folder of the run, if it was started with --state
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    let file = file_or_running(arguments.file.as_deref(), arguments.state.as_deref(), "netcheck")?;
    let loaded = load_or_refuse(&file)?;
    let began = Instant::now();
    let options = Options { name: arguments.name.clone(), state: arguments.state.clone() };
    let findings = check(loaded, options);
    let ok = !findings.iter().any(|finding| finding.verdict == Verdict::Error);
    if arguments.json {
        let result =
            Answer { ok, seconds: began.elapsed().as_secs_f64(), checks: findings.iter().map(Row::of).collect() };
        match serde_json::to_string_pretty(&result) {
            Ok(json) => print(&format!("{json}\n"))?,
            Err(error) => return fail(&format!("internal fault: {error}")),
        }
    } else {
        print(&describe(&findings))?;
    }
    if ok { Ok(()) } else { Err(FAILED) }
}

/// A table without a header: a line for each finding, and its cure below it.
fn describe(findings: &[Finding]) -> String {
    let rows = findings.iter().flat_map(|finding| {
        let head = [finding.verdict.word(), finding.check.label(), &finding.text].map(printable);
        let cure = finding.cure.as_ref().map(|cure| [String::new(), String::new(), format!("-> {}", printable(cure))]);
        [Some(head), cure].into_iter().flatten().map(Vec::from)
    });
    table(&["", "", ""], &rows.collect::<Vec<_>>(), width()).trim_start().to_owned()
}

#[derive(Serialize)]
struct Answer<'a> {
    /// True if no check found an error.
    ok: bool,
    seconds: f64,
    checks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    check: &'static str,
    question: &'static str,
    verdict: &'static str,
    text: &'a str,
    cure: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            check: finding.check.label(),
            question: finding.check.question(),
            verdict: finding.verdict.word(),
            text: &finding.text,
            cure: finding.cure.as_deref(),
        }
    }
}
