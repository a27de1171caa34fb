//! The PTX writer. It emits PTX 8.0 for sm_60 and later (sm_80 for conversions to bf16), which every driver from 525 on
//! assembles.
//!
//! The module has one entry, `fused`. Its parameters are the operands' addresses in order, followed by one
//! block with the scalars, sizes and strides. The text depends only on the program and the kernel key, never
//! on a number or a size, because the driver's cache of assembled kernels is keyed by text. All arithmetic
//! has an explicit rounding mode (`.rn`), so the assembler contracts nothing. Only loads of tiles
//! of columns have a cache hint (`plan::rows_columns`); other hints lost in measurements.
//!
//! `index` emits the elements of a thread and their addresses, `tile` the same for tiles, `memory` the loads
//! and stores, `quotients` has texts of divisions, and this file emits the instructions between.
//! `reduction` writes the kernels of reductions and scans, and `rows` those of row programs.
//!
//! Invariants: a thread loads all that it reads before it stores, so an output may be an input with the same
//! layout (a run refuses another layout). The kernel accesses nothing outside its operands.
//!
//! This layer may use `ir`, `language` and `plan`, never `cpu`.

mod index;
mod memory;
mod quotients;
pub(super) mod reduction;
pub(super) mod rows;
mod tile;

pub(in crate::fuse) use memory::StateSpace;

use std::ops::Range;

use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Step, Value, kind_of, parts};
use crate::fuse::ir::rare::Rare;
use crate::fuse::plan::compiled_expression::CompiledExpression;
use crate::fuse::plan::elementwise::{AccessPattern, ElementwisePlan, Iteration, KernelKey, ParameterLayout};
use crate::types::DType;

/// The name of the kernel.
pub(crate) const ENTRY: &str = "fused";

/// The register types and the prefixes of their names, which a number follows (`%h0`). Templates of instructions declare
/// names of a letter without a number (`%h`), so the two never collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum Register {
    Predicate,
    Bits16,
    Bits32,
    Bits64,
    Float32,
    Float64,
}

pub(in crate::fuse) const REGISTERS: [(Register, &str, &str); 6] = [
    (Register::Predicate, "pred", "%p"),
    (Register::Bits16, "b16", "%h"),
    (Register::Bits32, "b32", "%r"),
    (Register::Bits64, "b64", "%d"),
    (Register::Float32, "f32", "%f"),
    (Register::Float64, "f64", "%g"),
];

impl From<RegisterKind> for Register {
    fn from(kind: RegisterKind) -> Register {
        match kind {
            RegisterKind::Predicate => Register::Predicate,
            RegisterKind::Bits32 => Register::Bits32,
            RegisterKind::Bits64 => Register::Bits64,
            RegisterKind::Float32 => Register::Float32,
            RegisterKind::Float64 => Register::Float64,
        }
    }
}

/// A register, an immediate or an address, as text.
pub(in crate::fuse) type Name = String;

pub(in crate::fuse) struct Writer<'a> {
    program: &'a Program,
    /// By operand, inputs before outputs.
    dtypes: &'a [DType],
    inputs: usize,
    key: &'a KernelKey,
    parameters: ParameterLayout,
    pub(in crate::fuse) body: String,
    /// The predicate before each line; empty without one.
    guard: String,
    pub(in crate::fuse) counts: [usize; 6],
    /// True while a thread computes steps once, and not for each of its elements.
    is_once: bool,
    /// The number of unique suffixes issued.
    unique: usize,
    /// The operands' base addresses and the coordinates' first numbers; empty for unused ones.
    bases: Vec<Name>,
}

/// Analysis and names of the steps during emission.
struct Values {
    live: Vec<bool>,
    uniform: Vec<bool>,
    /// For each step, the number of adjacent lanes that share a value.
    groups: Vec<usize>,
    /// For each input, the parts of its elements, by lane.
    loaded: Vec<Vec<[Name; 2]>>,
    /// For each coordinate, its numbers, by lane.
    numbers: Vec<Vec<Name>>,
    /// For each step, the registers of its result, by lane or group of lanes, or a single one shared by all.
    names: Vec<Vec<Name>>,
}

impl Values {
    fn name(&self, value: Value, lane: usize) -> &str {
        let (names, group) = (&self.names[value.index()], self.groups[value.index()]);
        names.get(lane / group).or(names.first()).map_or("", |name| name)
    }

    fn number(&self, coordinate: usize, lane: usize) -> Name {
        let lanes = &self.numbers[coordinate];
        lanes.get(lane).or(lanes.first()).cloned().unwrap_or_default()
    }
}

/// Returns the text of the kernel of a plan.
pub(in crate::fuse) fn write(compiled: &CompiledExpression, plan: &ElementwisePlan) -> String {
    let (dtypes, inputs) = (compiled.operand_dtypes(), compiled.inputs.len());
    let mut writer = Writer::new(&compiled.program, &dtypes, inputs, &plan.key, plan.parameters);
    writer.kernel();
    writer.text()
}

impl<'a> Writer<'a> {
    pub(in crate::fuse) fn new(
        program: &'a Program,
        dtypes: &'a [DType],
        inputs: usize,
        key: &'a KernelKey,
        parameters: ParameterLayout,
    ) -> Writer<'a> {
        Writer {
            program,
            dtypes,
            inputs,
            key,
            parameters,
            body: String::new(),
            guard: String::new(),
            counts: [0; 6],
            is_once: false,
            unique: 0,
            bases: vec![Name::new(); key.access_patterns.len()],
        }
    }
}

impl Writer<'_> {
    pub(in crate::fuse) fn line(&mut self, text: impl AsRef<str>) {
        self.body.push_str(&self.guard);
        self.body.push_str(text.as_ref());
        self.body.push('\n');
    }

    /// Emits the lines of `emit` for threads of which the predicate is true, or for all if it is empty.
    pub(in crate::fuse) fn guarded<T>(&mut self, predicate: &str, emit: impl FnOnce(&mut Self) -> T) -> T {
        if !predicate.is_empty() {
            self.guard = format!("@{predicate} ");
        }
        let result = emit(self);
        self.guard.clear();
        result
    }

    /// Begins or ends steps that a thread computes once, and not for each of its elements.
    pub(in crate::fuse) fn set_once(&mut self, is_once: bool) {
        self.is_once = is_once;
    }

    pub(in crate::fuse) fn register(&mut self, register: Register) -> Name {
        let (_, _, prefix) = REGISTERS[register as usize];
        let count = &mut self.counts[register as usize];
        *count += 1;
        format!("{prefix}{}", *count - 1)
    }

    /// Emits `mnemonic` on these operands and returns its result register.
    pub(in crate::fuse) fn result(&mut self, register: Register, mnemonic: &str, operands: &[&str]) -> Name {
        let name = self.register(register);
        self.line(format!("{mnemonic} {name}, {};", operands.join(", ")));
        name
    }

    pub(in crate::fuse) fn unique(&mut self) -> usize {
        self.unique += 1;
        self.unique
    }

    /// Emits a load of the 32-bit parameter at this offset.
    fn word(&mut self, at: usize) -> Name {
        self.result(Register::Bits32, "ld.param.u32", &[&format!("[block+{at}]")])
    }

    /// Returns the name of an operand's address parameter, which states the access.
    fn parameter(&self, operand: usize) -> String {
        let access = if operand < self.inputs { "read" } else { "write" };
        format!("{ENTRY}_{access}_{operand}")
    }

    /// Returns the declarations of all registers.
    pub(in crate::fuse) fn declarations(&self) -> String {
        REGISTERS
            .iter()
            .filter(|(register, ..)| self.counts[*register as usize] > 0)
            .map(|(register, kind, prefix)| {
                format!(".reg .{kind} {prefix}<{}>;\n", self.counts[*register as usize])
            })
            .collect()
    }

    fn text(&self) -> String {
        let target = if self.key.is_ampere { 80 } else { 60 };
        let addresses: String =
            (0..self.dtypes.len()).map(|index| format!(".param .u64 {},\n", self.parameter(index))).collect();
        let registers = self.declarations();
        format!(
            ".version 8.0\n.target sm_{target}\n.address_size 64\n.visible .entry {ENTRY}(\n{addresses}.param .align 8 \
             .b8 block[{}]\n)\n{{\n{registers}{}}}\n",
            self.parameters.bytes(),
            self.body
        )
    }

    /// Returns the value that a store of this dtype takes, and whether the store rounds it.
    pub(in crate::fuse) fn stored(&self, dtype: DType, value: Value) -> (Value, bool) {
        match (dtype, self.program.steps[value.index()].0) {
            (DType::F16, Step::Apply(Instruction::RoundToHalf, operands)) => (operands[0], true),
            (DType::BF16, Step::Apply(Instruction::RoundToBrain, operands)) if self.key.is_ampere => {
                (operands[0], true)
            }
            _ => (value, false),
        }
    }

    fn kernel(&mut self) {
        let outputs: Vec<[(Value, bool); 2]> = self
            .program
            .outputs
            .iter()
            .zip(&self.dtypes[self.inputs..])
            .map(|(values, &dtype)| values.map(|value| self.stored(dtype, value)))
            .collect();
        let live = self.program.live(outputs.iter().flatten().map(|(value, _)| *value));
        let used: Vec<bool> = (0..self.key.access_patterns.len())
            .map(|operand| {
                (self.inputs..self.dtypes.len()).contains(&operand)
                    || self
                        .program
                        .steps
                        .iter()
                        .zip(&live)
                        .any(|((step, _), live)| *live && step.operand() == Some(operand))
            })
            .collect();
        for operand in (0..used.len()).filter(|&operand| used[operand]) {
            let source = match operand < self.dtypes.len() {
                true => format!("[{}]", self.parameter(operand)),
                false => format!("[block+{}]", self.parameters.first(operand)),
            };
            self.bases[operand] = self.result(Register::Bits64, "ld.param.u64", &[&source]);
        }
        let mut indexing = self.indexing();
        let loaded: Vec<Vec<[Name; 2]>> = (0..self.inputs)
            .map(|input| if self.used(input) { self.load_operand(&mut indexing, input) } else { Vec::new() })
            .collect();

        let numbers: Vec<Vec<Name>> = (self.dtypes.len()..used.len())
            .map(|operand| if used[operand] { self.numbers(&mut indexing, operand) } else { Vec::new() })
            .collect();

        let same = |operand: usize| match self.key.access_patterns[operand] {
            AccessPattern::Constant => true,
            AccessPattern::Row => self.key.iteration == Iteration::Vectors,
            _ => false,
        };
        let uniform = self.program.uniform(same);
        let (rows, _) = self.rows_of_tile();
        let lanes = (self.key.lanes * rows) as usize;
        let neighbours = matches!(self.key.iteration, Iteration::Flat | Iteration::Vectors);
        // A linear coordinate means here that a thread's elements are whole groups.
        let together = |(operand, count): (usize, usize)| {
            if neighbours && self.key.access_patterns[operand] == AccessPattern::Linear { count } else { 1 }
        };
        let groups =
            self.program.sharing_groups().into_iter().map(|group| group.map_or(1, together)).collect();
        let names = vec![Vec::new(); live.len()];
        let mut of_program = Values { live, uniform, groups, loaded, numbers, names };
        self.steps(&mut of_program, 0..self.program.steps.len(), 0..lanes);

        for (output, values) in outputs.iter().enumerate() {
            let operand = self.inputs + output;
            let elements: Vec<[Name; 2]> = (0..lanes)
                .map(|lane| values.map(|(value, _)| of_program.name(value, lane).to_owned()))
                .collect();
            self.store_operand(&mut indexing, operand, &elements, values[0].1);
        }
        self.next_rows(&indexing);
        self.line("$exit:");
        self.line("ret;");
    }

    /// Returns whether the program reads an operand.
    fn used(&self, operand: usize) -> bool {
        !self.bases[operand].is_empty()
    }

    /// Selects the word with the index in the lowest bits of a number.
    pub(in crate::fuse) fn pick(&mut self, number: &str, mut words: Vec<Name>) -> Name {
        let number = self.result(Register::Bits32, "cvt.u32.u64", &[number]);
        let mut bit = 1;
        while words.len() > 1 {
            let odd = self.result(Register::Bits32, "and.b32", &[&number, &bit.to_string()]);
            let odd = self.result(Register::Predicate, "setp.ne.u32", &[&odd, "0"]);
            let chosen = words.chunks(2).map(|pair| {
                let last = &pair[pair.len() - 1];
                self.result(Register::Bits32, "selp.b32", &[last, &pair[0], &odd])
            });
            words = chosen.collect();
            bit *= 2;
        }
        words.pop().unwrap_or_default()
    }

    /// Emits steps for some lanes.
    fn steps(&mut self, values: &mut Values, range: Range<usize>, lanes: Range<usize>) {
        let program = self.program;
        let first_coordinate = self.dtypes.len();
        let coordinate = |operand: u32| operand as usize - first_coordinate;
        let mut index = range.start;
        while index < range.end {
            let (step, kind) = program.steps[index];
            if let Step::Rare(rare) = step {
                let rare = &program.rares[rare as usize];
                if values.live[index] {
                    self.rare(values, rare, lanes.clone());
                }
                index = rare.result_steps().end;
                continue;
            }
            let group = values.groups[index];
            for lane in lanes.clone().filter(|lane| values.live[index] && lane % group == 0) {
                if values.uniform[index] && !values.names[index].is_empty() {
                    break;
                }
                let name = match step {
                    Step::Load { input, part } => {
                        let lanes = &values.loaded[input as usize];
                        lanes
                            .get(lane)
                            .or(lanes.first())
                            .map_or(Name::new(), |parts| parts[part as usize].clone())
                    }
                    Step::Coordinate { operand } => values.number(coordinate(operand), lane),
                    Step::Group { operand, count } => {
                        let shift = count.trailing_zeros().to_string();
                        let number = values.number(coordinate(operand), lane);
                        self.result(Register::Bits64, "shr.u64", &[&number, &shift])
                    }
                    Step::Pick { operand, count, words } => {
                        let words = &words[..count as usize];
                        // Lanes that share a group's value are the whole group, in order.
                        if values.groups[words[0].index()] > 1 {
                            values.name(words[lane % words.len()], lane).to_owned()
                        } else {
                            let words =
                                words.iter().map(|word| values.name(*word, lane).to_owned()).collect();
                            self.pick(&values.number(coordinate(operand), lane), words)
                        }
                    }
                    Step::Parameter { index, part } => self.scalar(index, part, kind),
                    Step::Constant(bits) => immediate(bits, kind),
                    Step::Apply(instruction, operands) => {
                        let name = |operand: Value| values.name(operand, lane).to_owned();
                        match self.extreme_or_nan(program, Value(index as u32), name) {
                            Some(result) => result,
                            None => self.apply(instruction, &operands.map(name)),
                        }
                    }
                    // Emitted with their body.
                    Step::Rare(_) | Step::Result { .. } => break,
                };
                values.names[index].push(name);
            }
            index += 1;
        }
    }

    /// Emits a rare body. The results start with the main path's values. A thread without an element that
    /// needs the body branches around the copies of all lanes; other threads branch around the copies of
    /// single lanes.
    fn rare(&mut self, values: &mut Values, rare: &Rare, lanes: Range<usize>) {
        let same = |index: usize| values.uniform[index] || !values.live[index];
        let whole = rare.body.start - 1..rare.result_steps().end;
        let lanes = if whole.clone().all(same) { lanes.start..lanes.start + 1 } else { lanes };
        for (index, [usual, _]) in rare.result_steps().zip(&rare.results) {
            let (_, kind) = self.program.steps[index];
            for lane in lanes.clone().filter(|_| values.live[index]) {
                let usual = values.name(*usual, lane).to_owned();
                let name = self.result(kind.into(), move_of(kind), &[&usual]);
                values.names[index].push(name);
            }
        }
        let conditions: Vec<Name> =
            lanes.clone().map(|lane| values.name(rare.condition, lane).to_owned()).collect();
        let all = self.unique();
        if conditions.len() > 1 && conditions.iter().any(|condition| *condition != conditions[0]) {
            let mut any = conditions[0].clone();
            for condition in &conditions[1..] {
                any = self.result(Register::Predicate, "or.pred", &[&any, condition]);
            }
            self.line(format!("@!{any} bra $usual_{all};"));
        }
        for (lane, condition) in lanes.zip(&conditions) {
            let one = self.unique();
            self.line(format!("@!{condition} bra $usual_{one};"));
            self.steps(values, rare.body.clone(), lane..lane + 1);
            for (index, [_, other]) in rare.result_steps().zip(&rare.results) {
                if values.live[index] {
                    let (_, kind) = self.program.steps[index];
                    let (result, other) = (values.name(Value(index as u32), lane), values.name(*other, lane));
                    let text = format!("{} {result}, {other};", move_of(kind));
                    self.line(text);
                }
            }
            self.line(format!("$usual_{one}:"));
        }
        self.line(format!("$usual_{all}:"));
    }

    /// Emits a load of a scalar from the parameter block.
    pub(in crate::fuse) fn scalar(&mut self, index: u32, part: u32, kind: RegisterKind) -> Name {
        let source = format!("[block+{}]", self.parameters.scalar(index, part));
        match kind {
            RegisterKind::Predicate => {
                let word = self.result(Register::Bits32, "ld.param.u32", &[&source]);
                self.result(Register::Predicate, "setp.ne.u32", &[&word, "0"])
            }
            RegisterKind::Bits32 => self.result(Register::Bits32, "ld.param.u32", &[&source]),
            RegisterKind::Bits64 => self.result(Register::Bits64, "ld.param.u64", &[&source]),
            RegisterKind::Float32 => self.result(Register::Float32, "ld.param.f32", &[&source]),
            RegisterKind::Float64 => self.result(Register::Float64, "ld.param.f64", &[&source]),
        }
    }

    /// Emits an extreme that is NaN beside NaN as one instruction, where the value is one and the device has it.
    pub(in crate::fuse) fn extreme_or_nan(
        &mut self,
        program: &Program,
        value: Value,
        name: impl Fn(Value) -> Name,
    ) -> Option<Name> {
        if !self.key.is_ampere {
            return None;
        }
        let (instruction, [x, y]) = program.extreme_or_nan(value)?;
        let text = if instruction == Instruction::MinimumFloat32 { "min.NaN.f32" } else { "max.NaN.f32" };
        Some(self.result(Register::Float32, text, &[&name(x), &name(y)]))
    }

    /// Returns the steps that outputs depend on, without those that an extreme as one instruction replaces.
    pub(in crate::fuse) fn live(&self, program: &Program) -> Vec<bool> {
        let outputs = program.outputs.iter().flatten().copied();
        let is_ampere = self.key.is_ampere;
        program.live_where(outputs, |value| {
            program.extreme_or_nan(value).filter(|_| is_ampere).map(|(_, operands)| operands)
        })
    }

    pub(in crate::fuse) fn apply(&mut self, instruction: Instruction, operands: &[Name; 3]) -> Name {
        let once = quotients::once(instruction).filter(|_| self.is_once);
        let mut text = once.unwrap_or(instruction.ptx());
        if instruction == Instruction::RoundToBrain && self.key.is_ampere {
            text = "{\n.reg .b16 %h, %z;\n.reg .b32 %r;\ncvt.rn.bf16.f32 %h, $a;\nmov.b16 %z, 0;\nmov.b32 %r, {%z, %h};\n\
                    mov.b32 $d, %r;\n}";
        }
        let operands: Vec<&str> = operands[..instruction.arity()].iter().map(String::as_str).collect();
        let register = Register::from(instruction.result());
        if !text.contains('{') {
            return self.result(register, text, &operands);
        }
        let name = self.register(register);
        let mut text = text.replace("$u", &self.unique().to_string()).replace("$d", &name);
        for (pattern, operand) in ["$a", "$b", "$c"].into_iter().zip(operands) {
            text = text.replace(pattern, operand);
        }
        self.line(text);
        name
    }
}

pub(in crate::fuse) fn move_of(kind: RegisterKind) -> &'static str {
    match kind {
        RegisterKind::Predicate => "mov.pred",
        RegisterKind::Bits32 => "mov.b32",
        RegisterKind::Bits64 => "mov.b64",
        RegisterKind::Float32 => "mov.f32",
        RegisterKind::Float64 => "mov.f64",
    }
}

/// Returns a constant as an immediate: floats by their bits, integers as signed numbers, which PTX accepts
/// for all types.
pub(in crate::fuse) fn immediate(bits: u64, kind: RegisterKind) -> Name {
    match kind {
        RegisterKind::Predicate | RegisterKind::Bits32 => (bits as u32 as i32).to_string(),
        RegisterKind::Bits64 => (bits as i64).to_string(),
        RegisterKind::Float32 => format!("0f{:08X}", bits as u32),
        RegisterKind::Float64 => format!("0d{bits:016X}"),
    }
}

/// Returns the register type of a part of an element.
pub(in crate::fuse) fn register_of(dtype: DType) -> Register {
    kind_of(dtype).into()
}

/// Returns the bytes of a part.
pub(in crate::fuse) fn part_bytes(dtype: DType) -> usize {
    dtype.size() / parts(dtype)
}
