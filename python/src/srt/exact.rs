//! `selvedge.srt.GoldenExact`: exact numbers a + b phi, between Python's integers and fractions.

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use selvedge::Error;
use selvedge::srt::{GoldenExact, Rational};

use crate::error::{Failure, Result, type_name, wrong_type};

/// An exact number a + b phi, whose a and b are fractions: `GoldenExact(a=0, b=0)` of int and `fractions.Fraction`. Numerators and
/// denominators have 128 bits; an ExactArithmeticError beyond.
#[pyclass(name = "GoldenExact", module = "selvedge.srt", frozen)]
pub struct PyGoldenExact(pub GoldenExact);

/// Returns the fraction that an int or a `fractions.Fraction` is, and `None` for other types.
fn rational(object: &Bound<'_, PyAny>) -> PyResult<Option<selvedge::Result<Rational>>> {
    let (Ok(numerator), Ok(denominator)) = (object.getattr("numerator"), object.getattr("denominator"))
    else {
        return Ok(None);
    };
    let part = |part: Bound<'_, PyAny>| match part.extract::<i128>() {
        Ok(part) => Ok(Some(part)),
        Err(_) if part.is_instance_of::<PyInt>() => Ok(None),
        Err(error) => Err(error),
    };
    Ok(Some(match (part(numerator)?, part(denominator)?) {
        (Some(numerator), Some(denominator)) => Rational::new(numerator, denominator),
        _ => {
            let wanted = "a numerator and a denominator of i128".to_owned();
            Err(Error::Overflow { operation: "an exact number of Q(φ)", found: object.to_string(), wanted })
        }
    }))
}

/// A coefficient: an int or a `fractions.Fraction`.
pub struct RationalArgument(pub Rational);

impl<'a, 'py> FromPyObject<'a, 'py> for RationalArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match rational(&object)? {
            Some(found) => Ok(RationalArgument(found.map_err(Failure::from)?)),
            None => {
                let wanted = "an int or a fractions.Fraction";
                Err(Failure::from(wrong_type("a coefficient", type_name(&object), wanted)).into())
            }
        }
    }
}

/// An exact number, an int or a `fractions.Fraction`. Integers that are too large are an error of the operation, not another type.
pub struct ExactArgument(selvedge::Result<GoldenExact>);

impl<'a, 'py> FromPyObject<'a, 'py> for ExactArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = object.cast::<PyGoldenExact>() {
            return Ok(ExactArgument(Ok(number.get().0)));
        }
        match rational(&object)? {
            Some(found) => Ok(ExactArgument(found.map(GoldenExact::from))),
            None => {
                let wanted = "a GoldenExact, an int or a fractions.Fraction";
                Err(Failure::from(wrong_type("an exact number", type_name(&object), wanted)).into())
            }
        }
    }
}

impl ExactArgument {
    /// Returns the number.
    pub fn number(self) -> selvedge::Result<GoldenExact> {
        self.0
    }
}

/// Returns a `fractions.Fraction`.
fn fraction<'py>(py: Python<'py>, number: Rational) -> PyResult<Bound<'py, PyAny>> {
    py.import("fractions")?.getattr("Fraction")?.call1((number.numerator(), number.denominator()))
}

fn exact(number: selvedge::Result<GoldenExact>) -> Result<PyGoldenExact> {
    Ok(PyGoldenExact(number?))
}

#[pymethods]
impl PyGoldenExact {
    /// phi.
    #[classattr]
    const PHI: PyGoldenExact = PyGoldenExact(GoldenExact::PHI);

    /// The square root of 5, -1 + 2 phi.
    #[classattr]
    #[allow(non_snake_case, reason = "the name in Python")]
    fn SQRT5() -> PyGoldenExact {
        PyGoldenExact(GoldenExact::sqrt5())
    }

    #[new]
    #[pyo3(signature = (a=None, b=None))]
    fn new(a: Option<RationalArgument>, b: Option<RationalArgument>) -> PyGoldenExact {
        let part = |part: Option<RationalArgument>| part.map_or(Rational::ZERO, |part| part.0);
        PyGoldenExact(GoldenExact::new(part(a), part(b)))
    }

    /// phi^n = F(n-1) + F(n) phi; an ExactArithmeticError from |n| = 185 on.
    #[staticmethod]
    fn phi_pow(n: i32) -> Result<PyGoldenExact> {
        exact(GoldenExact::phi_pow(n))
    }

    /// The multiple of 1, a fraction.
    #[getter]
    fn a<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, self.0.a())
    }

    /// The multiple of phi, a fraction.
    #[getter]
    fn b<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, self.0.b())
    }

    /// The conjugate a + b - b phi.
    fn conjugate(&self) -> Result<PyGoldenExact> {
        exact(self.0.conjugate())
    }

    /// 1 over the number.
    fn inverse(&self) -> Result<PyGoldenExact> {
        exact(self.0.inverse())
    }

    /// a^2 + a b - b^2, the product with the conjugate.
    fn norm<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(fraction(py, self.0.norm()?)?)
    }

    /// 2 a + b, the sum with the conjugate.
    fn trace<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        Ok(fraction(py, self.0.trace()?)?)
    }

    fn __add__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(self.0.checked_add(other.number()?))
    }

    fn __radd__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(other.number()?.checked_add(self.0))
    }

    fn __sub__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(self.0.checked_sub(other.number()?))
    }

    fn __rsub__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(other.number()?.checked_sub(self.0))
    }

    fn __mul__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(self.0.checked_mul(other.number()?))
    }

    fn __rmul__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(other.number()?.checked_mul(self.0))
    }

    fn __truediv__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(self.0.checked_div(other.number()?))
    }

    fn __rtruediv__(&self, other: ExactArgument) -> Result<PyGoldenExact> {
        exact(other.number()?.checked_div(self.0))
    }

    fn __pow__(&self, exponent: i32, _modulo: Option<&Bound<'_, PyAny>>) -> Result<PyGoldenExact> {
        exact(self.0.checked_pow(exponent))
    }

    fn __neg__(&self) -> Result<PyGoldenExact> {
        exact(self.0.checked_neg())
    }

    fn __richcmp__(&self, other: ExactArgument, comparison: CompareOp) -> Result<bool> {
        match (other.number(), comparison) {
            (Ok(other), _) => Ok(comparison.matches(self.0.cmp(&other))),
            // No exact number equals one that is too large for it.
            (Err(_), CompareOp::Eq) => Ok(false),
            (Err(_), CompareOp::Ne) => Ok(true),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// The hash of an equal int or fraction, if there is one.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let (a, b) = (fraction(py, self.0.a())?, fraction(py, self.0.b())?);
        if self.0.b().is_zero() { a.hash() } else { PyTuple::new(py, [a, b])?.hash() }
    }

    fn __bool__(&self) -> bool {
        !self.0.is_zero()
    }

    fn __float__(&self) -> f64 {
        self.0.to_f64()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let part = |part: Rational| match part.denominator() {
            1 => part.numerator().to_string(),
            denominator => format!("Fraction({}, {denominator})", part.numerator()),
        };
        format!("GoldenExact({}, {})", part(self.0.a()), part(self.0.b()))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        Ok((fraction(py, self.0.a())?, fraction(py, self.0.b())?))
    }
}
