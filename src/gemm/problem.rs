//! [`GemmProblem`], the properties of one call that an engine is selected by.

use super::epilogue::EpilogueParts;
use super::product::Product;
use crate::images::{DeviceProperties, MatrixLayout};
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

    /// Returns the bytes that the call reads and writes at least: each element of its matrices once, but C twice where it is read.
    pub fn bytes(&self) -> f64 {
        let elements = |stored: MatrixLayout| {
            let matrices = if stored.stride == 0 { stored.batch.min(1) } else { stored.batch };
            stored.rows as f64 * stored.columns as f64 * matrices as f64
        };
        let (product, epilogue) = (self.product, &self.epilogue);
        let of_c = [true, self.reads_c, epilogue.aux.is_some(), epilogue.aux_in.is_some()];
        let times_c = of_c.into_iter().filter(|is_moved| *is_moved).count() as f64;
        let operands = elements(product.stored_a()) + elements(product.stored_b());
        operands * self.operand.size() as f64
            + times_c * elements(product.stored_c()) * self.result.size() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_moved_once_and_a_read_result_twice() {
        let properties = DeviceProperties::reference((9, 0));
        let product = Product::new(2, 3, 5);
        let problem = GemmProblem::from_types(&product, DType::BF16, DType::F32, properties);
        // Ten elements of A and fifteen of B in bf16, and six of C in f32.
        assert_eq!(problem.bytes(), 25.0 * 2.0 + 6.0 * 4.0);
        let mut problem = GemmProblem { reads_c: true, ..problem };
        problem.epilogue.aux_in = Some(0);
        assert_eq!(problem.bytes(), 25.0 * 2.0 + 3.0 * 6.0 * 4.0);
        // All four products share B.
        let batch = product.batch(4, 10, 0, 6);
        let problem = GemmProblem::from_types(&batch, DType::BF16, DType::F32, properties);
        assert_eq!(problem.bytes(), (40.0 + 15.0) * 2.0 + 24.0 * 4.0);
    }
}
