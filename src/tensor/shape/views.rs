//! Views: tensors and writable parts that show the same memory in another layout, without a copy.
//!
//! The arithmetic is that of [`Layout`](crate::types::Layout). One list gives the views of [`Tensor`] and of [`TensorMut`].

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::in_place::TensorMut;
use crate::types::{DType, Layout, Shape, Slice};

macro_rules! views {
    ($($(#[doc = $doc:literal])* $name:ident($($argument:ident: $type:ty),*) |$layout:ident| $view:expr;)*) => {
        /// Views: the same elements in another layout, never a copy. Axes may be negative and then count from the last.
        ///
        /// # Errors
        ///
        /// [`InvalidArgument`](Error::InvalidArgument) for an axis that does not exist, or another argument that the layout cannot express.
        impl Tensor {
            $(
                $(#[doc = $doc])*
                #[allow(clippy::missing_errors_doc)]
                pub fn $name(&self $(, $argument: $type)*) -> Result<Tensor> {
                    let $layout = self.layout();
                    Ok(self.view_as($view?))
                }
            )*
        }

        /// Views of a writable tensor: those of a [`Tensor`].
        ///
        /// # Errors
        ///
        /// As for a tensor, and those of the copy if the elements are shared.
        impl<'a> TensorMut<'a> {
            $(
                $(#[doc = $doc])*
                #[allow(clippy::missing_errors_doc)]
                pub fn $name(self $(, $argument: $type)*) -> Result<TensorMut<'a>> {
                    self.view(|$layout| $view)
                }
            )*
        }
    };
}

views! {
    /// Permutes the dimensions: dimension `i` of the view is `axes[i]` of this one.
    permute(axes: &[isize]) |layout| layout.permute(axes);
    /// Swaps two dimensions.
    transpose(first: isize, second: isize) |layout| layout.transpose(first, second);
    /// Transposes a matrix. A vector, or a tensor without dimensions, stays as it is.
    t() |layout| matrix_transpose(layout);
    /// Moves dimensions to other positions; the others keep their order.
    movedim(from: &[isize], to: &[isize]) |layout| moved(layout, from, to);
    /// Returns `length` elements along a dimension from `start`; an error if they go past the end.
    narrow(axis: isize, start: usize, length: usize) |layout| layout.narrow(axis, start, length);
    /// Selects one index along a dimension and removes the dimension; a negative index counts from the end.
    select(axis: isize, index: isize) |layout| layout.select(axis, index);
    /// Removes a dimension of size 1.
    squeeze(axis: isize) |layout| layout.squeeze(axis);
    /// Removes all dimensions of size 1.
    squeeze_all() |layout| Ok::<Layout, Error>(layout.squeeze_all());
    /// Inserts a dimension of size 1 before `axis`; `-1` appends it.
    unsqueeze(axis: isize) |layout| layout.unsqueeze(axis);
    /// Reverses the order of the elements along the given axes.
    flip(axes: &[isize]) |layout| layout.flip(axes);
    /// Returns the elements whose positions along two dimensions differ by `offset` (second less first), as a new last dimension
    /// in place of both.
    diagonal(offset: isize, first: isize, second: isize) |layout| layout.diagonal(offset, first, second);
}

/// Returns the elements of a tensor in a shape with as many.
pub(crate) fn in_shape(tensor: &Tensor, shape: &Shape) -> Result<Tensor> {
    tensor.reshape(&sizes(shape))
}

/// Returns the sizes of a shape as arguments of a reshape.
pub(crate) fn sizes(shape: &Shape) -> Vec<isize> {
    shape.iter().map(|&size| size as isize).collect()
}

impl Tensor {
    /// Slices a dimension, as Python's `start:stop:step`: negative positions count from the end, positions past either end are
    /// clamped, and [`Slice::step`] sets a step, which may be negative.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::Slice;
    /// let x = Tensor::new([0i32, 1, 2, 3, 4], &Device::cpu())?;
    /// assert_eq!(x.slice(0, 1..-1)?.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(x.slice(0, Slice::from(..).step(-2))?.to_vec::<i32>()?, [4, 2, 0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a step of 0 or an axis that is not there.
    pub fn slice(&self, axis: isize, slice: impl Into<Slice>) -> Result<Tensor> {
        Ok(self.view_as(self.layout().slice(axis, slice)?))
    }

    /// Shows complex numbers as their real and imaginary parts, in a new last dimension of size 2 (PyTorch's
    /// `view_as_real`).
    ///
    /// ```
    /// use num_complex::Complex;
    /// use selvedge::tensor::{Device, Tensor};
    /// let z = Tensor::new([Complex::new(1.0f64, 2.0), Complex::new(3.0, 4.0)], &Device::cpu())?;
    /// let parts = z.view_as_real()?;
    /// assert_eq!(parts.select(-1, 1)?.to_vec::<f64>()?, [2.0, 4.0]);
    /// assert_eq!(parts.view_as_complex()?.to_vec::<Complex<f64>>()?, z.to_vec::<Complex<f64>>()?);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for real elements, [`Error::InvalidArgument`] for a tensor of the largest rank.
    pub fn view_as_real(&self) -> Result<Tensor> {
        let dtype = self.dtype();
        if !dtype.is_complex() {
            let (wanted, found) = ("complex elements".to_owned(), dtype.to_string());
            return Err(Error::DTypeMismatch { operation: "view_as_real", wanted, found });
        }
        let (mut sizes, mut strides) = (self.shape().to_vec(), self.layout().strides().to_vec());
        strides.iter_mut().for_each(|stride| *stride = stride.saturating_mul(2));
        sizes.push(2);
        strides.push(1);
        let layout = Layout::strided(&sizes, &strides, 2 * self.layout().offset())?;
        Ok(Tensor::of(self.storage.clone(), dtype.part(), layout))
    }

    /// Shows pairs of real numbers in the last dimension as complex numbers (PyTorch's `view_as_complex`); the inverse of
    /// [`view_as_real`](Self::view_as_real).
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for elements other than f32 and f64. [`Error::InvalidArgument`] for a last dimension of
    /// another size than 2, and for a layout in which the two parts are not adjacent at an even position.
    pub fn view_as_complex(&self) -> Result<Tensor> {
        const OPERATION: &str = "view_as_complex";
        let dtype = self.dtype();
        if !matches!(dtype, DType::F32 | DType::F64) {
            let (wanted, found) = ("elements of f32 or f64".to_owned(), dtype.to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        let (sizes, strides) = (self.shape().split_last(), self.layout().strides().split_last());
        let (Some((2, sizes)), Some((last, strides))) = (sizes, strides) else {
            let found = format!("a tensor of shape {}", self.shape());
            return Err(Error::invalid(OPERATION, found, "a last dimension of size 2"));
        };
        let is_empty = self.count() == 0;
        let is_even = strides.iter().zip(sizes).all(|(stride, size)| *size <= 1 || stride % 2 == 0);
        if !is_empty && (*last != 1 || !is_even || !self.layout().offset().is_multiple_of(2)) {
            let found = format!("{:?}", self.layout());
            let wanted = "parts that are neighbours at even places: make the tensor contiguous first";
            return Err(Error::invalid(OPERATION, found, wanted));
        }
        let strides: Vec<isize> = strides.iter().map(|stride| stride / 2).collect();
        let layout = Layout::strided(sizes, &strides, self.layout().offset() / 2)?;
        Ok(Tensor::of(self.storage.clone(), dtype.complex(), layout))
    }

    /// Shows the bytes as elements of another dtype (PyTorch's `view(dtype)`). Elements of another size change the last
    /// dimension, whose elements must be neighbours: two f32 show as one f64, or as eight bytes. Memory of the host that is
    /// not aligned for the dtype is copied.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::new([1.0f32, -2.0], &Device::cpu())?;
    /// assert_eq!(x.view_dtype(DType::U32)?.to_vec::<u32>()?, [0x3f80_0000, 0xc000_0000]);
    /// assert_eq!(x.view_dtype(DType::U16)?.count(), 4);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for bool, whose bytes are 0 and 1 alone. [`Error::InvalidArgument`] for a last dimension that
    /// is not there, whose elements are not neighbours, or that the larger elements do not divide; those of a copy.
    pub fn view_dtype(&self, dtype: DType) -> Result<Tensor> {
        const OPERATION: &str = "view_dtype";
        if dtype == DType::Bool && self.dtype() != DType::Bool {
            let (wanted, found) = ("a dtype of which all bytes are elements".to_owned(), dtype.to_string());
            return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
        }
        let (old, new) = (self.dtype().size(), dtype.size());
        let layout = if old == new { Ok(*self.layout()) } else { resized(self.layout(), old, new) }?;
        let memory = self.memory();
        let address = match self.device().is_cpu() {
            true => memory.host(OPERATION)?.as_ptr() as u64,
            false => memory.cuda(OPERATION)?.address(),
        };
        if !address.is_multiple_of(dtype.part().size() as u64) {
            // Fresh memory is aligned for every dtype.
            return self.copy()?.view_dtype(dtype);
        }
        Ok(Tensor::of(self.storage.clone(), dtype, layout))
    }

    /// Returns the elements in row-major order as one dimension: a view if strides can express it,
    /// otherwise a copy.
    ///
    /// # Errors
    ///
    /// As [`reshape`](Self::reshape).
    pub fn ravel(&self) -> Result<Tensor> {
        self.reshape(&[-1])
    }

    /// Divides a dimension into several, whose sizes multiply to its size; one may be -1. The opposite of
    /// [`flatten`](Self::flatten).
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::zeros(&[2, 12], DType::F32, &Device::cpu())?;
    /// assert_eq!(x.unflatten(1, &[3, -1])?.shape()[..], [2, 3, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an axis that is not there, and sizes of another product; those of a copy.
    pub fn unflatten(&self, axis: isize, sizes: &[isize]) -> Result<Tensor> {
        let axis = self.shape().axis("unflatten", axis)?;
        let renamed = |error: crate::Error| error.in_operation("unflatten");
        let parts = Shape::infer(sizes, self.shape()[axis]).map_err(renamed)?;
        let of_all = self.shape().iter().map(|size| *size as isize);
        let (before, after) = (of_all.clone().take(axis), of_all.skip(axis + 1));
        let parts = parts.iter().map(|size| *size as isize);
        self.reshape(&before.chain(parts).chain(after).collect::<Vec<_>>()).map_err(renamed)
    }

    /// Returns a view of a larger shape in which elements repeat: dimensions of size 1, and new ones in front, take its sizes.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let row = Tensor::new([1i32, 2], &Device::cpu())?;
    /// assert_eq!(row.expand(&[3, 2])?.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where another size would change.
    #[doc(alias = "broadcast_to")]
    pub fn expand(&self, shape: &[usize]) -> Result<Tensor> {
        Ok(self.view_as(self.layout().expand(&Shape::new(shape)?)?))
    }

    /// Returns a view of windows of `size` positions along a dimension, `step` apart. The dimension counts the windows, and a
    /// new last dimension the positions in each. Windows overlap if the step is smaller than the size.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a window larger than the dimension, a step of 0, or a tensor of the largest rank.
    pub fn unfold(&self, axis: isize, size: usize, step: usize) -> Result<Tensor> {
        Ok(self.view_as(self.layout().unfold(axis, size, step)?))
    }

    /// Returns the same elements in row-major order in another shape: a view if strides can express it, otherwise a copy. One size
    /// may be -1; it follows from the others.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &Device::cpu())?;
    /// assert_eq!(**x.reshape(&[3, -1])?.shape(), [3, 2]);
    /// assert_eq!(x.t()?.reshape(&[-1])?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where the shape has another number of elements, and those of a copy.
    pub fn reshape(&self, sizes: &[isize]) -> Result<Tensor> {
        let shape = Shape::infer(sizes, self.count())?;
        match self.layout().reshape(&shape)? {
            Some(layout) => Ok(self.view_as(layout)),
            None => Ok(self.copy()?.view_as(Layout::from_shape(shape))),
        }
    }

    /// Returns the tensor with the dimensions from `first` to `last`, both included, as one: a view if strides can express it,
    /// otherwise a copy.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where an axis is not there or `first` is behind `last`, and those of a copy.
    pub fn flatten(&self, first: isize, last: isize) -> Result<Tensor> {
        const OPERATION: &str = "flatten";
        if self.rank() == 0 {
            return self.reshape(&[-1]);
        }
        let (from, to) = (self.shape().axis(OPERATION, first)?, self.shape().axis(OPERATION, last)?);
        if from > to {
            let found = format!("axes {first} to {last}");
            return Err(Error::invalid(OPERATION, found, "a first axis that is not behind the last"));
        }
        let sizes = &self.shape()[..];
        let mut flat: Vec<usize> = sizes[..from].to_vec();
        flat.push(sizes[from..=to].iter().product());
        flat.extend_from_slice(&sizes[to + 1..]);
        let shape = Shape::new(&flat)?;
        match self.layout().reshape(&shape)? {
            Some(layout) => Ok(self.view_as(layout)),
            None => Ok(self.copy()?.view_as(Layout::from_shape(shape))),
        }
    }
}

impl<'a> TensorMut<'a> {
    /// Returns some positions along a dimension as a writable part; see [`Tensor::slice`].
    ///
    /// # Errors
    ///
    /// As there; and those of the copy that is made where the elements are shared.
    pub fn slice(self, axis: isize, slice: impl Into<Slice>) -> Result<TensorMut<'a>> {
        let slice = slice.into();
        self.view(|layout| layout.slice(axis, slice))
    }
}

/// The layout of the same bytes as elements of another size.
fn resized(layout: &Layout, old: usize, new: usize) -> Result<Layout> {
    let wrong =
        |wanted: &str| Error::invalid("view_dtype", format!("{layout:?} of {old} bytes an element"), wanted);
    let (mut sizes, mut strides) = (layout.shape().to_vec(), layout.strides().to_vec());
    let (Some(size), Some(stride)) = (sizes.last_mut(), strides.last_mut()) else {
        return Err(wrong("a last dimension"));
    };
    if *stride != 1 && *size > 1 {
        return Err(wrong("neighbours in the last dimension: make the tensor contiguous first"));
    }
    if old > new {
        let ratio = old / new;
        *size = size.saturating_mul(ratio);
        let count = strides.len();
        strides.iter_mut().take(count - 1).for_each(|stride| *stride = stride.saturating_mul(ratio as isize));
        strides.iter_mut().skip(count - 1).for_each(|stride| *stride = 1);
        return Layout::strided(&sizes, &strides, layout.offset() * ratio);
    }
    let ratio = new / old;
    let is_whole = size.is_multiple_of(ratio);
    *size /= ratio;
    *stride = ratio as isize;
    let others = strides.iter().zip(layout.shape().iter());
    let is_even = others.clone().all(|(stride, size)| *size <= 1 || stride % ratio as isize == 0);
    if !is_whole || !is_even || !layout.offset().is_multiple_of(ratio) {
        return Err(wrong(&format!("a last dimension, strides and an offset that {ratio} divides")));
    }
    let strides: Vec<isize> = strides.iter().map(|stride| stride / ratio as isize).collect();
    Layout::strided(&sizes, &strides, layout.offset() / ratio)
}

fn matrix_transpose(layout: &Layout) -> Result<Layout> {
    match layout.rank() {
        0 | 1 => Ok(*layout),
        2 => layout.transpose(0, 1),
        rank => {
            let found = format!("{rank} dimensions");
            Err(Error::invalid("t", found, "at most 2; use transpose, which names the axes"))
        }
    }
}

fn moved(layout: &Layout, from: &[isize], to: &[isize]) -> Result<Layout> {
    const OPERATION: &str = "movedim";
    let wrong = || {
        let found = format!("axes {from:?} to {to:?}");
        Error::invalid(OPERATION, found, "as many places as axes, each named once")
    };
    if from.len() != to.len() {
        return Err(wrong());
    }
    let resolve = |axes: &[isize]| {
        axes.iter().map(|&axis| layout.shape().axis(OPERATION, axis)).collect::<Result<Vec<usize>>>()
    };
    let (from, to) = (resolve(from)?, resolve(to)?);
    let mut order: Vec<Option<usize>> = vec![None; layout.rank()];
    for (&axis, &position) in from.iter().zip(&to) {
        if order[position].replace(axis).is_some() {
            return Err(wrong());
        }
    }
    let mut others = (0..layout.rank()).filter(|axis| !from.contains(axis));
    let order = order.into_iter().map(|axis| axis.or_else(|| others.next()).map(|axis| axis as isize));
    layout.permute(&order.collect::<Option<Vec<isize>>>().ok_or_else(wrong)?)
}
