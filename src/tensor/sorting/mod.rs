//! Sorting, selection, search and counting of tensors.
//!
//! | file | methods |
//! |---|---|
//! | `order.rs` | `sort`, `sorted`, `argsort`, `msort`, `topk`, `kthvalue` |
//! | `statistics.rs` | `median`, `nanmedian`, `quantile`, `nanquantile`, `mode` |
//! | `distinct.rs` | `unique`, `unique_consecutive`, `isin` |
//! | `search.rs` | `searchsorted`, `bucketize` |
//! | `counts.rs` | `bincount`, `histc`, `histogram` |
//! | `nonzero.rs` | `nonzero`, `argwhere`, `masked_select` |
//!
//! Every method is a composition of the kernels of [`crate::sort`], scans, gathers and expressions, so it has the same bits on
//! the CPU and on a CUDA device. NaN comes after all numbers and -0 equals 0, as in PyTorch. A result whose shape depends on
//! the elements waits for the device.
//!
//! Tests: `tests/tensor/sorting.rs`.

mod counts;
mod distinct;
mod nonzero;
mod order;
mod search;
mod statistics;

pub(super) use nonzero::true_positions;
pub(super) use statistics::differs_from_previous;

use std::ops::Range;

use super::kernel::{self, Output};
use super::storage::{self, MemoryMut};
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::sort::{self, SortKey};
use crate::types::{DType, Layout, Shape};

/// A tensor whose rows along one axis are contiguous: the axis is moved to the end.
struct AxisRows {
    elements: Tensor,
    axis: isize,
    is_scalar: bool,
}

impl AxisRows {
    /// A tensor without dimensions is one row of one element, as in PyTorch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an axis that is not there; those of a copy.
    fn new(operation: &'static str, tensor: &Tensor, axis: isize) -> Result<AxisRows> {
        let is_scalar = tensor.rank() == 0;
        let tensor = if is_scalar { tensor.unsqueeze(0)? } else { tensor.clone() };
        let axis = tensor.shape().axis(operation, axis)? as isize;
        let elements = tensor.movedim(&[axis], &[-1])?.contiguous()?;
        Ok(AxisRows { elements, axis, is_scalar })
    }

    /// Returns the number of elements of a row.
    fn length(&self) -> usize {
        self.elements.shape().last().copied().unwrap_or(1)
    }

    /// Returns a result of rows with its axis in the tensor's position.
    fn restore(&self, result: &Tensor) -> Result<Tensor> {
        if self.is_scalar { result.squeeze(0) } else { result.movedim(&[-1], &[self.axis]) }
    }

    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for rows without elements.
    fn check_not_empty(&self, operation: &'static str) -> Result<()> {
        if self.length() > 0 {
            return Ok(());
        }
        let found = format!("axis {} of size 0", self.axis);
        Err(Error::invalid(operation, found, "at least one element to select"))
    }

    /// Returns the position in its row of each element in sorted order, as i64.
    fn argsort(&self, operation: &'static str, descending: bool) -> Result<Tensor> {
        self.argsort_by(operation, SortKey::new(operation, self.elements.dtype(), descending)?)
    }

    fn argsort_by(&self, operation: &'static str, key: SortKey) -> Result<Tensor> {
        let (elements, length) = (&self.elements, self.length());
        let rows = elements.count().checked_div(length).unwrap_or(0);
        let mut positions = Output::of_shape(&elements.device(), DType::I64, elements.shape())?;
        let bytes = bytes_of(elements);
        kernel::run(
            operation,
            [elements],
            [&mut positions],
            |_, [mut positions]| {
                let memory = storage::part(elements.memory().host(operation)?, bytes.clone())?;
                sort::argsort_host(key, memory, rows, positions.as_slice_mut()?)
            },
            |stream, _, [mut positions]| {
                let memory = elements.memory().cuda(operation)?.slice(bytes.clone())?;
                sort::argsort(stream, key, memory, rows, positions.as_slice_mut()?)
            },
        )?;
        Ok(positions.into_tensor())
    }

    /// Returns the positions of the first `k` elements of each row in sorted order. CUDA devices select few of long rows.
    fn first(&self, operation: &'static str, k: usize, descending: bool) -> Result<Tensor> {
        let (elements, length) = (&self.elements, self.length());
        if elements.device().is_cpu() || !sort::has_topk(length, k) {
            return self.argsort(operation, descending)?.narrow(-1, 0, k)?.contiguous();
        }
        let key = SortKey::new(operation, elements.dtype(), descending)?;
        let mut sizes = elements.shape().to_vec();
        sizes.iter_mut().rev().take(1).for_each(|size| *size = k);
        let (device, rows) = (elements.device(), elements.count() / length);
        let mut positions = Output::new(&device, DType::I64, &sizes)?;
        let target = positions.memory_mut().into_cuda(operation)?.reinterpret_mut()?;
        let memory = elements.memory().cuda(operation)?.slice(bytes_of(elements))?;
        sort::topk(&device.stream()?, key, memory, rows, k, target)?;
        Ok(positions.into_tensor())
    }

    /// Returns the rows in sorted order, with the positions of their elements.
    fn sort(&self, operation: &'static str, descending: bool) -> Result<SortedRows> {
        self.sort_by(operation, SortKey::new(operation, self.elements.dtype(), descending)?)
    }

    /// Returns the rows in sorted order.
    fn sorted(&self, operation: &'static str, descending: bool) -> Result<Tensor> {
        let (elements, length) = (&self.elements, self.length());
        let key = SortKey::new(operation, elements.dtype(), descending)?;
        let rows = elements.count().checked_div(length).unwrap_or(0);
        let device = elements.device();
        let mut values = Output::of_shape(&device, elements.dtype(), elements.shape())?;
        match values.memory_mut() {
            MemoryMut::Host(sorted) => {
                let memory = storage::part(elements.memory().host(operation)?, bytes_of(elements))?;
                sort::sort_values_host(key, memory, rows, sorted)?;
            }
            MemoryMut::Cuda(sorted) => {
                let memory = elements.memory().cuda(operation)?.slice(bytes_of(elements))?;
                sort::sort_values(&device.stream()?, key, memory, rows, sorted)?;
            }
        }
        Ok(values.into_tensor())
    }

    /// A CUDA device moves the elements with their positions.
    fn sort_by(&self, operation: &'static str, key: SortKey) -> Result<SortedRows> {
        let (elements, length) = (&self.elements, self.length());
        let device = elements.device();
        if device.is_cpu() || elements.count() == 0 {
            let positions = self.argsort_by(operation, key)?;
            let values = elements.gather_unchecked(-1, &positions)?;
            return Ok(SortedRows { values, positions });
        }
        let mut values = Output::of_shape(&device, elements.dtype(), elements.shape())?;
        let mut positions = Output::of_shape(&device, DType::I64, elements.shape())?;
        let memory = elements.memory().cuda(operation)?.slice(bytes_of(elements))?;
        let sorted = values.memory_mut().into_cuda(operation)?;
        let indices = positions.memory_mut().into_cuda(operation)?.reinterpret_mut()?;
        sort::sort(&device.stream()?, key, memory, elements.count() / length, sorted, indices)?;
        Ok(SortedRows { values: values.into_tensor(), positions: positions.into_tensor() })
    }
}

/// Returns integers of one dimension in ascending order, with their positions. They are from 0 on and below `bound`.
pub(super) fn sort_below(integers: &Tensor, bound: usize) -> Result<(Tensor, Tensor)> {
    const OPERATION: &str = "sort";
    let key = SortKey::new(OPERATION, integers.dtype(), false)?.with_bound(bound as u64);
    let sorted = AxisRows::new(OPERATION, integers, 0)?.sort_by(OPERATION, key)?;
    Ok((sorted.values, sorted.positions))
}

/// Rows in sorted order, and the position that each element had.
struct SortedRows {
    values: Tensor,
    positions: Tensor,
}

impl SortedRows {
    /// Returns the element of each row at a position in sorted order, with its position. `positions` has size 1 along the last
    /// axis, which the results lack.
    fn at(&self, positions: &Tensor) -> Result<(Tensor, Tensor)> {
        let pick = |of: &Tensor| of.gather_unchecked(-1, positions)?.squeeze(-1);
        Ok((pick(&self.values)?, pick(&self.positions)?))
    }
}

/// The bytes of a contiguous tensor in its memory.
fn bytes_of(tensor: &Tensor) -> Range<usize> {
    let size = tensor.dtype().size();
    let start = tensor.layout().offset() * size;
    start..start + tensor.count() * size
}

/// The elements in row-major order as one contiguous dimension.
fn flat(tensor: &Tensor) -> Result<Tensor> {
    let dense = tensor.contiguous()?;
    let layout = dense.layout().reshape(&Shape::new(&[dense.count()])?)?;
    Ok(layout.map_or_else(|| dense.clone(), |layout: Layout| dense.view_as(layout)))
}

/// The number of an element for each of `count` positions.
fn indices(count: usize, like: &Tensor) -> Result<Tensor> {
    Tensor::arange(0i64, count as i64, 1i64, DType::I64, &like.device())
}
