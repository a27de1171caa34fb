//! The smallest parts of results of complex functions.

use std::f64::consts::{FRAC_PI_3, FRAC_PI_6};

use num_complex::Complex;
use selvedge::tensor::Device;
use selvedge::types::DType;

use super::edge_cases::{functions, is_close, list};

/// Small parts that no factor of another size may lose: each within two units of itself, where others are of the magnitude.
pub fn complex_functions_have_the_smallest_parts(device: &Device) {
    const ONE: f64 = 1.401298464324817e-45;
    const INF: f64 = f64::INFINITY;
    let rows: &[(&str, [f64; 2], [f64; 2])] = &[
        ("sinh", [80.0, ONE], [2.770311192196755e34, 3.882032819327166e-11]),
        ("cosh", [80.0, ONE], [2.770311192196755e34, 3.882032819327166e-11]),
        ("sinh", [-80.0, 5.0 * ONE], [-2.770311192196755e34, 1.941016409663583e-10]),
        ("cosh", [-85.0, ONE], [4.1115063573114566e36, -5.761447544562267e-9]),
        ("sinh", [100.0, ONE], [INF, 0.018834272113760837]),
        ("sin", [ONE, 80.0], [3.882032819327166e-11, 2.770311192196755e34]),
        ("cos", [ONE, -80.0], [2.770311192196755e34, 3.882032819327166e-11]),
        ("exp", [80.0, ONE], [5.54062238439351e34, 7.764065638654332e-11]),
        ("tanh", [50.0, 1.0], [1.0, 6.765311025183563e-44]),
        ("tan", [1.0, 50.0], [6.765311025183563e-44, 1.0]),
        ("asin", [0.5, ONE], [FRAC_PI_6, ONE]),
        ("asin", [0.25, 3.0 * ONE], [0.25268025514207865, 3.0 * ONE]),
        ("acos", [-0.5, ONE], [2.0 * FRAC_PI_3, -ONE]),
        ("asinh", [ONE, 0.5], [ONE, FRAC_PI_6]),
        ("acosh", [0.5, ONE], [ONE, FRAC_PI_3]),
        ("atan", [3.0 * ONE, 0.0], [3.0 * ONE, 0.0]),
        ("atanh", [0.5, 3.0 * ONE], [0.5493061443340549, 4.0 * ONE]),
    ];
    let functions = functions();
    for (name, z, wanted) in rows {
        let (_, plain, fused, _) = functions.iter().find(|function| function.0 == *name).unwrap();
        let x = list(&[Complex::new(z[0] as f32, z[1] as f32)], device);
        for found in [plain(&x).unwrap(), fused.run([&x]).unwrap()] {
            let found = found.cast(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap()[0];
            for (found, wanted) in [(found.re, wanted[0]), (found.im, wanted[1])] {
                let error = if wanted.is_finite() { 1e-6 * wanted.abs() + 0.6 * ONE } else { 0.0 };
                assert!(is_close(found, wanted, error), "{name}({z:?}): {found:e}, wanted {wanted:e}");
            }
        }
    }
}
