//! In-place operations: [`TensorMut`], a writable tensor or part of one, and [`WithOutput`], an operation with an output.
//!
//! Invariants: no other tensor sees a write. Elements that a clone or a view shares are copied first, or get new memory
//! without a copy if all of them are written. So an output never overlaps an input.

use super::cached_operation::{CachedOperation, OperandKind};
use super::device::Device;
use super::evaluate::OperandSource;
use super::kernel::{Output, OutputTarget};
use super::operand::{Inputs, TensorOperand};
use super::shape::copy_to;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Number, Operation, with_operations};
use crate::types::{DType, Layout, Shape, Slice};

/// A writable tensor, or a writable part of one; [`Tensor::in_place`] and [`Tensor::slice_mut`] return it.
///
/// It has the views and the operations of a tensor. An operation replaces the elements by its result. Their dtype must be able
/// to hold the result: an integer tensor takes no fractions, a real one no complex numbers.
///
/// ```
/// use selvedge::tensor::{Device, Tensor};
/// let mut x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::cpu())?;
/// let before = x.clone();
/// x.in_place().mul(2.0)?.add(1.0)?;
/// x.slice_mut(1, ..1)?.assign(&Tensor::new([[-1.0f32], [-2.0]], &Device::cpu())?)?;
/// x.in_place().select(0, 1)?.sqrt()?;
/// assert_eq!(x.narrow(0, 0, 1)?.to_vec::<f32>()?, [-1.0, 5.0, 7.0]);
/// assert_eq!(before.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
pub struct TensorMut<'a> {
    tensor: &'a mut Tensor,
    /// A part of memory that the tensor has alone; all of the tensor, shared or not, where there is none.
    part: Option<Layout>,
}

impl Tensor {
    /// Returns the whole tensor as the target of in-place operations.
    pub fn in_place(&mut self) -> TensorMut<'_> {
        TensorMut { tensor: self, part: None }
    }

    /// Returns some positions along a dimension as the target of in-place operations.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let mut x = Tensor::new([0i32, 1, 2, 3, 4], &Device::cpu())?;
    /// x.slice_mut(0, 1..3)?.fill(9)?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 9, 9, 3, 4]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice), and those of the copy if the elements are shared.
    pub fn slice_mut(&mut self, axis: isize, slice: impl Into<Slice>) -> Result<TensorMut<'_>> {
        self.in_place().slice(axis, slice)
    }

    /// Returns the operations of this tensor with their result in `output`, a `&mut Tensor` or a part of one. The dtype of
    /// `output` must be able to hold the result, and the operands broadcast to its shape.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::new([1.0f32, 2.0], &Device::cpu())?;
    /// let mut sums = Tensor::zeros(&[2, 2], DType::F32, &Device::cpu())?;
    /// x.with_output(sums.slice_mut(0, 1..)?).add(10.0)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [0.0, 0.0, 11.0, 12.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    pub fn with_output<'a>(&'a self, output: impl Into<TensorMut<'a>>) -> WithOutput<'a> {
        WithOutput { input: self, output: output.into() }
    }

    /// Makes the elements this tensor's own, each at an address of its own; whether that took a copy.
    pub(super) fn make_unique(&mut self) -> Result<bool> {
        let owned = self.storage.is_unique() && !self.layout.may_overlap();
        if !owned {
            *self = self.copy()?;
        }
        Ok(!owned)
    }

    /// The elements of a part, or all of them, where they are the tensor's own.
    pub(super) fn part_target<'a>(&'a mut self, part: Option<&'a Layout>) -> Result<OutputTarget<'a>> {
        let Tensor { storage, dtype, layout } = self;
        Ok(OutputTarget::new(storage.unique_memory()?, *dtype, part.unwrap_or(layout)))
    }
}

impl<'a> From<&'a mut Tensor> for TensorMut<'a> {
    fn from(tensor: &'a mut Tensor) -> TensorMut<'a> {
        tensor.in_place()
    }
}

impl<'a> TensorMut<'a> {
    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// The sizes of the dimensions.
    pub fn shape(&self) -> &Shape {
        self.layout().shape()
    }

    /// Returns the device of the elements.
    pub fn device(&self) -> Device {
        self.tensor.device()
    }

    pub(super) fn layout(&self) -> &Layout {
        self.part.as_ref().unwrap_or(&self.tensor.layout)
    }

    pub(super) fn view(mut self, view: impl Fn(&Layout) -> Result<Layout>) -> Result<TensorMut<'a>> {
        let mut part = view(self.layout())?;
        if self.part.is_none() && self.tensor.make_unique()? {
            part = view(&self.tensor.layout)?;
        }
        self.part = Some(part);
        Ok(self)
    }

    /// The elements as they are now. While it is there they are shared.
    pub(crate) fn current(&self) -> Tensor {
        self.tensor.view_as(*self.layout())
    }

    /// A part of this one, for a shorter time.
    pub fn reborrow(&mut self) -> TensorMut<'_> {
        TensorMut { tensor: self.tensor, part: self.part }
    }

    /// Returns whether no other tensor shares the elements, and no two of them share an address.
    pub(super) fn is_own(&mut self) -> bool {
        // Whoever has a part has made its tensor own them.
        self.tensor.storage.is_unique() && !self.layout().may_overlap()
    }

    /// Writes what `run` puts into its target: all of the elements.
    pub(super) fn write(&mut self, run: impl FnOnce(OutputTarget<'_>) -> Result<()>) -> Result<()> {
        let mut fresh = self.fresh()?;
        run(self.target(&mut fresh)?)?;
        self.settle(fresh);
        Ok(())
    }

    /// Makes the elements this tensor's own, each at an address of its own.
    pub(super) fn make_unique(&mut self) -> Result<()> {
        if self.part.is_none() {
            self.tensor.make_unique()?;
        }
        Ok(())
    }

    /// The elements that a layout describes, which was made from that of the whole tensor, which is contiguous.
    pub(crate) fn with_layout(self, layout: Layout) -> Result<TensorMut<'a>> {
        self.view(|_| Ok(layout))
    }

    /// The elements in memory of their own.
    pub(super) fn copy(&self) -> Result<Tensor> {
        self.tensor.view_as(*self.layout()).copy()
    }

    /// As [`write`](Self::write), of what reads the elements before where it `reads` any.
    pub(super) fn update(
        &mut self,
        reads: bool,
        run: impl FnOnce(OutputTarget<'_>) -> Result<()>,
    ) -> Result<()> {
        if reads && self.part.is_none() && !self.is_own() {
            self.tensor.make_unique()?;
        }
        self.write(run)
    }

    /// Other memory for all of the elements, where their own is not this one's alone.
    fn fresh(&mut self) -> Result<Option<Output>> {
        if self.is_own() {
            return Ok(None);
        }
        if self.part.is_some() {
            let wanted = "a part of a tensor whose elements each have a place of their own";
            return Err(Error::invalid("writing to a tensor", format!("{:?}", self.layout()), wanted));
        }
        Output::of_shape(&self.device(), self.dtype(), self.shape()).map(Some)
    }

    fn target<'b>(&'b mut self, fresh: &'b mut Option<Output>) -> Result<OutputTarget<'b>> {
        match fresh {
            Some(fresh) => Ok(OutputTarget::all(fresh)),
            None => self.tensor.part_target(self.part.as_ref()),
        }
    }

    /// All of the elements, in memory that nobody else has.
    pub(super) fn unique_target(&mut self) -> Result<OutputTarget<'_>> {
        self.make_unique()?;
        self.tensor.part_target(self.part.as_ref())
    }

    /// Takes what was written elsewhere; not before, so that a run that fails has changed nothing.
    fn settle(&mut self, fresh: Option<Output>) {
        if let Some(fresh) = fresh {
            *self.tensor = fresh.into_tensor();
        }
    }

    /// Replaces the elements by those of a tensor, which is broadcast and cast, or by a number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where the tensor's shape does not broadcast to this one, or the dtype does not hold the number,
    /// [`Error::DeviceMismatch`] where it is on another device.
    pub fn assign<'b>(&mut self, values: impl Into<TensorOperand<'b>>) -> Result<&mut TensorMut<'a>> {
        let values = values.into();
        if let Some(tensor) = values.tensor().filter(|tensor| tensor.dtype() == self.dtype()) {
            self.write(|target| copy_to(tensor, target))?;
            return Ok(self);
        }
        if let TensorOperand::Number(number) = values {
            number.check("fill", self.dtype())?;
        }
        let cached = CachedOperation::cast(OperandKind::of(&values), self.dtype());
        let mut inputs = Inputs::default();
        inputs.push(&values);
        self.write(|target| cached.run_into(&inputs, target))?;
        Ok(self)
    }

    /// Replaces the elements by a number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that the dtype does not hold ([`Number::fits`]); those of memory where the elements are shared.
    pub fn fill(&mut self, value: impl Into<Number>) -> Result<&mut TensorMut<'a>> {
        self.assign(value.into())
    }

    /// Applies an operation that is chosen at run time to these elements and the other operands.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] for another number of operands, and as the operation's own method.
    pub fn operation(
        &mut self,
        operation: Operation,
        others: &[TensorOperand<'_>],
    ) -> Result<&mut TensorMut<'a>> {
        let dtype = self.dtype();
        let first = OperandKind::of_rank(dtype, self.shape().rank());
        let mut space = [TensorOperand::Number(Number::Bool(false)); 2];
        let (operation, others) = CachedOperation::by_value(operation, (first, None), others, &mut space)?;
        let cached = CachedOperation::of(operation, first, others, Some(dtype))?;
        // Shared elements are read where they are, and the result is somewhere else.
        let before = (!self.is_own()).then(|| self.tensor.clone());
        let mut inputs = Inputs::default();
        inputs.push_source(before.as_ref().map_or(OperandSource::Output(0), OperandSource::Tensor));
        others.iter().for_each(|operand| inputs.push(operand));
        self.write(|target| cached.run_into(&inputs, target))?;
        Ok(self)
    }
}

/// Writes what `run` puts into the targets of several outputs.
///
/// # Errors
///
/// The errors of `run`, and [`Error::OutOfMemory`].
pub(super) fn write_all(
    outputs: &mut [TensorMut<'_>],
    run: impl FnOnce(&mut [OutputTarget<'_>]) -> Result<()>,
) -> Result<()> {
    let mut fresh = outputs.iter_mut().map(TensorMut::fresh).collect::<Result<Vec<Option<Output>>>>()?;
    let targets = outputs.iter_mut().zip(&mut fresh).map(|(output, fresh)| output.target(fresh));
    run(&mut targets.collect::<Result<Vec<OutputTarget<'_>>>>()?)?;
    outputs.iter_mut().zip(fresh).for_each(|(output, fresh)| output.settle(fresh));
    Ok(())
}

/// A tensor whose operations write their result to an existing output; see [`Tensor::with_output`].
pub struct WithOutput<'a> {
    input: &'a Tensor,
    output: TensorMut<'a>,
}

impl WithOutput<'_> {
    /// Applies an operation that is chosen at run time to the tensor and the other operands.
    ///
    /// # Errors
    ///
    /// As [`TensorMut::operation`].
    pub fn operation(mut self, operation: Operation, others: &[TensorOperand<'_>]) -> Result<()> {
        let dtype = self.output.dtype();
        let first = OperandKind::of_tensor(self.input);
        let mut space = [TensorOperand::Number(Number::Bool(false)); 2];
        let (operation, others) = CachedOperation::by_value(operation, (first, None), others, &mut space)?;
        let cached = CachedOperation::of(operation, first, others, Some(dtype))?;
        let mut inputs = Inputs::default();
        inputs.push_source(OperandSource::Tensor(self.input));
        others.iter().for_each(|operand| inputs.push(operand));
        self.output.write(|target| cached.run_into(&inputs, target))
    }
}

macro_rules! methods {
    ($($variant:ident $name:ident $arity:tt $doc:literal;)*) => {
        /// The elementwise operations, whose results replace the elements.
        ///
        /// # Errors
        ///
        /// As those of a [`Tensor`]; [`DTypeMismatch`](Error::DTypeMismatch) for a result that these elements cannot hold.
        impl<'s> TensorMut<'s> {
            $(methods!(@in_place 's $variant $name $arity $doc);)*
        }

        /// The elementwise operations, whose results are written to the output.
        ///
        /// # Errors
        ///
        /// As those of a [`Tensor`]; [`DTypeMismatch`](Error::DTypeMismatch) for a result that the output cannot hold.
        impl WithOutput<'_> {
            $(methods!(@output $variant $name $arity $doc);)*
        }
    };
    (@in_place $life:lifetime $variant:ident $name:ident 1 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name(&mut self) -> Result<&mut TensorMut<$life>> {
            self.operation(Operation::$variant, &[])
        }
    };
    (@in_place $life:lifetime $variant:ident $name:ident 2 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name<'a>(&mut self, y: impl Into<TensorOperand<'a>>) -> Result<&mut TensorMut<$life>> {
            self.operation(Operation::$variant, &[y.into()])
        }
    };
    (@in_place $life:lifetime $variant:ident $name:ident 3 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::missing_errors_doc)]
        pub fn $name<'a, 'b>(
            &mut self,
            y: impl Into<TensorOperand<'a>>,
            z: impl Into<TensorOperand<'b>>,
        ) -> Result<&mut TensorMut<$life>> {
            self.operation(Operation::$variant, &[y.into(), z.into()])
        }
    };
    (@output $variant:ident $name:ident 1 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name(self) -> Result<()> {
            self.operation(Operation::$variant, &[])
        }
    };
    (@output $variant:ident $name:ident 2 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait, clippy::missing_errors_doc)]
        pub fn $name<'a>(self, y: impl Into<TensorOperand<'a>>) -> Result<()> {
            self.operation(Operation::$variant, &[y.into()])
        }
    };
    (@output $variant:ident $name:ident 3 $doc:literal) => {
        #[doc = $doc]
        #[allow(clippy::missing_errors_doc)]
        pub fn $name<'a, 'b>(self, y: impl Into<TensorOperand<'a>>, z: impl Into<TensorOperand<'b>>) -> Result<()> {
            self.operation(Operation::$variant, &[y.into(), z.into()])
        }
    };
}

with_operations!(methods);
