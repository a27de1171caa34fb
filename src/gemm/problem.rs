//! [`GemmProblem`], the properties of one call that an engine is selected by.

use super::epilogue::EpilogueParts;
use super::product::Product;
use crate::images::DeviceProperties;
use crate::types::DType;

/// One call.
pub(super) struct GemmProblem<'a> {
    pub product: &'a Product,
    pub operand: DType,
    pub result: DType,
    /// Of A, B and C.
    pub addresses: [u64; 3],
    pub properties: DeviceProperties,
    /// True where C is read.
    pub reads_c: bool,
    /// The epilogue, with the addresses of its memory.
    pub epilogue: EpilogueParts<u64, u64>,
}

impl<'a> GemmProblem<'a> {
    /// Returns the problem of operands at aligned addresses, without an epilogue, whose C is not read.
    pub fn from_types(
        product: &'a Product,
        operand: DType,
        result: DType,
        properties: DeviceProperties,
    ) -> GemmProblem<'a> {
        let (addresses, epilogue) = ([0; 3], EpilogueParts::NONE);
        GemmProblem { product, operand, result, addresses, properties, reads_c: false, epilogue }
    }
}
