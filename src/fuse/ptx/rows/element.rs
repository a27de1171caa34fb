//! The elements of a thread in a row program: their loads, steps and stores.

use super::RowWriter;
use super::report::ReportNames;
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::parts;
use crate::fuse::plan::rows_access::RowAccess;
use crate::fuse::plan::rows_split::PhaseInput;
use crate::fuse::plan::rows_stages::report_parameters;
use crate::fuse::plan::rows_storage::RowStorage;
use crate::fuse::ptx::reduction::{ElementPosition, Folded};
use crate::fuse::ptx::{Name, StateSpace, Writer};

/// A vector of adjacent elements of a thread: of a row, or of neighbouring columns at one index.
pub(super) struct Access {
    /// The index in the row of the first element.
    pub(super) index: Name,
    /// The predicate that the elements are in the row; empty if all are.
    pub(super) valid: Name,
    /// The number of the access among those of the thread from this index on.
    pub(super) number: usize,
    /// The coordinates of the first element in the folded dimensions, if an operand needs them.
    coordinates: Vec<Name>,
    /// The elements from the thread's first element to this one, if addresses are relative to that of the first.
    steps: Option<usize>,
    /// The index in the row of another element of the thread and the elements from it to this one, if addresses are relative
    /// to that of the other. Missing elements are then not accessed.
    origin: Option<(Name, usize)>,
    /// By input of the expression, the registers as loaded; empty if the input is not loaded.
    pub(super) raw: Vec<Vec<Name>>,
    /// By input of the expression, whether it has a register for each element rather than those as loaded.
    pub(super) is_widened: Vec<bool>,
    /// By element, the saved steps and their registers.
    pub(super) saved: Vec<Vec<(usize, Name)>>,
}

impl Access {
    /// Returns the predicate without which the elements must not be accessed; empty if they may.
    pub(super) fn guard(&self) -> &str {
        if self.origin.is_some() { &self.valid } else { "" }
    }
}

impl RowWriter<'_> {
    /// Creates the access of a round and a group of lanes, for a thread whose first element is `from`.
    pub(super) fn access(&mut self, from: &str, round: usize, group: usize) -> Access {
        let offset = self.offset(round, group);
        let (key, kernel) = (self.key, &mut self.kernel);
        let mut index = kernel.plus(from, offset);
        let raw = vec![Vec::new(); self.operand_of.len()];
        let is_widened = vec![false; raw.len()];
        let number = round * key.accesses_per_round + group;
        let saved = vec![Vec::new(); key.vector];
        if !self.thread.left.is_empty() {
            // A comparison of one register and a number takes no register between stages.
            let valid = match key.tail {
                true => kernel.predicate("setp.lt.s32", &[&offset.to_string(), &self.thread.left]),
                false => Name::new(),
            };
            return Access {
                index,
                valid,
                number,
                coordinates: Vec::new(),
                steps: Some(offset),
                origin: None,
                raw,
                is_widened,
                saved,
            };
        }
        let has_none = |access| matches!(access, &RowAccess::Broadcast | &RowAccess::Contiguous);
        if key.accesses.iter().all(has_none) {
            // A row has elements in its last round, so that only this one may lack some.
            let is_full = from == self.thread.first
                && key.storage == RowStorage::Registers
                && key.warps == 1
                && round + 1 < key.rounds;
            let valid = if key.tail && !is_full { self.is_within(from, offset) } else { Name::new() };
            let origin = Some((from.to_owned(), offset));
            let coordinates = Vec::new();
            return Access { index, valid, number, coordinates, steps: None, origin, raw, is_widened, saved };
        }
        let mut valid = Name::new();
        if key.tail {
            let count = kernel.word(kernel.parameters.row());
            valid = kernel.is_below(&index, &count);
            let last = kernel.index("sub.u32", "sub.u64", &[&count, &key.vector_along().to_string()]);
            index = kernel.lesser(&index, &last);
        }
        let coordinates = kernel.decode(&index, key.outer_dims..key.outer_dims + key.reduced_dims);
        Access { index, valid, number, coordinates, steps: None, origin: None, raw, is_widened, saved }
    }

    /// Returns the predicate that the element so many after another one is in the row.
    fn is_within(&mut self, from: &str, offset: usize) -> Name {
        let kernel = &mut self.kernel;
        let left = match self.lefts.get(from) {
            Some(left) => left.clone(),
            None => {
                let count = kernel.word(kernel.parameters.row());
                let left = kernel.index("sub.u32", "sub.u64", &[&count, from]);
                self.lefts.insert(from.to_owned(), left.clone());
                left
            }
        };
        let mnemonic = if kernel.wide { "setp.lt.s64" } else { "setp.lt.s32" };
        // A comparison of one register and a number takes no register between stages.
        kernel.predicate(mnemonic, &[&offset.to_string(), &left])
    }

    /// Returns the address of an operand's elements.
    pub(super) fn address(&mut self, operand: usize, access: &Access, size: usize) -> Name {
        let base = self.bases[operand].clone();
        if let Some(steps) = access.steps {
            return self.stepped(operand, &base, steps, &access.valid, size);
        }
        match self.key.accesses[operand] {
            RowAccess::Broadcast => base,
            RowAccess::Contiguous => match &access.origin {
                Some((from, offset)) => self.offset_address(operand, from, *offset, size),
                None => self.kernel.address(&base, Some(&access.index), size),
            },
            RowAccess::Spans | RowAccess::OfSpan | RowAccess::Strided => {
                let offset = self.kernel.offset(operand, &access.coordinates, self.key.outer_dims);
                self.kernel.address(&base, offset.as_deref(), size)
            }
        }
    }

    /// Returns the address of the element so many after another one of the thread. A sum with a number is a part of the
    /// access, so that all accesses to an operand take the registers of one address.
    fn offset_address(&mut self, operand: usize, from: &str, offset: usize, size: usize) -> Name {
        let count = self.bases.len();
        let firsts = self.firsts.entry(from.to_owned()).or_insert_with(|| vec![Name::new(); count]);
        if firsts[operand].is_empty() {
            firsts[operand] = self.kernel.address(&self.bases[operand], Some(from), size);
        }
        match offset * size {
            0 => firsts[operand].clone(),
            bytes => {
                let operands: [&str; 2] = [&firsts[operand], &bytes.to_string()];
                self.kernel.result(RegisterKind::Bits64.into(), "add.u64", &operands)
            }
        }
    }

    /// Returns the number of adjacent elements of an operand that an access loads.
    fn loaded(&self, operand: usize) -> usize {
        match self.key.accesses[operand] {
            RowAccess::OfSpan => 1,
            _ => self.key.vector,
        }
    }

    /// Loads the inputs of a stage that are not in registers.
    pub(super) fn load(&mut self, access: &mut Access, wanted: &[bool]) {
        let stages = self.stages;
        for input in 0..self.operand_of.len() {
            let Some(operand) = self.operand_of[input] else { continue };
            let is_loaded =
                self.key.accesses[operand] == RowAccess::Broadcast || !access.raw[input].is_empty();
            if is_loaded || !stages.is_loaded(input, wanted) {
                continue;
            }
            let dtype = stages.expression.inputs[input];
            let (space, address, count) = match self.address_in_shared(operand, access.number) {
                Some(address) => (StateSpace::Shared, address, self.key.vector),
                None => {
                    (StateSpace::Global, self.address(operand, access, dtype.size()), self.loaded(operand))
                }
            };
            let load = |writer: &mut Writer<'_>| writer.load_raw_vector(space, dtype, &address, count);
            let guard = if space == StateSpace::Shared && self.fills_missing() { "" } else { access.guard() };
            access.raw[input] = self.kernel.writer.guarded(guard, load);
        }
    }

    /// Computes the steps of a stage. Returns the registers of all steps, by element.
    pub(super) fn evaluate(&mut self, stage: usize, access: &mut Access, wanted: &[bool]) -> Vec<Vec<Name>> {
        let stages = self.stages;
        let expression = &*stages.expression;
        let mut loaded: Vec<Vec<[Name; 2]>> = Vec::with_capacity(access.raw.len());
        for (input, raw) in access.raw.iter().enumerate() {
            if stages.operands.inputs[input] == PhaseInput::Index && stages.is_loaded(input, wanted) {
                let indices = (0..self.key.vector).map(|element| self.index_in_row(&access.index, element));
                loaded.push(indices.map(|index| [index.clone(), index]).collect());
                continue;
            }
            let operand = self.operand_of[input].filter(|_| !raw.is_empty());
            loaded.push(match operand.filter(|_| stages.is_loaded(input, wanted)) {
                Some(_) if access.is_widened[input] => {
                    raw.iter().map(|element| [element.clone(), element.clone()]).collect()
                }
                // Widened again in each stage, so that the row takes few registers between stages.
                Some(operand) => {
                    let count = self.loaded(operand);
                    let elements = self.kernel.writer.elements(expression.inputs[input], raw, count);
                    elements.into_iter().cycle().take(self.key.vector).collect()
                }
                None => Vec::new(),
            });
        }
        let mut all: Vec<Vec<Name>> = Vec::with_capacity(self.key.vector);
        for element in 0..self.key.vector {
            let row = self.row_of(element);
            let mut names = self.known[row].clone();
            for (step, name) in &access.saved[element] {
                names[*step] = name.clone();
            }
            if stages.has_positions() {
                self.begin_element(&access.index, element);
                for (step, name) in names.iter_mut().enumerate() {
                    let first = element - element % stages.sharing(step, self.key.vector);
                    if first < element {
                        name.clone_from(&all[first][step]);
                    }
                }
            }
            let still = &self.still[row];
            let load = |input: u32, part: u32| -> Name {
                let of_row = still[input as usize].as_ref();
                let found = of_row.or(loaded[input as usize].get(element));
                found.map_or(Name::new(), |parts| parts[part as usize].clone())
            };
            let names = self.kernel.evaluate(&expression.program, &names, wanted, 0, &load);
            for (step, _) in self.saved[stage].iter().enumerate().filter(|(_, saved)| **saved) {
                if !self.has[step] && !names[step].is_empty() {
                    access.saved[element].push((step, names[step].clone()));
                }
            }
            all.push(names);
        }
        all
    }

    /// Returns the index in the row of an element of an access, in 64 bits.
    fn index_in_row(&mut self, index: &str, element: usize) -> Name {
        let index = if self.key.has_columns { index.to_owned() } else { self.kernel.plus(index, element) };
        self.kernel.in_64_bits(&index)
    }

    /// Returns the row among those of the thread that has an element of an access.
    fn row_of(&self, element: usize) -> usize {
        if self.key.has_columns { element } else { 0 }
    }

    /// Emits the position of an element of an access.
    fn begin_element(&mut self, index: &str, element: usize) {
        let index = self.index_in_row(index, element);
        let number =
            self.kernel.result(RegisterKind::Bits64.into(), "add.u64", &[&self.position.clone(), &index]);
        self.kernel.position = ElementPosition { number, element, vector: self.key.vector };
    }

    /// Returns the values that a reduction folds, the identity for missing elements.
    pub(super) fn arguments(&mut self, reduction: usize, access: &Access, all: &[Vec<Name>]) -> Vec<Folded> {
        self.with(reduction);
        let compiled = self.kernel.compiled;
        let output = self.stages.expression.program.outputs[reduction];
        let mut values = Vec::with_capacity(all.len());
        for (element, names) in all.iter().enumerate() {
            let mut value = output.map(|value| names[value.index()].clone());
            if parts(compiled.prologue.outputs[0]) == 1 {
                value[1] = value[0].clone();
            }
            if compiled.fold.has_index() {
                value[1] = self.index_in_row(&access.index, element);
            }
            let value = self.squared(reduction, self.row_of(element), value);
            values.push(match access.valid.is_empty() {
                true => self.kernel.in_registers(&value),
                false => self.kernel.or_identity(&value, &access.valid),
            });
        }
        values
    }

    /// Stores the outputs per element.
    pub(super) fn store(&mut self, access: &Access, all: &[Vec<Name>]) {
        let stages = self.stages;
        let guard = match (self.thread.inside.as_str(), access.valid.as_str()) {
            ("", "") => String::new(),
            ("", one) | (one, "") => format!("@{one} "),
            (inside, valid) => {
                let (inside, valid) = (inside.to_owned(), valid.to_owned());
                format!("@{} ", self.kernel.predicate("and.pred", &[&inside, &valid]))
            }
        };
        let inputs = self.operand_of.iter().flatten().count();
        for (at, output) in (self.reductions.len()..stages.indices().start).enumerate() {
            if at >= self.sums.first {
                self.add_to_sum(at, output, all);
                continue;
            }
            if self.is_per_group(at) {
                continue;
            }
            let operand = inputs + at;
            let dtype = stages.expression.outputs[output];
            let values = self.output(output);
            let elements: Vec<[Name; 2]> =
                all.iter().map(|names| values.map(|(value, _)| names[value.index()].clone())).collect();
            if let Some(address) = self.address_in_shared(operand, access.number) {
                // Places past the end of the row are not copied from there.
                self.kernel.writer.store_shared(dtype, &address, &elements[0], values[0].1);
                continue;
            }
            let address = match access.steps {
                // The guard of the store covers missing elements.
                Some(steps) => self.stepped(operand, &self.bases[operand].clone(), steps, "", dtype.size()),
                None => self.address(operand, access, dtype.size()),
            };
            let writer = &mut self.kernel.writer;
            match self.key.vector {
                1 => writer.store_single(dtype, &guard, &address, &elements[0], values[0].1),
                _ => writer.store_vector(dtype, &guard, &address, &elements, values[0].1),
            }
        }
        self.sums.accesses += 1;
    }

    /// Stores the outputs per group, and reports indices of `at_group` that are out of range.
    pub(super) fn finish_groups(&mut self) {
        let stages = self.stages;
        let inputs = self.operand_of.iter().flatten().count();
        if stages.indices().is_empty() && !self.outputs.iter().any(|output| output.is_per_group) {
            return;
        }
        let mut first = self.thread.leads.clone();
        if !self.thread.warp.is_empty() {
            let is_first = self.kernel.predicate("setp.eq.u32", &[&self.thread.warp, "0"]);
            first = self.kernel.predicate("and.pred", &[&first, &is_first]);
        }
        if !self.thread.inside.is_empty() {
            first = self.kernel.predicate("and.pred", &[&first, &self.thread.inside]);
        }
        for (at, output) in (self.reductions.len()..stages.indices().start).enumerate() {
            if at >= self.sums.first || !self.is_per_group(at) {
                continue;
            }
            let dtype = stages.expression.outputs[output];
            let values = self.output(output);
            let guard = format!("@{first} ");
            for row in 0..self.key.rows_of_thread() {
                let element = values.map(|(value, _)| self.known[row][value.index()].clone());
                let address = self.base_of(inputs + at, row, dtype.size());
                self.kernel.writer.store_single(dtype, &guard, &address, &element, values[0].1);
            }
        }
        for index in stages.indices() {
            for row in 0..self.key.rows_of_thread() {
                self.check_index(index, row, &first);
            }
        }
    }

    /// Reports the index of one of the thread's rows if it is out of range.
    fn check_index(&mut self, output: usize, row: usize, first: &str) {
        let stages = self.stages;
        let index = self.known[row][stages.expression.program.outputs[output][0].index()].clone();
        let kernel = &mut self.kernel;
        let size = kernel.word(kernel.parameters.row());
        let size = kernel.in_64_bits(&size);
        let outside = kernel.predicate("setp.ge.u64", &[&index, &size]);
        let outside = kernel.predicate("and.pred", &[first, &outside]);
        let label = format!("$index_{}", kernel.writer.unique());
        kernel.line(format!("@!{outside} bra {label};"));
        let [report, code] = report_parameters(stages.expression.scalars.len());
        let report =
            kernel.result(RegisterKind::Bits64.into(), "ld.param.u64", &[&format!("[block+{report}]")]);
        let code = kernel.bits32("ld.param.u32", &[&format!("[block+{code}]")]);
        let names = ReportNames {
            report,
            code,
            index,
            differs: kernel.predicate("setp.eq.u64", &[&size, "0"]),
            taken: kernel.bits32("mov.u32", &["0"]),
            claimed: kernel.bits32("mov.u32", &["0"]),
            label: label.clone(),
            size,
        };
        for line in names.lines() {
            kernel.line(line);
        }
        kernel.line(format!("{label}:"));
    }
}
