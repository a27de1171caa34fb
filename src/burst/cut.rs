//! Cuts of a network into ranges of neurons with about the same number of incoming synapses.

use std::ops::Range;

use super::network::Network;
use super::synapses::INHIBITORY;

/// The cost of updating a neuron, in synapses.
const NEURON_COST: u64 = 8;

/// Cuts the owned neurons of a network into `parts` consecutive ranges, balanced by incoming synapses. Ranges can be empty
/// where there are fewer neurons than parts.
pub(super) fn balanced_ranges(network: &Network, parts: usize) -> Vec<Range<u32>> {
    let owned = network.owned();
    if parts <= 1 {
        return vec![owned];
    }
    let mut costs = vec![NEURON_COST; owned.len()];
    for target in network.synapses().targets() {
        costs[((target & !INHIBITORY) - owned.start) as usize] += 1;
    }
    let total: u64 = costs.iter().sum();
    let mut ranges = Vec::with_capacity(parts);
    let (mut start, mut end, mut passed) = (owned.start, owned.start, 0);
    for part in 1..=parts as u64 {
        // 128 bits: the product could overflow 64 with many parts of a large network.
        let goal = (u128::from(total) * u128::from(part) / parts as u128) as u64;
        while end < owned.end && passed < goal {
            passed += costs[(end - owned.start) as usize];
            end += 1;
        }
        ranges.push(start..end);
        start = end;
    }
    ranges
}
