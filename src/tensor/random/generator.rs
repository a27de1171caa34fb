//! [`Generator`], a source of random numbers.
//!
//! Invariants: two draws of one generator never have a block of the stream in common, whichever threads make
//! them; and a draw's numbers follow from the state before it, the shape and the dtype alone.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::device::Device;

/// The state of a generator, from which it can continue, in another process too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeneratorState {
    /// The key of the stream.
    pub seed: u64,
    /// The block of four words at which the next draw begins.
    pub offset: u64,
}

/// A random number generator: a seed, which selects a stream, and a position in the stream.
///
/// The stream is Philox 4x32-10 with the seed for its key. A draw of n elements begins at the generator's block of 4 words.
/// Its element i, in row-major order, takes the words w · i to w · i + w - 1 from there; each draw states its w, the words of an
/// element. The generator then advances by w · n / 4 blocks, rounded up. So the same seed gives the same numbers on the CPU and
/// on CUDA devices, whatever runs at the same time.
///
/// Clones share the position, and threads may draw at once. The parts of the stream that they get then depend on their timing,
/// so repeatable numbers need a generator for each thread. A draw that a graph captures is repeated by each of its
/// launches, except in a step of `nn::TrainingStep`, whose launches draw anew.
///
/// ```
/// use selvedge::tensor::{Device, Generator, Tensor};
/// use selvedge::types::DType;
/// let generator = Generator::new(7);
/// let x = generator.randn(&[1000], DType::F32, &Device::cpu())?;
/// let state = generator.state();
/// let y = generator.randn(&[1000], DType::F32, &Device::cpu())?;
/// generator.set_state(state);
/// assert_eq!(generator.randn(&[1000], DType::F32, &Device::cpu())?.to_vec::<f32>()?, y.to_vec::<f32>()?);
/// assert_ne!(x.to_vec::<f32>()?, y.to_vec::<f32>()?);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator(Arc<Mutex<GeneratorState>>);

impl Generator {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Generator {
        Generator::at(GeneratorState { seed, offset: 0 })
    }

    /// Creates a generator with the state of another one.
    pub fn at(state: GeneratorState) -> Generator {
        Generator(Arc::new(Mutex::new(state)))
    }

    /// Creates a generator with a seed from the operating system.
    pub fn unpredictable() -> Generator {
        // The standard library's only source; not for secrets.
        Generator::new(RandomState::new().hash_one(0u64))
    }

    fn lock(&self) -> MutexGuard<'_, GeneratorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.lock().seed
    }

    /// Returns the state, to [set](Self::set_state) again.
    pub fn state(&self) -> GeneratorState {
        *self.lock()
    }

    /// Restores a state that [`state`](Self::state) returned.
    pub fn set_state(&self, state: GeneratorState) {
        *self.lock() = state;
    }

    /// Sets the seed and restarts the stream.
    pub fn manual_seed(&self, seed: u64) {
        self.set_state(GeneratorState { seed, offset: 0 });
    }

    /// Returns whether two generators share a position, as a generator and its clone do.
    pub(super) fn is_same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Reserves blocks of the stream, and returns its seed and the first block.
    pub(in crate::tensor) fn take(&self, blocks: u64) -> [u64; 2] {
        let mut state = self.lock();
        let first = state.offset;
        state.offset = first.wrapping_add(blocks);
        [state.seed, first]
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GeneratorState { seed, offset } = self.state();
        write!(formatter, "Generator(seed {seed}, block {offset})")
    }
}

/// The default generator of each device, created at its first use.
static DEFAULTS: Mutex<Option<HashMap<Device, Generator>>> = Mutex::new(None);

impl Device {
    /// The generator of draws that name none. Its seed is unpredictable until [`manual_seed`](Self::manual_seed) sets it.
    pub fn generator(&self) -> Generator {
        let mut defaults = DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner);
        let generator = defaults.get_or_insert_default().entry(*self);
        generator.or_insert_with(Generator::unpredictable).clone()
    }

    /// Sets the seed of this device's default generator, which `Tensor::rand` and the like use; other devices keep theirs.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let device = Device::best();
    /// device.manual_seed(1);
    /// let x = Tensor::rand(&[3], DType::F64, &device)?.to_vec::<f64>()?;
    /// device.manual_seed(1);
    /// assert_eq!(Tensor::rand(&[3], DType::F64, &device)?.to_vec::<f64>()?, x);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn manual_seed(&self, seed: u64) {
        self.generator().manual_seed(seed);
    }
}
