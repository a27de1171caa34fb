//! Products of shapes that nobody chose.

use half::bf16;

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::random::Random;
use crate::harness::report::{Failure, GEOMETRIC_MEAN};
use crate::harness::turns::{Goal, geometric_mean};
use crate::pair::{Shape, print_speeds};
use crate::shapes::Part;

/// Shapes, and the range of each size, which are drawn so that their logarithms are uniform.
const SHAPES: usize = 300;
const RANGE: (f64, f64) = (16.0, 16384.0);

/// All of them by their geometric mean, and the one that is slowest beside cuBLAS.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let title = "Products of 300 random shapes, bf16, sizes from 16 to 16384";
    let mut part = Part::new(bare, options, "gemm_random", title)?;
    let most = RANGE.1 as usize;
    let numbers = part.sides.numbers::<bf16>(most * most, most * most)?;
    let mut random = Random::new(3);
    let mut size = || {
        let uniform = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        (RANGE.0 * (RANGE.1 / RANGE.0).powf(uniform)).round() as usize
    };
    let (mut all, mut worst) = (Vec::new(), (f64::INFINITY, String::new(), Vec::new()));
    for _ in 0..SHAPES {
        let shape = Shape::new(size(), size(), size());
        let pairs = part.sides.measure_with::<bf16, bf16>(options, shape, 20, &numbers)?;
        print_speeds(shape, &pairs);
        let ratio = pairs.iter().map(|(own, reference)| reference / own).sum::<f64>() / pairs.len() as f64;
        if ratio < worst.0 {
            worst = (ratio, format!("worst: {} x {} x {}", shape.m, shape.n, shape.k), pairs.clone());
        }
        all.push(pairs);
    }
    part.add(GEOMETRIC_MEAN, &geometric_mean(&all), Some(Goal(1.05, 0.9)))?;
    part.add(&worst.1, &worst.2, Some(Goal(0.8, 0.5)))?;
    part.finish()
}
