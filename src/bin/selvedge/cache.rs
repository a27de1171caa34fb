//! `selvedge cache`: the folder of compiled images, what is in it, and how to empty it.

use selvedge::nvrtc::{Cache, CacheStatistics};
use serde_json::json;

use crate::failure::Failure;
use crate::options::CacheOptions;
use crate::output::{self, Report, Style, Table};

/// Shows the cache, or clears it.
pub fn cache(options: &CacheOptions) -> Result<Report, Failure> {
    let cache = Cache::standard();
    let Some(folder) = cache.folder() else {
        // A variable that cannot be used is an error; one that turns the cache off is not.
        cache.statistics()?;
        let text = "There is no cache: SELVEDGE_CACHE is none, or there is no home folder.\n".to_owned();
        return Ok(Report { text, json: json!({ "folder": null }) });
    };
    let folder = folder.display().to_string();
    match &options.command {
        None => Ok(shown(&folder, &cache.statistics()?)),
        Some(_) => Ok(cleared(&folder, &cache.clear()?)),
    }
}

fn shown(folder: &str, statistics: &CacheStatistics) -> Report {
    let CacheStatistics { entries, bytes, limit, .. } = *statistics;
    let mut table = Table::new("<<");
    table.row(["folder".to_owned(), folder.to_owned()]);
    table.row(["entries".to_owned(), output::grouped(entries)]);
    table.row(["bytes".to_owned(), format!("{} ({})", output::grouped(bytes), output::bytes(bytes))]);
    table.row(["limit".to_owned(), output::bytes(limit)]);
    let json = json!({ "folder": folder, "entries": entries, "bytes": bytes, "limit_bytes": limit });
    Report { text: table.render(Style::of_stdout()), json }
}

fn cleared(folder: &str, removed: &CacheStatistics) -> Report {
    let CacheStatistics { entries, bytes, .. } = *removed;
    let what = if entries == 1 { "entry" } else { "entries" };
    let text =
        format!("Removed {} {what}, {}, from {folder}\n", output::grouped(entries), output::bytes(bytes));
    Report { text, json: json!({ "folder": folder, "removed_entries": entries, "removed_bytes": bytes }) }
}
