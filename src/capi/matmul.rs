//! Products of tensors, with epilogues; traces and Kronecker products.

use super::arguments::{check_reserved, out, structure};
use super::error::{Failure, Result};
use super::guard;
use super::handle::{Object, sv_tensor};
use super::tensor::{
    SV_DTYPE_NONE, TensorObject, dtype, enter_all, flag, give, number, optional, sv_number, tensor,
};
use crate::fuse::Number;
use crate::gemm::Activation;
use crate::tensor::{Matmul, Tensor};

/// No activation.
pub const SV_ACTIVATION_NONE: i32 = 0;
/// The larger of x and 0.
pub const SV_ACTIVATION_RELU: i32 = 1;
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, as `SV_NN_GELU_TANH`. `sv_gelu` of a product computes the form of `SV_NN_GELU`.
pub const SV_ACTIVATION_GELU_TANH: i32 = 2;
/// x / (1 + e^-x).
pub const SV_ACTIVATION_SILU: i32 = 3;

/// Options of a product: activation(alpha * A * B + bias) + residual. Zeros are the defaults, but for `size`.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub struct sv_matmul_options {
    /// The size of the struct in bytes.
    pub size: usize,
    /// A tensor that is added to the product: one number for each column, or a column of one for each row. NULL for none.
    pub bias: sv_tensor,
    /// A tensor of the result's shape that is added after the activation. NULL for none.
    pub residual: sv_tensor,
    /// One of `SV_ACTIVATION_...`.
    pub activation: i32,
    /// The dtype of the result; `SV_DTYPE_NONE` for that of the operands.
    pub result_dtype: i32,
    /// 1 to take the complex conjugate of the left operand.
    pub conjugate_left: i32,
    /// 1 to take the complex conjugate of the right operand.
    pub conjugate_right: i32,
    /// 1 to multiply by `alpha`.
    pub has_alpha: i32,
    /// 0.
    pub reserved: i32,
    /// The factor of the product. 0 without `has_alpha`.
    pub alpha: sv_number,
}

impl sv_matmul_options {
    /// Returns no factor. The factor of a struct that does not set it is 0, or an integer 1.
    fn check_no_alpha(&self) -> Result<Option<Number>> {
        let sv_number { integer, real, imaginary, .. } = self.alpha;
        if !(0..=1).contains(&integer) || real != 0.0 || imaginary != 0.0 {
            let found = "an alpha with options.has_alpha 0";
            return Err(Failure::argument("options.alpha", found, "options.has_alpha 1"));
        }
        Ok(None)
    }
}

/// The options with their tensors.
#[derive(Default)]
struct Options {
    bias: Option<Tensor>,
    residual: Option<Tensor>,
    activation: Activation,
    result: Option<crate::DType>,
    conjugate: [bool; 2],
    alpha: Option<Number>,
}

impl Options {
    /// Reads the options; NULL are the defaults.
    ///
    /// # Safety
    ///
    /// As [`structure`].
    unsafe fn read(options: *const sv_matmul_options) -> Result<Options> {
        if options.is_null() {
            return Ok(Options::default());
        }
        let options = structure(options, "options")?;
        check_reserved("options.reserved", options.reserved)?;
        Ok(Options {
            bias: optional(options.bias, "options.bias")?,
            residual: optional(options.residual, "options.residual")?,
            activation: match options.activation {
                SV_ACTIVATION_NONE => Activation::None,
                SV_ACTIVATION_RELU => Activation::Relu,
                SV_ACTIVATION_GELU_TANH => Activation::GeluTanh,
                SV_ACTIVATION_SILU => Activation::Silu,
                other => {
                    return Err(Failure::argument("options.activation", other, "one of SV_ACTIVATION_..."));
                }
            },
            result: match options.result_dtype {
                SV_DTYPE_NONE => None,
                code => Some(dtype(code)?),
            },
            conjugate: [
                flag(options.conjugate_left, "options.conjugate_left")?,
                flag(options.conjugate_right, "options.conjugate_right")?,
            ],
            alpha: match flag(options.has_alpha, "options.has_alpha")? {
                true => Some(options.alpha.number()?),
                false => options.check_no_alpha()?,
            },
        })
    }

    /// Returns the product that the options describe.
    fn matmul(&self) -> Matmul<'_> {
        let mut matmul = Matmul::new().activation(self.activation);
        if let Some(bias) = &self.bias {
            matmul = matmul.bias(bias);
        }
        if let Some(residual) = &self.residual {
            matmul = matmul.residual(residual);
        }
        if let Some(dtype) = self.result {
            matmul = matmul.result(dtype);
        }
        if self.conjugate[0] {
            matmul = matmul.conjugate_left();
        }
        if self.conjugate[1] {
            matmul = matmul.conjugate_right();
        }
        match self.alpha {
            Some(alpha) => matmul.alpha(alpha),
            None => matmul,
        }
    }
}

/// Computes the product of tensors: matrices, vectors, and batches of them, which are broadcast. `options` may be NULL.
///
/// # Safety
///
/// `options` is NULL or points to a struct with its size set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_matmul(
    a: sv_tensor,
    b: sv_tensor,
    options: *const sv_matmul_options,
    result: *mut sv_tensor,
) -> i32 {
    give("sv_matmul", result, || {
        let (a, b, options) = (tensor(a, "a")?, tensor(b, "b")?, Options::read(options)?);
        Ok(options.matmul().of(&a, &b)?)
    })
}

/// Computes a product as `sv_matmul`, and also the values that its activation was applied to.
///
/// The caller owns one reference to `*result` and one to `*aux`.
///
/// # Safety
///
/// `options` is NULL or points to a struct with its size set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_matmul_with_aux(
    a: sv_tensor,
    b: sv_tensor,
    options: *const sv_matmul_options,
    result: *mut sv_tensor,
    aux: *mut sv_tensor,
) -> i32 {
    guard::call("sv_matmul_with_aux", || {
        let (result, aux) = (out(result, "result")?, out(aux, "aux")?);
        let (a, b, options) = (tensor(a, "a")?, tensor(b, "b")?, Options::read(options)?);
        let (product, before) = options.matmul().of_with_aux(&a, &b)?;
        if let [product, before] = enter_all([product, before])?[..] {
            result.write(product);
            aux.write(before);
        }
        Ok(())
    })
}

/// Replaces the elements of `c` by a product plus `beta` times themselves. The result's dtype is theirs.
///
/// Others that use the handle of `c` wait meanwhile.
///
/// # Safety
///
/// `beta` points to a struct, and `options` is NULL or points to a struct with its size set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_matmul_add_to(
    c: sv_tensor,
    beta: *const sv_number,
    a: sv_tensor,
    b: sv_tensor,
    options: *const sv_matmul_options,
) -> i32 {
    guard::call("sv_matmul_add_to", || {
        let (a, b, options) = (tensor(a, "a")?, tensor(b, "b")?, Options::read(options)?);
        let beta = number(beta, "beta")?;
        TensorObject::table()
            .with_mut(c, "c", |c| Ok(options.matmul().add_to(c.tensor_mut(), beta, &a, &b)?))
    })
}

/// Gives the sum of the main diagonal of a matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_trace(tensor: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_trace", result, || Ok(self::tensor(tensor, "tensor")?.trace()?))
}

/// Gives the Kronecker product of two tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_tensor_kron(tensor: sv_tensor, other: sv_tensor, result: *mut sv_tensor) -> i32 {
    give("sv_tensor_kron", result, || {
        Ok(self::tensor(tensor, "tensor")?.kron(&self::tensor(other, "other")?)?)
    })
}
