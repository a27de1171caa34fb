//! Binary search in sorted sequences.

use super::bytes_of;
use crate::error::{Error, Result};
use crate::sort::{self, SortKey};
use crate::tensor::Tensor;
use crate::tensor::kernel::{self, Output};
use crate::types::DType;

impl Tensor {
    /// Returns, for each value, the position at which it would be inserted into this sorted tensor, as i64: before equal
    /// elements, or behind them if `right`.
    ///
    /// A tensor of one dimension serves values of any shape. Otherwise both tensors have the same sizes but for the last
    /// axis, and each row serves its own values. The dtypes are promoted. NaN is greater than every number and equals NaN,
    /// the order of [`sort`](Self::sort).
    ///
    /// On the CPU a sequence that is not sorted is an error. On a CUDA device its order is not checked, as in NumPy and PyTorch,
    /// because the call would have to wait for the device; each result of such a row is a position from 0 to the row's length,
    /// without further meaning.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let edges = Tensor::new([1.0f32, 3.0, 5.0], &cpu)?;
    /// let values = Tensor::new([0.0f32, 3.0, 9.0], &cpu)?;
    /// assert_eq!(edges.searchsorted(&values, false)?.to_vec::<i64>()?, [0, 1, 3]);
    /// assert_eq!(edges.searchsorted(&values, true)?.to_vec::<i64>()?, [0, 2, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for shapes that do not fit and, on the CPU, for a sequence that is not sorted;
    /// [`DTypeMismatch`](Error::DTypeMismatch) for
    /// complex numbers, 8-bit floats, and u64 beside a signed integer; [`DeviceMismatch`](Error::DeviceMismatch),
    /// [`OutOfMemory`](Error::OutOfMemory).
    pub fn searchsorted(&self, values: &Tensor, right: bool) -> Result<Tensor> {
        search("searchsorted", self, values, right, Sequences::Unknown)
    }

    /// As [`searchsorted`](Self::searchsorted) in sequences that are sorted up to the rounding of sums.
    pub(crate) fn searchsorted_unchecked(&self, values: &Tensor, right: bool) -> Result<Tensor> {
        search("searchsorted", self, values, right, Sequences::Sorted)
    }

    /// Returns the number of the bucket of each element, as i64: the position at which it would be inserted into the sorted
    /// `boundaries`, of one dimension. PyTorch's `bucketize`: bucket i holds the x with b\[i-1\] < x <= b\[i\], or, if `right`,
    /// those with b\[i-1\] <= x < b\[i\]. As in [`searchsorted`](Self::searchsorted), the order of the boundaries is
    /// checked on the CPU.
    ///
    /// # Errors
    ///
    /// As [`searchsorted`](Self::searchsorted).
    pub fn bucketize(&self, boundaries: &Tensor, right: bool) -> Result<Tensor> {
        if boundaries.rank() != 1 {
            let found = format!("boundaries of shape {}", boundaries.shape());
            return Err(Error::invalid("bucketize", found, "one dimension"));
        }
        search("bucketize", boundaries, self, right, Sequences::Unknown)
    }
}

/// The order of the sequences of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sequences {
    /// Known to be sorted, or sorted but for rounding.
    Sorted,
    /// Checked on the CPU.
    Unknown,
}

pub(super) fn search(
    operation: &'static str,
    sequences: &Tensor,
    values: &Tensor,
    right: bool,
    order: Sequences,
) -> Result<Tensor> {
    let fits = match (sequences.shape().split_last(), values.shape().split_last()) {
        (Some((_, [])), _) => true,
        (Some((_, of_sequences)), Some((_, of_values))) => of_sequences == of_values,
        _ => false,
    };
    if !fits {
        let found =
            format!("sequences of shape {} and values of shape {}", sequences.shape(), values.shape());
        return Err(Error::invalid(
            operation,
            found,
            "one sequence, or the same sizes but for the last axis",
        ));
    }
    let dtype = sequences.dtype().promote(values.dtype())?;
    let key = SortKey::new(operation, dtype, false)?;
    let rows = sequences.shape().split_last().map_or(1, |(_, sizes)| sizes.iter().product());
    let [sequences, values] = [sequences, values].map(|tensor| tensor.cast(dtype)?.contiguous());
    let (sequences, values) = (sequences?, values?);
    let mut positions = Output::of_shape(&values.device(), DType::I64, values.shape())?;
    let bytes = [&sequences, &values].map(bytes_of);
    kernel::run(
        operation,
        [&sequences, &values],
        [&mut positions],
        |_, [mut positions]| {
            let [sequences, values] =
                [(&sequences, &bytes[0]), (&values, &bytes[1])].map(|(tensor, bytes)| {
                    crate::tensor::storage::part(tensor.memory().host(operation)?, bytes.clone())
                });
            let sequences = sequences?;
            if order == Sequences::Unknown {
                check_order(operation, key, sequences, rows)?;
            }
            sort::search_host(key, sequences, values?, rows, right, positions.as_slice_mut()?)
        },
        |stream, _, [mut positions]| {
            let sequences = sequences.memory().cuda(operation)?.slice(bytes[0].clone())?;
            let values = values.memory().cuda(operation)?.slice(bytes[1].clone())?;
            sort::search(stream, key, sequences, values, rows, right, positions.as_slice_mut()?)
        },
    )?;
    Ok(positions.into_tensor())
}

/// # Errors
///
/// [`Error::InvalidArgument`] for rows on the CPU that are not sorted.
fn check_order(operation: &'static str, key: SortKey, sequences: &[u8], rows: usize) -> Result<()> {
    let Some((row, position)) = sort::first_unsorted_host(key, sequences, rows)? else { return Ok(()) };
    let found = format!("sequences whose row {row} decreases at position {position}");
    Err(Error::invalid(operation, found, "sorted sequences; sort them first"))
}
