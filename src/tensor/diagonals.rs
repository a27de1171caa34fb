//! Matrices and their diagonals: `diag`, `trace`, `kron`.
//!
//! Tests: `tests/tensor/statistics.rs`.

use super::tensor::Tensor;
use crate::error::{Error, Result};

impl Tensor {
    /// Returns a matrix with a vector's elements on a diagonal and zeros elsewhere; or, of a matrix, a view of the diagonal: 0
    /// is the main one, and positive offsets are above it.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([1, 2], &Device::cpu())?;
    /// let matrix = x.diag(1)?;
    /// assert_eq!(matrix.to_vec::<i32>()?, [0, 1, 0, 0, 0, 2, 0, 0, 0]);
    /// assert_eq!(matrix.diag(1)?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a tensor that is neither a vector nor a matrix, and a diagonal that the
    /// matrix does not have; [`OutOfMemory`](Error::OutOfMemory).
    pub fn diag(&self, offset: isize) -> Result<Tensor> {
        match self.rank() {
            1 => {
                let size = self.count().saturating_add(offset.unsigned_abs());
                let mut matrix = Tensor::zeros(&[size, size], self.dtype(), &self.device())?;
                if self.count() > 0 {
                    matrix.in_place().diagonal(offset, 0, 1)?.assign(self)?;
                }
                Ok(matrix)
            }
            2 => self.diagonal(offset, 0, 1),
            _ => Err(Error::invalid("diag", format!("shape {}", self.shape()), "a vector or a matrix")),
        }
    }

    /// Returns the sum of the main diagonal of a matrix; see [`sum`](Self::sum).
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::cpu())?;
    /// assert_eq!(x.trace()?.item::<f32>()?, 5.0);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for a tensor that is no matrix; otherwise as [`sum`](Self::sum).
    pub fn trace(&self) -> Result<Tensor> {
        if self.rank() != 2 {
            return Err(Error::invalid("trace", format!("shape {}", self.shape()), "a matrix"));
        }
        self.diagonal(0, 0, 1)?.sum(0)
    }

    /// Returns the Kronecker product: each element of this tensor times the other tensor, as blocks. The tensor of fewer
    /// dimensions gets dimensions of size 1 in front.
    ///
    /// ```
    /// use selvedge::{Device, Tensor};
    /// let x = Tensor::new([[1, 2]], &Device::cpu())?;
    /// let y = Tensor::new([[1, 0], [0, 1]], &Device::cpu())?;
    /// assert_eq!(x.kron(&y)?.to_vec::<i32>()?, [1, 0, 2, 0, 0, 1, 0, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for more than half of the most dimensions; otherwise as
    /// [`mul`](Self::mul).
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        let rank = self.rank().max(other.rank());
        let padded = |tensor: &Tensor| -> Vec<isize> {
            let ones = std::iter::repeat_n(1, rank - tensor.rank());
            ones.chain(tensor.shape().iter().map(|size| *size as isize)).collect()
        };
        let (own, others) = (padded(self), padded(other));
        let blocks: Vec<isize> = own.iter().flat_map(|size| [*size, 1]).collect();
        let inner: Vec<isize> = others.iter().flat_map(|size| [1, *size]).collect();
        let product = self.reshape(&blocks)?.mul(&other.reshape(&inner)?)?;
        let sizes: Vec<isize> = own.iter().zip(&others).map(|(x, y)| x.saturating_mul(*y)).collect();
        product.reshape(&sizes)
    }
}
