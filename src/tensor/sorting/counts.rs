//! Counts of integers, and of elements in bins.

use super::search::{Sequences, search};
use super::{bytes_of, flat};
use crate::driver::{DeviceSlice, DeviceSliceMut, Stream};
use crate::error::{Error, Result};
use crate::sort;
use crate::tensor::kernel::{self, Output};
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

impl Tensor {
    /// Returns the number of times that each integer from 0 on occurs, as i64: up to the greatest element, and at least
    /// `minlength` numbers.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1, 3, 1], &Device::cpu())?;
    /// assert_eq!(x.bincount(0)?.to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a negative element, an element that no memory has addresses for, or more
    /// than one dimension; [`DTypeMismatch`](Error::DTypeMismatch) for elements that are not integers;
    /// [`OutOfMemory`](Error::OutOfMemory) for more counts than fit the memory.
    pub fn bincount(&self, minlength: usize) -> Result<Tensor> {
        const OPERATION: &str = "bincount";
        if self.rank() != 1 {
            let found = format!("shape {}", self.shape());
            return Err(Error::invalid(OPERATION, found, "one dimension; flatten the tensor first"));
        }
        if !self.dtype().is_integer() {
            let (wanted, found) = ("integers".to_owned(), self.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        if self.count() == 0 {
            return Tensor::zeros(&[minlength], DType::I64, &self.device());
        }
        // The counts need the elements side by side, so a view of more than the memory holds is refused before it is read.
        let elements = flat(self)?;
        let bounds: [i128; 2] = match self.dtype() {
            DType::U64 => {
                [elements.min_all()?.item::<u64>()?, elements.max_all()?.item::<u64>()?].map(i128::from)
            }
            _ => {
                let [least, greatest] =
                    [elements.min_all()?, elements.max_all()?].map(|x| x.cast(DType::I64));
                [least?.item::<i64>()?, greatest?.item::<i64>()?].map(i128::from)
            }
        };
        if bounds[0] < 0 {
            return Err(Error::invalid(OPERATION, format!("element {}", bounds[0]), "elements from 0 on"));
        }
        let count = usize::try_from(bounds[1] + 1).unwrap_or(usize::MAX).max(minlength);
        // Before any memory is asked for: a device's pool and the host refuse fewer counts than this.
        if count > isize::MAX as usize / size_of::<i64>() {
            let found = format!("the greatest element {} and minlength {minlength}", bounds[1]);
            return Err(Error::invalid(OPERATION, found, "fewer counts than memory has addresses"));
        }
        tally(OPERATION, &elements, count)
    }

    /// Returns the number of elements in each of `bins` bins of equal width from `min` to `max`, in this tensor's dtype, a
    /// float. The last bin includes `max`; elements outside and NaN are left out. If both bounds are 0, they are the least
    /// and the greatest element, as in PyTorch.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([0.0f32, 1.0, 1.5, 4.0, 9.0], &Device::cpu())?;
    /// assert_eq!(x.histc(4, 0.0, 4.0)?.to_vec::<f32>()?, [1.0, 2.0, 0.0, 1.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for no bins, and for bounds that are not finite or decrease;
    /// [`DTypeMismatch`](Error::DTypeMismatch) for elements that are not real floats; [`OutOfMemory`](Error::OutOfMemory).
    pub fn histc(&self, bins: usize, min: f64, max: f64) -> Result<Tensor> {
        const OPERATION: &str = "histc";
        if !self.dtype().is_float() {
            let (wanted, found) = ("real floats; cast the tensor first".to_owned(), self.dtype().to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        if bins == 0 {
            return Err(Error::invalid(OPERATION, "bins = 0", "at least one bin"));
        }
        // As in `bincount`: the reductions would read a broadcast view for years before the counts run out of memory.
        let elements = flat(self)?;
        let (mut min, mut max) = (min, max);
        if min == max && self.count() > 0 {
            let bounds = [elements.min_all()?, elements.max_all()?];
            let bounds = bounds.map(|bound| bound.cast(DType::F64)?.item());
            let [least, greatest] = bounds;
            (min, max) = (least?, greatest?);
        }
        if min == max {
            // All elements are one number, beside which 1 may be nothing.
            let around = (min.abs() * 2f64.powi(-40)).max(1.0);
            (min, max) = ((min - around).max(f64::MIN), (max + around).min(f64::MAX));
        }
        if !(min.is_finite() && max.is_finite() && min < max) {
            return Err(Error::invalid(
                OPERATION,
                format!("bounds {min} and {max}"),
                "finite bounds that increase",
            ));
        }
        // An infinite distance of the bounds, and more bins than there is memory for, are left to the expression.
        if !self.device().is_cpu()
            && (max - min).is_finite()
            && bins <= sort::MAX_BINS
            && let Some(bytes) = aligned_bytes(OPERATION, &elements)?
        {
            let counts = count_on_device(OPERATION, &elements, bins, |stream, counts| {
                sort::count_in_range(stream, elements.dtype(), bytes, [min, max], counts)
            })?;
            return counts.cast(self.dtype());
        }
        let wide = elements.cast(DType::F64)?;
        // Halves, whose distance is finite.
        let scale = if (max - min).is_finite() { 1.0 } else { 0.5 };
        let bounds = Tensor::from_slice(&[min, max, bins as f64, scale], &[4], &self.device())?;
        let [min, max, count, scale] = [0, 1, 2, 3].map(|at| bounds.select(0, at));
        let indices = fuse([&wide, &min?, &max?, &count?, &scale?], |[x, min, max, count, scale]| {
            let least = min * scale;
            let share = (x * scale - least) / (max * scale - least);
            let bin = (share * count).floor().minimum(count - 1);
            (x.ge(min) & x.le(max)).choose(bin, -1).cast(DType::I64)
        })?;
        tally(OPERATION, &indices, bins)?.cast(self.dtype())
    }

    /// Returns the number of elements between each two neighbours of `edges`, of one dimension and sorted, as i64. A bin holds
    /// its lower edge, and the last bin its upper edge too; elements outside and NaN are left out. The call waits for the
    /// device to check the edges. NumPy's `histogram` of edges, such as those of [`linspace`](Self::linspace).
    ///
    /// ```
    /// use selvedge::{DType, Device, Tensor};
    /// let cpu = Device::cpu();
    /// let edges = Tensor::linspace(0.0, 4.0, 5, DType::F32, &cpu)?;
    /// let x = Tensor::new([0.0f32, 1.0, 1.5, 4.0, 9.0], &cpu)?;
    /// assert_eq!(x.histogram(&edges)?.to_vec::<i64>()?, [1, 2, 0, 1]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for fewer than two edges, or edges that decrease or are NaN; otherwise as
    /// [`searchsorted`](Self::searchsorted).
    pub fn histogram(&self, edges: &Tensor) -> Result<Tensor> {
        const OPERATION: &str = "histogram";
        if edges.rank() != 1 || edges.count() < 2 {
            let found = format!("edges of shape {}", edges.shape());
            return Err(Error::invalid(OPERATION, found, "one dimension of at least two edges"));
        }
        let bins = edges.count() - 1;
        let increases = edges.narrow(0, 0, bins)?.le(&edges.narrow(0, 1, bins)?)?;
        let first_wrong: i64 = increases.logical_not()?.argmax_all()?.item()?;
        if !increases.select(0, first_wrong as isize)?.item::<bool>()? {
            let found = format!("edges that do not increase at position {}", first_wrong + 1);
            return Err(Error::invalid(OPERATION, found, "sorted edges without NaN"));
        }
        let has_kernel = matches!(self.dtype(), DType::F32 | DType::F64) && edges.dtype() == self.dtype();
        if !self.device().is_cpu() && self.device() == edges.device() && has_kernel && bins <= sort::MAX_BINS
        {
            let (elements, edges) = (flat(self)?, flat(edges)?);
            let bytes = [aligned_bytes(OPERATION, &elements)?, aligned_bytes(OPERATION, &edges)?];
            if let [Some(of_elements), Some(of_edges)] = bytes {
                return count_on_device(OPERATION, &elements, bins, |stream, counts| {
                    sort::count_between_edges(stream, elements.dtype(), of_elements, of_edges, counts)
                });
            }
        }
        let positions = search(OPERATION, edges, self, true, Sequences::Sorted)?;
        let last = edges.select(0, -1)?;
        let at_end = self.eq(&last)?;
        let indices = fuse((&positions, &at_end, bins as i64), |[position, at_end, bins]| {
            at_end.choose(bins - 1, position - 1)
        })?;
        tally(OPERATION, &indices, bins)
    }
}

/// Returns the bytes of a contiguous tensor on a CUDA device, or `None` if memory of other code is aligned for less than an
/// element.
fn aligned_bytes<'t>(operation: &'static str, tensor: &'t Tensor) -> Result<Option<DeviceSlice<'t, u8>>> {
    let bytes = tensor.memory().cuda(operation)?.slice(bytes_of(tensor))?;
    Ok(bytes.address().is_multiple_of(tensor.dtype().size() as u64).then_some(bytes))
}

/// Returns counts that a function on the stream of a tensor's device has added to zeros.
fn count_on_device(
    operation: &'static str,
    like: &Tensor,
    bins: usize,
    add: impl FnOnce(&Stream, DeviceSliceMut<'_, i64>) -> Result<()>,
) -> Result<Tensor> {
    let stream = like.device().stream()?;
    let mut counts = Output::new(&like.device(), DType::I64, &[bins])?;
    let memory = counts.memory_mut().into_cuda(operation)?;
    stream.fill(memory, 0u8)?;
    add(&stream, memory.reinterpret_mut()?)?;
    Ok(counts.into_tensor())
}

/// Returns the number of occurrences of each integer below `count`; others are left out.
fn tally(operation: &'static str, indices: &Tensor, count: usize) -> Result<Tensor> {
    let is_narrow = indices.dtype() == DType::I32 && !indices.device().is_cpu();
    let indices = if is_narrow { flat(indices)? } else { flat(&indices.cast(DType::I64)?)? };
    let mut counts = Tensor::zeros(&[count], DType::I64, &indices.device())?;
    kernel::run(
        operation,
        [&indices],
        [&mut counts],
        |[indices], [mut counts]| {
            sort::tally_host(indices.as_slice()?, counts.as_slice_mut()?);
            Ok(())
        },
        |stream, [indices], [mut counts]| {
            if is_narrow {
                sort::tally::<i32>(stream, indices.as_slice()?, counts.as_slice_mut()?)
            } else {
                sort::tally::<i64>(stream, indices.as_slice()?, counts.as_slice_mut()?)
            }
        },
    )?;
    Ok(counts)
}
