//! Repetition: `meshgrid`, `repeat` and `repeat_interleave`.

use super::{Shape, Tensor};
use crate::error::{Error, Result};
use crate::types::MAX_RANK;

impl Tensor {
    /// Returns the coordinates of a grid: each vector varies along an axis of its own and is repeated along the others. The
    /// results are views. NumPy's `meshgrid(indexing="ij")`, PyTorch's default.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let (x, y) = (Tensor::new([1, 2], &Device::cpu())?, Tensor::new([3, 4, 5], &Device::cpu())?);
    /// let grid = Tensor::meshgrid(&[&x, &y])?;
    /// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// assert_eq!(grid[1].to_vec::<i32>()?, [3, 4, 5, 3, 4, 5]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for tensors of two and more dimensions, and more of them than there can be
    /// dimensions.
    pub fn meshgrid(vectors: &[&Tensor]) -> Result<Vec<Tensor>> {
        if let Some(tensor) = vectors.iter().find(|tensor| tensor.rank() > 1) {
            let found = format!("a tensor of shape {}", tensor.shape());
            return Err(Error::invalid("meshgrid", found, "vectors"));
        }
        if vectors.len() > MAX_RANK {
            let found = format!("{} vectors", vectors.len());
            return Err(Error::invalid("meshgrid", found, format!("at most {MAX_RANK}")));
        }
        let shape: Vec<usize> = vectors.iter().map(|vector| vector.count()).collect();
        let grid = vectors.iter().enumerate().map(|(axis, vector)| {
            let mut sizes = vec![1; vectors.len()];
            sizes.iter_mut().skip(axis).take(1).for_each(|size| *size = vector.count() as isize);
            vector.reshape(&sizes)?.expand(&shape)
        });
        grid.collect()
    }

    /// Returns the whole tensor repeated along each axis, as tiles. `times` applies to the last axes; further entries add axes in
    /// front. NumPy's `tile`, PyTorch's `repeat`.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1, 2], &Device::cpu())?;
    /// let tiles = x.repeat(&[2, 2])?;
    /// assert_eq!((tiles.shape().to_string(), tiles.to_vec::<i32>()?), ("[2, 4]".into(), vec![1, 2, 1, 2, 1, 2, 1, 2]));
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for more dimensions or elements than there can be; those of memory.
    #[doc(alias = "tile")]
    pub fn repeat(&self, times: &[usize]) -> Result<Tensor> {
        if times.len() > MAX_RANK {
            let found = format!("{} axes", times.len());
            return Err(Error::invalid("repeat", found, format!("at most {MAX_RANK}")));
        }
        let rank = self.rank().max(times.len());
        let ones = |count: usize| std::iter::repeat_n(1, count);
        let times: Vec<usize> = ones(rank - times.len()).chain(times.iter().copied()).collect();
        let sizes: Vec<usize> = ones(rank - self.rank()).chain(self.shape().iter().copied()).collect();
        let whole: Vec<usize> =
            sizes.iter().zip(&times).map(|(size, times)| size.saturating_mul(*times)).collect();
        let whole = Shape::new(&whole)?;
        // A repeated axis becomes two, the times and the axis. If that makes too many axes, they are repeated one by one.
        let repeated = times.iter().filter(|times| **times != 1).count();
        if rank + repeated > MAX_RANK {
            let mut tiles = self.in_shape(&Shape::new(&sizes)?)?;
            for (axis, &times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
                tiles = tiles.with_repeated(axis, axis, times)?;
            }
            return Ok(tiles);
        }
        let (mut single, mut several) =
            (Vec::with_capacity(rank + repeated), Vec::with_capacity(rank + repeated));
        for (&size, &times) in sizes.iter().zip(&times) {
            if times != 1 {
                single.push(1);
                several.push(times);
            }
            single.push(size);
            several.push(size);
        }
        let apart = self.in_shape(&Shape::new(&single)?)?;
        let tiles = apart.view_as(apart.layout().expand(&Shape::new(&several)?)?);
        tiles.copy()?.in_shape(&whole)
    }

    /// Returns each position along an axis several times in a row.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let x = Tensor::new([1, 2], &Device::cpu())?;
    /// assert_eq!(x.repeat_interleave(3, 0)?.to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](Error::InvalidArgument) for an axis that is not there, or more elements than there can be; those of
    /// memory.
    pub fn repeat_interleave(&self, times: usize, axis: isize) -> Result<Tensor> {
        let axis = self.shape().axis("repeat_interleave", axis)?;
        self.with_repeated(axis, axis + 1, times)
    }

    /// Repeats the dimensions from `from` on (the axis or the next one) several times in a row, along the axis.
    fn with_repeated(&self, axis: usize, from: usize, times: usize) -> Result<Tensor> {
        let whole = super::resized(self.shape(), axis, self.shape()[axis].saturating_mul(times))?;
        // The dimensions on each side as one, so that the rank never exceeds the largest.
        let [outside, inside] =
            [&self.shape()[..from], &self.shape()[from..]].map(|sizes| sizes.iter().product());
        let apart = self.in_shape(&Shape::new(&[outside, 1, inside])?)?;
        let several = apart.view_as(apart.layout().expand(&Shape::new(&[outside, times, inside])?)?);
        several.copy()?.in_shape(&whole)
    }

    /// The elements in row-major order in another shape of as many.
    fn in_shape(&self, shape: &Shape) -> Result<Tensor> {
        match self.layout().reshape(shape)? {
            Some(layout) => Ok(self.view_as(layout)),
            None => self.copy()?.in_shape(shape),
        }
    }
}
