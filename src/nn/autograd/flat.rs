//! [`FlatStorage`], the elements of several variables in one tensor, and [`FlatSlot`], the slot of one of them.
//!
//! Invariants: a slot is contiguous, slots do not overlap, and each begins at a multiple of [`ALIGNMENT`] bytes. The
//! elements between slots are 0. Values stay at their address: a write while another tensor shares them is an error.
//! Gradients move away from tensors that share them, as any tensor does.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::changes;
use super::value::Value;
use super::variable::Variable;
use crate::driver::DeviceBuffer;
use crate::error::{Error, Result};
use crate::tensor::{Device, Tensor, TensorMut};
use crate::types::{DType, Layout, Shape};

/// The alignment of slots in bytes: a cache line, and more than bulk copies and vectors need.
const ALIGNMENT: usize = 128;

/// Elements of several variables.
pub(in crate::nn) struct FlatStorage {
    elements: RwLock<Tensor>,
    is_fixed: bool,
}

/// The elements of one variable in a storage.
#[derive(Clone)]
pub(in crate::nn) struct FlatSlot {
    storage: Arc<FlatStorage>,
    name: Arc<str>,
    layout: Layout,
    index: usize,
    start: usize,
    end: usize,
}

impl FlatStorage {
    /// Creates zeros with a slot for each name and shape, in order. `is_fixed` elements stay at their address.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::InvalidArgument`] for more elements than memory can have.
    pub(in crate::nn) fn with_slots(
        members: &[(Arc<str>, Shape)],
        dtype: DType,
        device: &Device,
        is_fixed: bool,
    ) -> Result<Vec<FlatSlot>> {
        let unit = (ALIGNMENT / dtype.size()).max(1);
        let mut layouts = Vec::with_capacity(members.len());
        let mut count = 0usize;
        for (_, shape) in members {
            let layout = Layout::strided(shape, Layout::from_shape(*shape).strides(), count)?;
            let end = count.checked_add(shape.count()).and_then(|end| end.checked_next_multiple_of(unit));
            count = end.ok_or_else(|| {
                let found = format!("{count} elements and a parameter of shape {shape}");
                Error::invalid("Parameters", found, format!("at most {} elements", usize::MAX))
            })?;
            layouts.push((layout, count));
        }
        let elements = Tensor::zeros(&[count], dtype, device)?;
        let storage = Arc::new(FlatStorage { elements: RwLock::new(elements), is_fixed });
        let slots = members.iter().zip(layouts).enumerate().map(|(index, ((name, _), (layout, end)))| {
            let (storage, name, start) = (storage.clone(), name.clone(), layout.offset());
            FlatSlot { storage, name, layout, index, start, end }
        });
        Ok(slots.collect())
    }

    fn read(&self) -> RwLockReadGuard<'_, Tensor> {
        self.elements.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tensor> {
        self.elements.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all elements, which the tensor shares.
    pub(in crate::nn) fn tensor(&self) -> Tensor {
        self.read().clone()
    }

    /// Returns whether the elements are at an address in device memory, and no tensor shares them.
    pub(super) fn is_at(&self, address: Option<u64>) -> bool {
        let elements = self.read();
        elements.is_unique() && address_of(&elements) == address
    }

    /// Changes the elements of a layout. `names` are those of its variables.
    fn change(
        self: &Arc<Self>,
        layout: Layout,
        names: impl FnOnce() -> String,
        change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut elements = self.write();
        if self.is_fixed && !elements.is_unique() {
            let found = format!("{}, whose storage another tensor shares", names());
            let wanted = "parameters that no tensor shares; copy or drop the tensors of parameters before";
            return Err(Error::invalid("update", found, wanted));
        }
        if changes::are_recorded() {
            if !elements.is_unique() {
                changes::refuse_elsewhere(
                    "backward",
                    "the gradients of Parameters, which another tensor shares",
                )?;
            }
            changes::record_storage(self, address_of(&elements));
        }
        change(&mut elements.in_place().with_layout(layout)?)
    }
}

/// Returns the address of elements in device memory.
fn address_of(elements: &Tensor) -> Option<u64> {
    elements.memory().cuda_buffer().map(DeviceBuffer::address)
}

impl FlatSlot {
    pub(in crate::nn) fn storage(&self) -> &Arc<FlatStorage> {
        &self.storage
    }

    /// Returns the first element's position in the storage.
    pub(in crate::nn) fn start(&self) -> usize {
        self.start
    }

    /// Returns the position behind the last element and the padding.
    pub(in crate::nn) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tensor(&self) -> Tensor {
        self.storage.read().view_as(self.layout)
    }

    /// Replaces the elements by those of a tensor of the same shape.
    ///
    /// # Errors
    ///
    /// As [`TensorMut::assign`].
    pub(in crate::nn) fn assign(&self, tensor: &Tensor) -> Result<()> {
        self.change(|elements| elements.assign(tensor).map(|_| ()))
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>) -> Result<()> {
        self.storage.change(self.layout, || format!("parameter '{}'", self.name), change)
    }

    /// Returns whether `next` is the slot behind this one.
    pub(in crate::nn) fn is_before(&self, next: &FlatSlot) -> bool {
        Arc::ptr_eq(&self.storage, &next.storage) && self.index + 1 == next.index
    }

    /// Returns the layout of the elements from this slot to a later one of the same storage.
    fn run_to(&self, last: &FlatSlot) -> Result<Layout> {
        Layout::strided(&[last.end - self.start], &[1], self.start)
    }
}

impl fmt::Debug for FlatSlot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FlatSlot({} from {} to {})", self.name, self.start, self.end)
    }
}

/// Returns the gradients of variables with neighbouring slots, or of one variable, as one tensor, if each has one.
///
/// # Errors
///
/// [`Error::InvalidArgument`] for several variables that are in no storage.
pub(in crate::nn) fn gradient_run(variables: &[Variable]) -> Result<Option<Tensor>> {
    if !variables.iter().all(Variable::has_gradient) {
        return Ok(None);
    }
    if let [variable] = variables
        && variable.slot().is_none()
    {
        return Ok(variable.grad());
    }
    let (first, last) = ends(variables, |variable| variable.node()?.slot())?;
    let tensor = first.storage.read().view_as(first.run_to(&last)?);
    Ok(Some(tensor))
}

/// Changes the gradients of variables that [`gradient_run`] returns.
///
/// # Errors
///
/// As there, and those of `change`.
pub(in crate::nn) fn change_gradient_run(
    variables: &[Variable],
    change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>,
) -> Result<()> {
    if let [variable] = variables {
        return variable.node().map_or(Ok(()), |node| node.change_gradient(change));
    }
    let (first, last) = ends(variables, |variable| variable.node()?.slot())?;
    first.storage.change(first.run_to(&last)?, String::new, change)
}

/// Changes variables with neighbouring slots as one tensor.
///
/// # Errors
///
/// As [`gradient_run`]; [`Error::InvalidArgument`] if another tensor shares the storage; those of `change`.
pub(in crate::nn) fn update_run(
    variables: &[Variable],
    change: impl FnOnce(&mut TensorMut<'_>) -> Result<()>,
) -> Result<()> {
    let (first, last) = ends(variables, Variable::slot)?;
    let names = || match first.index == last.index {
        true => format!("parameter '{}'", first.name),
        false => format!("parameters '{}' to '{}'", first.name, last.name),
    };
    let layout = first.run_to(&last)?;
    // No backward saves a value between the new version and the new elements.
    let values: Vec<&Arc<Value>> = variables.iter().map(Variable::value).collect();
    Value::with_next_versions(&values, || first.storage.change(layout, names, change))
}

/// Returns the slots of the first and the last variable.
fn ends(
    variables: &[Variable],
    slot: impl Fn(&Variable) -> Option<FlatSlot>,
) -> Result<(FlatSlot, FlatSlot)> {
    let first = variables.first().and_then(&slot);
    let none = || Error::invalid("update", "variables of no flat storage", "those of Parameters");
    first.zip(variables.last().and_then(slot)).ok_or_else(none)
}
