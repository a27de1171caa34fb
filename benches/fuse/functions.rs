//! Every function of the list that is computed by series, and the integers' sums and products, by dtype.

use selvedge::fuse::Operation;
use selvedge::types::{DType, Layout};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::report::Failure;
use crate::speed::{IN_LINE, expression, with_bench};

const FRACTIONS: [DType; 6] = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128];
const INTEGERS: [DType; 5] = [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

/// Operations of one operand that are no rearrangement of bits nor one instruction.
fn functions(dtype: DType) -> impl Iterator<Item = Operation> {
    Operation::ALL.iter().copied().filter(move |operation| {
        operation.arity() == 1 && operation.dtypes().contains(dtype) && operation.ulp() > 0
    })
}

/// Every figure.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let what = (
        "fuse_list",
        "The list of operations, by dtype",
        "As for expressions: device time of one operation on random operands of 1 GiB, beside as many of the driver's \
         own copies of as many bytes, and beside PyTorch's operation where it has one. Floats are of half to two, with \
         either sign; where that is outside of a function's domain it gives NaN.",
    );
    with_bench(bare, options, what, |bench| {
        for dtype in INTEGERS {
            let (a, b) = (bench.array(dtype)?, bench.array(dtype)?);
            let whole = Layout::contiguous(&[bench.count(dtype)])?;
            let pair = [(&a, whole), (&b, whole)];
            let (sum, product) =
                (expression([dtype; 2], |[a, b]| a + b)?, expression([dtype; 2], |[a, b]| a * b)?);
            bench.figure((&format!("a + b, {dtype}"), "add"), &sum, &pair, whole, IN_LINE)?;
            bench.figure((&format!("a * b, {dtype}"), "mul"), &product, &pair, whole, IN_LINE)?;
        }
        for dtype in FRACTIONS {
            let a = bench.array(dtype)?;
            let whole = Layout::contiguous(&[bench.count(dtype)])?;
            for operation in functions(dtype) {
                let function = expression([dtype], |[a]| a.operation(operation, &[]))?;
                let name = format!("{}(a), {dtype}", operation.name());
                bench.figure((&name, operation.name()), &function, &[(&a, whole)], whole, IN_LINE)?;
            }
        }
        Ok(())
    })
}
