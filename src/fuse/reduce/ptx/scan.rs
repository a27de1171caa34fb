//! The kernel of a scan: one pass, whose tiles wait for those before them where a row is longer than one.
//!
//! Tiles are taken by a ticket, so that whoever is waited for has begun before. A tile publishes its value as soon as it
//! knows it; then its threads read those of the earlier tiles of its group at once, each waiting for its own. A thread of
//! another warp takes what they come to, waits for what stands before the group, and publishes what stands before the
//! next: from group to group there is no barrier. The order in which values are folded is fixed, whoever comes first.
//!
//! A published value needs no fence: each of its words of 32 bits is in one of 64 with a flag, and an access of 64 bits is
//! indivisible, so whoever sees the flag has the word that was written with it.

use super::super::super::program::{Step, parts};
use super::super::super::ptx::{Name, Register, State as MemoryState};
use super::super::fold::bytes;
use super::super::plan::{Class, ScanKey, WARP};
use super::super::scan::{GROUP, QUAD, SLOT, words};
use super::{Folded, Kernel, immediate, type_of};

/// What an access of a thread holds: the values of its quad so far, and where each is.
struct Access {
    /// Of the first element, in the row.
    place: Name,
    /// By element, whether it is there; empty where all are.
    valid: Vec<Name>,
    values: Vec<Folded>,
}

/// Where a tile is.
struct Tile {
    number: Name,
    /// In its row, and in its group.
    of_row: Name,
    of_group: Name,
}

impl Kernel<'_> {
    pub(super) fn scan(&mut self, key: &ScanKey) {
        let thread = self.bits32("mov.u32", &["%tid.x"]);
        let lane = self.bits32("and.b32", &[&thread, &(WARP - 1).to_string()]);
        let warp = self.bits32("shr.u32", &[&thread, &WARP.trailing_zeros().to_string()]);
        let within = self.bits32("and.b32", &[&thread, &(key.threads - 1).to_string()]);
        let of_row = self.bits32("and.b32", &[&warp, &(key.warps - 1).to_string()]);
        let tile = if key.chained { Some(self.ticket(&thread)) } else { None };
        let (row, inside) = match &tile {
            Some(tile) => (tile.1.clone(), Name::new()),
            None => self.row_of_block(key, &thread),
        };
        let tile = tile.map(|(tile, _)| tile);
        let coordinates = self.decode(&row, 0..key.kept);

        let span = key.accesses * key.threads * QUAD as u32;
        let first = self.bits32("mul.lo.u32", &[&within, &QUAD.to_string()]);
        let first = self.bits32("mad.lo.u32", &[&of_row, &span.to_string(), &first]);
        let mut first = self.widened(&first);
        if let Some(tile) = &tile {
            first = self.times_plus(&tile.of_row, &(span * key.warps).to_string(), &first);
        }
        let mut accesses = self.loads(key, &coordinates, &first);
        for access in &mut accesses {
            for at in 1..access.values.len() {
                access.values[at] = self.merged(&access.values[at - 1].clone(), &access.values[at].clone());
            }
        }

        // Before each quad in its access, and before each access in the warp.
        let mut before_accesses: Vec<Option<Folded>> = vec![None];
        for access in &mut accesses {
            let through = self.through_lanes(key, &lane, access.values[QUAD - 1].clone());
            let before = self.before(&lane, &within, &through);
            for value in &mut access.values {
                *value = self.merged(&before, value);
            }
            let last = self.bits32("or.b32", &[&lane, &(key.threads - 1).to_string()]);
            let total = self.of_lane(&through, &last);
            let so_far = match before_accesses[before_accesses.len() - 1].clone() {
                None => total,
                Some(before) => self.merged(&before, &total),
            };
            before_accesses.push(Some(so_far));
        }
        let total = before_accesses.pop().flatten();

        let mut base: Option<Folded> = None;
        if let (true, Some(total)) = (key.warps > 1, total) {
            let before_warp = self.before_warp(key, &warp, &of_row, &lane, &total);
            base = Some(match &tile {
                None => before_warp,
                Some(tile) => {
                    let whole = self.merged(&before_warp, &total);
                    let before_tile = self.look_back(key, tile, &thread, &lane, &warp, &whole);
                    self.merged(&before_tile, &before_warp)
                }
            });
        }
        for (access, before_access) in accesses.iter().zip(&before_accesses) {
            let before = match (&base, before_access) {
                (Some(base), Some(access)) => Some(self.merged(base, access)),
                (base, access) => base.clone().or(access.clone()),
            };
            let values: Vec<Folded> = match before {
                Some(before) => access.values.iter().map(|value| self.merged(&before, value)).collect(),
                None => access.values.clone(),
            };
            self.store_scanned(key, &coordinates, access, &values, &inside);
        }
        self.line("ret;");
    }

    /// The row of a thread, of several in a block, and whether it is there.
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

    /// The block's tile, by a ticket, and its row.
    fn ticket(&mut self, thread: &str) -> (Tile, Name) {
        let start = self.bits32("mov.u32", &["shared"]);
        let at = self.shared;
        self.shared += 8;
        let counter = self.base(self.state.prologue.inputs.len() + 1);
        let first = self.predicate("setp.eq.u32", &[thread, "0"]);
        let ticket = self.writer.register(Register::Bits32);
        self.line(format!("@{first} atom.global.add.u32 {ticket}, [{counter}], 1;"));
        self.line(format!("@{first} st.shared.b32 [{start}+{at}], {ticket};"));
        self.line("bar.sync 0;");
        let number = self.bits32("ld.shared.b32", &[&format!("[{start}+{at}]")]);
        let number = self.widened(&number);
        let (row, of_row) = self.divide(&number, self.parameters.launch());
        let narrow = match self.wide {
            true => self.bits32("cvt.u32.u64", &[&of_row]),
            false => of_row.clone(),
        };
        let of_group = self.bits32("and.b32", &[&narrow, &(GROUP - 1).to_string()]);
        (Tile { number, of_row, of_group }, row)
    }

    /// Loads and computes the elements of a thread's accesses.
    fn loads(&mut self, key: &ScanKey, coordinates: &[Name], first: &str) -> Vec<Access> {
        let state = self.state;
        let program = &state.prologue.program;
        let wanted = program.live(program.outputs[0].into_iter());
        let once = program.uniform(|_| false);
        let only_once: Vec<bool> = wanted.iter().zip(&once).map(|(wanted, once)| *wanted && *once).collect();
        let known = self.evaluate(program, &[], &only_once, 0, &|_, _| Name::new());
        let used: Vec<bool> = (0..state.prologue.inputs.len())
            .map(|input| {
                program.steps.iter().zip(&wanted).any(|((step, _), wanted)| {
                    *wanted && matches!(step, Step::Load { input: found, .. } if *found as usize == input)
                })
            })
            .collect();
        let mut bases = Vec::new();
        let mut still = Vec::new();
        for (input, dtype) in state.prologue.inputs.iter().enumerate() {
            if !used[input] {
                bases.push(Name::new());
                still.push(None);
                continue;
            }
            let base = self.base(input);
            let offset = self.offset(input, coordinates, 0);
            let base = self.address(&base, offset.as_deref(), dtype.size());
            let is_still = key.classes[input] == Class::Still;
            still.push(is_still.then(|| self.writer.load(MemoryState::Global, *dtype, &base)));
            bases.push(base);
        }
        let count = self.word(self.parameters.row());
        let step = if key.quads { QUAD } else { 1 };
        let last = self.index("sub.u32", "sub.u64", &[&count, &step.to_string()]);

        // All loads stand before what is done with them.
        let mut loaded = Vec::new();
        for access in 0..key.accesses {
            let place = self.plus(first, (access * key.threads) as usize * QUAD);
            let mut places = Vec::new();
            let mut valid = Vec::new();
            for at in (0..QUAD).step_by(step) {
                let wanted = self.plus(&place, at);
                if key.tail {
                    valid.push(self.is_below(&wanted, &count));
                    places.push(self.lesser(&wanted, &last));
                } else {
                    places.push(wanted);
                }
            }
            let mut elements: Vec<Vec<[Name; 2]>> = Vec::new();
            for (input, dtype) in state.prologue.inputs.iter().enumerate() {
                if let Some(element) = &still[input] {
                    elements.push(vec![element.clone()]);
                    continue;
                }
                if !used[input] {
                    elements.push(Vec::new());
                    continue;
                }
                let mut of_input = Vec::new();
                for place in &places {
                    let offset = match key.classes[input] {
                        Class::Vector => place.clone(),
                        _ => {
                            let stride = self.word(self.parameters.stride(input, key.kept));
                            self.index("mul.lo.u32", "mul.lo.u64", &[place, &stride])
                        }
                    };
                    let address = self.address(&bases[input].clone(), Some(&offset), dtype.size());
                    match key.classes[input] {
                        Class::Vector => {
                            of_input = self.writer.load_vector(MemoryState::Global, *dtype, &address, QUAD);
                        }
                        _ => {
                            for at in 0..step {
                                let address = match at {
                                    0 => address.clone(),
                                    _ => {
                                        let stride = self.word(self.parameters.stride(input, key.kept));
                                        self.address(&address, Some(&stride), at * dtype.size())
                                    }
                                };
                                of_input.push(self.writer.load(MemoryState::Global, *dtype, &address));
                            }
                        }
                    }
                }
                elements.push(of_input);
            }
            loaded.push((place, valid, elements));
        }
        let output = program.outputs[0];
        let single = parts(state.prologue.outputs[0]) == 1;
        loaded
            .into_iter()
            .map(|(place, valid, elements)| {
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
                        None => value,
                    });
                }
                Access { place, valid, values }
            })
            .collect()
    }

    /// The value of the thread in this lane of the warp.
    fn of_lane(&mut self, value: &Folded, lane: &str) -> Folded {
        self.exchanged(value, "idx", lane)
    }

    /// Each lane's value with all before it: block by block, the upper half of each takes the lower half's last.
    fn through_lanes(&mut self, key: &ScanKey, lane: &str, mut value: Folded) -> Folded {
        let mut distance = 1;
        while distance < key.threads {
            let start = self.bits32("and.b32", &[lane, &(-(2 * i64::from(distance))).to_string()]);
            let from = self.bits32("or.b32", &[&start, &(distance - 1).to_string()]);
            let lower = self.of_lane(&value, &from);
            let both = self.merged(&lower, &value);
            let bit = self.bits32("and.b32", &[lane, &distance.to_string()]);
            let upper = self.predicate("setp.eq.u32", &[&bit, &distance.to_string()]);
            value = self.chosen(&both, &value, &upper);
            distance *= 2;
        }
        value
    }

    fn chosen(&mut self, yes: &Folded, no: &Folded, condition: &str) -> Folded {
        self.each_part(|kernel, part, kind| {
            let mnemonic = format!("selp.{}", type_of(kind));
            kernel.result(kind.into(), &mnemonic, &[&yes[part], &no[part], condition])
        })
    }

    /// The value of the lane before; the identity in the first one of a row.
    fn before(&mut self, lane: &str, within: &str, value: &Folded) -> Folded {
        let less = self.bits32("add.u32", &[lane, "-1"]);
        let from = self.bits32("and.b32", &[&less, &(WARP - 1).to_string()]);
        let before = self.of_lane(value, &from);
        let later = self.predicate("setp.lt.u32", &["0", within]);
        self.or_identity(&before, &later)
    }

    /// What stands before a warp among those of its row.
    fn before_warp(&mut self, key: &ScanKey, warp: &str, of_row: &str, lane: &str, total: &Folded) -> Folded {
        let warps = (key.warps * key.across) as usize;
        let (start, planes) = self.planes(warps);
        let slots = self.slots(&start, warp, &planes);
        let first = self.predicate("setp.eq.u32", &[lane, "0"]);
        self.put_shared(&first, &slots, 0, total);
        self.line("bar.sync 0;");
        let first_warp = self.bits32("sub.u32", &[warp, of_row]);
        let slots = self.slots(&start, &first_warp, &planes);
        let mut before = self.identity();
        for other in 0..key.warps as usize - 1 {
            let value = self.get_shared(&slots, other);
            let both = self.merged(&before, &value);
            let earlier = self.predicate("setp.lt.u32", &[&other.to_string(), of_row]);
            before = self.chosen(&both, &before, &earlier);
        }
        before
    }

    /// The identity in registers.
    fn identity(&mut self) -> Folded {
        self.each_part(|kernel, part, kind| {
            let identity = immediate(kernel.state.rules.identity[part], kind);
            kernel.result(kind.into(), &format!("mov.{}", type_of(kind)), &[&identity])
        })
    }

    /// Publishes a tile's value, and gives what stands before it in the row.
    fn look_back(
        &mut self,
        key: &ScanKey,
        tile: &Tile,
        thread: &str,
        lane: &str,
        warp: &str,
        whole: &Folded,
    ) -> Folded {
        // Behind the output and the counter.
        let of_tiles = self.state.prologue.inputs.len() + 2;
        let of_groups = of_tiles + words(self.state);
        // One that has all of the tile, in a warp that waits for no tile.
        let last = ((key.warps as usize - 1) * WARP).to_string();
        let leads = self.predicate("setp.eq.u32", &[thread, &last]);
        self.publish(&leads, whole, of_tiles, &tile.number);

        let in_group = self.widened(&tile.of_group);
        let first = self.index("sub.u32", "sub.u64", &[&tile.number, &in_group]);
        let wide_thread = self.widened(thread);
        let earlier = self.predicate("setp.lt.u32", &[thread, &tile.of_group]);
        let other = self.index("add.u32", "add.u64", &[&first, &wide_thread]);
        let mut folded = self.await_value(&earlier, of_tiles, &other);

        // The tree of a group: halves in a warp, then neighbouring warps.
        let mut distance = WARP / 2;
        while distance > 0 {
            let further = self.shuffled(&folded, distance);
            folded = self.merged(&folded, &further);
            distance /= 2;
        }
        let warps = GROUP / WARP;
        let (start, planes) = self.planes(warps + 1);
        let slots = self.slots(&start, warp, &planes);
        let first_lane = self.predicate("setp.eq.u32", &[lane, "0"]);
        let has_slot = self.predicate("setp.lt.u32", &[warp, &warps.to_string()]);
        let writes = self.predicate("and.pred", &[&first_lane, &has_slot]);
        self.put_shared(&writes, &slots, 0, &folded);
        self.line("bar.sync 0;");
        let all = self.slots(&start, "0", &planes);
        let values: Vec<Folded> = (0..warps).map(|other| self.get_shared(&all, other)).collect();
        let folded = self.merge_neighbours(values);

        let has_group = self.is_below(&in_group, &tile.of_row);
        let waits = self.predicate("and.pred", &[&leads, &has_group]);
        let group = self.group(&first);
        let before_group = self.await_value(&waits, of_groups, &group);
        let before = self.merged(&before_group, &folded);
        // The last tile of a group knows what stands before the next, which waits for nothing else.
        let ends = self.predicate("setp.eq.u32", &[&tile.of_group, &(GROUP - 1).to_string()]);
        let publishes = self.predicate("and.pred", &[&leads, &ends]);
        let after = self.merged(&before, whole);
        let next = self.plus(&tile.number, 1);
        let group = self.group(&next);
        self.publish(&publishes, &after, of_groups, &group);
        self.put_shared(&leads, &all, warps, &before);
        self.line("bar.sync 0;");
        self.get_shared(&all, warps)
    }

    /// The place of what stands before the group that this tile begins. Such tiles are at least a group apart, in a row as
    /// from row to row, as nothing stands before a row's first; so no two have one place.
    fn group(&mut self, tile: &str) -> Name {
        self.index("shr.u32", "shr.u64", &[tile, &GROUP.trailing_zeros().to_string()])
    }

    /// Writes a value, each word with its flag.
    fn publish(&mut self, guard: &str, value: &Folded, plane: usize, place: &str) {
        let mut parts = Vec::new();
        for (part, kind) in self.kinds().into_iter().enumerate() {
            if bytes(kind) == 4 {
                parts.push(self.bits32("mov.b32", &[&value[part]]));
                continue;
            }
            let halves = [0; 2].map(|_| self.writer.register(Register::Bits32));
            self.line(format!("mov.b64 {{{}, {}}}, {};", halves[0], halves[1], value[part]));
            parts.extend(halves);
        }
        let flag = self.bits32("mov.u32", &["1"]);
        for (at, word) in parts.iter().enumerate() {
            let address = self.slot(plane + at, place);
            let both = self.result(Register::Bits64, "mov.b64", &[&format!("{{{word}, {flag}}}")]);
            self.line(format!("@{guard} st.volatile.global.u64 [{address}], {both};"));
        }
    }

    /// Where the guard says so, waits for the flags of a value, which it gives then; elsewhere the identity.
    fn await_value(&mut self, guard: &str, plane: usize, place: &str) -> Folded {
        let value = self.identity();
        let unique = self.writer.unique();
        self.line(format!("@!{guard} bra $waited_{unique};"));
        let slots: Vec<Name> = (0..words(self.state)).map(|word| self.slot(plane + word, place)).collect();
        self.line(format!("$wait_{unique}:"));
        let both: Vec<Name> = slots
            .iter()
            .map(|slot| self.result(Register::Bits64, "ld.volatile.global.u64", &[&format!("[{slot}]")]))
            .collect();
        let mut found = Vec::new();
        let mut set: Option<Name> = None;
        for both in both {
            let [word, flag] = [0; 2].map(|_| self.writer.register(Register::Bits32));
            self.line(format!("mov.b64 {{{word}, {flag}}}, {both};"));
            found.push(word);
            set = Some(match set {
                None => flag,
                Some(set) => self.bits32("and.b32", &[&set, &flag]),
            });
        }
        let unset = self.predicate("setp.eq.u32", &[&set.unwrap_or_default(), "0"]);
        self.line(format!("@{unset} bra $wait_{unique};"));
        let mut found = found.into_iter();
        for (part, kind) in self.kinds().into_iter().enumerate() {
            let halves: Vec<Name> = found.by_ref().take(bytes(kind) / 4).collect();
            let text = match &halves[..] {
                [low, high] => format!("mov.b64 {}, {{{low}, {high}}};", value[part]),
                word => format!("mov.b32 {}, {};", value[part], word.concat()),
            };
            self.line(text);
        }
        self.line(format!("$waited_{unique}:"));
        value
    }

    /// The address of a word with its flag.
    fn slot(&mut self, plane: usize, place: &str) -> Name {
        let base = self.base(plane);
        self.address(&base, Some(place), SLOT)
    }

    /// Stores the results of a quad.
    fn store_scanned(
        &mut self,
        key: &ScanKey,
        coordinates: &[Name],
        access: &Access,
        values: &[Folded],
        inside: &str,
    ) {
        let state = self.state;
        let (program, dtype) = (&state.epilogue.program, state.epilogue.outputs[0]);
        let outputs = program.outputs[0];
        let wanted = program.live(outputs.into_iter());
        let elements: Vec<[Name; 2]> = values
            .iter()
            .map(|value| {
                let load = |_: u32, part: u32| value[part as usize].clone();
                let names = self.evaluate(program, &[], &wanted, state.prologue.scalars.len(), &load);
                outputs.map(|value| names[value.index()].clone())
            })
            .collect();
        let operand = state.prologue.inputs.len();
        let base = self.base(operand);
        let offset = self.offset(operand, coordinates, 0);
        let base = self.address(&base, offset.as_deref(), dtype.size());
        let stride = self.word(self.parameters.stride(operand, key.kept));
        let place = match key.stores_vectors {
            true => access.place.clone(),
            false => self.index("mul.lo.u32", "mul.lo.u64", &[&access.place, &stride]),
        };
        let address = self.address(&base, Some(&place), dtype.size());
        let mut guards = Vec::new();
        for at in 0..QUAD {
            let valid = access.valid.get(at).or(access.valid.first());
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
