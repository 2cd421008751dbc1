//! Reads header traces from files, in the form and order in which an Envoy filter would see them.
//!
//! | file | content |
//! |---|---|
//! | `.json` | a story of hpack-test-case: requests or responses of one connection |
//! | `.har` | an HTTP archive: requests and responses, as two traces |
//! | `.qif` | QPACK interop: `name`, tab, `value`; blocks end with an empty line |
//! | `.txt` | `name: value`; blocks end with an empty line |

use std::fs;
use std::path::{Path, PathBuf};

use header_codec::{FieldList, Side, is_hop_by_hop};
use serde_json::Value;

/// The blocks of one connection in order.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The file's name without its extension.
    pub name: String,
    /// Requests or responses.
    pub side: Side,
    /// The blocks.
    pub blocks: Vec<FieldList>,
}

/// Why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// The content does not match the extension.
    #[error("{0}: {1}")]
    Malformed(PathBuf, String),
    /// The extension is unknown.
    #[error("{0}: expected a file that ends in .json, .har, .qif or .txt")]
    UnknownEnding(PathBuf),
}

/// Reads one file, or all files of a folder in the order of their names.
pub fn read(path: &Path) -> Result<Vec<Trace>, TraceError> {
    let unreadable = |error| TraceError::Unreadable(path.to_owned(), error);
    if path.is_dir() {
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            files.push(entry.map_err(unreadable)?.path());
        }
        files.sort();
        let traces = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
        return Ok(traces.into_iter().flatten().collect());
    }
    let text = fs::read(path).map_err(unreadable)?;
    let blocks = match path.extension().and_then(|ending| ending.to_str()) {
        Some("json") => vec![story(&json(path, &text)?)],
        Some("har") => archive(&json(path, &text)?),
        Some("qif") => vec![lines(&text, b"\t")],
        Some("txt") => vec![lines(&text, b": ")],
        _ => return Err(TraceError::UnknownEnding(path.to_owned())),
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut traces = Vec::new();
    for blocks in blocks {
        let Some(first) = blocks.first() else {
            return Err(TraceError::Malformed(path.to_owned(), "the file holds no headers".to_owned()));
        };
        let response = first.iter().any(|(name, _)| name == b":status");
        let side = if response { Side::Response } else { Side::Request };
        traces.push(Trace { name: name.clone(), side, blocks: blocks.into_iter().map(as_a_filter_sees).collect() });
    }
    Ok(traces)
}

fn json(path: &Path, text: &[u8]) -> Result<Value, TraceError> {
    serde_json::from_slice(text).map_err(|error| TraceError::Malformed(path.to_owned(), error.to_string()))
}

fn story(json: &Value) -> Vec<FieldList> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let field = |header: &Value| {
        let pairs = header.as_object().cloned().unwrap_or_default();
        pairs.into_iter().next().map(|(name, value)| (name.into_bytes(), text_of(Some(&value))))
    };
    let cases = list(json.get("cases").unwrap_or(&Value::Null));
    cases
        .iter()
        .map(|case| list(case.get("headers").unwrap_or(&Value::Null)).iter().filter_map(field).collect())
        .collect()
}

fn text_of(value: Option<&Value>) -> Vec<u8> {
    value.and_then(Value::as_str).unwrap_or_default().as_bytes().to_vec()
}

fn archive(json: &Value) -> Vec<Vec<FieldList>> {
    let entries = json.pointer("/log/entries").and_then(Value::as_array).cloned().unwrap_or_default();
    let headers = |message: Option<&Value>| -> FieldList {
        let list = message.and_then(|message| message.get("headers")).and_then(Value::as_array).cloned();
        let list = list.unwrap_or_default().into_iter();
        list.map(|header| (text_of(header.get("name")).to_ascii_lowercase(), text_of(header.get("value")))).collect()
    };
    let mut requests = Vec::new();
    let mut responses = Vec::new();
    for entry in entries {
        let request = entry.get("request");
        let url = request.and_then(|request| request.get("url")).and_then(Value::as_str).unwrap_or_default();
        let Ok(url) = url::Url::parse(url) else { continue };
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let authority = url.authority().to_owned();
        let method = text_of(request.and_then(|request| request.get("method")));
        let mut fields: FieldList = vec![
            (b":authority".to_vec(), authority.into_bytes()),
            (b":path".to_vec(), path.into_bytes()),
            (b":method".to_vec(), method),
            (b":scheme".to_vec(), url.scheme().as_bytes().to_vec()),
        ];
        fields.extend(headers(request).into_iter().filter(|(name, _)| name != b"host" && !name.starts_with(b":")));
        requests.push(fields);
        let response = entry.get("response");
        let status = response.and_then(|response| response.get("status")).and_then(Value::as_u64).unwrap_or(200);
        let mut fields: FieldList = vec![(b":status".to_vec(), status.to_string().into_bytes())];
        fields.extend(headers(response).into_iter().filter(|(name, _)| !name.starts_with(b":")));
        responses.push(fields);
    }
    vec![requests, responses]
}

fn lines(text: &[u8], between: &[u8]) -> Vec<FieldList> {
    let mut blocks = vec![FieldList::new()];
    for line in text.split(|byte| *byte == b'\n') {
        // A name may begin with a colon.
        let at = line.windows(between.len()).skip(1).position(|window| window == between);
        match (at, blocks.last_mut()) {
            (Some(at), Some(block)) => {
                let (name, value) = line.split_at(at + 1);
                block.push((name.to_vec(), value.get(between.len()..).unwrap_or_default().to_vec()));
            }
            (None, Some(block)) if line.is_empty() && !block.is_empty() => blocks.push(FieldList::new()),
            _ => {}
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Puts pseudo-headers first, in Envoy's order unless the trace shows the client's order, and removes hop-by-hop
/// fields.
fn as_a_filter_sees(mut block: FieldList) -> FieldList {
    block.retain(|(name, _)| !is_hop_by_hop(name));
    let pseudo = block.iter().take_while(|(name, _)| name.starts_with(b":")).count();
    let all = block.iter().filter(|(name, _)| name.starts_with(b":")).count();
    let request = block.iter().any(|(name, _)| name == b":method");
    let method_first = block.first().is_some_and(|(name, _)| name == b":method");
    let sorted_by_client = pseudo == all && method_first && block.iter().any(|(name, _)| name.starts_with(b"sec-"));
    if !sorted_by_client {
        block.sort_by_key(|(name, _)| match name.as_slice() {
            b":authority" | b":status" => 0,
            b":path" => 1,
            b":method" => 2,
            b":scheme" => 3,
            _ => 4,
        });
    }
    if request && !block.iter().any(|(name, _)| name == b"x-forwarded-proto") {
        let scheme = block.iter().find(|(name, _)| name == b":scheme").map(|(_, value)| value.clone());
        block.push((b"x-forwarded-proto".to_vec(), scheme.unwrap_or_else(|| b"http".to_vec())));
    }
    block
}
