//! [`RowAccess`], the access of threads to an operand of a row program.

/// The access to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::fuse) enum RowAccess {
    /// One element for the whole row.
    Broadcast,
    /// Adjacent elements, one access for a vector.
    Contiguous,
    /// Adjacent elements along the innermost folded dimension, which whole vectors divide: one access for a vector.
    Spans,
    /// One element for a vector: along the innermost folded dimension, which whole vectors divide, or for the columns of a
    /// thread.
    OfSpan,
    /// Any strides, one access an element.
    Strided,
}
