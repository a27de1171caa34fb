//! Operands as the bulk tensor copies see them, and copies of those that they cannot see.

use super::packed::{Place, packed};
use super::plan::Situation;
use super::product::Stored;
use crate::driver::{
    DeviceBuffer, DeviceSlice, Stream, TensorElement, TensorMap, TensorMapLayout, TensorPromotion,
    TensorSwizzle,
};
use crate::error::Result;
use crate::types::DType;

/// Bytes that rows and matrices in a tensor map begin at multiples of.
pub(super) const MAP_ALIGNMENT: usize = 16;
/// Bytes from a row or matrix to the next that a tensor map can hold, less one.
const MAP_STRIDE: u64 = (1 << 40) - 1;

/// Whether a tensor map can describe the matrices, at this address.
pub(super) fn maps(stored: Stored, address: u64, element: usize) -> bool {
    let far = |distance: usize| (distance as u64).saturating_mul(element as u64) > MAP_STRIDE;
    address.is_multiple_of(MAP_ALIGNMENT as u64)
        && stored.keeps_alignment(MAP_ALIGNMENT, element)
        && !(stored.rows > 1 && far(stored.leading))
        && !(stored.batch > 1 && far(stored.stride))
}

/// The operands that no tensor map describes as they are stored.
pub(super) fn unmapped(situation: &Situation<'_>) -> impl Iterator<Item = char> {
    let (product, size) = (situation.product, situation.operand.size());
    let a = maps(product.stored_a(), situation.addresses[0], size);
    let b = maps(product.stored_b(), situation.addresses[1], size);
    [('A', a), ('B', b)].into_iter().filter(|(_, mapped)| !mapped).map(|(name, _)| name)
}

/// The map of all matrices, with boxes of so many columns and rows.
pub(super) fn map(
    memory: DeviceSlice<'_, u8>,
    dtype: DType,
    stored: Stored,
    (width, height): (u32, u32),
    swizzle: TensorSwizzle,
) -> Result<TensorMap> {
    let element = tensor_element(dtype);
    let size = element.size() as u64;
    let (rows, columns) = (stored.rows as u64, stored.columns as u64);
    let aligned = |bytes: u64| bytes.next_multiple_of(MAP_ALIGNMENT as u64);
    // A batch that shares one matrix is described as that one; so is what there is only one of, whose distance to the
    // next is then any that a map takes.
    let row = if rows > 1 { stored.leading as u64 * size } else { aligned(columns * size) };
    let matrix = if stored.matrices() > 1 { stored.stride as u64 * size } else { aligned(row) };
    TensorMap::tiled(
        &memory,
        &TensorMapLayout {
            shape: vec![columns, rows, stored.matrices() as u64],
            strides: vec![row, matrix],
            swizzle,
            promotion: TensorPromotion::Bytes128,
            ..TensorMapLayout::contiguous(element, &[], &[width, height, 1])
        },
    )
}

/// What copies take the type for; complex numbers have no name of their own there.
fn tensor_element(dtype: DType) -> TensorElement {
    match dtype {
        DType::F16 => TensorElement::F16,
        DType::BF16 => TensorElement::BF16,
        DType::C64 => TensorElement::U64,
        _ => TensorElement::F32,
    }
}

/// Both operands of a product, of elements of 16 bits, as tensor maps can describe them: as they are stored, or copies.
pub(super) struct Operands<'a> {
    sources: [DeviceSlice<'a, u8>; 2],
    stored: [Stored; 2],
    dtype: DType,
    copies: Option<(DeviceBuffer<u8>, [Option<Place>; 2])>,
}

impl<'a> Operands<'a> {
    /// The copies' memory goes back to the stream when they are dropped; what is launched before has it until then.
    pub fn new(
        stream: &Stream,
        situation: &Situation<'_>,
        sources: [DeviceSlice<'a, u8>; 2],
    ) -> Result<Operands<'a>> {
        let (product, dtype) = (situation.product, situation.operand);
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
        let copy = self.copies.as_ref().and_then(|(copies, places)| Some((copies, places[at]?)));
        let (memory, start, stored) = match copy {
            Some((copies, place)) => (DeviceSlice::from(copies), place.start, place.stored),
            None => (self.sources[at], 0, self.stored[at]),
        };
        Mapped { memory, start, dtype: self.dtype, stored }
    }
}

/// An operand that tensor maps can describe.
pub(super) struct Mapped<'a> {
    memory: DeviceSlice<'a, u8>,
    /// Where it begins there, in bytes.
    start: usize,
    dtype: DType,
    stored: Stored,
}

impl Mapped<'_> {
    /// Its map, with boxes of so many columns, of 128 bytes, and rows.
    pub fn map(&self, size: (u32, u32)) -> Result<TensorMap> {
        let memory = self.memory.slice(self.start..)?;
        map(memory, self.dtype, self.stored, size, TensorSwizzle::Bytes128)
    }

    /// 1, or 0 where all products share the matrix: what the kernels multiply a matrix's number by.
    pub fn apart(&self) -> i32 {
        i32::from(self.stored.matrices() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_take_multiples_of_16_bytes_and_distances_below_2_to_the_40() {
        let stored = Stored { rows: 8, columns: 8, leading: 8, batch: 1, stride: 0 };
        assert!(maps(stored, 0x100, 2));
        assert!(!maps(stored, 0x108, 2));
        assert!(!maps(Stored { leading: 12, ..stored }, 0x100, 2));
        assert!(maps(Stored { leading: 12, ..stored }, 0x100, 4));
        assert!(maps(Stored { leading: 13, rows: 1, ..stored }, 0x100, 2));
        assert!(!maps(Stored { leading: 1 << 39, ..stored }, 0x100, 2));
        assert!(!maps(Stored { batch: 2, stride: 1 << 39, ..stored }, 0x100, 2));
    }
}
