//! Joining tensors: `cat`, `stack` and `roll`.

use super::{Layout, Output, Tensor, copy_into, resized};
use crate::error::{Error, Result};
use crate::tensor::tensor::one_device;
use crate::types::DType;

impl Tensor {
    /// Returns the concatenation of tensors along an axis; their other sizes are equal. Different dtypes are promoted to their
    /// common dtype.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &cpu)?;
    /// let y = Tensor::new([[0.5f32], [1.5]], &cpu)?;
    /// assert_eq!(Tensor::cat(&[&x, &y], 1)?.to_vec::<f32>()?, [1.0, 2.0, 0.5, 3.0, 4.0, 1.5]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) without tensors, for an axis that is not there or other sizes that differ,
    /// [`DeviceMismatch`](Error::DeviceMismatch), [`DTypeMismatch`](Error::DTypeMismatch) for dtypes without a common one,
    /// and errors of memory.
    #[doc(alias = "concat")]
    #[doc(alias = "concatenate")]
    pub fn cat(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        const OPERATION: &str = "cat";
        let device = one_device(OPERATION, tensors.iter().copied())?;
        let Some((first, others)) = tensors.split_first() else {
            return Err(Error::invalid(OPERATION, "no tensors", "at least one"));
        };
        let axis = first.shape().axis(OPERATION, axis)?;
        let mut length = first.shape()[axis];
        for other in others {
            let fits = other.rank() == first.rank()
                && (0..first.rank()).all(|at| at == axis || other.shape()[at] == first.shape()[at]);
            if !fits {
                let found = format!("shapes {} and {}", first.shape(), other.shape());
                return Err(Error::invalid(
                    OPERATION,
                    found,
                    format!("sizes that are equal but along axis {axis}"),
                ));
            }
            // The shape says what is too much.
            length = length.saturating_add(other.shape()[axis]);
        }
        let dtype = common_dtype(tensors)?;
        let mut fresh = Output::of_shape(&device, dtype, &resized(first.shape(), axis, length)?)?;
        let whole = *fresh.layout();
        let mut start = 0;
        for tensor in tensors {
            let size = tensor.shape()[axis];
            copy_into(tensor, &mut fresh, whole.narrow(axis as isize, start, size)?)?;
            start += size;
        }
        Ok(fresh.into_tensor())
    }

    /// Returns tensors of one shape stacked along a new axis.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let (x, y) = (Tensor::new([1, 2], &cpu)?, Tensor::new([3, 4], &cpu)?);
    /// assert_eq!(Tensor::stack(&[&x, &y], 0)?.to_vec::<i32>()?, [1, 2, 3, 4]);
    /// assert_eq!(Tensor::stack(&[&x, &y], -1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`cat`](Self::cat), if the shapes are not equal or their rank is the largest.
    pub fn stack(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        if let Some((first, others)) = tensors.split_first()
            && let Some(other) = others.iter().find(|other| other.shape() != first.shape())
        {
            let found = format!("shapes {} and {}", first.shape(), other.shape());
            return Err(Error::invalid("stack", found, "equal shapes"));
        }
        let views: Result<Vec<Tensor>> =
            tensors.iter().map(|tensor| Ok(tensor.view_as(tensor.layout().unsqueeze(axis)?))).collect();
        let views = views?;
        Tensor::cat(&views.iter().collect::<Vec<_>>(), axis)
    }

    /// Returns the elements rotated along axes: by `shifts[i]` positions forwards along `axes[i]`. Elements that leave at one end
    /// enter at the other.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.roll(&[1], &[1])?.to_vec::<i32>()?, [3, 1, 2, 6, 4, 5]);
    /// assert_eq!(x.roll(&[1, -1], &[0, 1])?.to_vec::<i32>()?, [5, 6, 4, 2, 3, 1]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for another number of shifts than of axes, or an axis that is not there,
    /// and those of memory.
    pub fn roll(&self, shifts: &[isize], axes: &[isize]) -> Result<Tensor> {
        const OPERATION: &str = "roll";
        if shifts.len() != axes.len() {
            let found = format!("{} shifts along {} axes", shifts.len(), axes.len());
            return Err(Error::invalid(OPERATION, found, "as many shifts as axes"));
        }
        // By axis, so that one that is named twice is moved once, by the sum.
        let mut moved = vec![0isize; self.rank()];
        for (shift, axis) in shifts.iter().zip(axes) {
            let axis = self.shape().axis(OPERATION, *axis)?;
            let size = self.shape()[axis].max(1) as isize;
            moved[axis] = (moved[axis] + shift.rem_euclid(size)) % size;
        }
        let mut fresh = Output::of_shape(&self.device(), self.dtype(), self.shape())?;
        // Each axis that moves halves the parts that stay together.
        let mut parts: Vec<(Layout, Layout)> = vec![(*self.layout(), *fresh.layout())];
        for (axis, shift) in moved.into_iter().enumerate().filter(|(_, shift)| *shift > 0) {
            let (size, shift, axis) = (self.shape()[axis], shift as usize, axis as isize);
            let mut halves = Vec::with_capacity(2 * parts.len());
            for (from, to) in parts {
                halves.push((from.narrow(axis, 0, size - shift)?, to.narrow(axis, shift, size - shift)?));
                halves.push((from.narrow(axis, size - shift, shift)?, to.narrow(axis, 0, shift)?));
            }
            parts = halves;
        }
        for (from, to) in parts {
            copy_into(&self.view_as(from), &mut fresh, to)?;
        }
        Ok(fresh.into_tensor())
    }
}

/// Returns the dtype to which the dtypes of tensors promote.
fn common_dtype(tensors: &[&Tensor]) -> Result<DType> {
    let mut dtypes = tensors.iter().map(|tensor| tensor.dtype());
    let first = dtypes.next().unwrap_or(DType::F32);
    // The 8-bit floats are promoted to nothing, but stay what they are.
    dtypes.try_fold(first, |common, dtype| if common == dtype { Ok(common) } else { common.promote(dtype) })
}
