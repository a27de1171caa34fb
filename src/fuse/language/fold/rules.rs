//! [`FoldRules`], a fold of a dtype as instructions.

use super::rescale::RescalingBits;
use super::{Empty, Fold};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::{Program, Step, ValueParts, kind_of, parts};
use crate::fuse::language::lower::product;
use crate::types::DType;

/// A fold of a dtype, compiled for both devices.
pub(in crate::fuse) struct FoldRules {
    /// The register kind of each part of a value.
    pub(in crate::fuse) kinds: Vec<RegisterKind>,
    /// The bits of the parts of an identity (padding) element.
    pub(in crate::fuse) identity: [u64; 2],
    /// The bits of the value of an empty reduction, in the accumulator's dtype.
    pub(in crate::fuse) empty: [u64; 2],
    /// Merges any two values in order: inputs 0 and 1.
    pub(in crate::fuse) merge: Program,
    /// Appends an element, which is not the identity, to a value of earlier elements.
    pub(in crate::fuse) append: Program,
    /// Converts a folded value, input 0, to the value that it represents, if the two differ.
    pub(in crate::fuse) restore: Option<Program>,
}

impl FoldRules {
    /// Compiles a fold for a dtype from [`Fold::accumulator`].
    pub(in crate::fuse) fn new(fold: Fold, dtype: DType) -> FoldRules {
        let kinds = match (fold.has_index(), parts(dtype)) {
            (true, _) => vec![kind_of(dtype), RegisterKind::Bits64],
            (false, count) => vec![kind_of(dtype); count],
        };
        let program = |append: bool| {
            let mut program = Program::default();
            let (left, right) = (side(&mut program, &kinds, 0), side(&mut program, &kinds, 1));
            let result = fold.merge()(&mut program, dtype, [left, right], append);
            program.outputs.push(result);
            program
        };
        let (merge, append) = (program(false), program(true));
        let restore = fold.is_product_of_floats(dtype).then(|| {
            let mut program = Program::default();
            let value = side(&mut program, &kinds, 0);
            let result = product::restored(&mut program, value);
            program.outputs.push(result);
            program
        });
        let identity = fold.identity(dtype);
        let empty = match fold.empty() {
            Empty::Zero => [0; 2],
            Empty::ZeroWithFactor => [0, RescalingBits::new(kinds[0]).one],
            Empty::Identity | Empty::Error => identity,
        };
        FoldRules { kinds, identity, empty, merge, append, restore }
    }

    /// Returns the bytes of a value.
    pub(in crate::fuse) fn bytes(&self) -> usize {
        self.kinds.iter().map(|kind| bytes(*kind)).sum()
    }
}

/// Loads the parts of an operand.
fn side(program: &mut Program, kinds: &[RegisterKind], input: u32) -> ValueParts {
    [0, kinds.len() - 1].map(|part| program.step(Step::Load { input, part: part as u32 }, kinds[part]))
}

/// Returns the bytes of a part in memory.
pub(in crate::fuse) fn bytes(kind: RegisterKind) -> usize {
    match kind {
        RegisterKind::Bits64 | RegisterKind::Float64 => 8,
        RegisterKind::Predicate | RegisterKind::Bits32 | RegisterKind::Float32 => 4,
    }
}
