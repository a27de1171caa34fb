//! Operands as tensor maps describe them, and copies of those that none describes.

use super::packed::{PackedOperand, packed};
use super::problem::GemmProblem;
use crate::driver::{DeviceBuffer, DeviceSlice, Stream, TensorMap, TensorSwizzle};
use crate::error::Result;
use crate::images::MatrixLayout;
use crate::types::DType;

/// Returns whether a tensor map can describe the matrices at this address.
pub(super) fn maps(stored: MatrixLayout, address: u64, element: usize) -> bool {
    stored.fits_tensor_map(address, element)
}

/// Returns the operands that no tensor map describes as they are stored.
pub(super) fn unmapped(problem: &GemmProblem<'_>) -> impl Iterator<Item = char> {
    let (product, size) = (problem.product, problem.operand.size());
    let a = maps(product.stored_a(), problem.addresses[0], size);
    let b = maps(product.stored_b(), problem.addresses[1], size);
    [('A', a), ('B', b)].into_iter().filter(|(_, mapped)| !mapped).map(|(name, _)| name)
}

/// Returns the tensor map of all matrices, with boxes of this many columns and rows.
pub(super) fn map(
    memory: DeviceSlice<'_, u8>,
    dtype: DType,
    stored: MatrixLayout,
    size: (u32, u32),
    swizzle: TensorSwizzle,
) -> Result<TensorMap> {
    stored.tensor_map(memory, dtype, size, swizzle)
}

/// Both operands of a product, of 16-bit elements, as tensor maps describe them: as they are stored, or copies.
pub(super) struct Operands<'a> {
    sources: [DeviceSlice<'a, u8>; 2],
    stored: [MatrixLayout; 2],
    dtype: DType,
    copies: Option<(DeviceBuffer<u8>, [Option<PackedOperand>; 2])>,
}

impl<'a> Operands<'a> {
    /// Copies the operands that need it. The copies are freed on the stream when they are dropped.
    pub fn new(
        stream: &Stream,
        problem: &GemmProblem<'_>,
        sources: [DeviceSlice<'a, u8>; 2],
    ) -> Result<Operands<'a>> {
        let (product, dtype) = (problem.product, problem.operand);
        let stored = [product.stored_a(), product.stored_b()];
        let asked = [0, 1].map(|at| !maps(stored[at], sources[at].address(), dtype.size()));
        let copy = || packed(stream, sources, stored, asked, product);
        let copies = asked.contains(&true).then(copy).transpose()?;
        Ok(Operands { sources, stored, dtype, copies })
    }

    pub fn a(&self) -> Mapped<'_> {
        self.operand(0)
    }

    pub fn b(&self) -> Mapped<'_> {
        self.operand(1)
    }

    fn operand(&self, at: usize) -> Mapped<'_> {
        let copy =
            self.copies.as_ref().and_then(|(copies, packed_operands)| Some((copies, packed_operands[at]?)));
        let (memory, start, stored) = match copy {
            Some((copies, operand)) => (DeviceSlice::from(copies), operand.start, operand.stored),
            None => (self.sources[at], 0, self.stored[at]),
        };
        Mapped { memory, start, dtype: self.dtype, stored }
    }
}

/// An operand that tensor maps can describe.
pub(super) struct Mapped<'a> {
    memory: DeviceSlice<'a, u8>,
    /// Its first byte in the memory.
    start: usize,
    dtype: DType,
    stored: MatrixLayout,
}

impl Mapped<'_> {
    /// Returns its tensor map, with boxes of this many columns, of 128 bytes, and rows.
    pub fn map(&self, size: (u32, u32)) -> Result<TensorMap> {
        let memory = self.memory.slice(self.start..)?;
        map(memory, self.dtype, self.stored, size, TensorSwizzle::Bytes128)
    }

    /// Returns 1, or 0 where all products share the matrix: the kernels multiply the batch index by it.
    pub fn apart(&self) -> i32 {
        i32::from(self.stored.matrices() > 1)
    }
}
