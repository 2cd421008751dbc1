//! The section of the filter's configuration that is about objects of pages.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The configuration of the whole filter as written. `prefetch` and `inline` in it are this crate's. `Admission` is a
/// section of another crate.
pub type Config<Admission = IgnoredAny> = url_rewriting::Config<Budget, Admission>;

/// Bytes that inlining may spend, from the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The largest object that is put into a page, in bytes without content encoding.
    pub object_bytes: usize,
    /// The largest growth of a page by objects that are put into it, in bytes.
    pub page_bytes: usize,
}

/// Returns the budget of inlining, if inlining is on. Only prefetched objects are at hand, so it needs `prefetch`.
pub(crate) fn inlines<Admission>(config: &Config<Admission>) -> Option<Budget> {
    config.inline.filter(|_| config.prefetch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"targets": {}, "own": [], "level": "off", "ports": [], "prefetch": true,
        "inline": {"object_bytes": 1, "page_bytes": 2}}"#;

    #[test]
    fn objects_are_put_into_pages_only_where_they_are_prefetched() {
        let read = |json: &str| inlines::<()>(&serde_json::from_str(json).unwrap());
        assert_eq!(read(CONFIG), Some(Budget { object_bytes: 1, page_bytes: 2 }));
        assert_eq!(read(&CONFIG.replace("true", "false")), None);
        assert_eq!(read(r#"{"targets": {}, "own": [], "level": "off", "ports": [], "prefetch": true}"#), None);
    }

    #[test]
    fn a_misspelt_bound_is_refused_with_its_place() {
        let refused = serde_json::from_str::<Config>(&CONFIG.replace("page_bytes", "pages_bytes")).unwrap_err();
        assert!(refused.to_string().contains("unknown field `pages_bytes`"), "{refused}");
        assert_eq!(refused.line(), 2);
    }

    #[test]
    fn a_configuration_is_written_as_it_is_read() {
        let config: Config<()> = serde_json::from_str(CONFIG).unwrap();
        let again: Config<()> = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!(config, again);
    }
}
