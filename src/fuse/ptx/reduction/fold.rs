//! The kernel that reads the inputs and folds them.

use super::rescale::Passes;
use super::{Folded, KernelWriter};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::{Step, parts};
use crate::fuse::plan::reduction::{Direction, FoldKey, LANES, ReductionAccess, SEGMENT};
use crate::fuse::ptx::{Name, StateSpace};
use crate::types::DType;

const WARP: usize = 32;
/// Bytes of loads that a thread should have outstanding.
const OUTSTANDING: usize = 128;

/// The position of a thread, and the registers shared by all of its elements.
struct Thread {
    /// Its row, or the first of its vector of rows, and the predicate that the row exists.
    item: Name,
    inside: Name,
    group: Option<Name>,
    coordinates: Vec<Name>,
    /// Its index among the threads that share a segment.
    lane: Name,
    /// Its index in its block.
    index: Name,
    /// Its warp in the block; empty if a row has one warp.
    warp: Name,
    /// Its row, or its vector of rows, in the block.
    across: Name,
    /// The index in the row of its first element.
    first: Name,
    /// By used input, the address of the row's first element.
    bases: Vec<Name>,
    /// By input, its element if that is the same for the whole row.
    still: Vec<Option<[Name; 2]>>,
    /// The registers of steps that are the same for all elements.
    known: Vec<Name>,
    /// The steps that the value depends on.
    wanted: Vec<bool>,
}

/// One access of each input.
struct Access {
    /// The index of the first element in the row.
    index: Name,
    /// The predicate that it is in the row; empty if all are.
    valid: Name,
    /// By input, by element.
    loaded: Vec<Vec<[Name; 2]>>,
}

impl KernelWriter<'_> {
    pub(super) fn fold(&mut self, key: &FoldKey) {
        if key.again {
            self.return_without_codes();
        } else if self.codes.is_some() {
            self.clear_codes();
        }
        let blocks = key.again.then(|| self.begin_blocks());
        let thread = self.thread(key, blocks.as_ref().map(|blocks| &*blocks.block));
        let rows = if key.direction == Direction::Columns { key.vector as usize } else { 1 };
        if let Some(blocks) = &blocks {
            self.take_codes(blocks, &thread.item, rows);
        }
        let has_passes = self.compiled.rescaled.is_some() && !key.partial;
        let passes = has_passes.then(|| self.begin_passes(&thread.across, rows, rows * key.across as usize));
        if self.compiled.rescaled.is_some() && self.factors.is_empty() {
            self.unit_factors(rows);
        }
        let (groups, rounds) = (key.accesses_per_round as usize, key.rounds as usize);
        let mut lanes: Vec<Folded> = Vec::new();
        let compiled = self.compiled;
        let narrow = compiled.prologue.inputs.iter().any(|dtype| dtype.size() < 4);
        if key.looped {
            lanes = self.looped(key, &thread);
        } else if key.direction == Direction::Columns && narrow {
            lanes = self.by_group(key, &thread, 0, 1);
        } else {
            let bytes: usize = compiled.prologue.inputs.iter().map(|dtype| dtype.size()).sum();
            let together = (OUTSTANDING / (bytes * key.vector as usize * groups)).clamp(1, rounds);
            for first in (0..rounds).step_by(together) {
                let accesses: Vec<Access> = (first..rounds.min(first + together))
                    .flat_map(|round| (0..groups).map(move |group| (round, group)))
                    .map(|(round, group)| self.access(key, &thread, &thread.first, round * LANES, group))
                    .collect();
                for (at, accesses) in accesses.chunks(groups).enumerate() {
                    let elements: Vec<Folded> =
                        accesses.iter().flat_map(|access| self.elements(key, &thread, access)).collect();
                    lanes = match first + at {
                        0 => elements,
                        _ => lanes
                            .iter()
                            .zip(&elements)
                            .map(|(lane, element)| self.combine(&compiled.rules.append, lane, element))
                            .collect(),
                    };
                }
            }
        }
        self.finish(key, &thread, lanes, passes.as_ref());
        self.line("$exit:");
        if let Some(passes) = &passes {
            self.again(passes);
        }
        if let Some(blocks) = &blocks {
            self.end_blocks(blocks);
        }
        self.line("ret;");
    }

    /// Folds every `step`th group of a thread's lanes, starting with `first`, and halves them to the lanes of
    /// one group.
    ///
    /// Narrow elements become several times as many registers as were loaded. Group by group, with all rounds
    /// of a group at once, few are live. Two blocks of 512 threads then fit a multiprocessor, and one loads
    /// while the other halves its lanes. Folding all groups round by round fits one block: 0.81 of the
    /// driver's copy for columns of bf16, against 1.01 with two.
    fn by_group(&mut self, key: &FoldKey, thread: &Thread, first: usize, step: usize) -> Vec<Folded> {
        let compiled = self.compiled;
        if step < key.accesses_per_round as usize {
            let low = self.by_group(key, thread, first, 2 * step);
            let high = self.by_group(key, thread, first + step, 2 * step);
            return low.iter().zip(&high).map(|(low, high)| self.merged(low, high)).collect();
        }
        let accesses: Vec<Access> = (0..key.rounds as usize)
            .map(|round| self.access(key, thread, &thread.first, round * LANES, first))
            .collect();
        let mut rounds = Vec::with_capacity(accesses.len());
        for access in &accesses {
            rounds.push(self.elements(key, thread, access));
        }
        let mut lanes = rounds.remove(0);
        for elements in &rounds {
            for (lane, element) in lanes.iter_mut().zip(elements) {
                *lane = self.combine(&compiled.rules.append, lane, element);
            }
        }
        lanes
    }

    fn thread(&mut self, key: &FoldKey, block: Option<&str>) -> Thread {
        let compiled = self.compiled;
        let rows = key.direction == Direction::Rows;
        let (block, group) = match block {
            Some(block) => self.block_of(block, key.partial, rows),
            None => self.block(key.partial, rows),
        };
        let index = self.bits32("mov.u32", &["%tid.x"]);
        let shift = |count: u32| count.trailing_zeros().to_string();
        let mask = |count: u32| (count - 1).to_string();
        let (lane, across, warp) = if rows {
            let lane = self.bits32("and.b32", &[&index, &mask(key.threads)]);
            let above = self.bits32("shr.u32", &[&index, &shift(key.threads)]);
            match key.warps {
                1 => (lane, above, Name::new()),
                warps => (lane, self.bits32("shr.u32", &[&above, &shift(warps)]), above),
            }
        } else {
            let across = self.bits32("and.b32", &[&index, &mask(key.across)]);
            (self.bits32("shr.u32", &[&index, &shift(key.across)]), across, Name::new())
        };
        let in_block = across.clone();
        let across = self.widened(&across);
        let item = self.times_plus(&block, &key.across.to_string(), &across);
        let items = self.word(self.parameters.items());
        let inside = self.is_below(&item, &items);
        let last = self.index("sub.u32", "sub.u64", &[&items, "1"]);
        let item = self.lesser(&item, &last);

        let wide_lane = self.widened(&lane);
        let step = if rows { key.vector as usize } else { 1 };
        let mut first = self.index("mul.lo.u32", "mul.lo.u64", &[&wide_lane, &step.to_string()]);
        let segment = match (&group, warp.is_empty()) {
            (None, true) => None,
            (Some(group), true) => Some(group.clone()),
            (group, false) => {
                let within = self.bits32("and.b32", &[&warp, &mask(key.warps)]);
                let within = self.widened(&within);
                Some(match group {
                    Some(group) => self.times_plus(group, &key.warps.to_string(), &within),
                    None => within,
                })
            }
        };
        if let Some(segment) = segment {
            first = self.times_plus(&segment, &SEGMENT.to_string(), &first);
        }

        let mut coordinates = self.decode(&item, 0..key.outer_dims);
        let mut item = item;
        if !rows && key.vector > 1 {
            // The index counts vectors in the first dimension.
            let vector = key.vector.to_string();
            coordinates[0] = self.index("mul.lo.u32", "mul.lo.u64", &[&coordinates[0], &vector]);
            item = self.index("mul.lo.u32", "mul.lo.u64", &[&item, &vector]);
        }
        let program = &compiled.element().program;
        let wanted = program.live(program.outputs[0].into_iter());
        let once = program.uniform(|_| false);
        let only_once: Vec<bool> = wanted.iter().zip(&once).map(|(wanted, once)| *wanted && *once).collect();
        let known = self.evaluate(program, &[], &only_once, 0, &|_, _| Name::new());
        let used = |input: usize| {
            program.steps.iter().zip(&wanted).any(|((step, _), wanted)| {
                *wanted && matches!(step, Step::Load { input: found, .. } if *found as usize == input)
            })
        };
        let mut thread = Thread {
            item,
            inside,
            group,
            coordinates,
            lane,
            index,
            warp,
            across: in_block,
            first,
            bases: Vec::new(),
            still: Vec::new(),
            known,
            wanted: wanted.clone(),
        };
        for (input, dtype) in compiled.prologue.inputs.iter().enumerate() {
            if !used(input) {
                thread.bases.push(Name::new());
                thread.still.push(None);
                continue;
            }
            let base = self.base(input);
            let offset = self.offset(input, &thread.coordinates, 0);
            let base = self.address(&base, offset.as_deref(), dtype.size());
            let still = key.classes[input] == ReductionAccess::Broadcast;
            thread.still.push(still.then(|| self.writer.load(StateSpace::Global, *dtype, &base)));
            thread.bases.push(base);
        }
        thread
    }

    /// Loads the elements of a thread's access `group` in the round that begins at `from` + `round`.
    fn access(&mut self, key: &FoldKey, thread: &Thread, from: &str, round: usize, group: usize) -> Access {
        let compiled = self.compiled;
        let rows = key.direction == Direction::Rows;
        let step = if rows { key.vector as usize } else { 1 };
        let wanted = self.plus(from, round + group * key.threads as usize * step);
        let (mut index, mut valid) = (wanted, Name::new());
        if key.tail {
            let count = self.word(self.parameters.row());
            valid = self.is_below(&index, &count);
            let last = self.index("sub.u32", "sub.u64", &[&count, &step.to_string()]);
            index = self.lesser(&index, &last);
        }
        let coordinates = self.decode(&index, key.outer_dims..key.outer_dims + key.reduced_dims);
        let mut loaded = Vec::with_capacity(compiled.prologue.inputs.len());
        for (input, dtype) in compiled.prologue.inputs.iter().enumerate() {
            let base = thread.bases[input].clone();
            if let Some(element) = &thread.still[input] {
                loaded.push(vec![element.clone()]);
                continue;
            }
            if base.is_empty() {
                loaded.push(Vec::new());
                continue;
            }
            let offset = self.offset(input, &coordinates, key.outer_dims);
            let address = self.address(&base, offset.as_deref(), dtype.size());
            loaded.push(match key.classes[input] {
                ReductionAccess::Vector => {
                    self.writer.load_vector(StateSpace::Global, *dtype, &address, key.vector as usize)
                }
                ReductionAccess::Gather if key.vector > 1 => {
                    let along = if rows { key.outer_dims } else { 0 };
                    self.gathered(key, input, *dtype, &address, along)
                }
                _ => vec![self.writer.load(StateSpace::Global, *dtype, &address)],
            });
        }
        Access { index, valid, loaded }
    }

    /// Loads elements a stride apart along a dimension.
    fn gathered(
        &mut self,
        key: &FoldKey,
        input: usize,
        dtype: DType,
        address: &str,
        along: usize,
    ) -> Vec<[Name; 2]> {
        let stride = self.word(self.parameters.stride(input, along));
        (0..key.vector as usize)
            .map(|next| {
                let address = match next {
                    0 => address.to_owned(),
                    _ => self.address(address, Some(&stride), next * dtype.size()),
                };
                self.writer.load(StateSpace::Global, dtype, &address)
            })
            .collect()
    }

    /// Computes the values of an access's elements.
    fn elements(&mut self, key: &FoldKey, thread: &Thread, access: &Access) -> Vec<Folded> {
        let compiled = self.compiled;
        let program = &compiled.element().program;
        let (output, factor) = (program.outputs[0], compiled.prologue.inputs.len());
        let mut elements = Vec::with_capacity(key.vector as usize);
        for element in 0..key.vector as usize {
            let row = if key.direction == Direction::Columns { element } else { 0 };
            let factor_of_row = self.factors.get(row).cloned().unwrap_or_default();
            let load = |input: u32, part: u32| -> Name {
                if input as usize == factor {
                    return factor_of_row.clone();
                }
                let loaded = &access.loaded[input as usize];
                let found = loaded.get(element).or(loaded.first());
                found.map_or(Name::new(), |parts| parts[part as usize].clone())
            };
            let names = self.evaluate(program, &thread.known, &thread.wanted, 0, &load);
            let mut value = output.map(|value| names[value.index()].clone());
            if parts(compiled.prologue.outputs[0]) == 1 {
                value[1] = value[0].clone();
            }
            if compiled.fold.has_index() {
                let along = if key.direction == Direction::Rows { element } else { 0 };
                let index = self.plus(&access.index, along);
                value[1] = self.in_64_bits(&index);
            }
            elements.push(match key.tail {
                true => self.or_identity(&value, &access.valid),
                false => self.in_registers(&value),
            });
        }
        elements
    }

    /// Folds the lanes of a thread in a loop over the rounds.
    fn looped(&mut self, key: &FoldKey, thread: &Thread) -> Vec<Folded> {
        let compiled = self.compiled;
        let count = (key.accesses_per_round * key.vector) as usize;
        let new =
            |kernel: &mut Self, value: &dyn Fn(&KernelWriter<'_>, usize, RegisterKind) -> Name| -> Folded {
                kernel.each_part(|kernel, part, kind| {
                    let source = value(kernel, part, kind);
                    kernel.result(kind.into(), &format!("mov.{}", super::type_of(kind)), &[&source])
                })
            };
        let identity = |kernel: &KernelWriter<'_>, part: usize, kind: RegisterKind| {
            super::immediate(kernel.compiled.rules.identity[part], kind)
        };
        let lanes: Vec<Folded> = (0..count).map(|_| new(self, &identity)).collect();
        let from = self.index("mov.u32", "mov.u64", &[&thread.first]);
        let round = self.bits32("mov.u32", &["0"]);
        let unique = self.writer.unique();
        self.line(format!("$round_{unique}:"));
        let accesses: Vec<Access> = (0..key.accesses_per_round as usize)
            .map(|group| self.access(key, thread, &from, 0, group))
            .collect();
        let elements: Vec<Folded> =
            accesses.iter().flat_map(|access| self.elements(key, thread, access)).collect();
        for (lane, element) in lanes.iter().zip(&elements) {
            // The lane may still be the identity.
            let next = self.combine(&compiled.rules.merge, lane, element);
            for (part, kind) in self.kinds().into_iter().enumerate() {
                self.line(format!("mov.{} {}, {};", super::type_of(kind), lane[part], next[part]));
            }
        }
        let width = if self.wide { "u64" } else { "u32" };
        self.line(format!("add.{width} {from}, {from}, {LANES};"));
        self.line(format!("add.u32 {round}, {round}, 1;"));
        let again = self.predicate("setp.lt.u32", &[&round, &key.rounds.to_string()]);
        self.line(format!("@{again} bra $round_{unique};"));
        lanes
    }

    /// Halves the lanes of all threads that share a segment, merges their segments, and stores the results.
    fn finish(&mut self, key: &FoldKey, thread: &Thread, lanes: Vec<Folded>, passes: Option<&Passes>) {
        let vector = key.vector as usize;
        let mut values = self.halve(lanes, vector);
        let first = self.predicate("setp.eq.u32", &[&thread.lane, "0"]);
        if key.direction == Direction::Rows {
            let mut distance = key.threads as usize / 2;
            while distance > 0 {
                for value in &mut values {
                    let further = self.shuffled(value, distance);
                    *value = self.merged(value, &further);
                }
                distance /= 2;
            }
            values = self.halve(values, 1);
            if key.warps > 1 {
                let warps = (key.threads * key.warps * key.across) as usize / WARP;
                let value = values.swap_remove(0);
                values = vec![self.merge_warps(value, key.warps as usize, warps, &thread.warp, &first)];
            }
        } else if key.threads > 1 {
            values = self.halve_block(key, thread, values);
        }
        self.line(format!("@!{first} bra $exit;"));
        if let Some(passes) = passes {
            self.put_codes(passes, &values);
        }
        self.line(format!("@!{} bra $exit;", thread.inside));
        match &thread.group {
            Some(group) => self.store_partial(&values, group, &thread.item),
            None => {
                let operand = self.compiled.prologue.inputs.len();
                self.store_results(&values, &thread.coordinates, operand, key.stores_vectors);
            }
        }
    }

    /// Halves the lanes of a block's threads through shared memory: the upper half writes, the lower half
    /// reads. A step writes only slots that no earlier step reads, so one barrier a step suffices.
    fn halve_block(&mut self, key: &FoldKey, thread: &Thread, mut values: Vec<Folded>) -> Vec<Folded> {
        let (threads, across) = (key.threads as usize, key.across as usize);
        let block = threads * across;
        let (start, planes) = self.planes(block * values.len());
        let slots = self.slots(&start, &thread.index, &planes);
        let mut distance = threads / 2;
        while distance > 0 {
            let shift = distance.trailing_zeros().to_string();
            let half = self.bits32("shr.u32", &[&thread.lane, &shift]);
            let upper = self.predicate("setp.eq.u32", &[&half, "1"]);
            for (index, value) in values.iter().enumerate() {
                self.put_shared(&upper, &slots, index * block, value);
            }
            self.line("bar.sync 0;");
            let lower = self.predicate("setp.eq.u32", &[&half, "0"]);
            let unique = self.writer.unique();
            self.line(format!("@!{lower} bra $halved_{unique};"));
            for (index, value) in values.iter_mut().enumerate() {
                let further = self.get_shared(&slots, index * block + distance * across);
                *value = self.merged(value, &further);
            }
            self.line(format!("$halved_{unique}:"));
            distance /= 2;
        }
        values
    }
}
