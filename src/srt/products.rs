//! Matrix products: plain, transposed, adjoint and batched ones, and products scaled or weighted by the golden ratio.
//!
//! | function | value |
//! |---|---|
//! | [`mm`], [`mm_tn`], [`mm_nt`], [`mm_tt`] | A B, Aᵀ B, A Bᵀ, Aᵀ Bᵀ |
//! | [`mm_hn`], [`mm_nh`] | Aᴴ B, A Bᴴ |
//! | [`bmm`] | Aᵢ Bᵢ of a batch |
//! | [`gemm`] | C ← α op(A) op(B) + β C |
//! | [`golden_commutator`], [`golden_anticommutator`] | A B - B A/φ, A B + B A/φ |
//! | [`mm_golden_weighted`] | Σₖ aᵢₖ bₖⱼ exp(-k²/φ) |
//! | [`mm_phi`], [`mm_corrected`] | φⁿ A B, (1 ± q/N) A B |
//! | [`mm_golden_phase`] | e^{iπn/φ} A B |
//! | [`projection_sum`], [`weighted_sum`] | Ψ + Σₖ aₖ Pₖ Ψ, Σₖ wₖ Tₖ |
//!
//! Operands are f32, f64, c64 or c128, of one dtype, and never broadcast. [`ProductMode`] selects the tensor's fast products
//! or bit-exact ones. A scale is applied once, to complete sums.
//!
//! The brackets are computed in `brackets.rs`.
//!
//! Tests: `tests/srt/products.rs`.

use std::f64::consts::PI;
use std::sync::LazyLock;

use num_complex::Complex;

use super::brackets::golden_bracket;
use super::exact_product::exact_product;
use super::operands::{NUMBERS, check_devices, check_dtypes, check_shapes, joined, parts};
use super::{INVERSE_PHI, PHI, correction, phi_pow, phi_pow_f32};
use crate::error::{Error, Result};
use crate::fuse::Number;
use crate::gemm::Operation;
use crate::tensor::{Fused, Matmul, Tensor};
use crate::types::DType;

/// The order in which a product adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProductMode {
    /// The fastest product of the device, as [`Tensor::matmul`]. Its rounding errors depend on the device.
    #[default]
    Fast,
    /// One accumulator for each element, which adds with k ascending by fused multiply-adds. The CPU and CUDA devices give
    /// the same bits. It is many times slower, f64 on CUDA devices excepted.
    Exact,
}

/// Of x, a scale and y, all as real parts: x · scale + y, rounded once.
static SCALED_SUM: LazyLock<Fused<3>> = LazyLock::new(|| Fused::new(|[x, scale, y]| x.fma(scale, y)));
/// Of parts and weights.
static SCALED: LazyLock<Fused<2>> = LazyLock::new(|| Fused::new(|[x, scale]| x * scale));

/// Returns scale · x + y, rounded once in each part.
pub(super) fn add_scaled(x: &Tensor, scale: f64, y: &Tensor) -> Result<Tensor> {
    joined(&SCALED_SUM.run((&parts(x)?, scale, &parts(y)?))?, x.dtype())
}

/// Returns scale · x.
fn scaled(x: &Tensor, scale: f64) -> Result<Tensor> {
    joined(&SCALED.run((&parts(x)?, scale))?, x.dtype())
}

/// The operation's name and mode, and its operands as they are multiplied.
pub(super) struct Pair {
    operation: &'static str,
    mode: ProductMode,
    a: Tensor,
    b: Tensor,
    conjugate: [bool; 2],
}

impl Pair {
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`], [`Error::DeviceMismatch`] and [`Error::InvalidArgument`] with both sides.
    fn new(
        operation: &'static str,
        mode: ProductMode,
        (of_a, a): (Operation, &Tensor),
        (of_b, b): (Operation, &Tensor),
        rank: usize,
    ) -> Result<Pair> {
        check_dtypes(operation, NUMBERS, &[a, b])?;
        check_devices(operation, a, b)?;
        let wrong = |wanted: &str| {
            let found = format!("shapes {} and {}, used as {of_a:?} and {of_b:?}", a.shape(), b.shape());
            Err(Error::invalid(operation, found, wanted))
        };
        if a.rank() != rank || b.rank() != rank {
            return wrong(if rank == 2 { "two matrices" } else { "two batches of matrices" });
        }
        let seen =
            |of: Operation, x: &Tensor| if of.transposes() { x.transpose(-2, -1) } else { Ok(x.clone()) };
        let (left, right) = (seen(of_a, a)?, seen(of_b, b)?);
        if left.shape()[rank - 1] != right.shape()[rank - 2] {
            return wrong("as many columns of the left matrix as rows of the right one");
        }
        if left.shape()[..rank - 2] != right.shape()[..rank - 2] {
            return wrong("equal batch counts");
        }
        let conjugate = [of_a, of_b].map(|of| of.conjugates() && a.dtype().is_complex());
        Ok(Pair { operation, mode, a: left, b: right, conjugate })
    }

    /// Two matrices that are not transposed.
    pub(super) fn plain(operation: &'static str, mode: ProductMode, a: &Tensor, b: &Tensor) -> Result<Pair> {
        Pair::new(operation, mode, (Operation::None, a), (Operation::None, b), 2)
    }

    /// Two batches of matrices that are not transposed.
    pub(super) fn batch(operation: &'static str, mode: ProductMode, a: &Tensor, b: &Tensor) -> Result<Pair> {
        Pair::new(operation, mode, (Operation::None, a), (Operation::None, b), 3)
    }

    fn matmul(&self) -> Matmul<'static> {
        let mut matmul = Matmul::new();
        if self.conjugate[0] {
            matmul = matmul.conjugate_left();
        }
        if self.conjugate[1] {
            matmul = matmul.conjugate_right();
        }
        matmul
    }

    /// Returns the product.
    pub(super) fn product(&self) -> Result<Tensor> {
        match self.mode {
            ProductMode::Fast => self.matmul().of(&self.a, &self.b),
            ProductMode::Exact => {
                let seen = |x: &Tensor, conjugate| if conjugate { x.conj() } else { Ok(x.clone()) };
                exact_product(&seen(&self.a, self.conjugate[0])?, &seen(&self.b, self.conjugate[1])?)
            }
        }
    }

    /// Returns the product times a real number.
    fn scaled(&self, scale: f64) -> Result<Tensor> {
        self.check_scale(scale)?;
        match self.mode {
            ProductMode::Fast => self.matmul().alpha(scale).of(&self.a, &self.b),
            ProductMode::Exact => scaled(&self.product()?, scale),
        }
    }

    /// Returns scale times the product, plus C.
    fn added(&self, scale: f64, c: Tensor) -> Result<Tensor> {
        self.check_scale(scale)?;
        match self.mode {
            ProductMode::Fast => {
                let mut c = c;
                self.matmul().alpha(scale).add_to(&mut c, 1, &self.a, &self.b)?;
                Ok(c)
            }
            ProductMode::Exact => add_scaled(&self.product()?, scale, &c),
        }
    }

    /// Returns the product plus scale times C. CUDA devices round once in each real part.
    pub(super) fn plus_scaled(&self, scale: f64, c: Tensor) -> Result<Tensor> {
        self.check_scale(scale)?;
        match self.mode {
            ProductMode::Fast => {
                let mut c = c;
                self.matmul().add_to(&mut c, scale, &self.a, &self.b)?;
                Ok(c)
            }
            ProductMode::Exact => add_scaled(&c, scale, &self.product()?),
        }
    }

    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a scale that the dtype does not hold.
    fn check_scale(&self, scale: f64) -> Result<()> {
        if Number::from(scale).fits(self.a.dtype().part()) {
            return Ok(());
        }
        let found = format!("a scale of {scale} for elements of {}", self.a.dtype());
        Err(Error::invalid(self.operation, found, "a number that the dtype holds"))
    }
}

macro_rules! products {
    ($($(#[doc = $doc:literal])* $name:ident $a:ident $b:ident $rank:literal;)*) => {$(
        $(#[doc = $doc])*
        ///
        /// # Errors
        ///
        /// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128, or two of them; [`Error::InvalidArgument`]
        /// with both shapes if they do not match; [`Error::DeviceMismatch`].
        pub fn $name(a: &Tensor, b: &Tensor, mode: ProductMode) -> Result<Tensor> {
            Pair::new(stringify!($name), mode, (Operation::$a, a), (Operation::$b, b), $rank)?.product()
        }
    )*};
}

products! {
    /// Returns A B. A sum of no products is 0.
    ///
    /// ```
    /// use selvedge::srt::{ProductMode, mm};
    /// use selvedge::tensor::{Device, Tensor};
    /// let a = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]], &Device::cpu())?;
    /// assert_eq!(mm(&a, &a, ProductMode::Exact)?.to_vec::<f64>()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    mm None None 2;
    /// Returns Aᵀ B of A stored as K x M.
    mm_tn Transpose None 2;
    /// Returns A Bᵀ of B stored as N x K.
    mm_nt None Transpose 2;
    /// Returns Aᵀ Bᵀ of A stored as K x M and B as N x K.
    mm_tt Transpose Transpose 2;
    /// Returns Aᴴ B of A stored as K x M; of real elements, Aᵀ B.
    mm_hn Adjoint None 2;
    /// Returns A Bᴴ of B stored as N x K; of real elements, A Bᵀ.
    mm_nh None Adjoint 2;
    /// Returns the product of each matrix of A with the one of B at the same index.
    bmm None None 3;
}

/// Replaces C by α op(A) op(B) + β C. C is not read if β is 0, so NaN in it is replaced.
///
/// ```
/// use selvedge::gemm::Operation;
/// use selvedge::srt::{ProductMode, gemm};
/// use selvedge::tensor::{Device, Tensor};
/// let a = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]], &Device::cpu())?;
/// let mut c = Tensor::ones(&[2, 2], a.dtype(), &Device::cpu())?;
/// gemm(2.0, (Operation::Transpose, &a), (Operation::None, &a), 1.0, &mut c, ProductMode::Fast)?;
/// assert_eq!(c.to_vec::<f64>()?, [21.0, 29.0, 29.0, 41.0]);
/// # Ok::<(), selvedge::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128, or two of them, and for a complex factor of real
/// elements; [`Error::InvalidArgument`] with the shapes if they do not match, and for a factor that the dtype does not
/// hold; [`Error::DeviceMismatch`].
pub fn gemm(
    alpha: impl Into<Number>,
    a: (Operation, &Tensor),
    b: (Operation, &Tensor),
    beta: impl Into<Number>,
    c: &mut Tensor,
    mode: ProductMode,
) -> Result<()> {
    let (alpha, beta) = (alpha.into(), beta.into());
    check_dtypes("gemm", NUMBERS, &[a.1, b.1, c])?;
    check_devices("gemm", a.1, c)?;
    let pair = Pair::new("gemm", mode, a, b, 2)?;
    let matmul = pair.matmul().alpha(alpha);
    if mode == ProductMode::Fast {
        return matmul.add_to(c, beta, &pair.a, &pair.b);
    }
    // The checks of the fast product, on one without depth.
    let empty = (pair.a.narrow(1, 0, 0)?, pair.b.narrow(0, 0, 0)?);
    let mut result = c.clone();
    matmul.add_to(&mut result, beta, &empty.0, &empty.1)?;
    let product = match parts_of(alpha) {
        [scale, 0.0] => scaled(&pair.product()?, scale)?,
        [re, im] => pair.product()?.mul(Complex::new(re, im))?,
    };
    *c = match parts_of(beta) {
        [0.0, 0.0] => product,
        [scale, 0.0] => add_scaled(c, scale, &product)?,
        [re, im] => product.add(&c.mul(Complex::new(re, im))?)?,
    };
    Ok(())
}

/// Returns the real and the imaginary part of a number.
fn parts_of(number: Number) -> [f64; 2] {
    number.parts(DType::C128).map(f64::from_bits)
}

/// Returns φⁿ A B.
///
/// # Errors
///
/// As [`mm`], and as [`phi_pow`] for n outside of the powers of f64, or of f32 for f32 and c64.
pub fn mm_phi(a: &Tensor, b: &Tensor, n: i32, mode: ProductMode) -> Result<Tensor> {
    let pair = Pair::plain("mm_phi", mode, a, b)?;
    let is_single = a.dtype().part() == DType::F32;
    pair.scaled(if is_single { phi_pow_f32(n)?.into() } else { phi_pow(n)? })
}

/// Returns (1 + sign · q/N) A B, with the factor of [`correction`].
///
/// # Errors
///
/// As [`mm`] and [`correction`].
pub fn mm_corrected(a: &Tensor, b: &Tensor, divisor: f64, sign: i32, mode: ProductMode) -> Result<Tensor> {
    Pair::plain("mm_corrected", mode, a, b)?.scaled(correction(divisor, sign)?)
}

/// Returns A B - B A/φ of square matrices of one size. It is not antisymmetric: of A and A it is A²/φ².
///
/// # Errors
///
/// As [`mm`]; [`Error::InvalidArgument`] too for matrices that are not square.
pub fn golden_commutator(a: &Tensor, b: &Tensor, mode: ProductMode) -> Result<Tensor> {
    golden_bracket("golden_commutator", a, b, -INVERSE_PHI, mode)
}

/// Returns A B + B A/φ of square matrices of one size.
///
/// # Errors
///
/// As [`golden_commutator`].
pub fn golden_anticommutator(a: &Tensor, b: &Tensor, mode: ProductMode) -> Result<Tensor> {
    golden_bracket("golden_anticommutator", a, b, INVERSE_PHI, mode)
}

/// Returns the sum over k of aᵢₖ bₖⱼ wₖ with wₖ = exp(-k²/φ). Terms whose weight rounds to 0 are added too, so infinite
/// and NaN elements give NaN.
///
/// # Errors
///
/// As [`mm`].
pub fn mm_golden_weighted(a: &Tensor, b: &Tensor, mode: ProductMode) -> Result<Tensor> {
    let pair = Pair::plain("mm_golden_weighted", mode, a, b)?;
    let depth = b.shape()[0];
    let weights: Vec<f64> = (0..depth).map(|k| (-(k as f64) * k as f64 * INVERSE_PHI).exp()).collect();
    let weights = Tensor::from_slice(&weights, &[depth, 1, 1], &a.device())?.cast(a.dtype().part())?;
    // The smaller operand is scaled.
    if a.shape()[0] < b.shape()[1] {
        let weights = weights.reshape(&[1, -1, 1])?;
        let a = joined(&SCALED.run([&parts(a)?, &weights])?, a.dtype())?;
        return Pair { a, ..pair }.product();
    }
    let b = joined(&SCALED.run([&parts(b)?, &weights])?, b.dtype())?;
    Pair { b, ..pair }.product()
}

/// Returns cos πr and sin πr.
fn cos_sin_of_half_turns(r: f64) -> (f64, f64) {
    let quarter = (2.0 * r).round();
    let (sin, cos) = (PI * (r - 0.5 * quarter)).sin_cos();
    match quarter.rem_euclid(4.0) as i32 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// Returns e^{iπn/φ} A B, which is complex: c64 for f32, c128 for f64. With n = 0 it is A B with imaginary parts of +0.
///
/// # Errors
///
/// As [`mm`].
pub fn mm_golden_phase(a: &Tensor, b: &Tensor, n: i32, mode: ProductMode) -> Result<Tensor> {
    let product = Pair::plain("mm_golden_phase", mode, a, b)?.product()?;
    let complex = product.dtype().complex();
    if n == 0 {
        return product.cast(complex);
    }
    let turns = f64::from(n) / PHI;
    let (cos, sin) = cos_sin_of_half_turns(turns - 2.0 * (0.5 * turns).round_ties_even());
    if product.dtype().is_complex() {
        product.mul(Complex::new(cos, sin))
    } else {
        phased(&product, cos, sin)
    }
}

/// Returns x cos + i x sin of real x. A complex product would make NaN of an infinite x.
fn phased(x: &Tensor, cos: f64, sin: f64) -> Result<Tensor> {
    let mut both = x.shape().to_vec();
    both.push(2);
    let factors = Tensor::from_slice(&[cos, sin], &[2], &x.device())?.cast(x.dtype())?;
    SCALED.run([&x.unsqueeze(-1)?, &factors])?.view_as_complex()
}

/// Returns Ψ + Σₖ aₖ Pₖ Ψ with k ascending, for Ψ of n x c and Pₖ of n x n. Each product is complete before it is scaled. Without
/// projections it is a copy of Ψ.
///
/// # Errors
///
/// As [`mm`]; [`Error::LengthMismatch`] for another number of factors than projections, [`Error::InvalidArgument`] for a
/// projection that is not n x n.
pub fn projection_sum(
    psi: &Tensor,
    projections: &[&Tensor],
    factors: &[f64],
    mode: ProductMode,
) -> Result<Tensor> {
    const OPERATION: &str = "projection_sum";
    check_dtypes(OPERATION, NUMBERS, &[psi])?;
    check_lengths(OPERATION, projections.len(), factors.len())?;
    let mut pairs = Vec::with_capacity(projections.len());
    for projection in projections {
        let pair = Pair::plain(OPERATION, mode, projection, psi)?;
        if projection.shape()[0] != projection.shape()[1] {
            let found = format!("a projection of shape {}", projection.shape());
            return Err(Error::invalid(OPERATION, found, "square projections"));
        }
        pairs.push(pair);
    }
    let mut sum = psi.copy()?;
    for (pair, factor) in pairs.iter().zip(factors) {
        sum = pair.added(*factor, sum)?;
    }
    Ok(sum)
}

/// Returns Σₖ wₖ Tₖ of tensors of one shape, with k ascending by fused multiply-adds.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes other than f32, f64, c64 and c128, or several; [`Error::InvalidArgument`] for an empty
/// list, several shapes, or a weight that the dtype does not hold; [`Error::LengthMismatch`] for another number of weights
/// than tensors; [`Error::DeviceMismatch`].
pub fn weighted_sum(tensors: &[&Tensor], weights: &[f64]) -> Result<Tensor> {
    const OPERATION: &str = "weighted_sum";
    check_lengths(OPERATION, tensors.len(), weights.len())?;
    check_dtypes(OPERATION, NUMBERS, tensors)?;
    let (Some((first, others)), Some((weight, weights))) = (tensors.split_first(), weights.split_first())
    else {
        return Err(Error::invalid(OPERATION, "no tensors", "at least one"));
    };
    others.iter().try_for_each(|other| check_shapes(OPERATION, first, other))?;
    let mut sum = scaled(first, *weight)?;
    for (tensor, weight) in others.iter().zip(weights) {
        sum = add_scaled(tensor, *weight, &sum)?;
    }
    Ok(sum)
}

fn check_lengths(operation: &'static str, wanted: usize, found: usize) -> Result<()> {
    if wanted == found { Ok(()) } else { Err(Error::LengthMismatch { operation, wanted, found }) }
}
