//! The memory that a run may take.

use selvedge::{Device, Error};

/// Returns the bytes that tensors may take on a device: on a CUDA device the free memory with the pool's own, within the limit of
/// the pool; on the CPU those of [`on_host`].
///
/// # Errors
///
/// Driver errors; errors of the variables of the memory pool.
pub fn available(device: &Device) -> Result<Option<u64>, Error> {
    let Some(device) = device.as_cuda() else { return Ok(on_host()) };
    let limit = device.memory_snapshot()?.limit_bytes;
    let free = device.memory_info()?.free + device.pool_statistics().reserved_bytes;
    Ok(Some(limit.map_or(free, |limit| limit.min(free))))
}

/// The part of the machine's memory that tensors may take. The rest is for the products' packed operands and for blocks of freed
/// tensors that fit no other one.
const HOST_PART: (u64, u64) = (3, 4);

/// Returns [`HOST_PART`] of the available memory of the machine within the limits of the process's control group and address
/// space; none where the system does not say.
fn on_host() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| number_after(&text, "MemAvailable:"));
    let address_space = || {
        let limit = number_after(&read("/proc/self/limits")?, "Max address space")?;
        let used = number_after(&read("/proc/self/status")?, "VmSize:")?;
        Some(limit.saturating_sub(used * 1024))
    };
    let group = || {
        let groups = read("/proc/self/cgroup")?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        let folder = format!("/sys/fs/cgroup{}", path.trim_end_matches('/'));
        let limit = read(&format!("{folder}/memory.max"))?.trim().parse::<u64>().ok()?;
        let used = number_after(&read(&format!("{folder}/memory.stat"))?, "anon")?;
        Some(limit.saturating_sub(used))
    };
    let limits = [machine.map(|kibibytes| kibibytes * 1024), address_space(), group()];
    let (part, whole) = HOST_PART;
    limits.into_iter().flatten().min().map(|bytes| bytes / whole * part)
}

/// Returns the first number after a word that begins a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number_after;

    #[test]
    fn the_number_of_a_line_is_the_first_one_after_its_word() {
        let text = "MemTotal:       100 kB\nMemAvailable:    75 kB\nMax address space  unlimited  unlimited  bytes\n";
        assert_eq!(number_after(text, "MemAvailable:"), Some(75));
        assert_eq!(number_after(text, "Max address space"), None);
        assert_eq!(number_after(text, "anon"), None);
    }
}
