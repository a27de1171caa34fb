//! The cache of an expression's run plans, keyed by device, dtypes and layouts.
//!
//! A repeated run compares layouts and launches. The plan of the last run is checked first, without a hash or
//! a lock. A fixed number of slots holds the others, indexed by hash. A new plan replaces the old plan of its
//! slot, so alternating between many shapes costs planning time but no memory.
//!
//! Invariant: a plan depends only on the device, the operands' layouts and the alignment of their memory
//! within [`WIDEST`] bytes, and the lookup compares all of these. Each run writes its scalars into the plan's
//! parameter block. The same pass compares dtypes and memory lengths, so a cached run needs no other check.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::elementwise_device::{FEW_BYTES, RunOperand};
use super::expression::ExpressionState;
use crate::driver::{Device, Function, LaunchConfig};
use crate::error::Result;
use crate::fuse::ir::number::Number;
use crate::fuse::plan::elementwise::{BLOCK, ElementwisePlan, WIDEST, check_memory};
use crate::fuse::plan::space::Space;
use crate::types::Layout;

const SLOTS: usize = 64;

/// The plan cache of an expression. The field that every run reads comes first.
#[repr(C)]
pub(crate) struct PlanCache {
    last: Last<Option<Arc<CachedPlan>>>,
    slots: Mutex<[Option<Arc<CachedPlan>>; SLOTS]>,
}

impl PlanCache {
    pub(crate) const fn new() -> PlanCache {
        let last = Last { taken: AtomicBool::new(false), value: UnsafeCell::new(None) };
        PlanCache { last, slots: Mutex::new([const { None }; SLOTS]) }
    }
}

/// A slot that one thread at a time may take without waiting; other threads do without its value. Taking it
/// is an atomic exchange, and releasing it a plain store.
struct Last<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that has taken the slot accesses the value.
unsafe impl<T: Send> Sync for Last<T> {}

impl<T> Last<T> {
    #[inline]
    fn take(&self) -> Option<Taken<'_, T>> {
        if self.taken.swap(true, Ordering::Acquire) { None } else { Some(Taken(self)) }
    }
}

/// Access to the value of a slot. Dropping it releases the slot.
struct Taken<'a, T>(&'a Last<T>);

impl<T> Taken<'_, T> {
    #[inline]
    fn value(&mut self) -> &mut T {
        // SAFETY: only one `Taken` of a slot exists, and it is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// The plan of a run: everything except the operands' addresses.
pub(crate) struct CachedPlan {
    device: Device,
    /// The key: the words that [`RunOperand::write_key`] adds for each operand.
    key: Vec<u64>,
    pub(crate) launches: Vec<Launch>,
}

impl CachedPlan {
    /// Returns whether this is the plan of a run on these operands.
    #[inline]
    fn is_for(&self, device: &Device, operands: &[RunOperand<'_>]) -> bool {
        let mut key = &self.key[..];
        self.device == *device && operands.iter().all(|operand| operand.take_key(&mut key)) && key.is_empty()
    }
}

impl RunOperand<'_> {
    /// Returns the address of the memory modulo [`WIDEST`].
    fn start(&self) -> u64 {
        self.memory.view.address % WIDEST
    }

    /// Returns dtype, alignment and rank as one word.
    #[inline]
    fn header(&self) -> u64 {
        (self.layout.rank() as u64) << 16 | self.start() << 8 | self.dtype as u64
    }

    /// Adds the operand's words of a plan's key: dtype, alignment and rank, offset, bytes needed, and size
    /// and stride of each dimension.
    fn write_key(&self, key: &mut Vec<u64>) {
        let layout = self.layout;
        let bytes = layout.end() * self.dtype.size();
        key.extend([self.header(), layout.offset() as u64, bytes as u64]);
        let dimensions = layout.shape().iter().zip(layout.strides());
        key.extend(dimensions.flat_map(|(&size, &stride)| [size as u64, stride as u64]));
    }

    /// Returns whether the key begins with this operand and its memory is long enough, and removes the
    /// operand's words from the key.
    #[inline]
    fn take_key(&self, key: &mut &[u64]) -> bool {
        let layout = self.layout;
        let &[header, offset, bytes, ref rest @ ..] = *key else { return false };
        let Some((own, rest)) = rest.split_at_checked(2 * layout.rank()) else { return false };
        *key = rest;
        let (shape, strides) = (layout.shape(), layout.strides());
        // Indexed loops, because every run executes this: zipped iterators become calls if the crate is split
        // into code generation units.
        header == self.header()
            && offset == layout.offset() as u64
            && bytes <= self.memory.view.length as u64
            && (0..layout.rank())
                .all(|axis| own[2 * axis] == shape[axis] as u64 && own[2 * axis + 1] == strides[axis] as u64)
    }
}

/// One launch of a run.
pub(crate) struct Launch {
    pub(crate) function: Function,
    pub(crate) blocks: u32,
    /// The parameter block, with the expression's literals and the scalars of the planned run, padded with
    /// zeros to [`FEW_BYTES`] so that a small block is copied with a constant length.
    pub(crate) parameters: Vec<u8>,
    /// The bytes that the kernel takes.
    pub(crate) bytes: usize,
    /// The offset of each operand's first element in its memory, in bytes.
    pub(crate) offsets: Vec<u64>,
}

/// Returns the slot of a run among [`SLOTS`].
fn slot(operands: &[RunOperand<'_>]) -> usize {
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
    (hash >> 32) as usize % SLOTS
}

impl ExpressionState {
    /// Calls `launch` with the plan of a run, which is created if it is not cached.
    ///
    /// # Errors
    ///
    /// As `check_counts`, `check_dtypes`, [`check_memory`],
    /// [`Space::new`], [`ElementwisePlan::new`] and loading a kernel; the errors of `launch`.
    #[inline]
    pub(crate) fn with_plan(
        &self,
        device: &Device,
        operands: &mut [RunOperand<'_>],
        inputs: usize,
        scalars: &[Number],
        launch: impl Fn(&CachedPlan, &mut [RunOperand<'_>]) -> Result<()>,
    ) -> Result<()> {
        self.compiled.check_counts(inputs, operands.len() - inputs)?;
        let Some(mut last) = self.plans.last.take() else {
            return launch(&*self.planned(device, operands, scalars)?, operands);
        };
        let last = last.value();
        let planned = match last {
            Some(planned) if planned.is_for(device, operands) => planned,
            _ => last.insert(self.planned(device, operands, scalars)?),
        };
        launch(planned, operands)
    }

    /// Returns the plan of a run that differs from the last run.
    #[cold]
    fn planned(
        &self,
        device: &Device,
        operands: &[RunOperand<'_>],
        scalars: &[Number],
    ) -> Result<Arc<CachedPlan>> {
        self.compiled.check_dtypes(operands.iter().map(|operand| operand.dtype))?;
        for RunOperand { memory, layout, dtype } in operands {
            check_memory(*dtype, layout, memory.view.address, memory.view.length)?;
        }
        let slot = slot(operands);
        let slots = || self.plans.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = slots()[slot].clone();
        if let Some(planned) = key.filter(|plan| plan.is_for(device, operands)) {
            return Ok(planned);
        }
        let layouts: Vec<(Layout, u64)> =
            operands.iter().map(|operand| (*operand.layout, operand.start())).collect();
        let launches = self.plan(device, &layouts, scalars)?;
        let mut key = Vec::new();
        operands.iter().for_each(|operand| operand.write_key(&mut key));
        let planned = Arc::new(CachedPlan { device: *device, key, launches });
        let old = slots()[slot].replace(planned.clone());
        // Dropping the plan may unload its kernels, which must not happen under the lock.
        drop(old);
        Ok(planned)
    }

    fn plan(&self, device: &Device, layouts: &[(Layout, u64)], scalars: &[Number]) -> Result<Vec<Launch>> {
        let scalars = self.compiled.scalar_bits(scalars)?;
        let (shapes, starts): (Vec<Layout>, Vec<u64>) = layouts.iter().copied().unzip();
        let (inputs, outputs) = shapes.split_at(self.compiled.inputs.len());
        let bytes: Vec<usize> =
            self.compiled.inputs.iter().chain(&self.compiled.outputs).map(|dtype| dtype.size()).collect();
        let is_ampere = device.compute_capability() >= (8, 0);
        let mut launches = Vec::new();
        let mut each = |part: &Space| {
            if part.count() == 0 {
                return Ok(());
            }
            let plan = ElementwisePlan::new(part, &bytes, &starts, &scalars, is_ampere)?;
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
        let [inputs, outputs] = [inputs, outputs].map(|layouts| layouts.iter().collect::<Vec<_>>());
        self.compiled.space(&inputs, &outputs)?.try_for_each_small(&mut each)?;
        Ok(launches)
    }

    /// Writes the scalars of a run into a parameter block.
    pub(crate) fn write_scalars(&self, parameters: &mut [u8], given: &[Number]) {
        for (at, number) in given.iter().take(self.compiled.run_scalars.len()).enumerate() {
            let (index, dtype) = self.compiled.run_scalars[at];
            let Some(slot) = parameters.get_mut(16 * index..16 * index + 16) else { continue };
            let [first, second] = number.parts(dtype);
            slot[..8].copy_from_slice(&first.to_le_bytes());
            slot[8..].copy_from_slice(&second.to_le_bytes());
        }
    }
}
