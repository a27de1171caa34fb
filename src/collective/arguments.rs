//! Checks of arguments, which operations on hosts and on devices share.

use crate::error::{Error, Result};

/// Checks the number of elements of an argument.
pub(super) fn check_length(operation: &'static str, wanted: usize, found: usize) -> Result<()> {
    if wanted == found { Ok(()) } else { Err(Error::LengthMismatch { operation, wanted, found }) }
}

/// A rank and the number of ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranks {
    pub(super) rank: usize,
    pub(super) world_size: usize,
}

impl Ranks {
    /// Checks that a root is a rank.
    pub(super) fn check_root(self, operation: &'static str, root: usize) -> Result<()> {
        if root < self.world_size {
            return Ok(());
        }
        let wanted = format!("one of the {} ranks", self.world_size);
        Err(Error::invalid(operation, format!("root {root}"), wanted))
    }

    /// Checks a root, which alone has an argument more.
    pub(super) fn check_root_memory(
        &self,
        operation: &'static str,
        root: usize,
        has_more: bool,
    ) -> Result<()> {
        self.check_root(operation, root)?;
        if has_more == (root == self.rank) {
            return Ok(());
        }
        let with = if has_more { "with" } else { "without" };
        let found = format!("rank {} {with} the memory of the root", self.rank);
        Err(Error::invalid(operation, found, format!("Some for root {root}, None for the others")))
    }

    /// Checks the other side of a message.
    pub(super) fn check_peer(self, operation: &'static str, rank: usize) -> Result<()> {
        if rank < self.world_size && rank != self.rank {
            return Ok(());
        }
        let found = format!("rank {rank} for rank {} of {}", self.rank, self.world_size);
        Err(Error::invalid(operation, found, "another rank of the world"))
    }

    /// Checks that elements can be divided into an equal part for each rank, and returns the length of a part.
    pub(super) fn check_parts(self, operation: &'static str, length: usize) -> Result<usize> {
        if length.is_multiple_of(self.world_size) {
            return Ok(length / self.world_size);
        }
        let wanted = format!("a multiple of the {} ranks", self.world_size);
        Err(Error::invalid(operation, format!("{length} elements"), wanted))
    }

    /// Checks the counts of an uneven exchange, outgoing and received, each with the number of elements.
    pub(super) fn check_counts(self, operation: &'static str, sides: [(&[usize], usize); 2]) -> Result<()> {
        for (counts, length) in sides {
            if counts.len() != self.world_size {
                let wanted = format!("one for each of the {} ranks", self.world_size);
                return Err(Error::invalid(operation, format!("{} counts", counts.len()), wanted));
            }
            let total = counts.iter().try_fold(0usize, |total, count| total.checked_add(*count));
            check_length(operation, total.unwrap_or(usize::MAX), length)?;
        }
        // The part that a rank sends to itself.
        check_length(operation, sides[0].0[self.rank], sides[1].0[self.rank])
    }
}
