//! Distinct elements, and membership in a set.

use super::nonzero::true_positions;
use super::search::{Sequences, search};
use super::statistics::differs_from_previous;
use super::{AxisRows, flat};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::types::DType;

const UNIQUE: &str = "unique";

/// Distinct elements.
///
/// The tensor counts as one dimension in row-major order. NaN equals nothing, so each NaN is distinct, as in PyTorch; of 0 and
/// -0 the first one stays.
///
/// # Errors
///
/// [`DTypeMismatch`](crate::Error::DTypeMismatch) for 8-bit floats, and for complex numbers where the elements are sorted;
/// [`OutOfMemory`](crate::Error::OutOfMemory).
impl Tensor {
    /// Returns the distinct elements in ascending order.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([3, 1, 3, 2], &Device::cpu())?;
    /// assert_eq!(x.unique()?.to_vec::<i32>()?, [1, 2, 3]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn unique(&self) -> Result<Tensor> {
        Ok(Runs::new(&sorted(self)?)?.values)
    }

    /// Returns the distinct elements in ascending order, the position of each element among them (in this tensor's shape),
    /// and the number of times that each occurs; both as i64. PyTorch's `unique(return_inverse=True, return_counts=True)`.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([3, 1, 3, 2], &Device::cpu())?;
    /// let (values, inverse, counts) = x.unique_with_counts()?;
    /// assert_eq!(values.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(inverse.to_vec::<i64>()?, [2, 0, 2, 1]);
    /// assert_eq!(counts.to_vec::<i64>()?, [1, 1, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    #[allow(clippy::missing_errors_doc)]
    pub fn unique_with_counts(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let sorted = AxisRows::new(UNIQUE, &flat(self)?, 0)?.sort(UNIQUE, false)?;
        let runs = Runs::new(&sorted.values)?;
        let mut inverse = runs.groups.zeros_like()?;
        inverse.in_place().scatter_unchecked(0, &sorted.positions, &runs.groups)?;
        Ok((runs.values, shaped(&inverse, self)?, runs.counts))
    }

    /// Returns the elements without those that equal the element before them.
    #[allow(clippy::missing_errors_doc)]
    pub fn unique_consecutive(&self) -> Result<Tensor> {
        Ok(Runs::new(&flat(self)?)?.values)
    }

    /// Returns the elements of [`unique_consecutive`](Self::unique_consecutive), the position of each element among them (in
    /// this tensor's shape), and the length of each run of equal elements; both as i64.
    #[allow(clippy::missing_errors_doc)]
    pub fn unique_consecutive_with_counts(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let runs = Runs::new(&flat(self)?)?;
        Ok((runs.values, shaped(&runs.groups, self)?, runs.counts))
    }

    /// Returns whether each element equals one of `elements`, as bool. The dtypes are promoted. NaN equals nothing.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1, 2], [3, 4]], &cpu)?;
    /// assert_eq!(x.isin(&Tensor::new([4, 1], &cpu)?)?.to_vec::<bool>()?, [true, false, false, true]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DTypeMismatch`](crate::Error::DTypeMismatch) for complex numbers, 8-bit floats, and u64 beside a signed integer;
    /// [`DeviceMismatch`](crate::Error::DeviceMismatch), [`OutOfMemory`](crate::Error::OutOfMemory).
    pub fn isin(&self, elements: &Tensor) -> Result<Tensor> {
        const OPERATION: &str = "isin";
        let dtype = self.dtype().promote(elements.dtype())?;
        let set = sorted(&elements.cast(dtype)?)?;
        let positions = search(OPERATION, &set, self, false, Sequences::Sorted)?;
        if set.count() == 0 {
            return Tensor::zeros(self.shape(), DType::Bool, &self.device());
        }
        // A value greater than all others has no position; the last one differs from it.
        let found = set.take_unchecked(&positions.minimum(set.count() as i64 - 1)?)?;
        found.eq(&self.cast(dtype)?)
    }
}

/// All elements in ascending order.
fn sorted(tensor: &Tensor) -> Result<Tensor> {
    AxisRows::new(UNIQUE, &flat(tensor)?, 0)?.sorted(UNIQUE, false)
}

fn shaped(list: &Tensor, like: &Tensor) -> Result<Tensor> {
    let sizes: Vec<isize> = like.shape().iter().map(|size| *size as isize).collect();
    list.reshape(&sizes)
}

/// The runs of equal neighbours in one dimension.
struct Runs {
    /// The first element of each run.
    values: Tensor,
    /// The number of the run of each element.
    groups: Tensor,
    /// The length of each run.
    counts: Tensor,
}

impl Runs {
    fn new(list: &Tensor) -> Result<Runs> {
        let (count, device) = (list.count(), list.device());
        if count == 0 {
            let none = Tensor::zeros(&[0], DType::I64, &device)?;
            return Ok(Runs { values: list.clone(), groups: none.clone(), counts: none });
        }
        let is_first = differs_from_previous(list)?;
        let groups = is_first.cumsum(0)?.sub(1)?;
        let starts = true_positions(&is_first)?;
        let end = Tensor::full(&[1], count as i64, DType::I64, &device)?;
        let ends = Tensor::cat(&[&starts.slice(0, 1..)?, &end], 0)?;
        Ok(Runs { values: list.take_unchecked(&starts)?, groups, counts: ends.sub(&starts)? })
    }
}
