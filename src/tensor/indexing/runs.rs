//! [`Runs`], sorted targets whose elements are combined run by run.
//!
//! Elements with one target are combined pairwise, as neighbours in a tree: (0 1) (2 3) …, then (01 23) …. The order depends on
//! the elements' number and their order alone, so the result has the same bits on the CPU and on a CUDA device, with any
//! number of threads. The rounding error of a sum grows with the logarithm of the run's length.

use crate::error::Result;
use crate::tensor::sorting::{differs_from_previous, true_positions};
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

/// Elements ordered by target, in runs of equal targets.
pub(super) struct Runs {
    /// The target of each run, in ascending order.
    pub(super) targets: Tensor,
    /// The number of elements of each run, as i64.
    pub(super) lengths: Tensor,
    /// The position of each element in the unsorted list.
    order: Tensor,
    /// The place of each element in its run.
    ranks: Tensor,
    count: usize,
}

impl Runs {
    /// Sorts targets: one dimension of at least one i64.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn new(targets: &Tensor) -> Result<Runs> {
        let (count, device) = (targets.count(), targets.device());
        let (sorted, order) = targets.sort(0, false)?;
        let is_first = differs_from_previous(&sorted)?;
        let places = Tensor::arange(0i64, count as i64, 1i64, DType::I64, &device)?;
        let starts = is_first.choose(&places, 0)?.cummax(0)?;
        let ranks = places.sub(&starts)?;
        let firsts = true_positions(&is_first)?;
        let end = Tensor::full(&[1], count as i64, DType::I64, &device)?;
        let ends = Tensor::cat(&[&firsts.slice(0, 1..)?, &end], 0)?;
        Ok(Runs {
            targets: sorted.take_unchecked(&firsts)?,
            lengths: ends.sub(&firsts)?,
            order,
            ranks,
            count,
        })
    }

    /// Returns the combination of each run's rows of `values`, whose first dimension the targets count.
    pub(super) fn combine(
        &self,
        values: &Tensor,
        merge: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let mut values = values.index_select_unchecked(0, &self.order)?;
        let (mut ranks, mut count) = (self.ranks.clone(), self.count);
        let mut per_row = vec![1; values.rank()];
        while count > self.targets.count() {
            let lower = true_positions(&fuse([&ranks], |[rank]| (rank & 1).eq(0))?)?;
            let upper = lower.add(1)?;
            // Past the end the rank is 0, as in another run.
            let has_upper = ranks.take_unchecked(&upper)?.ne(0)?;
            if let Some(first) = per_row.first_mut() {
                *first = -1;
            }
            let own = values.index_select_unchecked(0, &lower)?;
            let both = merge(&own, &values.index_select_unchecked(0, &upper)?)?;
            values = has_upper.reshape(&per_row)?.choose(&both, &own)?;
            ranks = ranks.take_unchecked(&lower)?.shift_right(1)?;
            count = lower.count();
        }
        Ok(values)
    }
}
