//! Products of tensors: matrices, vectors and batches of them, by the engines of [`gemm`].
//!
//! An operand is read where it lies when its rows or its columns do, whatever is transposed, cut out or broadcast about it;
//! otherwise it is copied first. What must stay true: elements of one dtype are multiplied, and nothing is cast unasked.

mod plan;

use std::ops::Range;

use super::device::{Device, stream};
use super::evaluate::Target;
use super::in_place::TensorMut;
use super::storage::{Fresh, Memory, MemoryMut};
use super::tensor::{Tensor, mismatch, one_device};
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::gemm::{Choice, GemmElement, GemmResult, gemm, gemm_host};
use crate::types::{DType, Element, Layout, NumberKind};
use plan::{Lying, Matrices, Step, lying, result_shape};

/// What errors call it.
const OPERATION: &str = "a product of tensors";

/// A product of tensors that is more than [`Tensor::matmul`]: a factor, operands that are conjugated, another dtype of the
/// result, an engine of its own.
///
/// ```
/// use selvedge::tensor::{Device, Matmul, Tensor};
/// use selvedge::types::DType;
/// let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::cpu())?.cast(DType::BF16)?;
/// let c = Matmul::new().alpha(0.5).result(DType::F32).of(&a, &a)?;
/// assert_eq!(c.to_vec::<f32>()?, [3.5, 5.0, 7.5, 11.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Matmul {
    alpha: Number,
    conjugate: [bool; 2],
    result: Option<DType>,
    choice: Option<Choice>,
}

impl Default for Matmul {
    fn default() -> Matmul {
        Matmul::new()
    }
}

impl Matmul {
    /// As [`Tensor::matmul`] does it.
    pub const fn new() -> Matmul {
        Matmul { alpha: Number::Integer(1), conjugate: [false; 2], result: None, choice: None }
    }

    /// Times this number, in the type that products are added in.
    pub fn alpha(mut self, alpha: impl Into<Number>) -> Matmul {
        self.alpha = alpha.into();
        self
    }

    /// With the left operand's complex conjugate, which is not made for it; real numbers are their own.
    pub const fn conjugate_left(mut self) -> Matmul {
        self.conjugate[0] = true;
        self
    }

    /// As [`conjugate_left`](Self::conjugate_left), of the right operand.
    pub const fn conjugate_right(mut self) -> Matmul {
        self.conjugate[1] = true;
        self
    }

    /// Into this dtype: that of the operands, or `F32` for `F16` and `BF16`, which leaves sums as they are added.
    pub const fn result(mut self, dtype: DType) -> Matmul {
        self.result = Some(dtype);
        self
    }

    /// By this engine, or one of these, whatever `SELVEDGE_GEMM` says; on a CUDA device only.
    pub const fn by(mut self, choice: Choice) -> Matmul {
        self.choice = Some(choice);
        self
    }

    /// The product, in memory of its own.
    ///
    /// # Errors
    ///
    /// As [`Tensor::matmul`]; [`Error::DTypeMismatch`] too for a result dtype that these are not multiplied into, and for
    /// a factor of another kind of number than the elements.
    pub fn of(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let device = one_device(OPERATION, [a, b])?;
        let shape = result_shape(OPERATION, a.shape(), b.shape())?;
        let dtype = self.result.unwrap_or(a.dtype());
        self.check_dtypes(a, b, dtype)?;
        let mut fresh = Fresh::new(&device, dtype, &shape)?;
        let layout = as_matrices(fresh.layout(), a.rank(), b.rank())?;
        self.run(a, b, Number::Integer(0), Target::new(fresh.memory_mut(), dtype, &layout))?;
        Ok(fresh.into_tensor())
    }

    /// Replaces the elements of `c`, a `&mut Tensor` or a part of one, by the product plus `beta` times themselves; with
    /// a `beta` of 0 they are not read. The result's dtype is theirs.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Matmul, Tensor};
    /// let a = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]], &Device::cpu())?;
    /// let mut c = Tensor::ones(&[2, 2], a.dtype(), &Device::cpu())?;
    /// Matmul::new().alpha(-1.0).add_to(&mut c, 10.0, &a, &a)?;
    /// assert_eq!(c.to_vec::<f64>()?, [3.0, 0.0, -5.0, -12.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of); [`Error::InvalidArgument`] too where `c` has another shape than the product.
    pub fn add_to<'a>(
        &self,
        c: impl Into<TensorMut<'a>>,
        beta: impl Into<Number>,
        a: &Tensor,
        b: &Tensor,
    ) -> Result<()> {
        let (mut c, beta) = (c.into(), beta.into());
        let device = one_device(OPERATION, [a, b])?;
        if c.device() != device {
            return Err(mismatch(OPERATION, device, c.device()));
        }
        let shape = result_shape(OPERATION, a.shape(), b.shape())?;
        if *c.shape() != shape {
            let found = format!("shapes {} and {}, into one of {}", a.shape(), b.shape(), c.shape());
            return Err(Error::invalid(OPERATION, found, format!("a result of shape {shape}")));
        }
        self.check_dtypes(a, b, c.dtype())?;
        check_number("beta", beta, c.dtype())?;
        let (ranks, reads) = ((a.rank(), b.rank()), !is_zero(beta));
        // Where C lies in a way that no product writes, a copy of it takes the product.
        let direct = |layout: &Layout| {
            let layout = as_matrices(layout, ranks.0, ranks.1)?;
            Ok::<_, Error>((lying(&layout).filter(|_| !layout.may_overlap()).is_some(), layout))
        };
        if !direct(c.layout())?.0 {
            let mut dense = c.copy()?;
            self.add_to(&mut dense, beta, a, b)?;
            c.assign(&dense)?;
            return Ok(());
        }
        c.update(reads, |target| {
            let layout = direct(target.layout())?.1;
            self.run(a, b, beta, target.with_layout(&layout))
        })
    }

    fn check_dtypes(&self, a: &Tensor, b: &Tensor, result: DType) -> Result<()> {
        let (left, right) = (a.dtype(), b.dtype());
        let wrong = |wanted: &str, found: String| {
            let found = format!("{found} (shapes {} and {})", a.shape(), b.shape());
            Err(Error::DTypeMismatch { operation: OPERATION, wanted: wanted.to_owned(), found })
        };
        if left != right {
            return wrong("operands of one dtype: cast one of them", format!("{left} and {right}"));
        }
        if matches!(left, DType::Bool | DType::F8E4M3 | DType::F8E5M2) {
            return wrong("numbers that are multiplied: cast them first", format!("operands of {left}"));
        }
        let wide = matches!(left, DType::F16 | DType::BF16) && result == DType::F32;
        if result != left && !wide {
            let wanted = "a result of the operands' dtype, or of f32 for f16 and bf16";
            return wrong(wanted, format!("{left} into {result}"));
        }
        check_number("alpha", self.alpha, left)
    }

    /// Multiplies into the target, whose layout has the batch's dimensions and two more.
    fn run(&self, a: &Tensor, b: &Tensor, beta: Number, target: Target<'_>) -> Result<()> {
        let (a, b) = (with_rows(a)?, with_columns(b)?);
        let ((a, on_a), (b, on_b)) = (readable(a)?, readable(b)?);
        let (mut memory, result, c) = target.into_parts();
        let on_c = lying(c).ok_or_else(|| {
            Error::invalid(OPERATION, format!("a result of {c:?}"), "one whose rows or columns lie in memory")
        })?;
        let matrices = Matrices {
            layouts: [a.layout(), b.layout(), c],
            lying: [on_a, on_b, on_c],
            conjugate: self.conjugate,
            choice: self.choice,
        };
        for step in &matrices.steps()? {
            let [left, right] = if step.turned { [&b, &a] } else { [&a, &b] };
            let start = c.offset();
            Call { left, right, alpha: self.alpha, beta, memory: &mut memory, start }.any(step, result)?;
        }
        Ok(())
    }
}

fn is_zero(number: Number) -> bool {
    match number {
        Number::Bool(x) => !x,
        Number::Integer(x) => x == 0,
        Number::Real(x) => x == 0.0,
        Number::Complex(x) => x.re == 0.0 && x.im == 0.0,
    }
}

fn check_number(name: &str, number: Number, dtype: DType) -> Result<()> {
    if number.kind() as u8 <= dtype.kind() as u8 {
        return Ok(());
    }
    let kind = match number.kind() {
        NumberKind::Complex => "complex",
        _ => "real",
    };
    let found = format!("a {kind} {name} for elements of {dtype}");
    Err(Error::DTypeMismatch { operation: OPERATION, wanted: "a factor that they can be".to_owned(), found })
}

/// The result's layout with the dimensions that vectors leave out.
fn as_matrices(layout: &Layout, rank_of_a: usize, rank_of_b: usize) -> Result<Layout> {
    let mut layout = *layout;
    if rank_of_b == 1 {
        layout = layout.unsqueeze(-1)?;
    }
    if rank_of_a == 1 {
        layout = layout.unsqueeze(-2)?;
    }
    Ok(layout)
}

fn with_rows(a: &Tensor) -> Result<Tensor> {
    if a.rank() == 1 { Ok(a.view_as(a.layout().unsqueeze(0)?)) } else { Ok(a.clone()) }
}

fn with_columns(b: &Tensor) -> Result<Tensor> {
    if b.rank() == 1 { Ok(b.view_as(b.layout().unsqueeze(1)?)) } else { Ok(b.clone()) }
}

/// The tensor where a product can read it, else a copy; and how its matrices lie.
fn readable(tensor: Tensor) -> Result<(Tensor, Lying)> {
    if let Some(lying) = lying(tensor.layout()) {
        return Ok((tensor, lying));
    }
    let copy = tensor.copy()?;
    match lying(copy.layout()) {
        Some(lying) => Ok((copy, lying)),
        None => Err(Error::invalid(OPERATION, format!("{:?}", copy.layout()), "a contiguous copy")),
    }
}

/// One product in the memory of its operands.
struct Call<'a, 'm> {
    left: &'a Tensor,
    right: &'a Tensor,
    alpha: Number,
    beta: Number,
    memory: &'a mut MemoryMut<'m>,
    start: usize,
}

impl Call<'_, '_> {
    fn any(&mut self, step: &Step, result: DType) -> Result<()> {
        use half::{bf16, f16};
        use num_complex::Complex;
        macro_rules! of {
            ($($dtype:ident $element:ty, $result:ty;)*) => {
                match (self.left.dtype(), result) {
                    $((DType::$dtype, <$result as Element>::DTYPE) => self.typed::<$element, $result>(step),)*
                    (left, result) => {
                        let (wanted, found) = ("a product that there is".to_owned(), format!("{left} into {result}"));
                        Err(Error::DTypeMismatch { operation: OPERATION, wanted, found })
                    }
                }
            };
        }
        of! {
            U8 u8, u8; I8 i8, i8; U16 u16, u16; I16 i16, i16; U32 u32, u32; I32 i32, i32; U64 u64, u64; I64 i64, i64;
            F16 f16, f16; F16 f16, f32; BF16 bf16, bf16; BF16 bf16, f32; F32 f32, f32; F64 f64, f64;
            C64 Complex<f32>, Complex<f32>; C128 Complex<f64>, Complex<f64>;
        }
    }

    fn typed<T: GemmElement, C: GemmResult<T>>(&mut self, step: &Step) -> Result<()> {
        let (alpha, beta) = (factor::<T::Scalar>(self.alpha), factor::<T::Scalar>(self.beta));
        let product = &step.product;
        let starts = [self.left.layout().offset(), self.right.layout().offset(), self.start];
        let from = |which: usize, size: usize, bytes: usize| {
            // Of what has no elements the start is any.
            ((starts[which] + step.starts[which]) * size).min(bytes)..bytes
        };
        match (self.left.memory(), self.right.memory(), &mut *self.memory) {
            (Memory::Host(a), Memory::Host(b), MemoryMut::Host(c)) => {
                let length = c.len();
                let (a, b) = (
                    part::<T>(a, from(0, size_of::<T>(), a.len()))?,
                    part::<T>(b, from(1, size_of::<T>(), b.len()))?,
                );
                let range = from(2, size_of::<C>(), length);
                let c = bytemuck::try_cast_slice_mut(c.get_mut(range).unwrap_or_default());
                gemm_host::<T, C>(product, alpha, a, b, beta, c.map_err(misplaced)?)
            }
            (Memory::Cuda(a), Memory::Cuda(b), MemoryMut::Cuda(c)) => {
                let stream = stream(&Device::from(c.device()))?;
                let (a, b) = (
                    a.slice(from(0, size_of::<T>(), a.len()))?.reinterpret::<T>()?,
                    b.slice(from(1, size_of::<T>(), b.len()))?.reinterpret::<T>()?,
                );
                let range = from(2, size_of::<C>(), c.len());
                let mut c = c.slice_mut(range)?.reinterpret::<C>()?;
                gemm::<T, C>(&stream, product, alpha, &a, &b, beta, &mut c)
            }
            (_, _, c) => Err(mismatch(OPERATION, self.left.device(), c.device())),
        }
    }
}

fn part<T: Element>(memory: &[u8], range: Range<usize>) -> Result<&[T]> {
    bytemuck::try_cast_slice(memory.get(range).unwrap_or_default()).map_err(misplaced)
}

#[cold]
fn misplaced(error: bytemuck::PodCastError) -> Error {
    Error::invalid(OPERATION, format!("memory of a tensor: {error}"), "memory that elements can lie in")
}

/// A number as a factor, by the rules of a cast.
fn factor<S: Element>(number: Number) -> S {
    let [re, im] = number.parts(S::DTYPE);
    let part = size_of::<S>() / if S::DTYPE.kind() == NumberKind::Complex { 2 } else { 1 };
    let mut factor = S::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut factor);
    for (place, word) in bytes.chunks_exact_mut(part).zip([re, im]) {
        place.copy_from_slice(&word.to_le_bytes()[..part]);
    }
    factor
}

impl Tensor {
    /// The product of matrices, of vectors, or of batches of them.
    ///
    /// The last two dimensions are those of matrices; those before are batches, which broadcast. A vector is one row on the
    /// left and one column on the right, and that dimension is left out of the result; so two vectors give a number.
    /// Operands are read where they lie if their rows or columns do: transposing and slicing cost nothing. Sums are in
    /// the elements' dtype, in f32 for `F16` and `BF16`, and rounded once; integers wrap. See [`gemm`](crate::gemm) for the
    /// engines, and [`Matmul`] for more than a product.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let a = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &Device::cpu())?;
    /// assert_eq!(a.matmul(&a.transpose(0, 1)?)?.to_vec::<f32>()?, [14.0, 32.0, 32.0, 77.0]);
    /// let x = Tensor::new([1.0f32, 0.0, -1.0], &Device::cpu())?;
    /// assert_eq!(a.matmul(&x)?.to_vec::<f32>()?, [-2.0, -2.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with both shapes where they do not meet, [`Error::DTypeMismatch`] for two dtypes, and for
    /// `Bool` and 8-bit floats, [`Error::DeviceMismatch`] for tensors on two devices, and those of memory and of the engine.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        Matmul::new().of(self, other)
    }

    /// The product of a matrix, or a batch of them, and a vector.
    ///
    /// # Errors
    ///
    /// As [`matmul`](Self::matmul); [`Error::InvalidArgument`] too for other numbers of dimensions.
    pub fn gemv(&self, vector: &Tensor) -> Result<Tensor> {
        check_ranks("gemv", self, vector, self.rank() >= 2 && vector.rank() == 1, "a matrix and a vector")?;
        self.matmul(vector)
    }

    /// The sum of the products of two vectors' elements.
    ///
    /// # Errors
    ///
    /// As [`gemv`](Self::gemv).
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        check_ranks("dot", self, other, self.rank() == 1 && other.rank() == 1, "two vectors")?;
        self.matmul(other)
    }

    /// The products of each element of a vector with each of another: a matrix.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1i32, 2], &Device::cpu())?;
    /// let y = Tensor::new([3i32, 4, 5], &Device::cpu())?;
    /// assert_eq!(x.outer(&y)?.to_vec::<i32>()?, [3, 4, 5, 6, 8, 10]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gemv`](Self::gemv).
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        check_ranks("outer", self, other, self.rank() == 1 && other.rank() == 1, "two vectors")?;
        let (rows, columns) = (self.layout().unsqueeze(1)?, other.layout().unsqueeze(0)?);
        self.view_as(rows).matmul(&other.view_as(columns))
    }
}

fn check_ranks(operation: &'static str, a: &Tensor, b: &Tensor, fits: bool, wanted: &str) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("shapes {} and {}", a.shape(), b.shape()), wanted))
}
