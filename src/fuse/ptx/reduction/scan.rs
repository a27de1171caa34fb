//! The kernels of scans: the scan within a tile. Rows of one tile are scanned independently; the tiles of
//! longer rows are [chained](super::chain).

use super::{Folded, KernelWriter, immediate, plain, type_of};
use crate::fuse::ir::program::{Step, parts};
use crate::fuse::plan::reduction::{ReductionAccess, ScanKey, WARP};
use crate::fuse::plan::scan::QUAD;
use crate::fuse::ptx::{Name, StateSpace};

/// The elements of a row that a thread holds: the first, and its quads from there.
pub(super) struct Part {
    pub(super) coordinates: Vec<Name>,
    pub(super) first: Name,
}

/// The position of a quad.
struct Quad {
    /// The index of its first element in the row.
    index: Name,
    /// The indices of its loads: a single load if rows are whole quads. Indices past the end are clamped to
    /// the last.
    loads: Vec<Name>,
    /// For each load, the predicate that it exists; empty if all do.
    valid: Vec<Name>,
}

/// The raw registers of a part: one element of inputs that are constant along the row, and for the others by
/// access and load.
pub(super) struct Loaded {
    still: Vec<Vec<Name>>,
    moving: Vec<Vec<Vec<Vec<Name>>>>,
}

/// The prefix of a warp within its row, and the total of the warp.
pub(super) struct Totals {
    pub(super) before_warp: Folded,
    pub(super) of_warp: Folded,
}

impl KernelWriter<'_> {
    pub(super) fn scan(&mut self, key: &ScanKey) {
        let thread = self.bits32("mov.u32", &["%tid.x"]);
        if key.chained {
            return self.chain(key, &thread);
        }
        let (row, inside) = self.row_of_block(key, &thread);
        let coordinates = self.decode(&row, 0..key.outer_dims);
        let first = self.first_of_thread(key, &thread);
        let part = Part { coordinates, first: self.widened(&first) };
        let loaded = self.loads(key, &part);
        let mut quads = self.computed(key, &part, &loaded);
        self.scan_tile(key, &thread, &mut quads, |_| {});
        for (access, values) in quads.iter().enumerate() {
            self.store_scanned(key, &part, access, values, &inside);
        }
        self.line("ret;");
    }

    /// Emits the index of a thread's first element in a tile.
    pub(super) fn first_of_thread(&mut self, key: &ScanKey, thread: &str) -> Name {
        let warp = self.bits32("shr.u32", &[thread, &WARP.trailing_zeros().to_string()]);
        let within = self.bits32("and.b32", &[thread, &(key.threads - 1).to_string()]);
        let of_row = self.bits32("and.b32", &[&warp, &(key.warps - 1).to_string()]);
        let span = key.accesses * key.threads * QUAD as u32;
        let first = self.bits32("mul.lo.u32", &[&within, &QUAD.to_string()]);
        self.bits32("mad.lo.u32", &[&of_row, &span.to_string(), &first])
    }

    /// Scans the quads of the threads of each row of the block within the tile. Warps that share a row meet
    /// at a barrier, before which `before_barrier` may emit a write.
    pub(super) fn scan_tile(
        &mut self,
        key: &ScanKey,
        thread: &str,
        quads: &mut [Vec<Folded>],
        before_barrier: impl FnOnce(&mut Self),
    ) -> Option<Totals> {
        let lane = self.bits32("and.b32", &[thread, &(WARP - 1).to_string()]);
        let warp = self.bits32("shr.u32", &[thread, &WARP.trailing_zeros().to_string()]);
        let within = self.bits32("and.b32", &[thread, &(key.threads - 1).to_string()]);
        let of_row = self.bits32("and.b32", &[&warp, &(key.warps - 1).to_string()]);
        for values in &mut *quads {
            for at in 1..QUAD {
                values[at] = self.merged(&values[at - 1].clone(), &values[at].clone());
            }
        }
        // The prefixes of each quad in its access, and of each access in the warp.
        let mut before_accesses: Vec<Option<Folded>> = vec![None];
        for values in &mut *quads {
            let through = self.inclusive_scan(key, &lane, values[QUAD - 1].clone());
            let before = self.before(&lane, &within, &through);
            for value in &mut *values {
                *value = self.merged(&before, value);
            }
            let total = self.of_lane(&through, key.threads - 1, key.threads);
            let so_far = match before_accesses[before_accesses.len() - 1].clone() {
                None => total,
                Some(before) => self.merged(&before, &total),
            };
            before_accesses.push(Some(so_far));
        }
        let of_warp = before_accesses.pop().flatten()?;
        before_barrier(self);
        let before_warp = (key.warps > 1).then(|| self.before_warp(key, &warp, &of_row, &lane, &of_warp));
        for (values, before_access) in quads.iter_mut().zip(&before_accesses) {
            let before = match (&before_warp, before_access) {
                (Some(warp), Some(access)) => self.merged(warp, access),
                (Some(before), None) | (None, Some(before)) => before.clone(),
                (None, None) => continue,
            };
            for value in values {
                *value = self.merged(&before, value);
            }
        }
        Some(Totals { before_warp: before_warp?, of_warp })
    }

    /// Emits the row of a thread, for several rows a block, and the predicate that it exists.
    fn row_of_block(&mut self, key: &ScanKey, thread: &str) -> (Name, Name) {
        let block = self.bits32("mov.u32", &["%ctaid.x"]);
        let block = self.widened(&block);
        let shift = (key.threads * key.warps).trailing_zeros().to_string();
        let across = self.bits32("shr.u32", &[thread, &shift]);
        let across = self.widened(&across);
        let row = self.times_plus(&block, &key.across.to_string(), &across);
        let rows = self.word(self.parameters.items());
        let inside = self.is_below(&row, &rows);
        let last = self.index("sub.u32", "sub.u64", &[&rows, "1"]);
        (self.lesser(&row, &last), inside)
    }

    /// Emits the position of the quad of an access.
    fn quad(&mut self, key: &ScanKey, part: &Part, access: usize) -> Quad {
        let index = self.plus(&part.first, access * key.threads as usize * QUAD);
        let step = if key.quads { QUAD } else { 1 };
        let count = self.word(self.parameters.row());
        let last = self.index("sub.u32", "sub.u64", &[&count, &step.to_string()]);
        let (mut loads, mut valid) = (Vec::new(), Vec::new());
        for at in (0..QUAD).step_by(step) {
            let wanted = self.plus(&index, at);
            if key.tail {
                valid.push(self.is_below(&wanted, &count));
                loads.push(self.lesser(&wanted, &last));
            } else {
                loads.push(wanted);
            }
        }
        Quad { index, loads, valid }
    }

    /// Loads the elements of a part, before any computation.
    pub(super) fn loads(&mut self, key: &ScanKey, part: &Part) -> Loaded {
        let compiled = self.compiled;
        let program = &compiled.prologue.program;
        let wanted = program.live(program.outputs[0].into_iter());
        let mut still = Vec::new();
        let mut bases = Vec::new();
        for (input, dtype) in compiled.prologue.inputs.iter().enumerate() {
            let used = program.steps.iter().zip(&wanted).any(|((step, _), wanted)| {
                *wanted && matches!(step, Step::Load { input: found, .. } if *found as usize == input)
            });
            still.push(Vec::new());
            bases.push(None);
            if used {
                let base = self.base(input);
                let offset = self.offset(input, &part.coordinates, 0);
                let base = self.address(&base, offset.as_deref(), dtype.size());
                match key.classes[input] {
                    ReductionAccess::Broadcast => {
                        still[input] = self.writer.load_raw(StateSpace::Global, *dtype, &base);
                    }
                    _ => bases[input] = Some(base),
                }
            }
        }
        let mut moving = Vec::new();
        for access in 0..key.accesses as usize {
            let quad = self.quad(key, part, access);
            let mut of_access = Vec::new();
            for (input, dtype) in compiled.prologue.inputs.iter().enumerate() {
                let mut of_input = Vec::new();
                for index in bases[input].iter().flat_map(|_| &quad.loads) {
                    let base = bases[input].clone().unwrap_or_default();
                    if key.classes[input] == ReductionAccess::Vector {
                        let address = self.address(&base, Some(index), dtype.size());
                        let memory = StateSpace::Global;
                        of_input.push(self.writer.load_raw_vector(memory, *dtype, &address, QUAD));
                        continue;
                    }
                    let stride = self.word(self.parameters.stride(input, key.outer_dims));
                    let offset = self.index("mul.lo.u32", "mul.lo.u64", &[index, &stride]);
                    let address = self.address(&base, Some(&offset), dtype.size());
                    for at in 0..if key.quads { QUAD } else { 1 } {
                        let address = match at {
                            0 => address.clone(),
                            _ => self.address(&address, Some(&stride), at * dtype.size()),
                        };
                        of_input.push(self.writer.load_raw(StateSpace::Global, *dtype, &address));
                    }
                }
                of_access.push(of_input);
            }
            moving.push(of_access);
        }
        Loaded { still, moving }
    }

    /// Computes the values of a part's elements by access, with the identity past the end.
    pub(super) fn computed(&mut self, key: &ScanKey, part: &Part, loaded: &Loaded) -> Vec<Vec<Folded>> {
        let compiled = self.compiled;
        let program = &compiled.prologue.program;
        let wanted = program.live(program.outputs[0].into_iter());
        let once = program.uniform(|_| false);
        let only_once: Vec<bool> = wanted.iter().zip(&once).map(|(wanted, once)| *wanted && *once).collect();
        let known = self.evaluate(program, &[], &only_once, 0, &|_, _| Name::new());
        let output = program.outputs[0];
        let single = parts(compiled.prologue.outputs[0]) == 1;
        let inputs = || compiled.prologue.inputs.iter().enumerate();
        let mut still: Vec<Vec<[Name; 2]>> = Vec::new();
        for (input, dtype) in inputs() {
            let raw = &loaded.still[input];
            still.push(if raw.is_empty() { Vec::new() } else { vec![self.writer.element(*dtype, raw)] });
        }
        let mut quads = Vec::new();
        for (access, of_access) in loaded.moving.iter().enumerate() {
            let valid = if key.tail { self.quad(key, part, access).valid } else { Vec::new() };
            let mut elements = still.clone();
            for (input, dtype) in inputs() {
                for raw in &of_access[input] {
                    match key.classes[input] {
                        ReductionAccess::Vector => {
                            elements[input].extend(self.writer.elements(*dtype, raw, QUAD))
                        }
                        _ => elements[input].push(self.writer.element(*dtype, raw)),
                    }
                }
            }
            let mut values = Vec::with_capacity(QUAD);
            for at in 0..QUAD {
                let load = |input: u32, part: u32| -> Name {
                    let elements = &elements[input as usize];
                    let found = elements.get(at).or(elements.first());
                    found.map_or(Name::new(), |parts| parts[part as usize].clone())
                };
                let names = self.evaluate(program, &known, &wanted, 0, &load);
                let mut value = output.map(|value| names[value.index()].clone());
                if single {
                    value[1] = value[0].clone();
                }
                values.push(match valid.get(at).or(valid.first()) {
                    Some(valid) => self.or_identity(&value, valid),
                    None => self.in_registers(&value),
                });
            }
            quads.push(values);
        }
        quads
    }

    /// Returns the value of the thread in this lane of each segment of so many lanes.
    fn of_lane(&mut self, value: &Folded, lane: u32, segment: u32) -> Folded {
        self.exchanged(value, "idx", &lane.to_string(), segment)
    }

    /// Returns the inclusive scan over lanes: at each level, the upper half of a block of lanes adds the last
    /// value of the lower half.
    fn inclusive_scan(&mut self, key: &ScanKey, lane: &str, mut value: Folded) -> Folded {
        let mut distance = 1;
        while distance < key.threads {
            let lower = self.of_lane(&value, distance - 1, 2 * distance);
            let both = self.merged(&lower, &value);
            let bit = self.bits32("and.b32", &[lane, &distance.to_string()]);
            let upper = self.predicate("setp.ne.u32", &[&bit, "0"]);
            value = self.chosen(&both, &value, &upper);
            distance *= 2;
        }
        value
    }

    pub(in crate::fuse) fn chosen(&mut self, yes: &Folded, no: &Folded, condition: &str) -> Folded {
        self.each_part(|kernel, part, kind| {
            let mnemonic = format!("selp.{}", type_of(kind));
            kernel.result(kind.into(), &mnemonic, &[&yes[part], &no[part], condition])
        })
    }

    /// Returns the value of the previous lane, or the identity in the first lane of a row.
    fn before(&mut self, lane: &str, within: &str, value: &Folded) -> Folded {
        let less = self.bits32("add.u32", &[lane, "-1"]);
        let from = self.bits32("and.b32", &[&less, &(WARP - 1).to_string()]);
        let before = self.exchanged(value, "idx", &from, WARP as u32);
        let later = self.predicate("setp.lt.u32", &["0", within]);
        self.or_identity(&before, &later)
    }

    /// Returns the prefix of a warp within its row.
    fn before_warp(&mut self, key: &ScanKey, warp: &str, of_row: &str, lane: &str, total: &Folded) -> Folded {
        let warps = key.warps as usize;
        let (start, planes) = self.planes(warps * key.across as usize);
        let slots = self.slots(&start, warp, &planes);
        let first = self.predicate("setp.eq.u32", &[lane, "0"]);
        self.put_shared(&first, &slots, 0, total);
        self.line("bar.sync 0;");
        let first_warp = self.bits32("sub.u32", &[warp, of_row]);
        let slots = self.slots(&start, &first_warp, &planes);
        let totals = self.shared_neighbours(&slots, warps);
        let mut before = self.identity();
        for (other, value) in totals[..warps - 1].iter().enumerate() {
            let both = self.merged(&before, value);
            let earlier = self.predicate("setp.lt.u32", &[&other.to_string(), of_row]);
            before = self.chosen(&both, &before, &earlier);
        }
        before
    }

    /// Loads the values of `count` slots, a power of two.
    pub(super) fn shared_neighbours(&mut self, slots: &[Name], count: usize) -> Vec<Folded> {
        let kinds = self.kinds();
        let mut planes = Vec::new();
        for (slot, kind) in slots.iter().zip(kinds) {
            planes.push(self.writer.load_vector(StateSpace::Shared, plain(kind), slot, count));
        }
        let last = planes.len() - 1;
        (0..count).map(|at| [planes[0][at][0].clone(), planes[last][at][0].clone()]).collect()
    }

    /// Returns the identity in registers.
    pub(super) fn identity(&mut self) -> Folded {
        self.each_part(|kernel, part, kind| {
            let identity = immediate(kernel.compiled.rules.identity[part], kind);
            kernel.result(kind.into(), &format!("mov.{}", type_of(kind)), &[&identity])
        })
    }

    /// Stores the results of a quad.
    pub(super) fn store_scanned(
        &mut self,
        key: &ScanKey,
        part: &Part,
        access: usize,
        values: &[Folded],
        inside: &str,
    ) {
        let quad = self.quad(key, part, access);
        let compiled = self.compiled;
        let (program, dtype) = (&compiled.epilogue.program, compiled.epilogue.outputs[0]);
        let outputs = program.outputs[0];
        let wanted = program.live(outputs.into_iter());
        let elements: Vec<[Name; 2]> = values
            .iter()
            .map(|value| {
                let value = self.restored(value);
                let load = |_: u32, part: u32| value[part as usize].clone();
                let names = self.evaluate(program, &[], &wanted, compiled.prologue.scalars.len(), &load);
                outputs.map(|value| names[value.index()].clone())
            })
            .collect();
        let operand = compiled.prologue.inputs.len();
        let base = self.base(operand);
        let offset = self.offset(operand, &part.coordinates, 0);
        let base = self.address(&base, offset.as_deref(), dtype.size());
        let stride = self.word(self.parameters.stride(operand, key.outer_dims));
        let index = match key.stores_vectors {
            true => quad.index.clone(),
            false => self.index("mul.lo.u32", "mul.lo.u64", &[&quad.index, &stride]),
        };
        let address = self.address(&base, Some(&index), dtype.size());
        let mut guards = Vec::new();
        for at in 0..QUAD {
            let valid = quad.valid.get(at).or(quad.valid.first());
            guards.push(match (valid, inside) {
                (None, "") => String::new(),
                (None, inside) => format!("@{inside} "),
                (Some(valid), "") => format!("@{valid} "),
                (Some(valid), inside) => format!("@{} ", self.predicate("and.pred", &[valid, inside])),
            });
            if key.stores_vectors {
                break;
            }
        }
        if key.stores_vectors {
            return self.writer.store_vector(dtype, &guards[0], &address, &elements, false);
        }
        for (at, element) in elements.iter().enumerate() {
            let address = match at {
                0 => address.clone(),
                _ => self.address(&address, Some(&stride), at * dtype.size()),
            };
            self.writer.store_single(dtype, &guards[at], &address, element, false);
        }
    }
}
