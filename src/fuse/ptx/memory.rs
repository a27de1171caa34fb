//! Loads and stores: vectors for adjacent lanes and single elements otherwise; in tiles row by row.

use super::index::Indexing;
use super::{Name, Register, Writer, part_bytes, register_of};
use crate::fuse::ir::program::parts;
use crate::fuse::plan::elementwise::{AccessPattern, Iteration};
use crate::types::DType;

/// A PTX state space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fuse) enum StateSpace {
    Global,
    Shared,
}

impl StateSpace {
    fn name(self) -> &'static str {
        match self {
            StateSpace::Global => "global",
            StateSpace::Shared => "shared",
        }
    }
}

/// Splits `count` items of `size` bytes into accesses, as (first, items).
fn accesses(count: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let most = (16 / size).min(4).min(count.next_power_of_two());
    (0..count).step_by(most).map(move |first| (first, most.min(count - first)))
}

fn list(names: &[Name]) -> (String, String) {
    match names {
        [name] => (String::new(), name.clone()),
        names => (format!(".v{}", names.len()), format!("{{{}}}", names.join(", "))),
    }
}

/// Returns the predicate prefix of a store of this lane or row.
fn guard(indexing: &Indexing, lane: usize) -> String {
    match indexing.inside.get(lane) {
        Some(inside) if !inside.is_empty() => format!("@{inside} "),
        _ => String::new(),
    }
}

impl Writer<'_> {
    /// Loads an input's elements, by lane, or a single element shared by all lanes.
    pub(super) fn load_operand(&mut self, indexing: &mut Indexing, operand: usize) -> Vec<[Name; 2]> {
        let (dtype, lanes) = (self.dtypes[operand], self.key.lanes as usize);
        match (self.key.access_patterns[operand], self.key.iteration) {
            (AccessPattern::Constant, _) => {
                let address = self.address(indexing, operand, 0);
                vec![self.load(StateSpace::Global, dtype, &address)]
            }
            (_, Iteration::Vectors) => self.load_neighbours(indexing, operand, 0),
            (_, Iteration::Tiles(_)) => {
                let mut elements = Vec::new();
                for row in 0..indexing.inside.len() {
                    let of_row = self.load_neighbours(indexing, operand, row);
                    // An element shared by all lanes is shared by the lanes of its row.
                    elements.extend((0..lanes).map(|lane| of_row[lane % of_row.len()].clone()));
                }
                elements
            }
            (AccessPattern::Linear, Iteration::Flat) => {
                let address = self.address(indexing, operand, 0);
                if indexing.full.is_empty() {
                    return self.load_vector(StateSpace::Global, dtype, &address, lanes);
                }
                let (unique, full) = (self.unique(), indexing.full.clone());
                self.line(format!("@!{full} bra $cut_{unique};"));
                let elements = self.load_vector(StateSpace::Global, dtype, &address, lanes);
                self.line(format!("bra $loaded_{unique};\n$cut_{unique}:"));
                for (lane, element) in elements.iter().enumerate() {
                    let address = self.address(indexing, operand, lane);
                    let single = self.load(StateSpace::Global, dtype, &address);
                    for part in 0..parts(dtype) {
                        let kind = match register_of(dtype) {
                            Register::Predicate => "pred",
                            Register::Bits64 => "b64",
                            Register::Float32 => "f32",
                            Register::Float64 => "f64",
                            _ => "b32",
                        };
                        self.line(format!("mov.{kind} {}, {};", element[part], single[part]));
                    }
                }
                self.line(format!("$loaded_{unique}:"));
                elements
            }
            _ => {
                // All addresses precede all loads.
                let addresses: Vec<Name> =
                    (0..lanes).map(|lane| self.address(indexing, operand, lane)).collect();
                addresses.iter().map(|address| self.load(StateSpace::Global, dtype, address)).collect()
            }
        }
    }

    /// Loads the elements of the lanes that share the coordinates of row `row`, or a single element shared by
    /// all.
    fn load_neighbours(&mut self, indexing: &mut Indexing, operand: usize, row: usize) -> Vec<[Name; 2]> {
        let (dtype, lanes) = (self.dtypes[operand], self.key.lanes as usize);
        match self.key.access_patterns[operand] {
            AccessPattern::Staged(_) => return self.load_staged(indexing, operand, row),
            AccessPattern::Row => {
                let address = self.address(indexing, operand, row);
                return vec![self.load(StateSpace::Global, dtype, &address)];
            }
            AccessPattern::Linear => {
                let address = self.address(indexing, operand, row);
                return self.load_vector(StateSpace::Global, dtype, &address, lanes);
            }
            _ => {}
        }
        let address = self.address(indexing, operand, row);
        let stride = self.strides(indexing, operand)[0].clone();
        let mut elements = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            let bytes = (lane * dtype.size()).to_string();
            let address = match lane {
                0 => address.clone(),
                _ => self.result(Register::Bits64, "mad.wide.s32", &[&stride, &bytes, &address]),
            };
            elements.push(self.load(StateSpace::Global, dtype, &address));
        }
        elements
    }

    /// Loads one element, aligned to its parts.
    pub(in crate::fuse) fn load(&mut self, state: StateSpace, dtype: DType, address: &str) -> [Name; 2] {
        let raw = self.load_raw(state, dtype, address);
        self.element(dtype, &raw)
    }

    /// Loads the raw registers of one element for [`element`](Self::element), without an instruction that
    /// waits for them.
    pub(in crate::fuse) fn load_raw(&mut self, state: StateSpace, dtype: DType, address: &str) -> Vec<Name> {
        let memory = match dtype {
            DType::Bool | DType::U8 | DType::F8E4M3 | DType::F8E5M2 => "u8",
            DType::I8 => "s8",
            DType::U16 | DType::BF16 => "u16",
            DType::I16 => "s16",
            DType::F16 => "b16",
            DType::U32 | DType::I32 => "b32",
            DType::U64 | DType::I64 => "b64",
            DType::F32 | DType::C64 => "f32",
            DType::F64 | DType::C128 => "f64",
        };
        let register = match dtype {
            DType::Bool | DType::BF16 => Register::Bits32,
            DType::F16 => Register::Bits16,
            _ => register_of(dtype),
        };
        let mnemonic = format!("ld.{}.{memory}", state.name());
        (0..parts(dtype))
            .map(|part| match part {
                0 => self.result(register, &mnemonic, &[&format!("[{address}]")]),
                _ => self.result(register, &mnemonic, &[&format!("[{address}+{}]", part_bytes(dtype))]),
            })
            .collect()
    }

    /// Converts the result of [`load_raw`](Self::load_raw) to an element.
    pub(in crate::fuse) fn element(&mut self, dtype: DType, raw: &[Name]) -> [Name; 2] {
        let first = self.loaded_form(dtype, raw[0].clone());
        if parts(dtype) == 1 { [first.clone(), first] } else { [first, raw[1].clone()] }
    }

    /// Converts the raw register of a single element.
    fn loaded_form(&mut self, dtype: DType, name: Name) -> Name {
        match dtype {
            DType::Bool => self.result(Register::Predicate, "setp.ne.u32", &[&name, "0"]),
            DType::F16 => self.result(Register::Float32, "cvt.f32.f16", &[&name]),
            DType::BF16 => {
                let bits = self.result(Register::Bits32, "shl.b32", &[&name, "16"]);
                self.result(Register::Float32, "mov.b32", &[&bits])
            }
            _ => name,
        }
    }

    /// Loads adjacent elements, aligned to their total size, in accesses of at most 16 bytes.
    pub(in crate::fuse) fn load_vector(
        &mut self,
        state: StateSpace,
        dtype: DType,
        address: &str,
        lanes: usize,
    ) -> Vec<[Name; 2]> {
        let raw = self.load_raw_vector(state, dtype, address, lanes);
        self.elements(dtype, &raw, lanes)
    }

    /// Loads the raw registers of adjacent elements for [`elements`](Self::elements), without an instruction
    /// that waits for them.
    pub(in crate::fuse) fn load_raw_vector(
        &mut self,
        state: StateSpace,
        dtype: DType,
        address: &str,
        lanes: usize,
    ) -> Vec<Name> {
        let size = part_bytes(dtype);
        if size >= 4 {
            let register = register_of(dtype);
            let memory = super::REGISTERS[register as usize].1;
            return self.load_words(state, register, memory, address, lanes * parts(dtype), size);
        }
        if lanes == 1 {
            return self.load_raw(state, dtype, address);
        }
        // Words that hold several elements.
        match lanes * size {
            2 => {
                let mnemonic = format!("ld.{}.u16", state.name());
                vec![self.result(Register::Bits32, &mnemonic, &[&format!("[{address}]")])]
            }
            bytes => self.load_words(state, Register::Bits32, "b32", address, bytes / 4, 4),
        }
    }

    /// Stores the result of [`load_raw_vector`](Self::load_raw_vector) in shared memory.
    pub(in crate::fuse) fn store_raw_vector(
        &mut self,
        dtype: DType,
        address: &str,
        raw: &[Name],
        lanes: usize,
    ) {
        let part = part_bytes(dtype);
        let (memory, size) = match lanes * part {
            _ if part >= 4 => (super::REGISTERS[register_of(dtype) as usize].1, part),
            1 => ("u8", 1),
            2 if lanes == 1 && dtype == DType::F16 => ("b16", 2),
            2 => ("u16", 2),
            _ => ("b32", 4),
        };
        for (first, width) in accesses(raw.len(), size) {
            let (vector, list) = list(&raw[first..first + width]);
            self.line(format!("st.shared{vector}.{memory} [{address}+{}], {list};", first * size));
        }
    }

    /// Converts the result of [`load_raw_vector`](Self::load_raw_vector) to elements.
    pub(in crate::fuse) fn elements(&mut self, dtype: DType, raw: &[Name], lanes: usize) -> Vec<[Name; 2]> {
        let size = part_bytes(dtype);
        if size >= 4 {
            return raw
                .chunks(parts(dtype))
                .map(|parts| [parts[0].clone(), parts[parts.len() - 1].clone()])
                .collect();
        }
        if lanes == 1 {
            return vec![self.element(dtype, raw)];
        }
        let per_word = lanes / raw.len();
        let mut elements = Vec::with_capacity(lanes);
        for word in raw {
            if dtype == DType::F16 {
                // The conversion can read a half of a register, so the halves need no extraction.
                let halves = [0; 2].map(|_| self.register(Register::Bits16));
                self.line(format!("mov.b32 {{{}, {}}}, {word};", halves[0], halves[1]));
                let both = halves.map(|half| self.loaded_form(dtype, half));
                elements.extend(both.map(|element| [element.clone(), element]));
                continue;
            }
            for element_index in 0..per_word {
                let element = self.extract(dtype, word, element_index * size * 8);
                elements.push([element.clone(), element]);
            }
        }
        elements
    }

    pub(super) fn load_words(
        &mut self,
        state: StateSpace,
        register: Register,
        memory: &str,
        address: &str,
        count: usize,
        size: usize,
    ) -> Vec<Name> {
        let names: Vec<Name> = (0..count).map(|_| self.register(register)).collect();
        for (first, width) in accesses(count, size) {
            let (vector, list) = list(&names[first..first + width]);
            let state = state.name();
            self.line(format!("ld.{state}{vector}.{memory} {list}, [{address}+{}];", first * size));
        }
        names
    }

    /// Extracts a narrow element from a word at this bit.
    fn extract(&mut self, dtype: DType, word: &str, bit: usize) -> Name {
        let (signed, width) = (dtype.is_signed_integer(), (8 * dtype.size()).to_string());
        if dtype == DType::BF16 {
            let bits = match bit {
                0 => self.result(Register::Bits32, "shl.b32", &[word, "16"]),
                _ => self.result(Register::Bits32, "and.b32", &[word, "-65536"]),
            };
            return self.result(Register::Float32, "mov.b32", &[&bits]);
        }
        let mnemonic = if signed { "bfe.s32" } else { "bfe.u32" };
        let bits = self.result(Register::Bits32, mnemonic, &[word, &bit.to_string(), &width]);
        self.loaded_form(dtype, bits)
    }

    /// Stores an output's elements. `rounds` means that the store rounds them to the dtype.
    pub(super) fn store_operand(
        &mut self,
        indexing: &mut Indexing,
        operand: usize,
        elements: &[[Name; 2]],
        rounds: bool,
    ) {
        let dtype = self.dtypes[operand];
        if let Iteration::Tiles(_) = self.key.iteration {
            for (row, elements) in elements.chunks(self.key.lanes as usize).enumerate() {
                let guard = guard(indexing, row);
                let address = self.address(indexing, operand, row);
                match self.key.access_patterns[operand] {
                    AccessPattern::Linear => self.store_vector(dtype, &guard, &address, elements, rounds),
                    // One lane a row: only such iterations have outputs that are not linear.
                    _ => self.store_single(dtype, &guard, &address, &elements[0], rounds),
                }
            }
            return;
        }
        let neighbours = self.key.access_patterns[operand] == AccessPattern::Linear
            && matches!(self.key.iteration, Iteration::Flat | Iteration::Vectors);
        if neighbours {
            let address = self.address(indexing, operand, 0);
            if indexing.full.is_empty() {
                return self.store_vector(dtype, "", &address, elements, rounds);
            }
            let (unique, full) = (self.unique(), indexing.full.clone());
            self.line(format!("@!{full} bra $cut_{unique};"));
            self.store_vector(dtype, "", &address, elements, rounds);
            self.line(format!("bra $stored_{unique};\n$cut_{unique}:"));
            self.store_singles(indexing, operand, elements, rounds);
            self.line(format!("$stored_{unique}:"));
            return;
        }
        self.store_singles(indexing, operand, elements, rounds);
    }

    fn store_singles(
        &mut self,
        indexing: &mut Indexing,
        operand: usize,
        elements: &[[Name; 2]],
        rounds: bool,
    ) {
        let dtype = self.dtypes[operand];
        for (lane, element) in elements.iter().enumerate() {
            let address = self.address(indexing, operand, lane);
            self.store_single(dtype, &guard(indexing, lane), &address, element, rounds);
        }
    }

    pub(in crate::fuse) fn store_single(
        &mut self,
        dtype: DType,
        guard: &str,
        address: &str,
        element: &[Name; 2],
        rounds: bool,
    ) {
        let (memory, first) = self.stored_form(dtype, &element[0], rounds);
        self.line(format!("{guard}st.global.{memory} [{address}], {first};"));
        if parts(dtype) == 2 {
            let (offset, second) = (part_bytes(dtype), &element[1]);
            self.line(format!("{guard}st.global.{memory} [{address}+{offset}], {second};"));
        }
    }

    /// Stores an element of one part in shared memory.
    pub(in crate::fuse) fn store_shared(
        &mut self,
        dtype: DType,
        address: &str,
        element: &[Name; 2],
        rounds: bool,
    ) {
        let (memory, name) = self.stored_form(dtype, &element[0], rounds);
        self.line(format!("st.shared.{memory} [{address}], {name};"));
    }

    /// Converts an element to its form in memory, and returns the type of its store.
    fn stored_form(&mut self, dtype: DType, name: &str, rounds: bool) -> (&'static str, Name) {
        match dtype {
            DType::Bool => ("u8", self.result(Register::Bits32, "selp.b32", &["1", "0", name])),
            DType::U8 | DType::I8 | DType::F8E4M3 | DType::F8E5M2 => ("u8", name.to_owned()),
            DType::U16 | DType::I16 => ("u16", name.to_owned()),
            DType::F16 => ("b16", self.result(Register::Bits16, "cvt.rn.f16.f32", &[name])),
            DType::BF16 if rounds => ("b16", self.result(Register::Bits16, "cvt.rn.bf16.f32", &[name])),
            DType::BF16 => {
                let bits = self.result(Register::Bits32, "mov.b32", &[name]);
                ("u16", self.result(Register::Bits32, "shr.u32", &[&bits, "16"]))
            }
            DType::U32 | DType::I32 => ("b32", name.to_owned()),
            DType::U64 | DType::I64 => ("b64", name.to_owned()),
            DType::F32 | DType::C64 => ("f32", name.to_owned()),
            DType::F64 | DType::C128 => ("f64", name.to_owned()),
        }
    }

    pub(in crate::fuse) fn store_vector(
        &mut self,
        dtype: DType,
        guard: &str,
        address: &str,
        elements: &[[Name; 2]],
        rounds: bool,
    ) {
        let (size, lanes) = (part_bytes(dtype), elements.len());
        if size < 4 && lanes == 1 {
            let (memory, name) = self.stored_form(dtype, &elements[0][0], rounds);
            return self.line(format!("{guard}st.global.{memory} [{address}], {name};"));
        }
        let (memory, names): (&str, Vec<Name>) = if size >= 4 {
            let names = elements.iter().flat_map(|parts_of| parts_of[..parts(dtype)].to_vec()).collect();
            (super::REGISTERS[register_of(dtype) as usize].1, names)
        } else if size == 2 {
            ("b32", elements.chunks(2).map(|pair| self.pack_pair(dtype, pair, rounds)).collect())
        } else {
            let bytes: Vec<Name> =
                elements.iter().map(|element| self.stored_form(dtype, &element[0], rounds).1).collect();
            let pairs: Vec<Name> = bytes
                .chunks(2)
                .map(|pair| self.result(Register::Bits32, "prmt.b32", &[&pair[0], &pair[1], "64"]))
                .collect();
            if let [pair] = &pairs[..] {
                return self.line(format!("{guard}st.global.u16 [{address}], {pair};"));
            }
            let words = pairs
                .chunks(2)
                .map(|pair| self.result(Register::Bits32, "prmt.b32", &[&pair[0], &pair[1], "21520"]));
            ("b32", words.collect())
        };
        let size = size.max(4);
        for (first, width) in accesses(names.len(), size) {
            let (vector, list) = list(&names[first..first + width]);
            self.line(format!("{guard}st.global{vector}.{memory} [{address}+{}], {list};", first * size));
        }
    }

    /// Packs two elements of 16 bits into a word.
    fn pack_pair(&mut self, dtype: DType, pair: &[[Name; 2]], rounds: bool) -> Name {
        let (low, high) = (pair[0][0].clone(), pair[pair.len() - 1][0].clone());
        match dtype {
            DType::F16 => {
                let (_, low) = self.stored_form(dtype, &low, rounds);
                let (_, high) = self.stored_form(dtype, &high, rounds);
                self.result(Register::Bits32, "mov.b32", &[&format!("{{{low}, {high}}}")])
            }
            DType::BF16 if rounds => self.result(Register::Bits32, "cvt.rn.bf16x2.f32", &[&high, &low]),
            DType::BF16 => {
                let [low, high] = [low, high].map(|half| self.result(Register::Bits32, "mov.b32", &[&half]));
                // The upper halves of both.
                self.result(Register::Bits32, "prmt.b32", &[&low, &high, "30258"])
            }
            _ => self.result(Register::Bits32, "prmt.b32", &[&low, &high, "21520"]),
        }
    }
}
