//! Runs that an expression has planned before, found again by how their operands lie.
//!
//! A repeated run is a comparison of layouts and a launch. What must stay true: a plan depends on nothing but the device,
//! the operands' layouts and where their memory starts within [`WIDEST`] bytes, all of which are compared; scalars are
//! written into its block of parameters at each run. What else must fit (dtypes, and memory that is as long as the layout
//! leads) is compared in the same pass, so a run like one before is checked by that alone. There are few places, by a
//! hash, and the last run of a place takes it, so many shapes in turn cost the planning again and no memory. The plan of
//! the last run is looked at first, which needs no hash and no lock.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::device::{FEW_BYTES, RunOperand, check_memory};
use super::expression::State;
use super::number::Number;
use super::plan::{BLOCK, Plan, WIDEST};
use super::space::Space;
use crate::driver::{Device, Function, LaunchConfig};
use crate::error::Result;
use crate::types::Layout;

const PLACES: usize = 64;

/// The plans of an expression. What every run looks at comes first.
#[repr(C)]
pub(crate) struct Plans {
    last: Last<Option<Arc<Planned>>>,
    places: Mutex<[Option<Arc<Planned>>; PLACES]>,
}

impl Plans {
    pub(crate) const fn new() -> Plans {
        let last = Last { taken: AtomicBool::new(false), value: UnsafeCell::new(None) };
        Plans { last, places: Mutex::new([const { None }; PLACES]) }
    }
}

/// What the last run has left. One run at a time has it, and nobody waits for it: who comes meanwhile does without.
/// To take it is one atomic exchange, and giving it back an ordinary store.
struct Last<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by who has taken it alone.
unsafe impl<T: Send> Sync for Last<T> {}

impl<T> Last<T> {
    #[inline]
    fn take(&self) -> Option<Taken<'_, T>> {
        if self.taken.swap(true, Ordering::Acquire) { None } else { Some(Taken(self)) }
    }
}

/// What was taken, until this is dropped.
struct Taken<'a, T>(&'a Last<T>);

impl<T> Taken<'_, T> {
    #[inline]
    fn value(&mut self) -> &mut T {
        // SAFETY: this is the only one, and borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// A run without its memory.
pub(crate) struct Planned {
    device: Device,
    /// What was known of the operands, one behind the other, as [`RunOperand::write_known`] says it.
    known: Vec<u64>,
    pub(crate) launches: Vec<Launch>,
}

impl Planned {
    /// Whether this is the plan of a run on such operands.
    #[inline]
    fn is_for(&self, device: &Device, operands: &[RunOperand<'_>]) -> bool {
        let mut known = &self.known[..];
        self.device == *device
            && operands.iter().all(|operand| operand.take_known(&mut known))
            && known.is_empty()
    }
}

impl RunOperand<'_> {
    /// Where its memory starts.
    fn start(&self) -> u64 {
        self.memory.view.address % WIDEST
    }

    /// Dtype, start and rank.
    #[inline]
    fn kind(&self) -> u64 {
        (self.layout.rank() as u64) << 16 | self.start() << 8 | self.dtype as u64
    }

    /// Adds what a plan knows of it: kind, offset, bytes that it needs, and size and stride of each dimension.
    fn write_known(&self, known: &mut Vec<u64>) {
        let layout = self.layout;
        let bytes = layout.end() * self.dtype.size();
        known.extend([self.kind(), layout.offset() as u64, bytes as u64]);
        let dimensions = layout.shape().iter().zip(layout.strides());
        known.extend(dimensions.flat_map(|(&size, &stride)| [size as u64, stride as u64]));
    }

    /// Whether what is known begins with this operand, in memory that is long enough; takes that off.
    #[inline]
    fn take_known(&self, known: &mut &[u64]) -> bool {
        let layout = self.layout;
        let &[kind, offset, bytes, ref rest @ ..] = *known else { return false };
        let Some((own, rest)) = rest.split_at_checked(2 * layout.rank()) else { return false };
        *known = rest;
        let (shape, strides) = (layout.shape(), layout.strides());
        // By index, since this is on the way of each run: pairs of iterators become calls where they are compiled apart.
        kind == self.kind()
            && offset == layout.offset() as u64
            && bytes <= self.memory.view.length as u64
            && (0..layout.rank())
                .all(|axis| own[2 * axis] == shape[axis] as u64 && own[2 * axis + 1] == strides[axis] as u64)
    }
}

/// One launch of it.
pub(crate) struct Launch {
    pub(crate) function: Function,
    pub(crate) blocks: u32,
    /// With the expression's own numbers, and those of the run that was planned; then zeros up to [`FEW_BYTES`], so that
    /// few are copied without looking how many they are.
    pub(crate) parameters: Vec<u8>,
    /// How many of those are the kernel's.
    pub(crate) bytes: usize,
    /// Where each operand's first element lies in its memory, in bytes.
    pub(crate) offsets: Vec<u64>,
}

/// The place of a run among [`PLACES`].
fn place(operands: &[RunOperand<'_>]) -> usize {
    let mut hash = 0u64;
    let mut take = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    for operand in operands {
        let layout = operand.layout;
        take(layout.offset() as u64 ^ operand.start() << 60);
        for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
            take(size as u64);
            take(stride as u64);
        }
    }
    (hash >> 32) as usize % PLACES
}

impl State {
    /// Does something with the plan of a run, made where it is not known.
    ///
    /// # Errors
    ///
    /// As [`check_counts`](Self::check_counts), [`check_dtypes`](Self::check_dtypes), [`check_memory`], [`Space::new`],
    /// [`Plan::new`] and of loading a kernel; those of `use_it`.
    #[inline]
    pub(crate) fn with_plan(
        &self,
        device: &Device,
        operands: &mut [RunOperand<'_>],
        inputs: usize,
        scalars: &[Number],
        use_it: impl Fn(&Planned, &mut [RunOperand<'_>]) -> Result<()>,
    ) -> Result<()> {
        self.check_counts(inputs, operands.len() - inputs)?;
        let Some(mut last) = self.plans.last.take() else {
            return use_it(&*self.planned(device, operands, scalars)?, operands);
        };
        let last = last.value();
        let planned = match last {
            Some(planned) if planned.is_for(device, operands) => planned,
            _ => last.insert(self.planned(device, operands, scalars)?),
        };
        use_it(planned, operands)
    }

    /// The plan of a run that is not like the last one.
    #[cold]
    fn planned(
        &self,
        device: &Device,
        operands: &[RunOperand<'_>],
        scalars: &[Number],
    ) -> Result<Arc<Planned>> {
        self.check_dtypes(operands.iter().map(|operand| operand.dtype))?;
        for RunOperand { memory, layout, dtype } in operands {
            check_memory(*dtype, layout, memory.view.address, memory.view.length)?;
        }
        let place = place(operands);
        let places = || self.plans.places.lock().unwrap_or_else(PoisonError::into_inner);
        let known = places()[place].clone();
        if let Some(planned) = known.filter(|plan| plan.is_for(device, operands)) {
            return Ok(planned);
        }
        let layouts: Vec<(Layout, u64)> =
            operands.iter().map(|operand| (*operand.layout, operand.start())).collect();
        let launches = self.plan(device, &layouts, scalars)?;
        let mut known = Vec::new();
        operands.iter().for_each(|operand| operand.write_known(&mut known));
        let planned = Arc::new(Planned { device: *device, known, launches });
        let old = places()[place].replace(planned.clone());
        // Its kernels may be the last of theirs: not under the lock.
        drop(old);
        Ok(planned)
    }

    fn plan(&self, device: &Device, layouts: &[(Layout, u64)], scalars: &[Number]) -> Result<Vec<Launch>> {
        let scalars = self.scalar_bits(scalars)?;
        let (shapes, starts): (Vec<Layout>, Vec<u64>) = layouts.iter().copied().unzip();
        let (inputs, outputs) = shapes.split_at(self.inputs.len());
        let bytes: Vec<usize> = self.inputs.iter().chain(&self.outputs).map(|dtype| dtype.size()).collect();
        let converts_brain = device.compute_capability() >= (8, 0);
        let mut launches = Vec::new();
        let mut each = |part: &Space| {
            if part.count() == 0 {
                return Ok(());
            }
            let plan = Plan::new(part, &bytes, &starts, &scalars, converts_brain)?;
            let function = self.kernel(device, &plan)?;
            let config = LaunchConfig::new(plan.blocks, BLOCK);
            function.accepts_operands(&config, bytes.len(), plan.block.len())?;
            let (mut parameters, length) = (plan.block, plan.parameters.bytes());
            parameters.resize(length.max(FEW_BYTES), 0);
            launches.push(Launch {
                function,
                blocks: plan.blocks,
                parameters,
                bytes: length,
                offsets: part
                    .offsets
                    .iter()
                    .zip(&bytes)
                    .map(|(&offset, &bytes)| (offset * bytes) as u64)
                    .collect(),
            });
            Ok(())
        };
        Space::new(inputs, outputs, &self.coordinates)?.try_for_each_small(&mut each)?;
        Ok(launches)
    }

    /// Writes the numbers that a run is given, as many as it must be, into a block of parameters.
    pub(crate) fn write_scalars(&self, parameters: &mut [u8], given: &[Number]) {
        for (at, number) in given.iter().take(self.given.len()).enumerate() {
            let (index, dtype) = self.given[at];
            let Some(room) = parameters.get_mut(16 * index..16 * index + 16) else { continue };
            let [first, second] = number.parts(dtype);
            room[..8].copy_from_slice(&first.to_le_bytes());
            room[8..].copy_from_slice(&second.to_le_bytes());
        }
    }
}
