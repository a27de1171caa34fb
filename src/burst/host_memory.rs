//! The memory of the host that building a network needs.

use crate::error::{Error, Result};

/// Bytes that building a network takes per neuron: 44 of its parameters, 32 of its constants, 8 of its row and 16 of the bounds
/// of its input.
const BYTES_OF_A_NEURON: u64 = 100;
/// Bytes that building a network takes per synapse, at least.
const BYTES_OF_A_SYNAPSE: u64 = 16;
/// Bytes of a synapse in [`SynapseArrays`](super::SynapseArrays).
const BYTES_OF_ARRAYS: u64 = 11;
/// Bytes that building rows takes per neuron, for a row pointer and a count, and per synapse, for 6 bytes and 8 to sort by.
const BYTES_OF_ROWS: (u64, u64) = (16, 14);

/// Returns an error if the host has no memory for a network of these sizes. A program checks sizes of others before it builds
/// arrays, because an allocation that fails ends the process.
///
/// ```
/// use selvedge::burst::check_host_memory;
/// check_host_memory(1000, 100_000)?;
/// assert!(check_host_memory(1 << 31, u64::MAX).is_err());
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::OutOfMemory`] with the bytes and the sizes.
pub fn check_host_memory(neurons: u64, synapses: u64) -> Result<()> {
    check_sizes((neurons, BYTES_OF_A_NEURON), (synapses, BYTES_OF_A_SYNAPSE), "a network")
}

/// As [`check_host_memory`] for a generated network, whose arrays of synapses are in memory beside it.
pub(super) fn check_generated(neurons: u64, synapses: u64) -> Result<()> {
    check_sizes(
        (neurons, BYTES_OF_A_NEURON),
        (synapses, BYTES_OF_A_SYNAPSE + BYTES_OF_ARRAYS),
        "a generated network",
    )
}

/// As [`check_host_memory`] for the rows alone.
pub(super) fn check_rows(neurons: u64, synapses: u64) -> Result<()> {
    check_sizes((neurons, BYTES_OF_ROWS.0), (synapses, BYTES_OF_ROWS.1), "the synapses of a network")
}

/// Checks that the host has memory for numbers of neurons and synapses of so many bytes each.
fn check_sizes(neurons: (u64, u64), synapses: (u64, u64), subject: &str) -> Result<()> {
    let bytes = neurons.0.saturating_mul(neurons.1).saturating_add(synapses.0.saturating_mul(synapses.1));
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(size).map_err(|_| {
        let asked = format!("{subject} of {} neurons and {} synapses", neurons.0, synapses.0);
        Error::host_memory(size, asked)
    })?;
    // The compiler may drop an allocation that nothing looks at.
    drop(std::hint::black_box(memory));
    Ok(())
}
