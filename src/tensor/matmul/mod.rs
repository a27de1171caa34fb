//! Products of tensors: matrices, vectors and batches of them, by the engines of [`gemm`].
//!
//! A product reads an operand in place if its rows or its columns are contiguous, whatever views it went through; any other
//! operand is copied first. The epilogue runs in the same call, before the result is rounded.
//!
//! Rows and columns may have any leading dimension, offset and batch strides, 0 for broadcast ones. Adjacent batch dimensions
//! are merged. If all batches share the right operand and their rows are evenly spaced, the rows are one product, unless the
//! bias has an element for each row. A product of one column is computed as its transpose. One call computes the longest batch
//! dimension that is left; the others are a loop of calls.
//!
//! Invariants: both operands have one dtype, and no operand is cast unasked.

mod call;
mod epilogue;
mod plan;
mod rows;

use super::device::Device;
use super::in_place::TensorMut;
use super::kernel::{Output, OutputTarget};
use super::storage::MemoryMut;
use super::tensor::{Tensor, mismatch, one_device};
use super::traced;
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::gemm::{Activation, Choice};
use crate::types::{DType, Layout, NumberKind};
use call::MatmulCall;
use epilogue::MatmulEpilogue;
use plan::{Matrices, StorageOrder, result_shape, storage_order};
pub(crate) use rows::{TensorRows, TensorRowsNorm};

/// The operation's name in errors.
const OPERATION: &str = "matmul";

/// A product of tensors with options that [`Tensor::matmul`] lacks: activation(alpha · A · B + bias) + residual, in which each
/// part is optional, conjugated operands, another dtype of the result, and a choice of engines.
///
/// It is computed in the accumulators' type and rounded once. A product that is one call of [`gemm`](crate::gemm) computes all
/// of it in that call.
///
/// | operand | dtype | shape | layout |
/// |---|---|---|---|
/// | left, right | both the same | as in [`Tensor::matmul`] | read in place if rows or columns are contiguous |
/// | bias | the result's | broadcasts to the result, and varies along its columns alone, or along its rows alone: `[n]` or `[m, 1]` | copied if its elements are not adjacent |
/// | residual | the result's | broadcasts to the result | copied if it is not contiguous in the result's shape |
///
/// Bias, activation, residual and the aux output of [`of_with_aux`](Self::of_with_aux) are for results of `F16`, `BF16`, `F32` and
/// `F64`. Shapes are the result's for products with a vector, too: `[m]` is a bias of a matrix times a vector.
///
/// ```
/// use selvedge::gemm::Activation;
/// use selvedge::tensor::{Device, Matmul, Tensor};
/// use selvedge::types::DType;
/// let cpu = Device::cpu();
/// let a = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &cpu)?.cast(DType::BF16)?;
/// let c = Matmul::new().alpha(0.5).result(DType::F32).of(&a, &a)?;
/// assert_eq!(c.to_vec::<f32>()?, [3.5, 5.0, 7.5, 11.0]);
/// // A layer with its residual.
/// let (bias, x) = (Tensor::new([-5.0f32, 1.0], &cpu)?, Tensor::new([[100.0f32, 0.0]], &cpu)?);
/// let layer = Matmul::new().alpha(0.5).bias(&bias).activation(Activation::Relu).residual(&x);
/// assert_eq!(layer.result(DType::F32).of(&a, &a)?.to_vec::<f32>()?, [100.0, 6.0, 102.5, 12.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Matmul<'t> {
    alpha: Number,
    conjugate: [bool; 2],
    result: Option<DType>,
    choice: Option<Choice>,
    bias: Option<&'t Tensor>,
    activation: Activation,
    residual: Option<&'t Tensor>,
}

impl Default for Matmul<'_> {
    fn default() -> Self {
        Matmul::new()
    }
}

impl<'t> Matmul<'t> {
    /// Returns a product without options, as [`Tensor::matmul`].
    pub const fn new() -> Matmul<'t> {
        Matmul {
            alpha: Number::Integer(1),
            conjugate: [false; 2],
            result: None,
            choice: None,
            bias: None,
            activation: Activation::None,
            residual: None,
        }
    }

    /// Multiplies the product by `alpha`, in the accumulators' type.
    pub fn alpha(mut self, alpha: impl Into<Number>) -> Matmul<'t> {
        self.alpha = alpha.into();
        self
    }

    /// Multiplies the complex conjugate of the left operand, without a copy of it; real operands are unchanged.
    pub const fn conjugate_left(mut self) -> Matmul<'t> {
        self.conjugate[0] = true;
        self
    }

    /// As [`conjugate_left`](Self::conjugate_left), of the right operand.
    pub const fn conjugate_right(mut self) -> Matmul<'t> {
        self.conjugate[1] = true;
        self
    }

    /// Sets the dtype of the result: that of the operands, or `F32` for `F16` and `BF16` operands (the accumulators, unrounded).
    pub const fn result(mut self, dtype: DType) -> Matmul<'t> {
        self.result = Some(dtype);
        self
    }

    /// Sets the engines that may run on a CUDA device, in place of those of `SELVEDGE_GEMM`.
    pub const fn by(mut self, choice: Choice) -> Matmul<'t> {
        self.choice = Some(choice);
        self
    }

    /// Adds a bias, with one element for each column of the result or one for each row; see [`Matmul`] for its shape.
    pub const fn bias(mut self, bias: &'t Tensor) -> Matmul<'t> {
        self.bias = Some(bias);
        self
    }

    /// Applies an activation, after the bias.
    pub const fn activation(mut self, activation: Activation) -> Matmul<'t> {
        self.activation = activation;
        self
    }

    /// Adds a residual, after the activation.
    pub const fn residual(mut self, residual: &'t Tensor) -> Matmul<'t> {
        self.residual = Some(residual);
        self
    }

    /// Returns the product as a new tensor.
    ///
    /// # Errors
    ///
    /// As [`Tensor::matmul`]; [`Error::DTypeMismatch`] too for a result dtype that the operands' dtype has no product for, for a
    /// factor of another kind of number than the elements, for a bias or a residual of another dtype than the result, and
    /// where the result's dtype has neither these nor activations; [`Error::InvalidArgument`] with both shapes where a bias
    /// or a residual does not fit the result.
    pub fn of(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.make(a, b, false).map(|(product, _)| product)
    }

    /// Returns the product and its pre-activation (aux), to which the activation was applied: gradients need it.
    ///
    /// ```
    /// use selvedge::gemm::Activation;
    /// use selvedge::tensor::{Device, Matmul, Tensor};
    /// let a = Tensor::new([[1.0f32, -2.0], [3.0, -4.0]], &Device::cpu())?;
    /// let (c, before) = Matmul::new().activation(Activation::Relu).of_with_aux(&a, &a)?;
    /// assert_eq!(before.to_vec::<f32>()?, [-5.0, 6.0, -9.0, 10.0]);
    /// assert_eq!(c.to_vec::<f32>()?, [0.0, 6.0, 0.0, 10.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub fn of_with_aux(&self, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
        let (product, aux) = self.make(a, b, true)?;
        let missing = || Error::invalid(OPERATION, "nothing kept", "what the activation is applied to");
        Ok((product, aux.ok_or_else(missing)?))
    }

    fn make(&self, a: &Tensor, b: &Tensor, keeps: bool) -> Result<(Tensor, Option<Tensor>)> {
        let device = self.device(a, b)?;
        let shape = result_shape(OPERATION, a.shape(), b.shape())?;
        let dtype = self.result.unwrap_or(a.dtype());
        self.check_dtypes(a, b, dtype)?;
        if keeps {
            self.check_fused("what is kept", a, b, dtype)?;
        }
        let fused = MatmulEpilogue::new(self, &shape, (a.rank(), b.rank()))?;
        let mut fresh = Output::of_shape(&device, dtype, &shape)?;
        let mut aux = if keeps { Some(Output::of_shape(&device, dtype, &shape)?) } else { None };
        let layout = as_matrices(fresh.layout(), (a.rank(), b.rank()))?;
        let target = OutputTarget::new(fresh.memory_mut(), dtype, &layout);
        self.run((a, b), Number::Integer(0), target, &fused, aux.as_mut().map(Output::memory_mut))?;
        Ok((fresh.into_tensor(), aux.map(Output::into_tensor)))
    }

    /// Returns the product times the activation's derivative at a pre-activation of the product's shape, rounded once. `None`
    /// where no engine of the device computes it in one kernel.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub(crate) fn times_derivative(
        a: &Tensor,
        b: &Tensor,
        activation: Activation,
        pre_activation: &Tensor,
    ) -> Result<Option<Tensor>> {
        let matmul = Matmul::new().activation(activation).residual(pre_activation);
        let (device, dtype) = (matmul.device(a, b)?, a.dtype());
        let has_engine = device.as_cuda().is_some_and(|device| device.compute_capability() == (9, 0));
        if !has_engine || activation == Activation::None || !matches!(dtype, DType::F16 | DType::BF16) {
            return Ok(None);
        }
        let (shape, ranks) = (result_shape(OPERATION, a.shape(), b.shape())?, (a.rank(), b.rank()));
        matmul.check_dtypes(a, b, dtype)?;
        let fused = MatmulEpilogue { is_derivative: true, ..MatmulEpilogue::new(&matmul, &shape, ranks)? };
        let mut fresh = Output::of_shape(&device, dtype, &shape)?;
        let layout = as_matrices(fresh.layout(), ranks)?;
        let target = OutputTarget::new(fresh.memory_mut(), dtype, &layout);
        let is_done = matmul.run((a, b), Number::Integer(0), target, &fused, None)?;
        Ok(is_done.then(|| fresh.into_tensor()))
    }

    /// Replaces the elements of `c`, a `&mut Tensor` or a part of one, by the product plus `beta` times themselves; with
    /// a `beta` of 0 they are not read. They are added with the bias, before an activation. The result's dtype is theirs.
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
        let device = self.device(a, b)?;
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
        let fused = MatmulEpilogue::new(self, &shape, ranks)?;
        // A product writes to a copy of C if C's layout is none that it supports, or differs from the residual's.
        let direct = |layout: &Layout| {
            let lies_alike = self.residual.is_none() || layout.is_contiguous();
            let layout = as_matrices(layout, ranks)?;
            Ok::<_, Error>((storage_order(&layout).is_some() && !layout.may_overlap() && lies_alike, layout))
        };
        if !direct(c.layout())?.0 {
            let mut dense = c.copy()?;
            self.add_to(&mut dense, beta, a, b)?;
            c.assign(&dense)?;
            return Ok(());
        }
        c.update(reads, |target| {
            let layout = direct(target.layout())?.1;
            self.run((a, b), beta, target.with_layout(&layout), &fused, None).map(drop)
        })
    }

    /// The one device of all operands.
    fn device(&self, a: &Tensor, b: &Tensor) -> Result<Device> {
        one_device(OPERATION, [a, b].into_iter().chain(self.bias).chain(self.residual))
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
        for (name, fused) in [("the bias", self.bias), ("the residual", self.residual)] {
            let Some(fused) = fused else { continue };
            self.check_fused(name, a, b, result)?;
            if fused.dtype() != result {
                let found = format!("{name} of {} (shape {}), for {result}", fused.dtype(), fused.shape());
                return wrong("a bias and a residual of the result's dtype: cast them", found);
            }
        }
        if self.activation != Activation::None {
            self.check_fused("an activation", a, b, result)?;
        }
        check_number("alpha", self.alpha, left)
    }

    /// Fails for results that have no such part.
    fn check_fused(&self, name: &str, a: &Tensor, b: &Tensor, result: DType) -> Result<()> {
        if matches!(result, DType::F16 | DType::BF16 | DType::F32 | DType::F64) {
            return Ok(());
        }
        let found = format!("{name} for a result of {result} (shapes {} and {})", a.shape(), b.shape());
        let wanted = "a result of f16, bf16, f32 or f64".to_owned();
        Err(Error::DTypeMismatch { operation: OPERATION, wanted, found })
    }

    /// Multiplies into the target, whose layout has the batch's dimensions and two more. Aux is contiguous. Returns false, and
    /// writes nothing, if the epilogue multiplies by a derivative and no engine of the device does.
    fn run(
        &self,
        (a, b): (&Tensor, &Tensor),
        beta: Number,
        target: OutputTarget<'_>,
        fused: &MatmulEpilogue,
        mut aux: Option<MemoryMut<'_>>,
    ) -> Result<bool> {
        let _traced = traced::operation(OPERATION, [a, b].into_iter(), Some(target.elements()));
        if target.layout().count() == 0 {
            // An operand may be a broadcast view whose memory has fewer elements than one of its matrices.
            return Ok(true);
        }
        let (a, b) = (with_rows(a)?, with_columns(b)?);
        let ((a, on_a), (b, on_b)) = (readable(a)?, readable(b)?);
        let (mut memory, result, c) = target.into_parts();
        let on_c = storage_order(c).ok_or_else(|| {
            Error::invalid(OPERATION, format!("a result of {c:?}"), "one whose rows or columns lie in memory")
        })?;
        let matrices = Matrices {
            layouts: [a.layout(), b.layout(), c],
            order: [on_a, on_b, on_c],
            conjugate: self.conjugate,
            choice: self.choice,
            has_row_bias: fused.has_bias_of_rows(),
        };
        let steps = matrices.steps()?;
        let (factors, start, aux) = ((self.alpha, beta), c.offset(), aux.as_mut());
        let operands: [&Tensor; 2] = [&a, &b];
        let mut call = MatmulCall { operands, factors, memory: &mut memory, start, fused, aux };
        if fused.is_derivative {
            for step in &steps {
                if !call.is_supported(step, result)? {
                    return Ok(false);
                }
            }
        }
        for step in &steps {
            call.any(step, result)?;
        }
        Ok(true)
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
        // Products of narrow floats are scaled in f32.
        let dtype = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
        return number.check(OPERATION, dtype);
    }
    let kind = match number.kind() {
        NumberKind::Complex => "complex",
        _ => "real",
    };
    let found = format!("a {kind} {name} for elements of {dtype}");
    Err(Error::DTypeMismatch { operation: OPERATION, wanted: "a factor that they can be".to_owned(), found })
}

/// Returns the result's layout with the dimensions that it lacks because of vectors.
fn as_matrices(layout: &Layout, (rank_of_a, rank_of_b): (usize, usize)) -> Result<Layout> {
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

/// Returns the tensor if a product can read it in place, otherwise a copy, with its storage order.
fn readable(tensor: Tensor) -> Result<(Tensor, StorageOrder)> {
    if let Some(order) = storage_order(tensor.layout()) {
        return Ok((tensor, order));
    }
    let copy = tensor.copy()?;
    match storage_order(copy.layout()) {
        Some(order) => Ok((copy, order)),
        None => Err(Error::invalid(OPERATION, format!("{:?}", copy.layout()), "a contiguous copy")),
    }
}

impl Tensor {
    /// Returns the product of matrices, of vectors, or of batches of them.
    ///
    /// The last two dimensions are those of matrices; those before are batches, which broadcast. A vector is one row on the
    /// left and one column on the right, and the result lacks that dimension; so two vectors give a 0-d tensor. Operands with
    /// contiguous rows or columns are read in place, so transposing and slicing cost nothing. Sums are in
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
    /// [`Error::InvalidArgument`] with both shapes if they do not match, [`Error::DTypeMismatch`] for two dtypes, and for
    /// `Bool` and 8-bit floats, [`Error::DeviceMismatch`] for tensors on two devices, and those of memory and of the engine.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        Matmul::new().of(self, other)
    }

    /// Matrix-vector product (PyTorch's `mv`), also of a batch of matrices.
    ///
    /// # Errors
    ///
    /// As [`matmul`](Self::matmul); [`Error::InvalidArgument`] too for other numbers of dimensions.
    pub fn gemv(&self, vector: &Tensor) -> Result<Tensor> {
        check_ranks("gemv", self, vector, self.rank() >= 2 && vector.rank() == 1, "a matrix and a vector")?;
        self.matmul(vector).map_err(|error| error.in_operation("gemv"))
    }

    /// Returns the sum of the products of two vectors' elements.
    ///
    /// # Errors
    ///
    /// As [`gemv`](Self::gemv).
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        check_ranks("dot", self, other, self.rank() == 1 && other.rank() == 1, "two vectors")?;
        self.matmul(other).map_err(|error| error.in_operation("dot"))
    }

    /// Returns the matrix of the products of each element of this vector with each element of another.
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
        self.view_as(rows).matmul(&other.view_as(columns)).map_err(|error| error.in_operation("outer"))
    }
}

fn check_ranks(operation: &'static str, a: &Tensor, b: &Tensor, fits: bool, wanted: &str) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("shapes {} and {}", a.shape(), b.shape()), wanted))
}
