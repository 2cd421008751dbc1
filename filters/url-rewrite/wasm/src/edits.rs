//! Applies the edits that the pure crates return.

use filter_host::HostError;
use filter_host::headers::{self, Map};
use url_rewriting::headers::Edit;

pub(crate) fn apply(map: Map, edits: &[Edit]) -> Result<(), HostError> {
    for edit in edits {
        match edit {
            Edit::Set(name, value) => headers::set(map, name, value)?,
            Edit::Add(name, value) => headers::add(map, name, value)?,
            Edit::Remove(name) => headers::remove(map, name)?,
        }
    }
    Ok(())
}

/// Returns the edits of `cache_admission` in the form of `url_rewriting`.
pub(crate) fn of_admission(edits: Vec<cache_admission::Edit>) -> Vec<Edit> {
    let translated = |edit| match edit {
        cache_admission::Edit::Set(name, value) => Edit::Set(name, value),
        cache_admission::Edit::Remove(name) => Edit::remove(name),
    };
    edits.into_iter().map(translated).collect()
}
