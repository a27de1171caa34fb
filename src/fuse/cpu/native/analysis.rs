//! The steps of a kernel's loop: dead ones left out, values that share their bits merged, rare bodies in line or left
//! to a second kernel.

use super::{Bodies, Unsupported};
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Step, Value, kind_of};
use crate::types::DType;

pub(super) const fn is_wide(kind: RegisterKind) -> bool {
    matches!(kind, RegisterKind::Bits64 | RegisterKind::Float64)
}

/// The most instructions between a number and the constants that bound it, because a product reads two numbers.
const RANGE_DEPTH: usize = 6;

/// The steps that a kernel executes for each group of lanes.
#[derive(Debug)]
pub(super) struct Analysis<'a> {
    pub(super) program: &'a Program,
    /// The step that computes each value's bits.
    same: Vec<u32>,
    /// Values that are equal for all elements.
    pub(super) uniform: Vec<bool>,
    pub(super) order: Vec<usize>,
    /// The conditions of the bodies that are left out.
    pub(super) conditions: Vec<usize>,
    /// Such conditions that are equal for all elements.
    pub(super) uniform_conditions: Vec<usize>,
    /// The operand of each negation that only multiply-adds read.
    negated: Vec<Option<usize>>,
    /// Some value has 64 bits.
    pub(super) is_wide: bool,
}

fn is_multiply_add(step: Step) -> bool {
    matches!(step, Step::Apply(Instruction::MultiplyAddFloat32 | Instruction::MultiplyAddFloat64, _))
}

impl<'a> Analysis<'a> {
    pub(super) fn new(
        program: &'a Program,
        outputs: &[DType],
        bodies: Bodies,
    ) -> Result<Analysis<'a>, Unsupported> {
        let steps = &program.steps;
        let uniform = program.uniform(|_| false);
        // A marker of a body is live if a result of the body is.
        let needed = program.live(program.outputs.iter().flatten().copied());
        let leaves_out = bodies == Bodies::Flagged;
        let mut inside = vec![false; steps.len()];
        if leaves_out {
            for rare in &program.rares {
                inside[rare.body.clone()].fill(true);
            }
        }
        let mut same: Vec<u32> = (0..steps.len() as u32).collect();
        for (index, &(step, _)) in steps.iter().enumerate() {
            use Instruction::{Bits, Bits64From, Float64From, FromBits};
            match step {
                Step::Apply(Bits | FromBits | Bits64From | Float64From, [a, ..]) => {
                    same[index] = same[a.index()];
                }
                // A result that is equal for all elements is computed before the loop, body included.
                Step::Result { rare, result } if leaves_out && !uniform[index] => {
                    same[index] = same[program.rares[rare as usize].results[result as usize][0].index()];
                }
                _ => {}
            }
        }
        let mut analysis = Analysis {
            program,
            same,
            uniform,
            order: Vec::new(),
            conditions: Vec::new(),
            uniform_conditions: Vec::new(),
            negated: vec![None; steps.len()],
            is_wide: false,
        };
        analysis.fold_negations();
        let mut live = vec![false; steps.len()];
        for &value in program.outputs.iter().flatten() {
            live[analysis.of(value)] = true;
        }
        for index in (0..steps.len()).rev() {
            if let (Step::Rare(rare), true, false) = (steps[index].0, leaves_out, inside[index]) {
                if needed[index] {
                    let condition = analysis.of(program.rares[rare as usize].condition);
                    live[condition] = true;
                    match analysis.uniform[condition] {
                        true => analysis.uniform_conditions.push(condition),
                        false => analysis.conditions.push(condition),
                    }
                }
                continue;
            }
            if live[index] && !analysis.uniform[index] {
                for value in analysis.values(index) {
                    live[value] = true;
                }
            }
        }
        for conditions in [&mut analysis.conditions, &mut analysis.uniform_conditions] {
            conditions.sort_unstable();
            conditions.dedup();
        }
        let own = |index: usize| analysis.same[index] as usize == index && !analysis.uniform[index];
        let order: Vec<usize> = (0..steps.len())
            .filter(|&index| live[index] && own(index) && !inside[index])
            .filter(|&index| !matches!(steps[index].0, Step::Rare(_)))
            .collect();
        let kinds = |index: usize| {
            let operands = program.values(steps[index].0).map(|value| steps[value.index()].1);
            operands.chain([steps[index].1]).any(is_wide)
        };
        analysis.is_wide =
            order.iter().any(|&index| kinds(index)) || outputs.iter().any(|&dtype| is_wide(kind_of(dtype)));
        analysis.order = order;
        Ok(analysis)
    }

    /// Finds the negations that only multiply-adds read: they negate the product or the summand themselves.
    fn fold_negations(&mut self) {
        let steps = &self.program.steps;
        for (index, &(step, _)) in steps.iter().enumerate() {
            if let Step::Apply(Instruction::NegateFloat32 | Instruction::NegateFloat64, [a, ..]) = step
                && !self.uniform[index]
            {
                self.negated[index] = Some(self.of(a));
            }
        }
        for &value in self.program.outputs.iter().flatten() {
            self.negated[self.same[value.index()] as usize] = None;
        }
        for &(step, _) in steps {
            for value in self.program.values(step).filter(|_| !is_multiply_add(step)) {
                self.negated[self.same[value.index()] as usize] = None;
            }
        }
    }

    /// Returns the step that computes a value's bits.
    pub(super) fn of(&self, value: Value) -> usize {
        self.same[value.index()] as usize
    }

    /// Returns the number whose negation a multiply-add reads as this operand.
    pub(super) fn negated(&self, value: usize) -> Option<usize> {
        self.negated[value]
    }

    /// Returns the values that a step of the loop reads.
    pub(super) fn values(&self, index: usize) -> impl Iterator<Item = usize> + use<'_> {
        let step = self.program.steps[index].0;
        let is_multiply_add = is_multiply_add(step);
        let count = if self.machine_extreme(index).is_some() { 2 } else { usize::MAX };
        self.program.values(step).take(count).map(move |value| {
            let value = self.of(value);
            if is_multiply_add { self.negated[value].unwrap_or(value) } else { value }
        })
    }

    /// Returns the opcode of `vminps` or `vmaxps` for a selection between the two floats that its condition compares,
    /// `a < b ? a : b` or `a < b ? b : a`: that of zeros and NaN is the second too.
    pub(super) fn machine_extreme(&self, index: usize) -> Option<u8> {
        use Instruction::{LessFloat32, LessFloat64, SelectFloat32, SelectFloat64};
        let Step::Apply(SelectFloat32 | SelectFloat64, [yes, no, condition]) = self.program.steps[index].0
        else {
            return None;
        };
        let Step::Apply(LessFloat32 | LessFloat64, [a, b, _]) = self.program.steps[self.of(condition)].0
        else {
            return None;
        };
        let compared = [self.of(a), self.of(b)];
        match [self.of(yes), self.of(no)] {
            selected if selected == compared => Some(0x5d),
            [yes, no] if [no, yes] == compared => Some(0x5f),
            _ => None,
        }
    }

    /// Returns the bits of a constant.
    pub(super) fn constant(&self, value: usize) -> Option<u64> {
        match self.program.steps[value].0 {
            Step::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    /// Returns a constant as a number.
    pub(super) fn constant_float(&self, value: usize) -> Option<f64> {
        let bits = self.constant(value)?;
        match is_wide(self.program.steps[value].1) {
            true => Some(f64::from_bits(bits)),
            false => Some(f64::from(f32::from_bits(bits as u32))),
        }
    }

    /// Returns bounds of a float that is provably no NaN.
    pub(super) fn range(&self, value: usize) -> Option<(f64, f64)> {
        self.range_within(value, RANGE_DEPTH)
    }

    fn range_within(&self, value: usize, depth: usize) -> Option<(f64, f64)> {
        use Instruction::*;
        let depth = depth.checked_sub(1)?;
        let (instruction, a, b) = match self.program.steps[value].0 {
            Step::Apply(instruction, [a, b, _]) => (instruction, self.of(a), self.of(b)),
            _ => {
                let constant = self.constant_float(value)?;
                return (!constant.is_nan()).then_some((constant, constant));
            }
        };
        match instruction {
            MaximumFloat32 | MaximumFloat64 => {
                match (self.range_within(a, depth), self.range_within(b, depth)) {
                    (Some(a), Some(b)) => Some((a.0.max(b.0), a.1.max(b.1))),
                    (Some(a), None) | (None, Some(a)) => Some((a.0, f64::INFINITY)),
                    _ => None,
                }
            }
            MinimumFloat32 | MinimumFloat64 => {
                match (self.range_within(a, depth), self.range_within(b, depth)) {
                    (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.min(b.1))),
                    (Some(a), None) | (None, Some(a)) => Some((f64::NEG_INFINITY, a.1)),
                    _ => None,
                }
            }
            MultiplyFloat32 | MultiplyFloat64 => {
                let (a, b) = (self.range_within(a, depth)?, self.range_within(b, depth)?);
                let products = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
                if products.iter().any(|product| !product.is_finite()) {
                    return None;
                }
                let largest = products.iter().fold(0.0f64, |largest, product| largest.max(product.abs()));
                // More than an error of rounding.
                let slack = largest * 1e-6 + 1.0;
                let least = products.iter().fold(f64::INFINITY, |least, product| least.min(*product));
                let most = products.iter().fold(f64::NEG_INFINITY, |most, product| most.max(*product));
                Some((least - slack, most + slack))
            }
            RoundFloat32 | RoundFloat64 | FloorFloat32 | FloorFloat64 | TruncateFloat32 | TruncateFloat64 => {
                let (least, most) = self.range_within(a, depth)?;
                Some((least - 1.0, most + 1.0))
            }
            _ => None,
        }
    }
}
