//! The state of a network between bursts, and the checksums by which states and spikes are compared.

use super::network::Network;
use super::neurons::check_ids;
use crate::{Error, Result};

/// The most bursts that a state has behind it: no run reaches the end of 64 bits from there.
const MAX_BURST: u64 = 1 << 63;

/// A spike: the neuron and the potential at which it fired.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Spike {
    /// The neuron.
    pub id: u32,
    /// Its potential before the reset.
    pub potential: f32,
}

/// The state of one neuron: 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct NeuronState {
    /// Membrane potential.
    pub potential: f32,
    /// Touched bursts for which the neuron is still blocked.
    pub refractory_left: u16,
    /// Consecutive spikes, counted only while the neuron has a limit.
    pub fire_count: u16,
}

// SAFETY: plain numbers; all zeros is a value.
unsafe impl bytemuck::Zeroable for Spike {}
// SAFETY: repr(C) of two 4-byte numbers, without padding.
unsafe impl bytemuck::Pod for Spike {}
// SAFETY: plain numbers; all zeros is a value.
unsafe impl bytemuck::Zeroable for NeuronState {}
// SAFETY: repr(C) of a 4-byte and two 2-byte numbers, without padding.
unsafe impl bytemuck::Pod for NeuronState {}

/// Everything that a run continues from: with the network and the weights it determines all later bursts.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkState {
    /// The seed of the random draws.
    pub seed: u32,
    /// Bursts done, at most 2^63; the first burst is number 1.
    pub burst: u64,
    /// One element per neuron.
    pub neurons: Vec<NeuronState>,
    /// The spikes of the last burst in ascending order of id, one of each neuron: they propagate in the next one.
    pub fired: Vec<Spike>,
}

impl NetworkState {
    /// Returns the state before the first burst: every neuron at rest.
    pub fn at_rest(network: &Network, seed: u32) -> NetworkState {
        let at_rest = |rest: &f32| NeuronState { potential: *rest, refractory_left: 0, fire_count: 0 };
        let neurons = network.neurons().rest.iter().map(at_rest).collect();
        let mut state = NetworkState { seed, burst: 0, neurons, fired: Vec::new() };
        network.clear_removed(&mut state);
        state
    }

    /// Checks that a network of so many neurons can continue from the state.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::InvalidArgument`] for a burst above 2^63, and as [`check_spikes`].
    pub(super) fn check(&self, neurons: usize) -> Result<()> {
        let (wanted, found) = (neurons, self.neurons.len());
        if wanted != found {
            return Err(Error::LengthMismatch { operation: "a state of this network", wanted, found });
        }
        if self.burst > MAX_BURST {
            let wanted = format!("at most {MAX_BURST} bursts done");
            return Err(Error::invalid("a state of this network", format!("burst {}", self.burst), wanted));
        }
        check_spikes(&self.fired, neurons)
    }

    /// Returns the state hash: FNV-1a over potential, refractory countdown and fire count of each neuron.
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv::new();
        for neuron in &self.neurons {
            hash.write(&neuron.potential.to_le_bytes());
            hash.write(&neuron.refractory_left.to_le_bytes());
            hash.write(&neuron.fire_count.to_le_bytes());
        }
        hash.finish()
    }
}

/// Checks that spikes are of neurons, and that no neuron comes twice: sums and queues have space for one spike of each.
///
/// # Errors
/// [`Error::InvalidArgument`] with the neuron.
pub(super) fn check_spikes(fired: &[Spike], neurons: usize) -> Result<()> {
    check_ids(fired.iter().map(|spike| spike.id), neurons)?;
    if fired.is_sorted_by(|one, next| one.id < next.id) {
        return Ok(());
    }
    let mut ids: Vec<u32> = fired.iter().map(|spike| spike.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|two| two[0] == two[1]) {
        None => Ok(()),
        Some(two) => {
            let found = format!("two spikes of neuron {}", two[0]);
            Err(Error::invalid("the spikes of a burst", found, "one spike of each neuron"))
        }
    }
}

/// The spike hash: FNV-1a over the spikes of consecutive bursts.
///
/// ```
/// use selvedge::burst::{Spike, SpikeHash};
///
/// let mut hash = SpikeHash::new();
/// hash.add(1, &[Spike { id: 0, potential: 2.0 }]);
/// assert_ne!(hash.value(), SpikeHash::new().value());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpikeHash(Fnv);

impl SpikeHash {
    /// Returns the hash of no spikes.
    pub fn new() -> SpikeHash {
        SpikeHash(Fnv::new())
    }

    /// Returns the hash that goes on from the value of another.
    #[cfg(feature = "capi")]
    pub(crate) fn continued(value: u64) -> SpikeHash {
        SpikeHash(Fnv(value))
    }

    /// Adds the spikes of a burst, which must be in ascending order of id.
    pub fn add(&mut self, burst: u64, fired: &[Spike]) {
        for spike in fired {
            self.0.write(&(burst as u32).to_le_bytes());
            self.0.write(&spike.id.to_le_bytes());
            self.0.write(&spike.potential.to_le_bytes());
        }
    }

    /// Returns the hash of all spikes added.
    pub fn value(&self) -> u64 {
        self.0.finish()
    }
}

impl Default for SpikeHash {
    fn default() -> SpikeHash {
        SpikeHash::new()
    }
}

/// FNV-1a, 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn finish(self) -> u64 {
        self.0
    }
}
