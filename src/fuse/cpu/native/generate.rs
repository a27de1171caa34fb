//! The loop of a kernel: prologue, steps in order for each interleaved copy, stores, flags, epilogue.

use std::ops::Range;
use std::sync::OnceLock;

use super::analysis::{Analysis, is_wide};
use super::encoder::{ADDRESS, Code, General, Op, POINTERS, POOL, Rm, SPILL, op};
use super::listing::Label;
use super::memory::Executable;
use super::pool::{Constant, SLOT};
use super::registers::{Location, Registers, SCRATCH, Spill};
use super::streaming::LINE;
use super::{Target, Unsupported};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::Step;
use crate::types::DType;

/// Programs with more steps are not interleaved: their values would not fit the registers.
const MAX_INTERLEAVED: usize = 100;

/// The machine code of a program's loop.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) code: Executable,
    /// The offsets of the opcodes of stores that fill lines of an output.
    pub(super) stores: Vec<usize>,
    /// The code in which these are streaming stores.
    pub(super) streaming: OnceLock<Option<Executable>>,
    /// Elements of one iteration of the loop, a power of two.
    pub(super) turn: usize,
    pub(super) constants: Vec<Constant>,
    /// The conditions of rare bodies that are equal for all elements.
    pub(super) uniform_conditions: Vec<usize>,
    /// The last operand is a byte an element, set where a rare body is needed.
    pub(super) has_flags: bool,
    pub(super) slots: usize,
    pub(super) instructions: usize,
    pub(super) bytes: usize,
}

/// A constant that may stay in a register, and the reads that this saves.
type Hoisted = (u32, usize);

pub(super) struct Generator<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) code: Code,
    pub(super) target: Target,
    pub(super) lanes: usize,
    pub(super) registers: Registers,
    pub(super) constants: Vec<Constant>,
    /// Reads of each constant from memory.
    reads: Vec<usize>,
    hoisted: Vec<(u32, u8)>,
    inputs: &'a [DType],
    labels: Vec<(usize, usize, Label)>,
    stores: Vec<usize>,
    /// Elements of one iteration of the loop.
    turn: usize,
    /// The interleaved copy at hand.
    pub(super) copy: usize,
}

/// Generates a kernel in two passes: the second keeps the constants that are read most in registers that the first one
/// left free.
pub(super) fn generate(
    analysis: &Analysis<'_>,
    inputs: &[DType],
    outputs: &[DType],
    target: Target,
) -> Result<Draft, Unsupported> {
    let copies = if analysis.order.len() > MAX_INTERLEAVED { 1 } else { 2 };
    let (kernel, hoistable) = generate_once(analysis, inputs, outputs, target, copies, &[])?;
    match hoistable.is_empty() {
        true => Ok(kernel),
        false => Ok(generate_once(analysis, inputs, outputs, target, copies, &hoistable)?.0),
    }
}

/// A kernel whose code is not executable yet.
pub(super) struct Draft {
    pub(super) code: Code,
    /// The offset of the loop, up to the instructions that repeat it.
    pub(super) body: Range<usize>,
    /// The offset of the first instruction of each part of the program, the interleaved copy, and the part.
    pub(super) labels: Vec<(usize, usize, Label)>,
    pub(super) turn: usize,
    stores: Vec<usize>,
    constants: Vec<Constant>,
    uniform_conditions: Vec<usize>,
    has_flags: bool,
    slots: usize,
}

impl Draft {
    pub(super) fn finish(self) -> Result<Kernel, Unsupported> {
        Ok(Kernel {
            bytes: self.code.bytes.len(),
            instructions: self.code.instructions,
            code: Executable::new(&self.code.bytes)?,
            stores: self.stores,
            streaming: OnceLock::new(),
            turn: self.turn,
            constants: self.constants,
            uniform_conditions: self.uniform_conditions,
            has_flags: self.has_flags,
            slots: self.slots,
        })
    }
}

fn generate_once(
    analysis: &Analysis<'_>,
    inputs: &[DType],
    outputs: &[DType],
    target: Target,
    copies: usize,
    hoist: &[Constant],
) -> Result<(Draft, Vec<Constant>), Unsupported> {
    let program = analysis.program;
    let length = program.steps.len();
    let bytes_of_lanes = if analysis.is_wide { 8 } else { 4 };
    let lanes = target.bytes() / bytes_of_lanes;
    let has_flags = !analysis.conditions.is_empty();

    // The uses of each value of each copy, in order.
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); length * copies];
    let position = |at: usize, copy: usize| (at * copies + copy) as u32;
    let end = position(analysis.order.len(), 0);
    for (at, &index) in analysis.order.iter().enumerate() {
        for copy in 0..copies {
            for value in analysis.values(index).filter(|&value| !analysis.uniform[value]) {
                uses[value + copy * length].push(position(at, copy));
            }
        }
    }
    let of_outputs = program.outputs.iter().flatten().map(|&value| analysis.of(value));
    for value in of_outputs.chain(analysis.conditions.iter().copied()) {
        for copy in 0..copies {
            uses[value + copy * length].push(end);
        }
    }

    let mut top = target.vector_registers();
    let mut generator = Generator {
        analysis,
        code: Code::default(),
        target,
        lanes,
        registers: Registers::new(top - hoist.len() as u8, uses),
        constants: Vec::new(),
        reads: Vec::new(),
        hoisted: Vec::new(),
        inputs,
        labels: vec![(0, 0, Label::Entry)],
        stores: Vec::new(),
        turn: lanes * copies,
        copy: 0,
    };
    generator.code.prologue(inputs.len() + outputs.len() + usize::from(has_flags));
    for &constant in hoist {
        top -= 1;
        generator.label(Label::Constant);
        let slot = generator.slot(constant);
        generator.load(generator.full_length(), top, Rm::Memory(POOL, (SLOT * slot as usize) as i32));
        generator.hoisted.push((slot, top));
    }
    generator.label(Label::Alignment);
    let head = generator.code.loop_head();
    for (at, &index) in analysis.order.iter().enumerate() {
        for copy in 0..copies {
            generator.copy = copy;
            generator.label(Label::Step(index));
            generator.registers.begin_step();
            generator.step(position(at, copy), index)?;
        }
    }
    for (output, values) in program.outputs.iter().enumerate() {
        for copy in 0..copies {
            generator.copy = copy;
            generator.label(Label::Output(output));
            generator.registers.begin_step();
            let values = values.map(|value| analysis.of(value));
            generator.store(inputs.len() + output, outputs[output], values)?;
        }
    }
    for copy in 0..if has_flags { copies } else { 0 } {
        generator.copy = copy;
        generator.label(Label::Flags);
        generator.registers.begin_step();
        generator.store_flags(inputs.len() + outputs.len());
    }
    generator.copy = 0;
    generator.label(Label::Next);
    let body = head..generator.code.bytes.len();
    generator.code.epilogue(head, generator.turn);

    let spare = usize::from(target.vector_registers() - SCRATCH).saturating_sub(generator.registers.most);
    let mut hoistable: Vec<Hoisted> =
        generator.reads.iter().enumerate().map(|(slot, &reads)| (slot as u32, reads)).collect();
    hoistable.retain(|(_, reads)| *reads > 0);
    hoistable.sort_by_key(|(_, reads)| usize::MAX - reads);
    hoistable.truncate(if generator.registers.slots > 0 { 0 } else { spare });
    let hoistable = hoistable.iter().map(|&(slot, _)| generator.constants[slot as usize]).collect();
    let draft = Draft {
        code: generator.code,
        body,
        labels: generator.labels,
        turn: generator.turn,
        stores: generator.stores,
        constants: generator.constants,
        uniform_conditions: analysis.uniform_conditions.clone(),
        has_flags,
        slots: generator.registers.slots as usize,
    };
    Ok((draft, hoistable))
}

impl Generator<'_> {
    pub(super) fn is_vex(&self) -> bool {
        self.target == Target::Avx2
    }

    fn label(&mut self, label: Label) {
        self.labels.push((self.code.bytes.len(), self.copy, label));
    }

    /// Returns the value of the copy at hand.
    fn copied(&self, value: usize) -> usize {
        value + self.copy * self.analysis.program.steps.len()
    }

    pub(super) fn kind(&self, value: usize) -> RegisterKind {
        self.analysis.program.steps[value].1
    }

    /// Returns the vector length of a kind of values, as instructions encode it.
    pub(super) fn length(&self, kind: RegisterKind) -> u8 {
        self.length_of(is_wide(kind))
    }

    pub(super) fn length_of(&self, is_wide: bool) -> u8 {
        match self.lanes * if is_wide { 8 } else { 4 } {
            64 => 2,
            32 => 1,
            _ => 0,
        }
    }

    fn full_length(&self) -> u8 {
        if self.is_vex() { 1 } else { 2 }
    }

    pub(super) fn op(&mut self, op: Op, length: u8, reg: u8, v: u8, rm: Rm) {
        match self.is_vex() {
            true => self.code.vex(op, length, reg, v, rm),
            false => self.code.evex(op, length, reg, v, rm, 0, false),
        }
    }

    pub(super) fn op_immediate(&mut self, op: Op, length: u8, reg: u8, v: u8, rm: Rm, immediate: u8) {
        self.op(op, length, reg, v, rm);
        self.code.immediate(immediate);
    }

    /// Adds an EVEX instruction that keeps the lanes outside the mask.
    pub(super) fn op_masked(&mut self, op: Op, length: u8, reg: u8, v: u8, rm: Rm, mask: u8) {
        self.code.evex(op, length, reg, v, rm, mask, false);
    }

    pub(super) fn load(&mut self, length: u8, to: u8, from: Rm) {
        if from != Rm::Register(to) {
            self.op(op(1, 0, 0, 0x10), length, to, 0, from);
        }
    }

    pub(super) fn write(&mut self, length: u8, from: u8, to: Rm) {
        self.op(op(1, 0, 0, 0x11), length, from, 0, to);
    }

    /// Writes a register to memory of an output with elements of `size` bytes.
    pub(super) fn write_output(&mut self, length: u8, from: u8, to: Rm, size: usize) {
        if self.turn * size >= LINE {
            // Behind the prefix of a VEX or EVEX instruction.
            self.stores.push(self.code.bytes.len() + if self.is_vex() { 3 } else { 4 });
        }
        self.write(length, from, to);
    }

    /// Returns the slot of a constant.
    fn slot(&mut self, constant: Constant) -> u32 {
        let at = self.constants.iter().position(|&known| known == constant);
        at.unwrap_or_else(|| {
            self.constants.push(constant);
            self.reads.push(0);
            self.constants.len() - 1
        }) as u32
    }

    /// Returns a constant as an operand.
    fn constant(&mut self, constant: Constant) -> Rm {
        let slot = self.slot(constant);
        if let Some(&(_, register)) = self.hoisted.iter().find(|(hoisted, _)| *hoisted == slot) {
            return Rm::Register(register);
        }
        self.reads[slot as usize] += 1;
        Rm::Memory(POOL, (SLOT * slot as usize) as i32)
    }

    /// Returns a vector of words as an operand.
    pub(super) fn words(&mut self, word: impl Fn(u32) -> u32) -> Rm {
        self.constant(Constant::Words(std::array::from_fn(|at| word(at as u32))))
    }

    /// Returns 32 bits in all lanes as an operand.
    pub(super) fn fixed32(&mut self, bits: u32) -> Rm {
        self.words(|_| bits)
    }

    /// Returns 64 bits in all lanes as an operand.
    pub(super) fn fixed64(&mut self, bits: u64) -> Rm {
        self.words(|at| if at % 2 == 1 { (bits >> 32) as u32 } else { bits as u32 })
    }

    /// Returns a constant of 32 or 64 bits as an operand.
    pub(super) fn fixed(&mut self, is_wide: bool, of_32: u32, of_64: u64) -> Rm {
        if is_wide { self.fixed64(of_64) } else { self.fixed32(of_32) }
    }

    /// Returns a value as the last operand of an instruction.
    pub(super) fn operand(&mut self, value: usize) -> Rm {
        if self.analysis.uniform[value] {
            return self.constant(Constant::Step(value));
        }
        match self.registers.location(self.copied(value)) {
            Location::Vector(register) => {
                self.registers.pin(register);
                Rm::Register(register)
            }
            Location::Spilled(slot) => Rm::Memory(SPILL, (SLOT * slot as usize) as i32),
            // No vector: nothing that `mask` serves comes here.
            Location::None | Location::Mask(_) => Rm::Register(0),
        }
    }

    /// Returns the register of a value, which is loaded into `scratch` if it has none.
    pub(super) fn register(&mut self, value: usize, scratch: u8) -> u8 {
        let operand = self.operand(value);
        self.in_register(self.kind(value), operand, scratch)
    }

    /// Returns the register of an operand, which is loaded into `scratch` if it has none.
    pub(super) fn in_register(&mut self, kind: RegisterKind, operand: Rm, scratch: u8) -> u8 {
        if let Rm::Register(register) = operand {
            return register;
        }
        self.load(self.length(kind), scratch, operand);
        scratch
    }

    pub(super) fn is_in_register(&self, value: usize) -> bool {
        !self.analysis.uniform[value]
            && matches!(self.registers.location(self.copied(value)), Location::Vector(_))
    }

    pub(super) fn dies(&self, value: usize, position: u32) -> bool {
        !self.analysis.uniform[value] && self.registers.dies(self.copied(value), position)
    }

    /// Returns the mask register of a truth value, which is loaded into `scratch` if it has none. A value that is equal
    /// for all elements overwrites vector register 0.
    pub(super) fn mask(&mut self, value: usize, scratch: u8) -> u8 {
        if self.analysis.uniform[value] {
            let operand = self.constant(Constant::Step(value));
            let length = self.length_of(false);
            let register = self.in_register(RegisterKind::Bits32, operand, 0);
            // vptestmd
            self.op(op(2, 1, 0, 0x27), length, scratch, register, Rm::Register(register));
            return scratch;
        }
        match self.registers.location(self.copied(value)) {
            Location::Mask(register) => {
                self.registers.pin_mask(register);
                register
            }
            Location::Spilled(slot) => {
                self.code.mask_slot(0x90, scratch, (SLOT * slot as usize) as i32);
                scratch
            }
            Location::None | Location::Vector(_) => scratch,
        }
    }

    /// Frees the operands' registers and returns the result's.
    pub(super) fn result(
        &mut self,
        position: u32,
        index: usize,
        operands: &[usize],
        preferred: Option<u8>,
    ) -> Result<u8, Unsupported> {
        let operands: Vec<usize> = operands
            .iter()
            .filter(|&&value| !self.analysis.uniform[value])
            .map(|&value| self.copied(value))
            .collect();
        self.registers.release(position, &operands);
        let is_mask = self.kind(index) == RegisterKind::Predicate && !self.is_vex();
        let (register, spill) = self.registers.take(self.copied(index), is_mask, preferred)?;
        self.spill(spill);
        Ok(register)
    }

    pub(super) fn temporary(&mut self) -> Result<u8, Unsupported> {
        let (register, spill) = self.registers.take_temporary()?;
        self.spill(spill);
        Ok(register)
    }

    fn spill(&mut self, spill: Option<Spill>) {
        let Some(Spill { register, value, slot }) = spill else { return };
        let displacement = (SLOT * slot as usize) as i32;
        let kind = self.kind(value % self.analysis.program.steps.len());
        match kind == RegisterKind::Predicate && !self.is_vex() {
            true => self.code.mask_slot(0x91, register, displacement),
            false => self.write(self.length(kind), register, Rm::Memory(SPILL, displacement)),
        }
    }

    /// Returns the memory of the lanes at hand of an operand, `bytes` behind their start.
    pub(super) fn memory(&mut self, operand: usize, size: usize, bytes: usize) -> Rm {
        let displacement = (self.copy * self.lanes * size + bytes) as i32;
        let base = match operand < POINTERS as usize {
            true => General(8 + operand as u8),
            false => {
                self.code.load_address(ADDRESS, operand);
                ADDRESS
            }
        };
        if size <= 8 {
            return Rm::Element(base, size as u8, displacement);
        }
        // 16 times the index, in two steps of 8.
        self.code.advance_address(base);
        Rm::Element(ADDRESS, 8, displacement)
    }

    fn step(&mut self, position: u32, index: usize) -> Result<(), Unsupported> {
        let (step, kind) = self.analysis.program.steps[index];
        match step {
            Step::Load { input, part } => {
                let dtype = self.inputs[input as usize];
                let to = self.result(position, index, &[], None)?;
                self.load_elements(input as usize, dtype, part as usize, to, kind);
                Ok(())
            }
            Step::Apply(instruction, operands) => {
                let operands = operands.map(|value| self.analysis.of(value));
                self.apply(position, index, instruction, operands)
            }
            Step::Result { rare, result } => {
                let rare = &self.analysis.program.rares[rare as usize];
                let [usual, other] = rare.results[result as usize];
                let operands = [other, usual, rare.condition].map(|value| self.analysis.of(value));
                self.apply(position, index, super::Instruction::select(kind), operands)
            }
            // `split` has replaced coordinates by loads.
            _ => Err(Unsupported::Coordinates),
        }
    }
}
