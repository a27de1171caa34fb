//! Runs that an expression has planned before, found again by how their operands lie.
//!
//! A repeated run is a comparison of layouts and a launch. What must stay true: a plan depends on nothing but the device,
//! the operands' layouts and where their memory starts within [`WIDEST`] bytes, all of which are compared; scalars are
//! written into its block of parameters at each run. There are few places, by a hash, and the last run of a place
//! takes it, so many shapes in turn cost the planning again and no memory. The plan of the last run is looked at first,
//! which needs no hash and no lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::expression::State;
use super::number::Number;
use super::plan::{Plan, WIDEST};
use super::space::Space;
use crate::driver::{Device, Function, Operand};
use crate::error::Result;
use crate::types::Layout;

const PLACES: usize = 64;

/// The plans of an expression.
pub(crate) struct Plans {
    last: Last,
    places: Mutex<[Option<Arc<Planned>>; PLACES]>,
}

impl Plans {
    pub(crate) const fn new() -> Plans {
        Plans { last: Last(AtomicPtr::new(ptr::null_mut())), places: Mutex::new([const { None }; PLACES]) }
    }
}

/// The plan of the last run. A run has it to itself, so that nothing is counted: it takes the plan and puts it back, and
/// one that comes meanwhile looks in the places.
struct Last(AtomicPtr<Planned>);

impl Last {
    #[inline]
    fn take(&self) -> Option<Arc<Planned>> {
        let plan = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: what is there is of `put`, which gave up the reference; it is taken once.
        (!plan.is_null()).then(|| unsafe { Arc::from_raw(plan) })
    }

    #[inline]
    fn put(&self, plan: Arc<Planned>) {
        let old = self.0.swap(Arc::into_raw(plan).cast_mut(), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: as in `take`.
            drop(unsafe { Arc::from_raw(old) });
        }
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A run without its memory.
pub(crate) struct Planned {
    device: Device,
    /// By operand, and where its memory starts.
    layouts: Vec<(Layout, u64)>,
    pub(crate) launches: Vec<Launch>,
}

impl Planned {
    /// Whether this is the plan of a run on such operands, as many as it has.
    #[inline]
    fn is_for<'a>(&self, device: &Device, operands: impl Iterator<Item = (&'a Layout, u64)>) -> bool {
        self.device == *device
            && self
                .layouts
                .iter()
                .zip(operands)
                .all(|((layout, start), wanted)| *start == wanted.1 && layout == wanted.0)
    }
}

/// One launch of it.
pub(crate) struct Launch {
    pub(crate) function: Function,
    pub(crate) blocks: u32,
    /// With the expression's own numbers, and those of the run that was planned.
    pub(crate) parameters: Vec<u8>,
    /// Where each operand's first element lies in its memory, in bytes.
    pub(crate) offsets: Vec<u64>,
}

/// The place of a run among [`PLACES`].
fn place<'a>(operands: impl Iterator<Item = (&'a Layout, u64)>) -> usize {
    let mut hash = 0u64;
    let mut take = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    for (layout, start) in operands {
        take(layout.offset() as u64 ^ start << 60);
        for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
            take(size as u64);
            take(stride as u64);
        }
    }
    (hash >> 32) as usize % PLACES
}

impl State {
    /// Does something with the plan of a run, made where it is not known. Inputs come before outputs, in layouts and memory.
    ///
    /// # Errors
    ///
    /// As [`Space::new`], [`Plan::new`] and of loading a kernel; those of `use_it`.
    #[inline]
    pub(crate) fn with_plan<'a>(
        &self,
        device: &Device,
        layouts: impl Iterator<Item = &'a Layout> + Clone,
        memory: &mut [Operand<'_>],
        scalars: &[Number],
        use_it: impl FnOnce(&Planned, &mut [Operand<'_>]) -> Result<()>,
    ) -> Result<()> {
        let starts = memory.iter().map(|operand| operand.view.address % WIDEST);
        let operands = layouts.zip(starts);
        let last = self.plans.last.take();
        let planned = match last.filter(|plan| plan.is_for(device, operands.clone())) {
            Some(planned) => planned,
            None => self.planned(device, operands, scalars)?,
        };
        let result = use_it(&planned, memory);
        self.plans.last.put(planned);
        result
    }

    /// The plan of a run that is not like the last one.
    #[inline(never)]
    fn planned<'a>(
        &self,
        device: &Device,
        operands: impl Iterator<Item = (&'a Layout, u64)> + Clone,
        scalars: &[Number],
    ) -> Result<Arc<Planned>> {
        let place = place(operands.clone());
        let places = || self.plans.places.lock().unwrap_or_else(PoisonError::into_inner);
        let known = places()[place].clone();
        if let Some(planned) = known.filter(|plan| plan.is_for(device, operands.clone())) {
            return Ok(planned);
        }
        let layouts: Vec<(Layout, u64)> = operands.map(|(layout, start)| (*layout, start)).collect();
        let planned =
            Arc::new(Planned { device: *device, launches: self.plan(device, &layouts, scalars)?, layouts });
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
            function.accepts_operands(bytes.len(), plan.block.len())?;
            launches.push(Launch {
                function,
                blocks: plan.blocks,
                parameters: plan.block,
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
        let rooms = self.scalars.iter().zip(parameters.chunks_exact_mut(16));
        let rooms = rooms.filter(|((_, literal), _)| literal.is_none());
        for (((dtype, _), room), number) in rooms.zip(given) {
            for (room, bits) in room.chunks_exact_mut(8).zip(number.parts(*dtype)) {
                room.copy_from_slice(&bits.to_le_bytes());
            }
        }
    }
}
