//! Synapses in compressed sparse rows by source: 6 bytes a synapse, read sequentially per row.
//!
//! Every slot is in use: there is no bit for a removed synapse. The merge of a simulation's edits (`edits`) builds the rows anew.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::host_memory::check_rows;
use crate::threads::{check_variable, run_on_threads, thread_count};
use crate::{Error, Result};

/// The bit of a stored target that marks an inhibitory synapse.
pub const INHIBITORY: u32 = 1 << 31;

/// The most neurons of a network: ids have 31 bits.
pub const MAX_NEURONS: usize = 1 << 31;

const OPERATION: &str = "the synapses of a network";

/// Synapses below this count are built by one thread.
const SYNAPSES_OF_A_THREAD: usize = 1 << 16;

/// Synapses as five arrays in any order.
#[derive(Debug, Clone, Copy)]
pub struct SynapseArrays<'a> {
    /// Ids of the neurons whose spikes the synapses carry.
    pub source: &'a [u32],
    /// Ids of the neurons that receive them.
    pub target: &'a [u32],
    /// Weights; plasticity changes them.
    pub weight: &'a [u8],
    /// Postsynaptic potentials; fixed.
    pub psp: &'a [u8],
    /// 0 excitatory, 1 inhibitory.
    pub kind: &'a [u8],
}

/// The synapses of a network as compressed sparse rows by source, each row in ascending order of target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synapses {
    row_pointers: Vec<u64>,
    targets: Vec<u32>,
    weights: Vec<u16>,
}

impl Synapses {
    /// Builds the rows of `neurons` sources from arrays in any order, on all processors.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for arrays of different lengths; [`Error::InvalidArgument`] for an id that is no neuron
    /// or a kind other than 0 and 1, naming the synapse, for more than 2^31 neurons and for a wrong `SELVEDGE_THREADS`;
    /// [`Error::OutOfMemory`].
    pub fn from_arrays(neurons: usize, arrays: &SynapseArrays) -> Result<Synapses> {
        check_variable()?;
        let count = arrays.source.len();
        for found in [arrays.target.len(), arrays.weight.len(), arrays.psp.len(), arrays.kind.len()] {
            if found != count {
                return Err(Error::LengthMismatch { operation: OPERATION, wanted: count, found });
            }
        }
        check_neurons(neurons)?;
        check_rows(neurons as u64, count as u64)?;
        let threads = thread_count().min(count.div_ceil(SYNAPSES_OF_A_THREAD)).max(1);

        // Counting sort by source. The order of arrival in a row depends on the threads; sorting each row removes that.
        let counts: Vec<AtomicU64> = std::iter::repeat_with(AtomicU64::default).take(neurons).collect();
        let first_bad = AtomicUsize::new(usize::MAX);
        in_chunks(threads, count, &|range| {
            for synapse in range {
                let (source, target) = (arrays.source[synapse] as usize, arrays.target[synapse] as usize);
                if source >= neurons || target >= neurons || arrays.kind[synapse] > 1 {
                    first_bad.fetch_min(synapse, Ordering::Relaxed);
                    return;
                }
                counts[source].fetch_add(1, Ordering::Relaxed);
            }
        });
        let first_bad = first_bad.into_inner();
        if first_bad != usize::MAX {
            return Err(bad_synapse(arrays, first_bad, neurons));
        }
        let mut row_pointers = Vec::with_capacity(neurons + 1);
        let mut total = 0;
        row_pointers.push(0);
        for row in &counts {
            let length = row.swap(total, Ordering::Relaxed);
            total += length;
            row_pointers.push(total);
        }

        let entries: Vec<AtomicU64> = std::iter::repeat_with(AtomicU64::default).take(count).collect();
        in_chunks(threads, count, &|range| {
            for synapse in range {
                let at = counts[arrays.source[synapse] as usize].fetch_add(1, Ordering::Relaxed);
                entries[at as usize].store(packed(arrays, synapse), Ordering::Relaxed);
            }
        });
        drop(counts);

        let (mut targets, mut weights) = (vec![0; count], vec![0; count]);
        sort_rows(threads, &row_pointers, &entries, &mut targets, &mut weights);
        Ok(Synapses { row_pointers, targets, weights })
    }

    /// Takes rows that are already compressed, such as those of a file, and checks them on all processors.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the row pointers fall or do not end at the number of synapses, a target is no neuron,
    /// or a row is not in ascending order of target, and for a wrong `SELVEDGE_THREADS`; [`Error::LengthMismatch`] for
    /// arrays of different lengths.
    pub fn from_rows(row_pointers: Vec<u64>, targets: Vec<u32>, weights: Vec<u16>) -> Result<Synapses> {
        check_variable()?;
        if weights.len() != targets.len() {
            let (wanted, found) = (targets.len(), weights.len());
            return Err(Error::LengthMismatch { operation: OPERATION, wanted, found });
        }
        let neurons = row_pointers.len().saturating_sub(1);
        check_neurons(neurons)?;
        let (first, last) = (row_pointers.first().copied(), row_pointers.last().copied());
        if first != Some(0) || last != Some(targets.len() as u64) {
            let found = format!("row pointers from {first:?} to {last:?}");
            return Err(Error::invalid(
                OPERATION,
                found,
                format!("row pointers from 0 to {}", targets.len()),
            ));
        }
        let threads = |work: usize| thread_count().min(work.div_ceil(SYNAPSES_OF_A_THREAD)).max(1);
        let falls = |row: usize| row_pointers[row] > row_pointers[row + 1];
        if let Some(row) = first_bad(threads(neurons), neurons, falls) {
            let found = format!("row {row} from {} to {}", row_pointers[row], row_pointers[row + 1]);
            return Err(Error::invalid(OPERATION, found, "row pointers that never fall"));
        }
        let synapses = Synapses { row_pointers, targets, weights };
        let ids =
            |source: usize| synapses.targets[synapses.row(source as u32)].iter().map(|id| id & !INHIBITORY);
        let stray = |source: usize| ids(source).find(|&id| id as usize >= neurons);
        let is_bad = |source: usize| stray(source).is_some() || !ids(source).is_sorted();
        let Some(source) = first_bad(threads(neurons + synapses.len()), neurons, is_bad) else {
            return Ok(synapses);
        };
        Err(match stray(source) {
            Some(target) => {
                let found = format!("target {target} of source {source}");
                Error::invalid(OPERATION, found, format!("an id below {neurons}"))
            }
            None => {
                let found = format!("the unsorted row of source {source}");
                Error::invalid(OPERATION, found, "rows in ascending order of target")
            }
        })
    }

    /// Returns the number of synapses.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns true if there are no synapses.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the start of each source's row and, last, the number of synapses: one element more than neurons.
    pub fn row_pointers(&self) -> &[u64] {
        &self.row_pointers
    }

    /// Returns the targets, inhibitory ones marked by [`INHIBITORY`].
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// Returns weight and PSP of each synapse: `weight | psp << 8`.
    pub fn weights(&self) -> &[u16] {
        &self.weights
    }

    /// Returns the indices of a source's synapses.
    #[inline]
    pub fn row(&self, source: u32) -> std::ops::Range<usize> {
        self.row_pointers[source as usize] as usize..self.row_pointers[source as usize + 1] as usize
    }

    /// Returns the indices of the synapses from a source to a target.
    pub(super) fn between(&self, source: u32, target: u32) -> std::ops::Range<usize> {
        let row = self.row(source);
        let targets = &self.targets[row.clone()];
        let start = row.start + targets.partition_point(|word| word & !INHIBITORY < target);
        let end = row.start + targets.partition_point(|word| word & !INHIBITORY <= target);
        start..end
    }

    /// Takes rows that were merged from checked rows and edits.
    pub(super) fn from_merged(row_pointers: Vec<u64>, targets: Vec<u32>, weights: Vec<u16>) -> Synapses {
        Synapses { row_pointers, targets, weights }
    }

    /// Returns the rows with only those synapses that end in a range of neurons: the synapses of a shard.
    pub(super) fn ending_in(&self, owned: std::ops::Range<u32>) -> Synapses {
        let mut part = Synapses {
            row_pointers: Vec::with_capacity(self.row_pointers.len()),
            targets: Vec::new(),
            weights: Vec::new(),
        };
        part.row_pointers.push(0);
        for source in 0..self.row_pointers.len() as u32 - 1 {
            let row = self.row(source);
            let targets = &self.targets[row.clone()];
            let start = row.start + targets.partition_point(|target| target & !INHIBITORY < owned.start);
            let end = row.start + targets.partition_point(|target| target & !INHIBITORY < owned.end);
            part.targets.extend_from_slice(&self.targets[start..end]);
            part.weights.extend_from_slice(&self.weights[start..end]);
            part.row_pointers.push(part.targets.len() as u64);
        }
        part
    }
}

/// Checks that ids of so many neurons fit.
pub(super) fn check_neurons(neurons: usize) -> Result<()> {
    if neurons > MAX_NEURONS {
        return Err(Error::invalid(
            OPERATION,
            format!("{neurons} neurons"),
            "at most 2^31: ids have 31 bits",
        ));
    }
    Ok(())
}

fn bad_synapse(arrays: &SynapseArrays, synapse: usize, neurons: usize) -> Error {
    let (source, target) = (arrays.source[synapse], arrays.target[synapse]);
    if source as usize >= neurons {
        Error::invalid(
            OPERATION,
            format!("source {source} of synapse {synapse}"),
            format!("an id below {neurons}"),
        )
    } else if target as usize >= neurons {
        Error::invalid(
            OPERATION,
            format!("target {target} of synapse {synapse}"),
            format!("an id below {neurons}"),
        )
    } else {
        Error::invalid(OPERATION, format!("kind {} of synapse {synapse}", arrays.kind[synapse]), "0 or 1")
    }
}

/// Calls `work` with ranges that together are `0..count`, in several threads.
pub(super) fn in_chunks(threads: usize, count: usize, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
    let size = count.div_ceil(threads * 4).max(1);
    let next = AtomicUsize::new(0);
    run_on_threads(threads, &|| {
        loop {
            let start = next.fetch_add(size, Ordering::Relaxed);
            if start >= count {
                return;
            }
            work(start..(start + size).min(count));
        }
    });
}

/// Returns the first of `0..count` that is bad, whatever the number of threads.
fn first_bad(threads: usize, count: usize, is_bad: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    let first = AtomicUsize::new(usize::MAX);
    in_chunks(threads, count, &|mut range| {
        if let Some(bad) = range.find(|&at| is_bad(at)) {
            first.fetch_min(bad, Ordering::Relaxed);
        }
    });
    Some(first.into_inner()).filter(|&first| first != usize::MAX)
}

/// Returns a synapse without its source as a number whose order is that of targets.
fn packed(arrays: &SynapseArrays, synapse: usize) -> u64 {
    u64::from(arrays.target[synapse]) << 17
        | u64::from(arrays.kind[synapse]) << 16
        | u64::from(arrays.psp[synapse]) << 8
        | u64::from(arrays.weight[synapse])
}

/// Sorts each row by target and unpacks it.
fn sort_rows(
    threads: usize,
    row_pointers: &[u64],
    entries: &[AtomicU64],
    targets: &mut [u32],
    weights: &mut [u16],
) {
    struct Block<'a> {
        rows: std::ops::Range<usize>,
        targets: &'a mut [u32],
        weights: &'a mut [u16],
    }
    // Blocks of about equal numbers of synapses, each with its own part of the output.
    let neurons = row_pointers.len() - 1;
    let size = entries.len().div_ceil(threads * 4).max(1) as u64;
    let (mut blocks, mut row) = (Vec::new(), 0);
    let (mut targets, mut weights) = (targets, weights);
    while row < neurons {
        let begin = row_pointers[row];
        let mut end = row + 1;
        while end < neurons && row_pointers[end] - begin < size {
            end += 1;
        }
        let length = (row_pointers[end] - begin) as usize;
        let (first_targets, rest_targets) = targets.split_at_mut(length);
        let (first_weights, rest_weights) = weights.split_at_mut(length);
        (targets, weights) = (rest_targets, rest_weights);
        blocks.push(Block { rows: row..end, targets: first_targets, weights: first_weights });
        row = end;
    }
    let blocks = Mutex::new(blocks);
    run_on_threads(threads, &|| {
        let mut sorted: Vec<u64> = Vec::new();
        loop {
            let block = blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
            let Some(block) = block else { return };
            let begin = row_pointers[block.rows.start] as usize;
            for row in block.rows {
                let range = row_pointers[row] as usize..row_pointers[row + 1] as usize;
                sorted.clear();
                sorted.extend(entries[range.clone()].iter().map(|entry| entry.load(Ordering::Relaxed)));
                sorted.sort_unstable();
                for (at, entry) in (range.start - begin..).zip(&sorted) {
                    let sign = if entry & 1 << 16 == 0 { 0 } else { INHIBITORY };
                    block.targets[at] = (entry >> 17) as u32 | sign;
                    block.weights[at] = *entry as u16;
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_whatever_the_order_of_the_arrays() {
        let arrays = SynapseArrays {
            source: &[2, 0, 2, 0],
            target: &[1, 2, 0, 1],
            weight: &[1, 2, 3, 4],
            psp: &[5, 6, 7, 8],
            kind: &[0, 1, 0, 0],
        };
        let synapses = Synapses::from_arrays(3, &arrays).unwrap();
        assert_eq!(synapses.row_pointers(), [0, 2, 2, 4]);
        assert_eq!(synapses.targets(), [1, 2 | INHIBITORY, 0, 1]);
        assert_eq!(synapses.weights(), [4 | 8 << 8, 2 | 6 << 8, 3 | 7 << 8, 1 | 5 << 8]);
    }

    #[test]
    fn bad_arrays_are_refused_by_name() {
        let good = SynapseArrays { source: &[0], target: &[1], weight: &[1], psp: &[1], kind: &[0] };
        let text = |arrays: SynapseArrays| Synapses::from_arrays(2, &arrays).unwrap_err().to_string();
        for (arrays, wanted) in [
            (SynapseArrays { source: &[2], ..good }, "source 2 of synapse 0; wanted an id below 2"),
            (SynapseArrays { target: &[7], ..good }, "target 7 of synapse 0; wanted an id below 2"),
            (SynapseArrays { kind: &[2], ..good }, "kind 2 of synapse 0; wanted 0 or 1"),
            (SynapseArrays { psp: &[], ..good }, "needs 1 element, but was given 0"),
        ] {
            assert!(text(arrays).contains(wanted), "{}", text(arrays));
        }
        assert!(Synapses::from_arrays(MAX_NEURONS + 1, &good).unwrap_err().to_string().contains("2^31"));
    }

    #[test]
    fn bad_rows_are_refused() {
        let error = |rows: &[u64], targets: &[u32]| {
            Synapses::from_rows(rows.to_vec(), targets.to_vec(), vec![0; targets.len()])
                .unwrap_err()
                .to_string()
        };
        assert!(error(&[0, 2, 1, 2], &[0, 1]).contains("row 1 from 2 to 1"));
        assert!(error(&[0, 1], &[0, 0]).contains("row pointers from 0 to 2"));
        assert!(error(&[0, 1], &[1]).contains("target 1 of source 0"));
        assert!(error(&[0, 2, 2], &[1, 0]).contains("unsorted row of source 0"));
        assert!(error(&[], &[]).contains("row pointers"));
    }

    #[test]
    fn the_first_of_several_bad_rows_is_named_by_any_number_of_threads() {
        // Rows of one synapse each, enough for several threads.
        let count = 4 * SYNAPSES_OF_A_THREAD;
        let error = |pointers: &[usize], targets: &[(usize, u32)]| {
            let mut rows: Vec<u64> = (0..=count as u64).collect();
            let mut stored: Vec<u32> = (0..count as u32).collect();
            pointers.iter().for_each(|&row| rows[row] += 2);
            targets.iter().for_each(|&(at, target)| stored[at] = target);
            Synapses::from_rows(rows, stored, vec![0; count]).map_err(|error| error.to_string()).err()
        };
        assert_eq!(error(&[], &[]), None);
        for first in [5, count / 2 + 1, count - 9] {
            let found = error(&[first, count - 3], &[]).unwrap_or_default();
            assert!(found.contains(&format!("row {first} from")), "{found}");
            let found = error(&[], &[(count - 3, u32::MAX), (first, count as u32)]).unwrap_or_default();
            assert!(found.contains(&format!("target {count} of source {first}")), "{found}");
        }
        for threads in [1, 2, 7] {
            assert_eq!(first_bad(threads, 1000, |at| at % 300 == 299), Some(299));
            assert_eq!(first_bad(threads, 1000, |at| at > 999), None);
        }
    }

    #[test]
    fn targets_next_to_the_largest_id_are_packed_sorted_and_cut() {
        let last = (MAX_NEURONS - 1) as u32;
        let target = [last, last - 1, 5, last];
        let arrays = SynapseArrays {
            source: &[0; 4],
            target: &target,
            weight: &[1, 2, 3, 255],
            psp: &[9, 8, 7, 255],
            kind: &[0, 1, 1, 1],
        };
        let entries: Vec<AtomicU64> = (0..4).map(|synapse| packed(&arrays, synapse).into()).collect();
        let (mut targets, mut weights) = (vec![0; 4], vec![0; 4]);
        sort_rows(1, &[0, 4], &entries, &mut targets, &mut weights);
        assert_eq!(targets, [5 | INHIBITORY, (last - 1) | INHIBITORY, last, last | INHIBITORY]);
        assert_eq!(weights, [3 | 7 << 8, 2 | 8 << 8, 1 | 9 << 8, u16::MAX]);
        let rows = Synapses { row_pointers: vec![0, 4], targets, weights };
        let shard = rows.ending_in(last - 1..last + 1);
        assert_eq!((shard.row_pointers(), shard.targets()), (&[0, 3][..], &rows.targets()[1..]));
        assert_eq!(rows.ending_in(6..last - 1).len(), 0);
        let stray = SynapseArrays { target: &[last + 1], ..arrays };
        let error = bad_synapse(&stray, 0, MAX_NEURONS).to_string();
        assert!(error.contains("target 2147483648 of synapse 0; wanted an id below 2147483648"), "{error}");
    }
}
