//! The cache-admission filter: the entry point of its module.

filter_host::entry_point!(cache_admission_streams::CacheAdmission);
