//! Products of whole numbers on the host, in f64, in which small ones are exact, by a library that no engine uses: sums in
//! the tests' own code, which is not optimized, took half of the suite's time.

use ndarray::Array2;
use num_complex::Complex;

use super::numbers::Whole;

/// A matrix of whole numbers, its imaginary part only where it has one.
pub struct Wholes {
    re: Array2<f64>,
    im: Option<Array2<f64>>,
}

impl Wholes {
    pub fn new(shape: (usize, usize), at: impl Fn(usize, usize) -> Whole) -> Wholes {
        let re = Array2::from_shape_fn(shape, |(row, column)| at(row, column).re as f64);
        let im = Array2::from_shape_fn(shape, |(row, column)| at(row, column).im as f64);
        Wholes { re, im: im.iter().any(|part| *part != 0.0).then_some(im) }
    }

    /// The product, row by row.
    pub fn times(&self, other: &Wholes) -> Vec<Whole> {
        let mut re = self.re.dot(&other.re);
        let mut im = Array2::zeros(re.raw_dim());
        if let (Some(left), Some(right)) = (&self.im, &other.im) {
            re = re - left.dot(right);
        }
        if let Some(left) = &self.im {
            im += &left.dot(&other.re);
        }
        if let Some(right) = &other.im {
            im += &self.re.dot(right);
        }
        re.iter().zip(&im).map(|(re, im)| Complex::new(*re as i64, *im as i64)).collect()
    }
}
