//! The name-budget filter: the entry point of its module.

filter_host::entry_point!(name_budget_streams::NameBudget);
