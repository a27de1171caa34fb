//! Elements replaced by their position or by a mask: `tril`, `triu` and `masked_fill`.

use std::sync::OnceLock;

use super::{Output, Tensor, plain};
use crate::error::{Error, Result};
use crate::fuse::{Expression, Graph, Number, Operation};
use crate::tensor::cached_operation::{CachedOperation, OperandKind};
use crate::tensor::evaluate::{OperandSource, evaluate_into};
use crate::tensor::in_place::TensorMut;
use crate::tensor::kernel::OutputTarget;
use crate::tensor::operand::{Inputs, TensorOperand};
use crate::types::DType;

/// Which side of a diagonal stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

impl Tensor {
    /// Returns the matrices of the last two dimensions with zeros above a diagonal: 0 is the main one, and a higher one keeps
    /// more.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.tril(0)?.to_vec::<i32>()?, [1, 0, 0, 4, 5, 0]);
    /// assert_eq!(x.tril(1)?.to_vec::<i32>()?, [1, 2, 0, 4, 5, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for fewer than two dimensions; those of memory.
    pub fn tril(&self, diagonal: isize) -> Result<Tensor> {
        self.triangle("tril", Side::Lower, diagonal)
    }

    /// Returns the matrices of the last two dimensions with zeros below a diagonal: 0 is the main one, and a higher one keeps
    /// less.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &Device::cpu())?;
    /// assert_eq!(x.triu(0)?.to_vec::<i32>()?, [1, 2, 3, 0, 5, 6]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`tril`](Self::tril).
    pub fn triu(&self, diagonal: isize) -> Result<Tensor> {
        self.triangle("triu", Side::Upper, diagonal)
    }

    fn triangle(&self, operation: &'static str, side: Side, diagonal: isize) -> Result<Tensor> {
        if self.rank() < 2 {
            let found = format!("shape {}", self.shape());
            return Err(Error::invalid(operation, found, "at least two dimensions"));
        }
        let bits = plain(self.dtype());
        let source = Tensor::of(self.storage.clone(), bits, self.layout);
        let mut fresh = Output::of_shape(&self.device(), self.dtype(), self.shape())?;
        let layout = *fresh.layout();
        let target = OutputTarget::new(fresh.memory_mut(), bits, &layout);
        let diagonal = Number::from(diagonal as i64);
        evaluate_into(
            expression(bits, side)?,
            &[OperandSource::Tensor(&source)],
            &[diagonal],
            &mut [target],
        )?;
        Ok(fresh.into_tensor())
    }

    /// Returns the elements, with a value where the mask is true: a number, or a tensor that broadcasts. The result has this tensor's
    /// dtype, which must be able to hold the value: an integer tensor takes no fractions.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let cpu = Device::cpu();
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &cpu)?;
    /// let mask = Tensor::new([true, false], &cpu)?;
    /// assert_eq!(x.masked_fill(&mask, -1.0)?.to_vec::<f32>()?, [-1.0, 2.0, -1.0, 4.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DTypeMismatch`](Error::DTypeMismatch) for a mask that is not of bools or a value that does not fit,
    /// [`InvalidArgument`](Error::InvalidArgument) for shapes that do not broadcast, [`DeviceMismatch`](Error::DeviceMismatch),
    /// and those of memory.
    pub fn masked_fill<'a>(
        &'a self,
        mask: &'a Tensor,
        value: impl Into<TensorOperand<'a>>,
    ) -> Result<Tensor> {
        let value = checked(value.into(), self.dtype())?;
        let operands: [TensorOperand<'_>; 3] = [mask.into(), value, self.into()];
        filling(mask, &operands[1..], self.dtype())?.run(&operands)
    }
}

impl<'a> TensorMut<'a> {
    /// Replaces the elements where the mask is true; see [`Tensor::masked_fill`].
    ///
    /// # Errors
    ///
    /// As [`Tensor::masked_fill`], and where the mask or the value would make the shape larger.
    pub fn masked_fill<'b>(
        &mut self,
        mask: &'b Tensor,
        value: impl Into<TensorOperand<'b>>,
    ) -> Result<&mut TensorMut<'a>> {
        let value = checked(value.into(), self.dtype())?;
        let cached = filling(mask, &[value, (&self.current()).into()], self.dtype())?;
        // Shared elements are read where they are, and the result is somewhere else.
        let before = (!self.is_own()).then(|| self.current());
        let mut inputs = Inputs::default();
        inputs.push(&mask.into());
        inputs.push(&value);
        inputs.push_source(before.as_ref().map_or(OperandSource::Output(0), OperandSource::Tensor));
        self.write(|target| cached.run_into(&inputs, target))?;
        Ok(self)
    }
}

/// A value that is a tensor, or a number that the dtype holds; a number of a later kind is refused by its kind.
fn checked(value: TensorOperand<'_>, dtype: DType) -> Result<TensorOperand<'_>> {
    match value {
        TensorOperand::Number(number) if number.kind() as u8 <= dtype.kind() as u8 => {
            number.check("masked_fill", dtype)?;
            Ok(value)
        }
        _ => Ok(value),
    }
}

/// The choice between values and elements by a mask, in a dtype.
fn filling(mask: &Tensor, values: &[TensorOperand<'_>], dtype: DType) -> Result<CachedOperation> {
    if mask.dtype() != DType::Bool {
        return Err(Error::DTypeMismatch {
            operation: "masked_fill",
            wanted: "a mask of bool".to_owned(),
            found: format!("one of {}", mask.dtype()),
        });
    }
    CachedOperation::of(Operation::Select, OperandKind::of_tensor(mask), values, Some(dtype))
}

/// Elements on one side of a diagonal, which is a number of each run, and 0 on the other.
fn expression(bits: DType, side: Side) -> Result<&'static Expression> {
    const KINDS: usize = DType::ALL.len();
    static CACHE: [OnceLock<Expression>; 2 * KINDS] = [const { OnceLock::new() }; 2 * KINDS];
    let cell = &CACHE[2 * bits as usize + usize::from(side == Side::Upper)];
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let graph = Graph::new();
    let (element, diagonal) = (graph.input(bits), graph.scalar(DType::I64));
    let across = graph.index(-1) - graph.index(-2);
    let kept = match side {
        Side::Lower => across.le(diagonal),
        Side::Upper => across.ge(diagonal),
    };
    let made = graph.expression(&[kept.choose(element, graph.number(0, bits))])?;
    Ok(cell.get_or_init(|| made))
}
