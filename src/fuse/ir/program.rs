//! A lowered expression: instructions in execution order, with each value computed once.
//!
//! The PTX writer and the CPU interpreter both process this list, and neither knows operations.
//!
//! Invariants: an operand precedes its user. The list does not depend on the value of a number that the user
//! wrote; numbers are parameters, so one text serves all values.

use std::collections::HashMap;

use super::instruction::{Instruction, RegisterKind};
use super::rare::Rare;
use crate::types::DType;

/// A value of a [`Program`]: the index of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Value(pub(crate) u32);

/// The values of the real and the imaginary part of an element. A real element has the same value twice.
pub(crate) type ValueParts = [Value; 2];

impl Value {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The computation of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Loads part `part` (real or imaginary) of an input's element.
    Load { input: u32, part: u32 },
    /// The number of an element that a coordinate gives; see `coordinate`.
    Coordinate { operand: u32 },
    /// That number divided by `count`, which `count` neighbours share.
    Group { operand: u32, count: u32 },
    /// Selects one of the first `count` words by the element's position in its group.
    Pick { operand: u32, count: u32, words: [Value; 4] },
    /// Part `part` of a scalar, which a run passes or the expression holds.
    Parameter { index: u32, part: u32 },
    /// A constant of an operation's formula, as bits.
    Constant(u64),
    /// An instruction. Operands beyond its arity repeat the first.
    Apply(Instruction, [Value; 3]),
    /// The beginning of a body of steps that few elements need ([`Rare`]). It has no value.
    Rare(u32),
    /// A result of a rare body: its value on the main path or in the body.
    Result { rare: u32, result: u32 },
}

impl Step {
    /// Returns the input or coordinate that the step reads.
    pub(crate) fn operand(self) -> Option<usize> {
        match self {
            Step::Load { input: operand, .. }
            | Step::Coordinate { operand }
            | Step::Group { operand, .. }
            | Step::Pick { operand, .. } => Some(operand as usize),
            Step::Parameter { .. } | Step::Constant(_) | Step::Apply(..) => None,
            Step::Rare(_) | Step::Result { .. } => None,
        }
    }
}

/// A lowered expression.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) steps: Vec<(Step, RegisterKind)>,
    /// For each output, the values of its parts; a real output has the same value twice.
    pub(crate) outputs: Vec<[Value; 2]>,
    /// The bodies of steps that few elements need, in order.
    pub(crate) rares: Vec<Rare>,
    pub(in crate::fuse) known: HashMap<(Step, RegisterKind), Value>,
    /// The first instruction that an operation requested and its kind of register lacks.
    pub(crate) missing: Option<(&'static str, RegisterKind)>,
}

/// Returns the number of parts of an element.
pub(crate) fn parts(dtype: DType) -> usize {
    if dtype.is_complex() { 2 } else { 1 }
}

/// Returns the kind of register that holds a part of an element.
pub(crate) fn kind_of(dtype: DType) -> RegisterKind {
    match dtype {
        DType::Bool => RegisterKind::Predicate,
        DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::U32 | DType::I32 => RegisterKind::Bits32,
        DType::F8E4M3 | DType::F8E5M2 => RegisterKind::Bits32,
        DType::U64 | DType::I64 => RegisterKind::Bits64,
        DType::F16 | DType::BF16 | DType::F32 | DType::C64 => RegisterKind::Float32,
        DType::F64 | DType::C128 => RegisterKind::Float64,
    }
}

/// Defines methods of [`Program`]: the name and operands, then each register kind with its instruction.
macro_rules! by_kind {
    ($($(#[$doc:meta])* $name:ident($first:ident $(, $rest:ident)*) $($kind:ident $instruction:ident)*;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&mut self, $first: Value $(, $rest: Value)*) -> Value {
            let operands = [$first $(, $rest)*];
            match self.kind($first) {
                $(RegisterKind::$kind => self.apply(Instruction::$instruction, &operands),)*
                #[allow(unreachable_patterns)]
                kind => self.lacking(stringify!($name), kind, $first),
            }
        }
    )*};
}

impl Program {
    pub(crate) fn kind(&self, value: Value) -> RegisterKind {
        self.steps[value.index()].1
    }

    /// Returns the value of a step, which the list contains once.
    pub(crate) fn step(&mut self, step: Step, kind: RegisterKind) -> Value {
        let next = Value(self.steps.len() as u32);
        let value = *self.known.entry((step, kind)).or_insert(next);
        if value == next {
            self.steps.push((step, kind));
        }
        value
    }

    pub(crate) fn apply(&mut self, instruction: Instruction, operands: &[Value]) -> Value {
        let mut all = [operands[0]; 3];
        all[..operands.len()].copy_from_slice(operands);
        self.step(Step::Apply(instruction, all), instruction.result())
    }

    /// Records a missing instruction; lowering then returns an error.
    fn lacking(&mut self, name: &'static str, kind: RegisterKind, value: Value) -> Value {
        self.missing.get_or_insert((name, kind));
        value
    }

    /// Returns a constant of 32 bits.
    pub(crate) fn bits32(&mut self, bits: u32) -> Value {
        self.step(Step::Constant(u64::from(bits)), RegisterKind::Bits32)
    }

    /// Returns a constant of 64 bits.
    pub(crate) fn bits64(&mut self, bits: u64) -> Value {
        self.step(Step::Constant(bits), RegisterKind::Bits64)
    }

    /// Returns an integer constant as wide as `like`.
    pub(crate) fn integer(&mut self, like: Value, value: i64) -> Value {
        match self.kind(like) {
            RegisterKind::Bits64 => self.bits64(value as u64),
            _ => self.bits32(value as u32),
        }
    }

    pub(crate) fn float32(&mut self, value: f32) -> Value {
        self.step(Step::Constant(u64::from(value.to_bits())), RegisterKind::Float32)
    }

    pub(crate) fn float64(&mut self, value: f64) -> Value {
        self.step(Step::Constant(value.to_bits()), RegisterKind::Float64)
    }

    /// Returns a float constant as wide as `like`, rounded.
    pub(crate) fn float(&mut self, like: Value, value: f64) -> Value {
        match self.kind(like) {
            RegisterKind::Float64 => self.float64(value),
            _ => self.float32(value as f32),
        }
    }

    /// Returns `yes` if the condition holds, otherwise `no`.
    pub(crate) fn choose(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        let instruction = Instruction::select(self.kind(yes));
        self.apply(instruction, &[yes, no, condition])
    }

    /// Returns the instruction and the operands of an extreme of two f32, if the value is that, or NaN beside NaN.
    pub(crate) fn extreme_or_nan(&self, value: Value) -> Option<(Instruction, [Value; 2])> {
        let step = |value: Value| match self.steps[value.index()].0 {
            Step::Apply(instruction, operands) => Some((instruction, operands)),
            _ => None,
        };
        let constant = |value: Value| match self.steps[value.index()].0 {
            Step::Constant(bits) => Some(f32::from_bits(bits as u32)),
            _ => None,
        };
        let (Instruction::SelectFloat32, [yes, no, condition]) = step(value)? else { return None };
        let (test, [x, y, _]) = step(condition)?;
        match (test, constant(yes)?) {
            (Instruction::UnorderedFloat32, nan) if nan.is_nan() => {
                let (instruction, [a, b, _]) = step(no)?;
                let is_extreme =
                    matches!(instruction, Instruction::MinimumFloat32 | Instruction::MaximumFloat32);
                (is_extreme && [x, y] == [a, b]).then_some((instruction, [a, b]))
            }
            // A limit for the other operand, which stays if it is NaN.
            (Instruction::LessFloat32, limit) if limit.abs() > 0.0 => match [x, y] {
                compared if compared == [yes, no] => Some((Instruction::MinimumFloat32, compared)),
                compared if compared == [no, yes] => Some((Instruction::MaximumFloat32, compared)),
                _ => None,
            },
            _ => None,
        }
    }

    by_kind! {
        add(a, b) Bits32 Add32 Bits64 Add64 Float32 AddFloat32 Float64 AddFloat64;
        subtract(a, b) Bits32 Subtract32 Bits64 Subtract64 Float32 SubtractFloat32 Float64 SubtractFloat64;
        multiply(a, b) Bits32 Multiply32 Bits64 Multiply64 Float32 MultiplyFloat32 Float64 MultiplyFloat64;
        /// The upper half of a product of unsigned integers.
        multiply_high(a, b) Bits32 MultiplyHigh32 Bits64 MultiplyHigh64;
        quotient(a, b) Float32 DivideFloat32 Float64 DivideFloat64;
        reciprocal(a) Float32 ReciprocalFloat32 Float64 ReciprocalFloat64;
        divide_signed(a, b) Bits32 DivideSigned32 Bits64 DivideSigned64;
        divide_unsigned(a, b) Bits32 DivideUnsigned32 Bits64 DivideUnsigned64;
        remainder(a, b) Float32 RemainderFloat32 Float64 RemainderFloat64;
        /// a · b + c, rounded once.
        multiply_add(a, b, c) Float32 MultiplyAddFloat32 Float64 MultiplyAddFloat64;
        square_root(a) Float32 SquareRootFloat32 Float64 SquareRootFloat64;
        negate(a) Float32 NegateFloat32 Float64 NegateFloat64;
        absolute(a) Float32 AbsoluteFloat32 Float64 AbsoluteFloat64;
        minimum(a, b) Float32 MinimumFloat32 Float64 MinimumFloat64;
        maximum(a, b) Float32 MaximumFloat32 Float64 MaximumFloat64;
        minimum_signed(a, b) Bits32 MinimumSigned32 Bits64 MinimumSigned64;
        maximum_signed(a, b) Bits32 MaximumSigned32 Bits64 MaximumSigned64;
        minimum_unsigned(a, b) Bits32 MinimumUnsigned32 Bits64 MinimumUnsigned64;
        maximum_unsigned(a, b) Bits32 MaximumUnsigned32 Bits64 MaximumUnsigned64;
        floor(a) Float32 FloorFloat32 Float64 FloorFloat64;
        ceil(a) Float32 CeilFloat32 Float64 CeilFloat64;
        truncate(a) Float32 TruncateFloat32 Float64 TruncateFloat64;
        /// Rounds to the nearest integer, ties to even.
        round(a) Float32 RoundFloat32 Float64 RoundFloat64;
        and(a, b) Predicate AndPredicate Bits32 And32 Bits64 And64;
        or(a, b) Predicate OrPredicate Bits32 Or32 Bits64 Or64;
        xor(a, b) Predicate XorPredicate Bits32 Xor32 Bits64 Xor64;
        not(a) Predicate NotPredicate Bits32 Not32 Bits64 Not64;
        /// Shifts by a count of 32 bits. A count past the width shifts out every bit.
        shift_left(a, b) Bits32 ShiftLeft32 Bits64 ShiftLeft64;
        shift_right_unsigned(a, b) Bits32 ShiftRightUnsigned32 Bits64 ShiftRightUnsigned64;
        shift_right_signed(a, b) Bits32 ShiftRightSigned32 Bits64 ShiftRightSigned64;
        equal(a, b) Bits32 Equal32 Bits64 Equal64 Float32 EqualFloat32 Float64 EqualFloat64;
        /// a < b for floats; false for NaN.
        less(a, b) Float32 LessFloat32 Float64 LessFloat64;
        less_equal(a, b) Float32 LessEqualFloat32 Float64 LessEqualFloat64;
        less_signed(a, b) Bits32 LessSigned32 Bits64 LessSigned64;
        less_unsigned(a, b) Bits32 LessUnsigned32 Bits64 LessUnsigned64;
        /// True if either operand is NaN.
        unordered(a, b) Float32 UnorderedFloat32 Float64 UnorderedFloat64;
        /// The bits of a float as an integer.
        bits_of(a) Float32 Bits Float64 Bits64From;
        /// The float of these bits.
        float_of(a) Bits32 FromBits Bits64 Float64From;
    }

    pub(crate) fn divide(&mut self, a: Value, b: Value) -> Value {
        // A reciprocal gives the same bits at lower cost.
        let unity = self.float(b, 1.0);
        if a == unity { self.reciprocal(b) } else { self.quotient(a, b) }
    }

    pub(crate) fn is_nan(&mut self, a: Value) -> Value {
        self.unordered(a, a)
    }

    /// Returns which steps these values depend on. The others belong to forms that nothing uses.
    pub(crate) fn live(&self, values: impl Iterator<Item = Value>) -> Vec<bool> {
        self.live_where(values, |_| None)
    }

    /// As [`live`](Self::live), where `shortened` steps use only these two values.
    pub(crate) fn live_where(
        &self,
        values: impl Iterator<Item = Value>,
        shortened: impl Fn(Value) -> Option<[Value; 2]>,
    ) -> Vec<bool> {
        let mut live = vec![false; self.steps.len()];
        for value in values {
            live[value.index()] = true;
        }
        for (index, (step, _)) in self.steps.iter().enumerate().rev() {
            if live[index] {
                if let Some(operands) = shortened(Value(index as u32)) {
                    operands.into_iter().for_each(|value| live[value.index()] = true);
                    continue;
                }
                if let Step::Result { rare, .. } = *step {
                    // The marker before the body.
                    live[self.rares[rare as usize].body.start - 1] = true;
                }
                for value in self.values(*step) {
                    live[value.index()] = true;
                }
            }
        }
        live
    }

    /// Returns the values that a step uses.
    pub(crate) fn values(&self, step: Step) -> impl Iterator<Item = Value> + use<> {
        let none = Value(0);
        let (values, count) = match step {
            Step::Load { .. } | Step::Coordinate { .. } | Step::Group { .. } => ([none; 4], 0),
            Step::Parameter { .. } | Step::Constant(_) => ([none; 4], 0),
            Step::Pick { count, words, .. } => (words, count as usize),
            Step::Apply(instruction, [a, b, c]) => ([a, b, c, none], instruction.arity()),
            Step::Rare(rare) => ([self.rares[rare as usize].condition; 4], 1),
            Step::Result { rare, result } => {
                let rare = &self.rares[rare as usize];
                let [usual, other] = rare.results[result as usize];
                ([usual, other, rare.condition, none], 3)
            }
        };
        values.into_iter().take(count)
    }

    /// Returns which values are the same for all elements, given `same` for inputs and coordinates.
    pub(crate) fn uniform(&self, same: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut uniform: Vec<bool> = Vec::with_capacity(self.steps.len());
        // If a body runs only for some elements, its values do not exist for the others.
        let mut apart = 0;
        for (index, (step, _)) in self.steps.iter().enumerate() {
            let values = self.values(*step).all(|value| uniform[value.index()]);
            let same = values && step.operand().is_none_or(&same);
            if let (Step::Rare(rare), false) = (step, same) {
                apart = apart.max(self.rares[*rare as usize].body.end);
            }
            uniform.push(matches!(step, Step::Constant(_)) || same && index >= apart);
        }
        uniform
    }

    /// Returns the group that shares each value: the coordinate that defines the groups, and the elements of
    /// one.
    ///
    /// Only [`Step::Pick`] derives an element's own value from a shared one, and no other step combines
    /// shared values with values of elements.
    pub(crate) fn sharing_groups(&self) -> Vec<Option<(usize, usize)>> {
        let mut groups: Vec<Option<(usize, usize)>> = Vec::with_capacity(self.steps.len());
        for (step, _) in &self.steps {
            groups.push(match step {
                Step::Group { operand, count } => Some((*operand as usize, *count as usize)),
                Step::Apply(..) | Step::Rare(_) | Step::Result { .. } => {
                    self.values(*step).find_map(|value| groups[value.index()])
                }
                _ => None,
            });
        }
        groups
    }
}
