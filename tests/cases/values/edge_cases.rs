//! Values of elementwise operations at zeros, infinities, NaNs and the ends of a dtype's range: of complex functions after C99
//! Annex G and NumPy (whose values the tables have), of `remainder` and `sinc` after Python.

use num_complex::Complex;
use selvedge::fuse::Operation;
use selvedge::tensor::{Device, Fused, Tensor};
use selvedge::types::{DType, Element};

pub(super) fn list<T: Element>(values: &[T], device: &Device) -> Tensor {
    Tensor::from_slice(values, &[values.len()], device).unwrap()
}

pub(super) type Function = (&'static str, fn(&Tensor) -> selvedge::Result<Tensor>, Fused<1>, WithOutput);
pub(super) type WithOutput = fn(&Tensor, &mut Tensor) -> selvedge::Result<()>;

macro_rules! functions {
    ($($name:ident)*) => {
        [$((
            stringify!($name),
            |x| x.$name(),
            Fused::new(|[x]| x.$name()),
            |x, output| x.with_output(output).$name(),
        )),*]
    };
}

pub(super) fn functions() -> [Function; 16] {
    functions! { asin acos asinh acosh atan atanh tanh tan sqrt log exp sinh cosh sin cos sign }
}

/// Returns whether a part is the wanted one: zeros and infinities with their signs, NaN for NaN, else to within an error.
pub(super) fn is_close(found: f64, wanted: f64, error: f64) -> bool {
    let is_exact = wanted == 0.0 || wanted.is_infinite();
    match wanted.is_nan() {
        true => found.is_nan(),
        false if is_exact => found == wanted && found.is_sign_negative() == wanted.is_sign_negative(),
        false => (found - wanted).abs() <= error,
    }
}

fn check<T: Element>(
    rows: &[(&str, [f64; 2], [f64; 2])],
    epsilon: f64,
    of: fn([f64; 2]) -> T,
    device: &Device,
) {
    let functions = functions();
    for (name, z, wanted) in rows {
        let (_, plain, fused, with_output) = functions.iter().find(|function| function.0 == *name).unwrap();
        let x = list(&[of(*z)], device);
        let mut output = x.zeros_like().unwrap();
        with_output(&x, &mut output).unwrap();
        let mut in_place = x.copy().unwrap();
        fused.run_into([&x], [&mut in_place]).unwrap();
        for found in [plain(&x).unwrap(), fused.run([&x]).unwrap(), output, in_place] {
            let found = found.cast(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap()[0];
            let length = wanted[0].hypot(wanted[1]);
            let error = 16.0 * epsilon * if length.is_finite() { length } else { 2.0 };
            let is_right = is_close(found.re, wanted[0], error) && is_close(found.im, wanted[1], error);
            assert!(is_right, "{name}({z:?}) of {}: {found}, wanted {wanted:?}", T::DTYPE);
        }
    }
}

#[allow(clippy::approx_constant, reason = "values as NumPy prints them")]
mod double {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const MAX: f64 = f64::MAX;
    const TINY: f64 = f64::MIN_POSITIVE;

    pub const ROWS: &[(&str, [f64; 2], [f64; 2])] = &[
        ("asin", [MAX, MAX], [0.7853981633974483, 710.8224336642238]),
        ("asin", [-MAX, MAX], [-0.7853981633974483, 710.8224336642238]),
        ("asin", [MAX, -MAX], [0.7853981633974483, -710.8224336642238]),
        ("asin", [MAX, 0.0], [1.5707963267948966, 710.4758600739439]),
        ("asin", [-MAX, -0.0], [-1.5707963267948966, -710.4758600739439]),
        ("asin", [0.0, MAX], [0.0, 710.4758600739439]),
        ("asin", [-0.0, -MAX], [-0.0, -710.4758600739439]),
        ("asin", [1e300, 1.0], [1.5707963267948966, 691.4686750787736]),
        ("asin", [1.0, -1e300], [1e-300, -691.4686750787736]),
        ("asin", [INF, 1.0], [1.5707963267948966, INF]),
        ("asin", [1.0, INF], [0.0, INF]),
        ("asin", [INF, INF], [0.7853981633974483, INF]),
        ("asin", [NAN, INF], [NAN, INF]),
        ("asin", [-INF, NAN], [NAN, INF]),
        ("asin", [NAN, 1.0], [NAN, NAN]),
        ("acos", [MAX, MAX], [0.7853981633974483, -710.8224336642238]),
        ("acos", [-MAX, MAX], [2.356194490192345, -710.8224336642238]),
        ("acos", [MAX, -MAX], [0.7853981633974483, 710.8224336642238]),
        ("acos", [MAX, 0.0], [0.0, -710.4758600739439]),
        ("acos", [-MAX, -0.0], [3.141592653589793, 710.4758600739439]),
        ("acos", [0.0, MAX], [1.5707963267948966, -710.4758600739439]),
        ("acos", [-0.0, -MAX], [1.5707963267948966, 710.4758600739439]),
        ("acos", [1e300, 1.0], [1e-300, -691.4686750787736]),
        ("acos", [1.0, -1e300], [1.5707963267948966, 691.4686750787736]),
        ("acos", [INF, 1.0], [0.0, -INF]),
        ("acos", [-INF, 1.0], [3.141592653589793, -INF]),
        ("acos", [1.0, INF], [1.5707963267948966, -INF]),
        ("acos", [INF, INF], [0.7853981633974483, -INF]),
        ("acos", [-INF, INF], [2.356194490192345, -INF]),
        ("acos", [NAN, INF], [NAN, -INF]),
        ("acos", [0.0, NAN], [1.5707963267948966, NAN]),
        ("asinh", [MAX, MAX], [710.8224336642238, 0.7853981633974483]),
        ("asinh", [-MAX, MAX], [-710.8224336642238, 0.7853981633974483]),
        ("asinh", [MAX, -MAX], [710.8224336642238, -0.7853981633974483]),
        ("asinh", [MAX, 0.0], [710.4758600739439, 0.0]),
        ("asinh", [-MAX, -0.0], [-710.4758600739439, -0.0]),
        ("asinh", [0.0, MAX], [710.4758600739439, 1.5707963267948966]),
        ("asinh", [-0.0, -MAX], [-710.4758600739439, -1.5707963267948966]),
        ("asinh", [1e300, 1.0], [691.4686750787736, 1e-300]),
        ("asinh", [1.0, -1e300], [691.4686750787736, -1.5707963267948966]),
        ("asinh", [INF, 1.0], [INF, 0.0]),
        ("asinh", [1.0, INF], [INF, 1.5707963267948966]),
        ("asinh", [INF, INF], [INF, 0.7853981633974483]),
        ("asinh", [INF, NAN], [INF, NAN]),
        ("asinh", [NAN, 0.0], [NAN, 0.0]),
        ("acosh", [MAX, MAX], [710.8224336642238, 0.7853981633974483]),
        ("acosh", [-MAX, MAX], [710.8224336642238, 2.356194490192345]),
        ("acosh", [MAX, -MAX], [710.8224336642238, -0.7853981633974483]),
        ("acosh", [MAX, 0.0], [710.4758600739439, 0.0]),
        ("acosh", [-MAX, -0.0], [710.4758600739439, -3.141592653589793]),
        ("acosh", [0.0, MAX], [710.4758600739439, 1.5707963267948966]),
        ("acosh", [0.0, -MAX], [710.4758600739439, -1.5707963267948966]),
        ("acosh", [1e300, 1.0], [691.4686750787736, 1e-300]),
        ("acosh", [1.0, -1e300], [691.4686750787736, -1.5707963267948966]),
        ("acosh", [INF, 1.0], [INF, 0.0]),
        ("acosh", [-INF, 1.0], [INF, 3.141592653589793]),
        ("acosh", [1.0, INF], [INF, 1.5707963267948966]),
        ("acosh", [INF, INF], [INF, 0.7853981633974483]),
        ("acosh", [-INF, INF], [INF, 2.356194490192345]),
        ("acosh", [INF, NAN], [INF, NAN]),
        ("atan", [MAX, MAX], [1.5707963267948966, 2.781342323134e-309]),
        ("atan", [0.0, 1.0], [0.0, INF]),
        ("atan", [-0.0, -1.0], [-0.0, -INF]),
        ("atan", [1.0, INF], [1.5707963267948966, 0.0]),
        ("atan", [INF, 1.0], [1.5707963267948966, 0.0]),
        ("atan", [0.0, MAX], [1.5707963267948966, 5.562684646268003e-309]),
        ("atan", [-MAX, 0.0], [-1.5707963267948966, 0.0]),
        ("atan", [NAN, INF], [NAN, 0.0]),
        ("atan", [1e300, -1e300], [1.5707963267948966, -4.999999999999999e-301]),
        ("atanh", [1.0, 0.0], [INF, 0.0]),
        ("atanh", [-1.0, -0.0], [-INF, -0.0]),
        ("atanh", [MAX, MAX], [2.781342323134e-309, 1.5707963267948966]),
        ("atanh", [MAX, 0.0], [5.562684646268003e-309, 1.5707963267948966]),
        ("atanh", [0.0, -MAX], [0.0, -1.5707963267948966]),
        ("atanh", [1.0, INF], [0.0, 1.5707963267948966]),
        ("atanh", [-INF, 1.0], [-0.0, 1.5707963267948966]),
        ("atanh", [INF, NAN], [0.0, NAN]),
        ("atanh", [0.0, NAN], [0.0, NAN]),
        ("tanh", [1.0, INF], [NAN, NAN]),
        ("tanh", [MAX, INF], [NAN, NAN]),
        ("tanh", [-MAX, -INF], [NAN, NAN]),
        ("tanh", [50.0, INF], [NAN, NAN]),
        ("tanh", [50.0, NAN], [NAN, NAN]),
        ("tanh", [0.0, INF], [0.0, NAN]),
        ("tanh", [-0.0, NAN], [-0.0, NAN]),
        ("tanh", [INF, 1.0], [1.0, 0.0]),
        ("tanh", [-INF, -1.0], [-1.0, -0.0]),
        ("tanh", [NAN, 0.0], [NAN, 0.0]),
        ("tanh", [NAN, -0.0], [NAN, -0.0]),
        ("tanh", [800.0, 1.0], [1.0, 0.0]),
        ("tanh", [-800.0, -1.0], [-1.0, -0.0]),
        ("tanh", [INF, NAN], [1.0, 0.0]),
        ("tanh", [MAX, 1.0], [1.0, 0.0]),
        ("tanh", [NAN, 1.0], [NAN, NAN]),
        ("tan", [INF, 1.0], [NAN, NAN]),
        ("tan", [INF, MAX], [NAN, NAN]),
        ("tan", [-INF, 50.0], [NAN, NAN]),
        ("tan", [NAN, 50.0], [NAN, NAN]),
        ("tan", [INF, 0.0], [NAN, 0.0]),
        ("tan", [1.0, INF], [0.0, 1.0]),
        ("tan", [0.0, -INF], [0.0, -1.0]),
        ("tan", [1.0, 800.0], [0.0, 1.0]),
        ("tan", [1.0, -MAX], [0.0, -1.0]),
        ("tan", [NAN, 1.0], [NAN, NAN]),
        ("sqrt", [MAX, MAX], [1.4730945569055655e154, 6.101757441282702e153]),
        ("sqrt", [-MAX, MAX], [6.101757441282702e153, 1.4730945569055655e154]),
        ("sqrt", [0.0, -MAX], [9.480751908109176e153, -9.480751908109176e153]),
        ("sqrt", [-0.0, -0.0], [0.0, -0.0]),
        ("sqrt", [-INF, 1.0], [0.0, INF]),
        ("sqrt", [-INF, -1.0], [0.0, -INF]),
        ("sqrt", [INF, -1.0], [INF, -0.0]),
        ("sqrt", [NAN, INF], [INF, INF]),
        ("sqrt", [1.0, -INF], [INF, -INF]),
        ("sqrt", [NAN, 1.0], [NAN, NAN]),
        ("sqrt", [TINY, TINY], [1.6388720948399114e-154, 6.7884304867749655e-155]),
        ("log", [0.0, 0.0], [-INF, 0.0]),
        ("log", [-0.0, 0.0], [-INF, 3.141592653589793]),
        ("log", [-0.0, -0.0], [-INF, -3.141592653589793]),
        ("log", [MAX, MAX], [710.1292864836639, 0.7853981633974483]),
        ("log", [MAX, -0.0], [709.782712893384, -0.0]),
        ("log", [-INF, 1.0], [INF, 3.141592653589793]),
        ("log", [INF, INF], [INF, 0.7853981633974483]),
        ("log", [-INF, INF], [INF, 2.356194490192345]),
        ("log", [NAN, INF], [INF, NAN]),
        ("log", [INF, NAN], [INF, NAN]),
        ("log", [TINY, TINY], [-708.0498449419841, 0.7853981633974483]),
        ("log", [1.0, 0.0], [0.0, 0.0]),
        ("exp", [INF, 0.0], [INF, 0.0]),
        ("exp", [-INF, 1.0], [0.0, 0.0]),
        ("exp", [-INF, NAN], [0.0, 0.0]),
        ("exp", [INF, NAN], [INF, NAN]),
        ("exp", [NAN, 0.0], [NAN, 0.0]),
        ("exp", [1.0, INF], [NAN, NAN]),
        ("exp", [800.0, 0.0], [INF, 0.0]),
        ("exp", [-800.0, 1.0], [0.0, 0.0]),
        ("exp", [INF, INF], [INF, NAN]),
        ("exp", [-INF, -0.0], [0.0, -0.0]),
        ("sinh", [0.0, INF], [0.0, NAN]),
        ("sinh", [0.0, NAN], [0.0, NAN]),
        ("sinh", [1.0, INF], [NAN, NAN]),
        ("sinh", [INF, 0.0], [INF, 0.0]),
        ("sinh", [INF, 1.0], [INF, INF]),
        ("sinh", [-INF, 2.0], [INF, INF]),
        ("sinh", [NAN, 0.0], [NAN, 0.0]),
        ("sinh", [NAN, 1.0], [NAN, NAN]),
        ("cosh", [1.0, INF], [NAN, NAN]),
        ("cosh", [INF, 0.0], [INF, 0.0]),
        ("cosh", [INF, 1.0], [INF, INF]),
        ("cosh", [-INF, 2.0], [-INF, -INF]),
        ("cosh", [NAN, 1.0], [NAN, NAN]),
        ("cosh", [INF, NAN], [INF, NAN]),
        ("sin", [0.0, INF], [0.0, INF]),
        ("sin", [1.0, INF], [INF, INF]),
        ("sin", [INF, 1.0], [NAN, NAN]),
        ("sin", [2.0, -INF], [INF, INF]),
        ("sin", [NAN, 0.0], [NAN, 0.0]),
        ("sin", [NAN, 1.0], [NAN, NAN]),
        ("cos", [0.0, INF], [INF, -0.0]),
        ("cos", [1.0, INF], [INF, -INF]),
        ("cos", [INF, 1.0], [NAN, NAN]),
        ("cos", [2.0, -INF], [-INF, INF]),
        ("cos", [NAN, 1.0], [NAN, NAN]),
        ("sign", [INF, 1.0], [1.0, 0.0]),
        ("sign", [1.0, -INF], [0.0, -1.0]),
        ("sign", [-INF, NAN], [-1.0, 0.0]),
        ("sign", [NAN, INF], [0.0, 1.0]),
        ("sign", [INF, INF], [NAN, NAN]),
        ("sign", [3.0, 4.0], [0.6, 0.8]),
        ("sign", [0.0, 0.0], [0.0, 0.0]),
    ];
}

#[allow(clippy::approx_constant, reason = "values as NumPy prints them")]
mod single {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const MAX: f64 = f32::MAX as f64;
    const TINY: f64 = f32::MIN_POSITIVE as f64;

    pub const ROWS: &[(&str, [f64; 2], [f64; 2])] = &[
        ("asin", [MAX, MAX], [0.7853982, 89.76256]),
        ("asin", [-MAX, MAX], [-0.7853982, 89.76256]),
        ("asin", [MAX, -MAX], [0.7853982, -89.76256]),
        ("asin", [MAX, 0.0], [1.5707964, 89.415985]),
        ("asin", [-MAX, -0.0], [-1.5707964, -89.415985]),
        ("asin", [0.0, MAX], [0.0, 89.415985]),
        ("asin", [-0.0, -MAX], [-0.0, -89.415985]),
        ("asin", [1e37, 1.0], [1.5707964, 85.888794]),
        ("asin", [1.0, -1e37], [1e-37, -85.888794]),
        ("asin", [INF, 1.0], [1.5707964, INF]),
        ("asin", [1.0, INF], [0.0, INF]),
        ("asin", [INF, INF], [0.7853982, INF]),
        ("asin", [NAN, INF], [NAN, INF]),
        ("asin", [-INF, NAN], [NAN, INF]),
        ("asin", [NAN, 1.0], [NAN, NAN]),
        ("acos", [MAX, MAX], [0.7853982, -89.76256]),
        ("acos", [-MAX, MAX], [2.3561945, -89.76256]),
        ("acos", [MAX, -MAX], [0.7853982, 89.76256]),
        ("acos", [MAX, 0.0], [0.0, -89.415985]),
        ("acos", [-MAX, -0.0], [3.1415927, 89.415985]),
        ("acos", [0.0, MAX], [1.5707964, -89.415985]),
        ("acos", [-0.0, -MAX], [1.5707964, 89.415985]),
        ("acos", [1e37, 1.0], [1e-37, -85.888794]),
        ("acos", [1.0, -1e37], [1.5707964, 85.888794]),
        ("acos", [INF, 1.0], [0.0, -INF]),
        ("acos", [-INF, 1.0], [3.1415927, -INF]),
        ("acos", [1.0, INF], [1.5707964, -INF]),
        ("acos", [INF, INF], [0.7853982, -INF]),
        ("acos", [-INF, INF], [2.3561945, -INF]),
        ("acos", [NAN, INF], [NAN, -INF]),
        ("acos", [0.0, NAN], [1.5707964, NAN]),
        ("asinh", [MAX, MAX], [89.76256, 0.7853982]),
        ("asinh", [-MAX, MAX], [-89.76256, 0.7853982]),
        ("asinh", [MAX, -MAX], [89.76256, -0.7853982]),
        ("asinh", [MAX, 0.0], [89.415985, 0.0]),
        ("asinh", [-MAX, -0.0], [-89.415985, -0.0]),
        ("asinh", [0.0, MAX], [89.415985, 1.5707964]),
        ("asinh", [-0.0, -MAX], [-89.415985, -1.5707964]),
        ("asinh", [1e37, 1.0], [85.888794, 1e-37]),
        ("asinh", [1.0, -1e37], [85.888794, -1.5707964]),
        ("asinh", [INF, 1.0], [INF, 0.0]),
        ("asinh", [1.0, INF], [INF, 1.5707964]),
        ("asinh", [INF, INF], [INF, 0.7853982]),
        ("asinh", [INF, NAN], [INF, NAN]),
        ("asinh", [NAN, 0.0], [NAN, 0.0]),
        ("acosh", [MAX, MAX], [89.76256, 0.7853982]),
        ("acosh", [-MAX, MAX], [89.76256, 2.3561945]),
        ("acosh", [MAX, -MAX], [89.76256, -0.7853982]),
        ("acosh", [MAX, 0.0], [89.415985, 0.0]),
        ("acosh", [-MAX, -0.0], [89.415985, -3.1415927]),
        ("acosh", [0.0, MAX], [89.415985, 1.5707964]),
        ("acosh", [0.0, -MAX], [89.415985, -1.5707964]),
        ("acosh", [1e37, 1.0], [85.888794, 1e-37]),
        ("acosh", [1.0, -1e37], [85.888794, -1.5707964]),
        ("acosh", [INF, 1.0], [INF, 0.0]),
        ("acosh", [-INF, 1.0], [INF, 3.1415927]),
        ("acosh", [1.0, INF], [INF, 1.5707964]),
        ("acosh", [INF, INF], [INF, 0.7853982]),
        ("acosh", [-INF, INF], [INF, 2.3561945]),
        ("acosh", [INF, NAN], [INF, NAN]),
        ("atan", [MAX, MAX], [1.5707964, 1.469368e-39]),
        ("atan", [0.0, 1.0], [0.0, INF]),
        ("atan", [-0.0, -1.0], [-0.0, -INF]),
        ("atan", [1.0, INF], [1.5707964, 0.0]),
        ("atan", [INF, 1.0], [1.5707964, 0.0]),
        ("atan", [0.0, MAX], [1.5707964, 2.938736e-39]),
        ("atan", [-MAX, 0.0], [-1.5707964, 0.0]),
        ("atan", [NAN, INF], [NAN, 0.0]),
        ("atan", [1e37, -1e37], [1.5707964, -5e-38]),
        ("atanh", [1.0, 0.0], [INF, 0.0]),
        ("atanh", [-1.0, -0.0], [-INF, -0.0]),
        ("atanh", [MAX, MAX], [1.469368e-39, 1.5707964]),
        ("atanh", [MAX, 0.0], [2.938736e-39, 1.5707964]),
        ("atanh", [0.0, -MAX], [0.0, -1.5707964]),
        ("atanh", [1.0, INF], [0.0, 1.5707964]),
        ("atanh", [-INF, 1.0], [-0.0, 1.5707964]),
        ("atanh", [INF, NAN], [0.0, NAN]),
        ("atanh", [0.0, NAN], [0.0, NAN]),
        ("tanh", [1.0, INF], [NAN, NAN]),
        ("tanh", [MAX, INF], [NAN, NAN]),
        ("tanh", [-MAX, -INF], [NAN, NAN]),
        ("tanh", [50.0, INF], [NAN, NAN]),
        ("tanh", [50.0, NAN], [NAN, NAN]),
        ("tanh", [0.0, INF], [0.0, NAN]),
        ("tanh", [-0.0, NAN], [-0.0, NAN]),
        ("tanh", [INF, 1.0], [1.0, 0.0]),
        ("tanh", [-INF, -1.0], [-1.0, -0.0]),
        ("tanh", [NAN, 0.0], [NAN, 0.0]),
        ("tanh", [NAN, -0.0], [NAN, -0.0]),
        ("tanh", [800.0, 1.0], [1.0, 0.0]),
        ("tanh", [-800.0, -1.0], [-1.0, -0.0]),
        ("tanh", [INF, NAN], [1.0, 0.0]),
        ("tanh", [MAX, 1.0], [1.0, 0.0]),
        ("tanh", [NAN, 1.0], [NAN, NAN]),
        ("tan", [INF, 1.0], [NAN, NAN]),
        ("tan", [INF, MAX], [NAN, NAN]),
        ("tan", [-INF, 50.0], [NAN, NAN]),
        ("tan", [NAN, 50.0], [NAN, NAN]),
        ("tan", [INF, 0.0], [NAN, 0.0]),
        ("tan", [1.0, INF], [0.0, 1.0]),
        ("tan", [0.0, -INF], [0.0, -1.0]),
        ("tan", [1.0, 800.0], [0.0, 1.0]),
        ("tan", [1.0, -MAX], [0.0, -1.0]),
        ("tan", [NAN, 1.0], [NAN, NAN]),
        ("sqrt", [MAX, MAX], [2.0267144e19, 8.394926e18]),
        ("sqrt", [-MAX, MAX], [8.394926e18, 2.0267144e19]),
        ("sqrt", [0.0, -MAX], [1.3043818e19, -1.3043818e19]),
        ("sqrt", [-0.0, -0.0], [0.0, -0.0]),
        ("sqrt", [-INF, 1.0], [0.0, INF]),
        ("sqrt", [-INF, -1.0], [0.0, -INF]),
        ("sqrt", [INF, -1.0], [INF, -0.0]),
        ("sqrt", [NAN, INF], [INF, INF]),
        ("sqrt", [1.0, -INF], [INF, -INF]),
        ("sqrt", [NAN, 1.0], [NAN, NAN]),
        ("sqrt", [TINY, TINY], [1.1911958e-19, 4.934094e-20]),
        ("log", [0.0, 0.0], [-INF, 0.0]),
        ("log", [-0.0, 0.0], [-INF, 3.1415927]),
        ("log", [-0.0, -0.0], [-INF, -3.1415927]),
        ("log", [MAX, MAX], [89.06941, 0.7853982]),
        ("log", [MAX, -0.0], [88.72284, -0.0]),
        ("log", [-INF, 1.0], [INF, 3.1415927]),
        ("log", [INF, INF], [INF, 0.7853982]),
        ("log", [-INF, INF], [INF, 2.3561945]),
        ("log", [NAN, INF], [INF, NAN]),
        ("log", [INF, NAN], [INF, NAN]),
        ("log", [TINY, TINY], [-86.989975, 0.7853982]),
        ("log", [1.0, 0.0], [0.0, 0.0]),
        ("exp", [INF, 0.0], [INF, 0.0]),
        ("exp", [-INF, 1.0], [0.0, 0.0]),
        ("exp", [-INF, NAN], [0.0, 0.0]),
        ("exp", [INF, NAN], [INF, NAN]),
        ("exp", [NAN, 0.0], [NAN, 0.0]),
        ("exp", [1.0, INF], [NAN, NAN]),
        ("exp", [800.0, 0.0], [INF, 0.0]),
        ("exp", [-800.0, 1.0], [0.0, 0.0]),
        ("exp", [INF, INF], [INF, NAN]),
        ("exp", [-INF, -0.0], [0.0, -0.0]),
        ("sinh", [0.0, INF], [0.0, NAN]),
        ("sinh", [0.0, NAN], [0.0, NAN]),
        ("sinh", [1.0, INF], [NAN, NAN]),
        ("sinh", [INF, 0.0], [INF, 0.0]),
        ("sinh", [INF, 1.0], [INF, INF]),
        ("sinh", [-INF, 2.0], [INF, INF]),
        ("sinh", [NAN, 0.0], [NAN, 0.0]),
        ("sinh", [NAN, 1.0], [NAN, NAN]),
        ("cosh", [1.0, INF], [NAN, NAN]),
        ("cosh", [INF, 0.0], [INF, 0.0]),
        ("cosh", [INF, 1.0], [INF, INF]),
        ("cosh", [-INF, 2.0], [-INF, -INF]),
        ("cosh", [NAN, 1.0], [NAN, NAN]),
        ("cosh", [INF, NAN], [INF, NAN]),
        ("sin", [0.0, INF], [0.0, INF]),
        ("sin", [1.0, INF], [INF, INF]),
        ("sin", [INF, 1.0], [NAN, NAN]),
        ("sin", [2.0, -INF], [INF, INF]),
        ("sin", [NAN, 0.0], [NAN, 0.0]),
        ("sin", [NAN, 1.0], [NAN, NAN]),
        ("cos", [0.0, INF], [INF, -0.0]),
        ("cos", [1.0, INF], [INF, -INF]),
        ("cos", [INF, 1.0], [NAN, NAN]),
        ("cos", [2.0, -INF], [-INF, INF]),
        ("cos", [NAN, 1.0], [NAN, NAN]),
        ("sign", [INF, 1.0], [1.0, 0.0]),
        ("sign", [1.0, -INF], [0.0, -1.0]),
        ("sign", [-INF, NAN], [-1.0, 0.0]),
        ("sign", [NAN, INF], [0.0, 1.0]),
        ("sign", [INF, INF], [NAN, NAN]),
        ("sign", [3.0, 4.0], [0.6, 0.8]),
        ("sign", [0.0, 0.0], [0.0, 0.0]),
    ];
}

pub fn complex_functions_at_the_ends_of_the_range_are_those_of_c99(device: &Device) {
    check(double::ROWS, f64::EPSILON, |[re, im]| Complex::new(re, im), device);
    check(single::ROWS, f64::from(f32::EPSILON), |[re, im]| Complex::new(re as f32, im as f32), device);
}

/// C99 G.5.1: an infinity by a finite number is an infinity, a finite one by an infinity 0, all but 0 and NaN by 0 an
/// infinity; quotients that can be represented are.
pub fn complex_quotients_with_zeros_and_infinities_are_those_of_c99(device: &Device) {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let of = |[re, im]: [f64; 2]| Complex::new(re, im);
    let divide = |x: [f64; 2], y: [f64; 2]| -> Vec<Complex<f64>> {
        let mut found = Vec::new();
        let fused = Fused::new(|[x, y]| x / y);
        let in_place = |x: &mut Tensor, y: &Tensor| x.in_place().div(y).map(drop);
        for dtype in [DType::C64, DType::C128] {
            let [x, y] = [x, y].map(|z| list(&[of(z)], device).cast(dtype).unwrap());
            let wide = |results: [Tensor; 3]| {
                results.map(|result| result.cast(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap()[0])
            };
            let mut written = x.copy().unwrap();
            in_place(&mut written, &y).unwrap();
            found.extend(wide([x.div(&y).unwrap(), fused.run([&x, &y]).unwrap(), written]));
        }
        found
    };
    let finite = [[1.0, 0.0], [0.0, -1.0], [2.0, 3.0], [-1e30, 1e-30], [0.0, 1e38]];
    let infinite = [[INF, 0.0], [-INF, 2.0], [1.0, INF], [INF, -INF], [INF, NAN], [NAN, -INF]];
    let zeros = [[0.0, 0.0], [-0.0, 0.0], [0.0, -0.0]];
    let is_infinite = |z: &Complex<f64>| z.re.is_infinite() || z.im.is_infinite();
    for x in finite {
        for zero in zeros {
            assert!(divide(x, zero).iter().all(is_infinite), "{x:?} / {zero:?}: {:?}", divide(x, zero));
        }
        for y in infinite {
            let is_zero = |z: &Complex<f64>| z.re == 0.0 && z.im == 0.0;
            assert!(divide(x, y).iter().all(is_zero), "{x:?} / {y:?}: {:?}", divide(x, y));
            assert!(divide(y, x).iter().all(is_infinite), "{y:?} / {x:?}: {:?}", divide(y, x));
        }
    }
    let is_nan = |z: &Complex<f64>| z.re.is_nan() && z.im.is_nan();
    for zero in zeros {
        assert!(divide(zero, [0.0, 0.0]).iter().all(is_nan));
        assert!(divide([NAN, NAN], zero).iter().all(is_nan));
        assert!(divide(infinite[0], zero).iter().all(is_infinite));
    }
    assert!(divide([1.0, 2.0], [NAN, 0.0]).iter().all(is_nan));
    // Real parts first: what NumPy gives.
    let parts = |z: &Complex<f64>| z.re == INF && z.im == -INF;
    assert!(divide([1.0, -2.0], [0.0, 0.0]).iter().all(parts));
    assert!(divide([1.0, 0.0], [0.0, 0.0]).iter().all(|z| z.re == INF && z.im.is_nan()));

    // (dividend, divisor, quotient), none of which is far from the ends of its range.
    let (most, least) = (f64::MAX, f64::MIN_POSITIVE);
    let tiny = 1e-310;
    for (x, y, wanted) in [
        ([most, most], [most, most], [1.0, 0.0]),
        ([most, -most], [most, most], [0.0, -1.0]),
        ([tiny, 0.0], [tiny, 0.0], [1.0, 0.0]),
        ([tiny, tiny], [0.0, tiny], [1.0, -1.0]),
        ([least, 3.0 * least], [least, least], [2.0, 1.0]),
        ([most, 0.0], [0.0, 2.0], [0.0, -most / 2.0]),
        ([1e300, 0.0], [1e-300, 0.0], [INF, 0.0]),
        ([1.0, 1.0], [most, most], [1.0 / most, 0.0]),
        ([1e-200, 0.0], [1e-300, 1e-300], [5e99, -5e99]),
    ] {
        let found =
            list(&[of(x)], device).div(&list(&[of(y)], device)).unwrap().to_vec::<Complex<f64>>().unwrap()[0];
        let error = |part: f64| 8.0 * f64::EPSILON * part.abs().max(least);
        let near = |found: f64, part: f64| found == part || (found - part).abs() <= error(part);
        assert!(near(found.re, wanted[0]) && near(found.im, wanted[1]), "{x:?} / {y:?} = {found}");
    }
}

/// Python: the sign of the divisor, of zeros too.
pub fn a_remainder_has_the_sign_of_the_divisor(device: &Device) {
    // (x, y, wanted)
    let rows = [
        (6.0, 3.0, 0.0),
        (-6.0, 3.0, 0.0),
        (6.0, -3.0, -0.0),
        (-6.0, -3.0, -0.0),
        (0.0, -2.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, f64::INFINITY, 0.0),
        (0.0, f64::NEG_INFINITY, -0.0),
        (7.0, 3.0, 1.0),
        (-7.0, 3.0, 2.0),
        (7.0, -3.0, -2.0),
        (-7.0, -3.0, -1.0),
        (-1.0, f64::INFINITY, f64::INFINITY),
        (1.0, f64::INFINITY, 1.0),
        (1.5, -0.5, -0.0),
        (-1.5, 0.5, 0.0),
        (1.0, 0.0, f64::NAN),
        (0.0, 0.0, f64::NAN),
        (f64::INFINITY, 2.0, f64::NAN),
        (f64::NAN, 2.0, f64::NAN),
        (2.0, f64::NAN, f64::NAN),
    ];
    let x: Vec<f64> = rows.iter().map(|row| row.0).collect();
    let y: Vec<f64> = rows.iter().map(|row| row.1).collect();
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let [x, y] = [&x, &y].map(|values| list(values, device).cast(dtype).unwrap());
        let fused = Fused::new(|[x, y]| x.remainder(y));
        let mut written = x.copy().unwrap();
        written.in_place().remainder(&y).unwrap();
        let mut output = x.zeros_like().unwrap();
        x.with_output(&mut output).remainder(&y).unwrap();
        let by_name = x.operation(Operation::Remainder, &[(&y).into()]).unwrap();
        let operator = (&x % &y).unwrap();
        for found in
            [x.remainder(&y).unwrap(), fused.run([&x, &y]).unwrap(), written, output, by_name, operator]
        {
            let found = found.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            for (&(x, y, wanted), &found) in rows.iter().zip(&found) {
                assert!(is_close(found, wanted, 0.0), "{x} mod {y} of {dtype}: {found}, wanted {wanted}");
            }
        }
    }
}

pub fn sinc_of_whole_numbers_is_a_positive_zero_within_its_error(device: &Device) {
    for (dtype, epsilon) in
        [(DType::F16, 1e-3), (DType::BF16, 8e-3), (DType::F32, 1.2e-7), (DType::F64, 2.3e-16)]
    {
        let numbers: Vec<f64> =
            [1, 2, 3, 17, 100, 128].iter().flat_map(|&x| [f64::from(x), -f64::from(x)]).collect();
        let x = list(&numbers, device).cast(dtype).unwrap();
        for found in [x.sinc().unwrap(), Fused::new(|[x]| x.sinc()).run([&x]).unwrap()] {
            let found = found.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let is_right = |x: &f64| *x == 0.0 && x.is_sign_positive();
            assert!(found.iter().all(is_right), "{dtype}: {found:?}");
        }
        // (x, sin(πx) / (πx)); NaN of NaN.
        let rows = [
            (0.0, 1.0),
            (-0.0, 1.0),
            (f64::INFINITY, 0.0),
            (f64::NEG_INFINITY, 0.0),
            (0.5, std::f64::consts::FRAC_2_PI),
            (-1.5, -0.2122065907891938),
            (2.5, 0.12732395447351627),
            (f64::NAN, f64::NAN),
        ];
        let x = list(&rows.map(|row| row.0), device).cast(dtype).unwrap();
        let found = x.sinc().unwrap().cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
        for ((x, wanted), found) in rows.into_iter().zip(found) {
            assert!(is_close(found, wanted, 4.0 * epsilon), "sinc({x}) of {dtype}: {found}, wanted {wanted}");
        }
    }
}
