//! The memory of the host that building a network needs.

use crate::error::{Error, Result};

/// Bytes that building a network takes per neuron and per synapse, at least.
const BYTES_OF_A_NEURON: u64 = 80;
const BYTES_OF_A_SYNAPSE: u64 = 16;

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
    let bytes = neurons.saturating_mul(BYTES_OF_A_NEURON);
    let bytes = bytes.saturating_add(synapses.saturating_mul(BYTES_OF_A_SYNAPSE));
    let mut memory: Vec<u8> = Vec::new();
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    memory.try_reserve_exact(size).map_err(|_| {
        Error::host_memory(size, format!("a network of {neurons} neurons and {synapses} synapses"))
    })
}
