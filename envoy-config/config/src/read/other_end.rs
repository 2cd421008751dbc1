//! Keys of `split:` that have an effect at the other end of the link alone.

use crate::diagnostic::Problem;
use crate::reader::{Reader, Section};

pub(super) fn not_of_this_end(reader: &mut Reader, section: &Section<'_>, keys: &[&str], why: &str) {
    for setting in keys.iter().filter_map(|key| section.get(key)) {
        let title = format!("`{}` has no effect at this end of the link", setting.name);
        reader.problems.push(Problem::error(title, setting.key_place.clone(), why.to_owned()).help("remove it"));
    }
}
