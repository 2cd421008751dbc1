//! The url-rewrite filter: the entry point of its module.

filter_host::entry_point!(url_rewrite_streams::UrlRewrite);
