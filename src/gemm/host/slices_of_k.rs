//! Products of few elements and much depth, such as gradients of weights.
//!
//! Tiles of such a C are either few or small, and a small tile copies nearly as much of A and B as it multiplies. So k is cut
//! into slices instead: each is a product of all rows and columns into memory of its own, and the sums of the slices are
//! added in the order of k and finished once.
//!
//! Invariant: the slices depend on the product alone.

use super::sum::{PartMut, Sum};
use super::{Job, Made, Scratch, Tile, as_sums, row};
use crate::error::Result;
use crate::gemm::{GemmElement, GemmResult};

/// The least k that is cut.
const MIN_DEPTH: usize = 2048;
/// The most elements of a C whose k is cut.
const MAX_ELEMENTS: usize = 1 << 18;
/// The least rows and columns of one: a product of few rows has slices of its own ([`row`]).
const MIN_SIDE: usize = 16;
/// The depth of a slice is a multiple of it, and at least it.
const UNIT: usize = 256;
/// Rows of C that a thread finishes at a time.
const ROWS: usize = 16;

impl<T: GemmElement, C: GemmResult<T>> Job<'_, T, C> {
    /// Returns the depth of the slices of k, or none for a product that is cut into tiles.
    pub(super) fn depth_of_slices(&self) -> Option<usize> {
        let product = self.product;
        if product.is_batch_invariant() {
            return None;
        }
        let is_float = T::IS_SUM && T::Sum::ACTIVATE.is_some();
        if let Some(depth) = row::depth_of_slices(product).filter(|_| is_float) {
            return Some(depth);
        }
        let is_cut = is_float
            && product.k() >= MIN_DEPTH
            && product.m().min(product.n()) >= MIN_SIDE
            && product.m().saturating_mul(product.n()).saturating_mul(product.count()) <= MAX_ELEMENTS;
        let slices = (product.k() / 1024).clamp(8, 32);
        is_cut.then(|| product.k().div_ceil(slices).next_multiple_of(UNIT))
    }

    /// Computes the product by slices of this depth.
    pub(super) fn in_slices(&self, processors: usize, depth: usize) -> Result<()> {
        let (m, n, k) = (self.product.m(), self.product.n(), self.product.k());
        let (slices, elements) = (k.div_ceil(depth), m * n);
        // The sums of each slice of each matrix.
        let mut partials = vec![T::Sum::ZERO; slices * self.product.count() * elements];
        let written = Partials(partials.as_mut_ptr());
        self.share(processors, slices * self.product.count(), &|index, _: &mut Scratch<T::Sum>| {
            let written = &written;
            let (matrix, first) = (index / slices, index % slices * depth);
            // SAFETY: the product was checked against the slices, and nobody else has the partials of the index.
            unsafe {
                let (a, b) = (as_sums(self.a.part(matrix, 0, first)), as_sums(self.b.part(matrix, first, 0)));
                let sums = PartMut { start: written.0.add(index * elements), row: n };
                T::Sum::multiply((m, n, depth.min(k - first)), T::Sum::ONE, a, b, T::Sum::ZERO, sums);
            }
        })?;
        let bands = m.div_ceil(ROWS);
        self.share(processors, bands * self.product.count(), &|index, scratch| {
            let (matrix, top) = (index / bands, index % bands * ROWS);
            let rows = ROWS.min(m - top);
            let of_matrix = partials.chunks_exact(elements).skip(matrix * slices).take(slices);
            scratch.sums.clear();
            for partial in of_matrix {
                let band = &partial[top * n..(top + rows) * n];
                if scratch.sums.is_empty() {
                    scratch.sums.extend_from_slice(band);
                } else {
                    scratch.sums.iter_mut().zip(band).for_each(|(sum, part)| *sum = sum.plus(*part));
                }
            }
            let offset = matrix * self.stored_c.stride + top * self.stored_c.leading;
            // SAFETY: the product was checked against the slices, and no other band has these rows of C.
            unsafe {
                let c = PartMut { start: self.c.add(offset), row: self.stored_c.leading };
                self.finish(Tile { size: (rows, n), first: (top, 0), offset, c }, Made::Sums, scratch);
            }
        })
    }
}

/// The start of the partials.
struct Partials<S>(*mut S);

// SAFETY: each thread writes the partials of its own indices.
unsafe impl<S: Send> Sync for Partials<S> {}
