//! [`Runs`], sorted targets whose elements are combined run by run.
//!
//! Elements with one target are combined pairwise, as neighbours in a tree: (0 1) (2 3) …, then (01 23) …. The order depends on
//! the elements' number and their order alone, so the result has the same bits on the CPU and on a CUDA device, with any
//! number of threads. The rounding error of a sum grows with the logarithm of the run's length.

use crate::driver::captures_on_this_thread;
use crate::error::Result;
use crate::tensor::sorting::{differs_from_previous, sort_below, true_positions};
use crate::tensor::{Tensor, fuse};
use crate::types::DType;

/// Elements ordered by target, in runs of equal targets.
pub(super) struct Runs {
    /// The target of each run, in ascending order. With [`RunList::Padded`], the target of each element that is the first of
    /// its run, and otherwise one that leads nowhere.
    pub(super) targets: Tensor,
    list: RunList,
    /// The position of each element in the unsorted list.
    order: Tensor,
    /// The position of each element in its run.
    ranks: Tensor,
    count: usize,
}

/// The rows that a combination has.
enum RunList {
    /// One for each run. The host reads the number of runs, and that of the rows after each level of the tree.
    Packed {
        /// The number of elements of each run, as i64.
        lengths: Tensor,
    },
    /// One for each element, so nothing waits for a device. Each level of the tree reads and writes all rows.
    Padded {
        /// 0, 1, …
        positions: Tensor,
    },
}

impl Runs {
    /// Sorts targets: one dimension of at least one i64, from 0 to `none`, which leads nowhere. A capture gets padded rows.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn new(targets: &Tensor, none: usize) -> Result<Runs> {
        let is_padded = !targets.device().is_cpu() && captures_on_this_thread();
        Runs::of_rows(targets, none, is_padded)
    }

    fn of_rows(targets: &Tensor, none: usize, is_padded: bool) -> Result<Runs> {
        let (count, device) = (targets.count(), targets.device());
        let (sorted, order) = sort_below(targets, none.saturating_add(1))?;
        let is_first = differs_from_previous(&sorted)?;
        let positions = Tensor::arange(0i64, count as i64, 1i64, DType::I64, &device)?;
        let starts = is_first.choose(&positions, 0)?.cummax(0)?;
        let ranks = positions.sub(&starts)?;
        if is_padded {
            let targets = is_first.choose(&sorted, none as i64)?;
            return Ok(Runs { targets, list: RunList::Padded { positions }, order, ranks, count });
        }
        let firsts = true_positions(&is_first)?;
        let end = Tensor::full(&[1], count as i64, DType::I64, &device)?;
        let ends = Tensor::cat(&[&firsts.slice(0, 1..)?, &end], 0)?;
        let list = RunList::Packed { lengths: ends.sub(&firsts)? };
        Ok(Runs { targets: sorted.take_unchecked(&firsts)?, list, order, ranks, count })
    }

    /// Returns the number of elements of each run, as i64.
    pub(super) fn lengths(&self) -> Result<Tensor> {
        match &self.list {
            RunList::Packed { lengths } => Ok(lengths.clone()),
            RunList::Padded { .. } => self.combine(&self.ranks.ones_like()?, |x, y| x.add(y)),
        }
    }

    /// Returns the combination of each run's rows of `values`, whose first dimension the targets count.
    pub(super) fn combine(
        &self,
        values: &Tensor,
        merge: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let values = values.index_select_unchecked(0, &self.order)?;
        let mut per_row = vec![1; values.rank()];
        if let Some(first) = per_row.first_mut() {
            *first = -1;
        }
        match &self.list {
            RunList::Packed { .. } => self.combine_packed(values, &per_row, merge),
            RunList::Padded { positions } => self.combine_padded(values, &per_row, positions, merge),
        }
    }

    fn combine_packed(
        &self,
        mut values: Tensor,
        per_row: &[isize],
        merge: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (mut ranks, mut count) = (self.ranks.clone(), self.count);
        while count > self.targets.count() {
            let lower = true_positions(&fuse([&ranks], |[rank]| (rank & 1).eq(0))?)?;
            let upper = lower.add(1)?;
            // Past the end the rank is 0, as in another run.
            let has_upper = ranks.take_unchecked(&upper)?.ne(0)?;
            let own = values.index_select_unchecked(0, &lower)?;
            let both = merge(&own, &values.index_select_unchecked(0, &upper)?)?;
            values = has_upper.reshape(per_row)?.choose(&both, &own)?;
            ranks = ranks.take_unchecked(&lower)?.shift_right(1)?;
            count = lower.count();
        }
        Ok(values)
    }

    /// The rows at ranks that are multiples of `2 * width` become the combinations of so many elements of their runs.
    fn combine_padded(
        &self,
        mut values: Tensor,
        per_row: &[isize],
        positions: &Tensor,
        merge: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let mut width = 1;
        while width < self.count {
            let distance = width as i64;
            let upper = positions.add(distance)?;
            // The rank tells a row of the same run from others, and from the 0 past the end.
            let has_upper = fuse(
                (&self.ranks, &self.ranks.take_unchecked(&upper)?, distance),
                |[rank, upper, distance]| (rank & (distance * 2 - 1)).eq(0) & upper.eq(rank + distance),
            )?;
            let both = merge(&values, &values.index_select_unchecked(0, &upper)?)?;
            values = has_upper.reshape(per_row)?.choose(&both, &values)?;
            width *= 2;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::Runs;
    use crate::Result;
    use crate::tensor::{Device, Generator, Tensor};
    use crate::types::DType;

    #[test]
    fn padded_rows_have_the_bits_and_lengths_of_packed_ones() -> Result<()> {
        let (cpu, generator) = (Device::cpu(), Generator::new(1));
        for (count, rows) in [(1usize, 1i64), (2, 1), (7, 1), (8, 3), (33, 1), (100, 9), (257, 400)] {
            let targets = generator.randint(0, rows, &[count], DType::I64, &cpu)?;
            let values = generator.randn(&[count, 3], DType::F32, &cpu)?;
            let results = [false, true].map(|is_padded| -> Result<_> {
                let runs = Runs::of_rows(&targets, rows as usize, is_padded)?;
                let sums = runs.combine(&values, |x, y| x.add(y))?;
                let mut table = Tensor::zeros(&[rows as usize, 3], DType::F32, &cpu)?;
                table.in_place().index_copy_unchecked(0, &runs.targets, &sums)?;
                let mut lengths = Tensor::zeros(&[rows as usize], DType::I64, &cpu)?;
                lengths.in_place().index_copy_unchecked(0, &runs.targets, &runs.lengths()?)?;
                Ok((table.to_bytes()?, lengths.to_vec::<i64>()?))
            });
            let [packed, padded] = results;
            assert_eq!(padded?, packed?, "{count} elements at {rows} places");
        }
        Ok(())
    }
}
