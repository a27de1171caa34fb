//! Derivatives of the parts and the angle of complex numbers. Imaginary parts and angles of real numbers are
//! constant.

use num_complex::Complex;

use super::arithmetic::Polar;
use super::{Derivation, OperandGradients, unary};

const I: Complex<f64> = Complex::new(0.0, 1.0);

/// The cast to the operand's dtype gives a complex gradient with an imaginary part of 0.
pub(crate) fn real(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient)
}

pub(crate) fn imag(d: Derivation<'_>) -> OperandGradients<'_> {
    if !d.is_complex() {
        return [None; 3];
    }
    unary(d.gradient.cast(d.x().dtype()) * I)
}

pub(crate) fn conj(d: Derivation<'_>) -> OperandGradients<'_> {
    unary(d.gradient.conj())
}

/// g i x / |x|², 0 at 0.
pub(crate) fn angle(d: Derivation<'_>) -> OperandGradients<'_> {
    if !d.is_complex() {
        return [None; 3];
    }
    let [along_real, along_imaginary] = Polar::new(d.x().real(), d.x().imag()).over_length(d.gradient);
    unary(along_real.cast(d.x().dtype()) * I - along_imaginary)
}
