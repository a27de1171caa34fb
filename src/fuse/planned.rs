//! Runs that an expression has planned before, found again by how their operands lie.
//!
//! A repeated run is a comparison of layouts and a launch. What must stay true: a plan depends on nothing but the device,
//! the operands' layouts and where their memory starts within [`WIDEST`] bytes, all of which are compared; scalars are
//! written into its block of parameters at each run. There are few places, by a hash, and the last run of a place
//! takes it, so many shapes in turn cost the planning again and no memory. The place of the last run is looked at first,
//! which needs no hash.

use std::sync::{Arc, PoisonError};

use super::expression::State;
use super::number::Number;
use super::plan::{Plan, WIDEST};
use super::space::Space;
use crate::driver::{Device, Function, Operand};
use crate::error::Result;
use crate::types::Layout;

const PLACES: usize = 64;

/// The plans of an expression.
pub(crate) struct Places {
    last: usize,
    plans: [Option<Arc<Planned>>; PLACES],
}

/// No plans.
pub(crate) const NONE: Places = Places { last: 0, plans: [const { None }; PLACES] };

impl Places {
    fn find<'a>(
        &mut self,
        device: &Device,
        operands: impl Iterator<Item = (&'a Layout, u64)> + Clone,
    ) -> Option<&Arc<Planned>> {
        let is_it = |plan: &Option<Arc<Planned>>| {
            plan.as_ref().is_some_and(|plan| plan.is_for(device, operands.clone()))
        };
        if !is_it(&self.plans[self.last]) {
            self.last = place(operands.clone());
            if !is_it(&self.plans[self.last]) {
                return None;
            }
        }
        self.plans[self.last].as_ref()
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
    /// The plan of a run, made where it is not known. Inputs come before outputs, in layouts and memory.
    ///
    /// # Errors
    ///
    /// As [`Space::new`], [`Plan::new`] and of loading a kernel.
    pub(crate) fn planned<'a>(
        &self,
        device: &Device,
        layouts: impl Iterator<Item = &'a Layout> + Clone,
        memory: &[Operand<'_>],
        scalars: &[Number],
    ) -> Result<Arc<Planned>> {
        let operands = layouts.zip(memory.iter().map(|operand| operand.view.address % WIDEST));
        let known = {
            let mut places = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            places.find(device, operands.clone()).cloned()
        };
        if let Some(planned) = known {
            return Ok(planned);
        }
        let place = place(operands.clone());
        let layouts: Vec<(Layout, u64)> = operands.map(|(layout, start)| (*layout, start)).collect();
        let planned =
            Arc::new(Planned { device: *device, launches: self.plan(device, &layouts, scalars)?, layouts });
        let mut places = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let old = places.plans[place].replace(planned.clone());
        drop(places);
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
