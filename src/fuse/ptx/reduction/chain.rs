//! Scans of rows longer than a tile, in one pass whose tiles wait for earlier tiles (a chained scan).
//!
//! | version | change | 2²⁸ f32 on an H200, against the driver's copy |
//! |---|---|---|
//! | 1 | a block a tile of 8192 by a ticket; published with fences, groups of 256 tiles | 1084 us |
//! | 2 | no fences: a word arrives with its flag; groups of 64 tiles, two blocks a multiprocessor | 776 us, 0.653 |
//! | 3 (replaced) | tiles of 4096, groups of 256; a block loads and sums its next tile before it waits | 610 us, 0.825 |
//! | 4 | loads precede the wait, which is for a tile of two rounds ago; groups of 512 | 0.874; 0.97 in rows of 1024 |
//!
//! **Algorithm.** A block draws a tile by ticket each round, issues its loads, writes the results of the tile of two
//! rounds ago, scans the new tile, publishes its total and parks it in shared memory. The threads of a block read the
//! totals of the group's earlier tiles at once, each waiting for its own, and one thread reads the prefix of the group.
//!
//! **Latency.** The prefix passes from group to group through the L2 cache at 1 us or more a group. Version 2 passed it
//! 512 times in sequence, which took longer than the memory accesses. With groups of 512 tiles of 4096 elements there are
//! 128 passes in 2²⁸ elements, one in 3.9 us. A multiprocessor has four blocks, each with about 4 us for a tile of 16 KB at
//! the copy's speed, so 64 KB of loads can be in flight (32 to 40 KB suffice), and a total is published a whole round
//! before its block waits for a prefix.
//!
//! **Invariants.** A tile waits only for tiles with lower tickets, which have begun, and a block publishes a tile before it
//! waits, so the kernel ends for any number of resident blocks in any order. The order in which values are folded is
//! fixed. A published value needs no fence: each of its 32-bit words is in a 64-bit word with a flag, and 64-bit accesses
//! are indivisible, so a thread that sees the flag has the word that was written with it.

use super::scan::{Part, Totals};
use super::{Folded, KernelWriter, type_of};
use crate::fuse::language::fold::bytes;
use crate::fuse::plan::reduction::{ScanKey, WARP};
use crate::fuse::plan::scan::{GROUP, PARKED, QUAD, SLOT, words};
use crate::fuse::ptx::{Name, Register};

/// Bytes of a thread's elements of a tile, for every dtype, and of the tile's total.
const QUADS_BYTES: usize = 64;
const WHOLE_BYTES: usize = 16;

/// The position of a tile.
struct Tile {
    tile_index: Name,
    /// In its row, and in its group.
    of_row: Name,
    of_group: Name,
    part: Part,
}

/// A value that a thread waits for if the guard holds: its planes of words, and its index in them.
struct Awaited<'a> {
    guard: &'a str,
    plane: usize,
    index: Name,
}

/// The registers that a thread keeps for all rounds.
struct Chain<'a> {
    key: &'a ScanKey,
    thread: &'a str,
    /// The index of its first element in a tile.
    first: Name,
    /// The number of tiles.
    tiles: Name,
    /// The predicates of the thread that publishes for the tile, which is in the last warp and has its total,
    /// and of the thread that draws tickets.
    leads: Name,
    draws: Name,
    /// The shared memory address of the ticket.
    ticket: Name,
    /// The shared memory address of the oldest parked tile, which the newest will replace, and the sum of
    /// both such addresses.
    parked: Name,
    both: Name,
}

impl KernelWriter<'_> {
    pub(super) fn chain(&mut self, key: &ScanKey, thread: &str) {
        let chain = self.begin_chain(key, thread);
        // A number past all tiles means none.
        let [newest, last, oldest] = [0; PARKED + 1].map(|_| self.writer.register(Register::Bits32));
        let next = self.writer.register(Register::Bits32);
        self.line(format!("mov.u32 {last}, -1;"));
        self.line(format!("mov.u32 {oldest}, -1;"));
        let drawn = self.draw(&chain);
        self.publish_ticket(&chain, &drawn);
        self.line("bar.sync 0;");
        self.line(format!("ld.shared.b32 {newest}, [{}];", chain.ticket));

        let unique = self.writer.unique();
        self.line(format!("$round_{unique}:"));
        let is_new = self.predicate("setp.lt.u32", &[&newest, &chain.tiles]);
        let mut ahead = None;
        if key.ahead {
            self.line(format!("@!{is_new} bra $loaded_{unique};"));
            let tile = self.tile(&chain, &newest);
            let loaded = self.loads(key, &tile.part);
            ahead = Some((tile, loaded));
            self.line(format!("$loaded_{unique}:"));
        }
        let drawn = self.finish_tile(&chain, &oldest);
        self.line(format!("@{is_new} bra $scan_{unique};"));
        // Without this barrier the next round would overwrite data that threads still read here.
        self.line("bar.sync 0;");
        self.line(format!("bra $scanned_{unique};"));
        self.line(format!("$scan_{unique}:"));
        let (tile, loaded) = match ahead {
            Some(ahead) => ahead,
            None => {
                let tile = self.tile(&chain, &newest);
                let loaded = self.loads(key, &tile.part);
                (tile, loaded)
            }
        };
        let mut quads = self.computed(key, &tile.part, &loaded);
        if let Some(totals) =
            self.scan_tile(key, thread, &mut quads, |kernel| kernel.publish_ticket(&chain, &drawn))
        {
            self.park(&chain, &tile, &quads, &totals);
        }
        self.line(format!("ld.shared.b32 {next}, [{}];", chain.ticket));
        self.line(format!("$scanned_{unique}:"));
        self.line(format!("mov.u32 {oldest}, {last};"));
        self.line(format!("mov.u32 {last}, {newest};"));
        self.line(format!("@{is_new} mov.u32 {newest}, {next};"));
        self.line(format!("sub.u32 {0}, {1}, {0};", chain.parked, chain.both));
        let least = self.bits32("min.u32", &[&newest, &last]);
        let least = self.bits32("min.u32", &[&least, &oldest]);
        let goes_on = self.predicate("setp.lt.u32", &[&least, &chain.tiles]);
        self.line(format!("@{goes_on} bra $round_{unique};"));
        self.line("ret;");
    }

    fn begin_chain<'a>(&mut self, key: &'a ScanKey, thread: &'a str) -> Chain<'a> {
        let start = self.bits32("mov.u32", &["shared"]);
        self.start = Some(start.clone());
        let parked_bytes = QUADS_BYTES * key.threads as usize * key.warps as usize + WHOLE_BYTES;
        let parked = self.shared.next_multiple_of(16);
        self.shared = parked + PARKED * parked_bytes + 16;
        let ticket = self.bits32("add.u32", &[&start, &(self.shared - 16).to_string()]);
        let first_parked = self.writer.register(Register::Bits32);
        self.line(format!("add.u32 {first_parked}, {start}, {parked};"));
        let other = self.bits32("add.u32", &[&first_parked, &parked_bytes.to_string()]);
        let both = self.bits32("add.u32", &[&first_parked, &other]);
        let tiles = self.word(self.parameters.items());
        let tiles = if self.wide { self.bits32("cvt.u32.u64", &[&tiles]) } else { tiles };
        let last_warp = ((key.warps as usize - 1) * WARP).to_string();
        Chain {
            key,
            thread,
            first: self.first_of_thread(key, thread),
            tiles,
            leads: self.predicate("setp.eq.u32", &[thread, &last_warp]),
            draws: self.predicate("setp.eq.u32", &[thread, "0"]),
            ticket,
            parked: first_parked,
            both,
        }
    }

    /// Draws the block's next tile, in the thread that draws tickets.
    fn draw(&mut self, chain: &Chain<'_>) -> Name {
        let counter = self.base(self.compiled.prologue.inputs.len() + 1);
        let drawn = self.writer.register(Register::Bits32);
        self.line(format!("@{} atom.global.add.u32 {drawn}, [{counter}], 1;", chain.draws));
        drawn
    }

    fn publish_ticket(&mut self, chain: &Chain<'_>, drawn: &str) {
        self.line(format!("@{} st.shared.b32 [{}], {drawn};", chain.draws, chain.ticket));
    }

    fn tile(&mut self, chain: &Chain<'_>, tile_index: &str) -> Tile {
        let key = chain.key;
        let tile_index = self.widened(tile_index);
        let (row, of_row) = self.divide(&tile_index, self.parameters.launch());
        let narrow = match self.wide {
            true => self.bits32("cvt.u32.u64", &[&of_row]),
            false => of_row.clone(),
        };
        let of_group = self.bits32("and.b32", &[&narrow, &(GROUP - 1).to_string()]);
        let coordinates = self.decode(&row, 0..key.outer_dims);
        let first = self.widened(&chain.first);
        let first = self.times_plus(&of_row, &key.tile().to_string(), &first);
        Tile { tile_index, of_row, of_group, part: Part { coordinates, first } }
    }

    /// Publishes the total of a tile, and parks its elements, which are scanned within the tile.
    fn park(&mut self, chain: &Chain<'_>, tile: &Tile, quads: &[Vec<Folded>], totals: &Totals) {
        let whole = self.merged(&totals.before_warp, &totals.of_warp);
        // After the output and the counter.
        let of_tiles = self.compiled.prologue.inputs.len() + 2;
        self.publish(&chain.leads, &whole, of_tiles, &tile.tile_index);
        let threads = (chain.key.threads * chain.key.warps) as usize;
        for (part, kind) in self.kinds().into_iter().enumerate() {
            let (kind, at) = (type_of(kind), QUADS_BYTES * threads + part * bytes(kind));
            self.line(format!("@{} st.shared.{kind} [{}+{at}], {};", chain.leads, chain.parked, whole[part]));
        }
        let address = self.bits32("mad.lo.u32", &[chain.thread, "16", &chain.parked]);
        let mut at = 0;
        for values in quads {
            for (part, kind) in self.kinds().into_iter().enumerate() {
                let lanes = 16 / bytes(kind);
                for some in values.chunks(lanes) {
                    let some: Vec<Name> = some.iter().map(|value| value[part].clone()).collect();
                    let kind = type_of(kind);
                    self.line(format!(
                        "st.shared.v{lanes}.{kind} [{address}+{at}], {{{}}};",
                        some.join(", ")
                    ));
                    at += 16 * threads;
                }
            }
        }
    }

    /// Waits for the prefix of a tile, if `number` is one, and stores its results. It draws the next ticket
    /// in between: after the wait, so that the ticket's tile begins soon, and early enough for the ticket to
    /// arrive before its use.
    fn finish_tile(&mut self, chain: &Chain<'_>, tile_index: &str) -> Name {
        let (key, thread) = (chain.key, chain.thread);
        let (warp_bits, threads) = (WARP.trailing_zeros(), (key.threads * key.warps) as usize);
        let tile = self.tile(chain, tile_index);
        let is_there = self.predicate("setp.lt.u32", &[tile_index, &chain.tiles]);
        let of_tiles = self.compiled.prologue.inputs.len() + 2;
        let of_groups = of_tiles + words(&self.compiled.rules);
        let in_group = self.widened(&tile.of_group);
        let group = self.index("sub.u32", "sub.u64", &[&tile.tile_index, &in_group]);
        let mut guards = Vec::new();
        let mut awaited = Vec::new();
        for first in (0..GROUP).step_by(threads) {
            let other = self.bits32("add.u32", &[thread, &first.to_string()]);
            let earlier = self.predicate("setp.lt.u32", &[&other, &tile.of_group]);
            guards.push(self.predicate("and.pred", &[&earlier, &is_there]));
            let other = self.widened(&other);
            awaited.push((of_tiles, self.index("add.u32", "add.u64", &[&group, &other])));
        }
        let has_group = self.is_below(&in_group, &tile.of_row);
        let leads = self.predicate("and.pred", &[&chain.leads, &is_there]);
        guards.push(self.predicate("and.pred", &[&leads, &has_group]));
        awaited.push((of_groups, self.group(&group)));
        let awaited: Vec<Awaited<'_>> = guards
            .iter()
            .zip(awaited)
            .map(|(guard, (plane, index))| Awaited { guard, plane, index })
            .collect();
        let mut values = self.await_values(&awaited);

        // The tree of a group: halves down to the threads of a block and within a warp, then neighbouring
        // warps.
        let before_group = values.pop().unwrap_or_default();
        let mut folded = self.halve(values, 1).swap_remove(0);
        let mut distance = WARP / 2;
        while distance > 0 {
            let further = self.shuffled(&folded, distance);
            folded = self.merged(&folded, &further);
            distance /= 2;
        }
        let warps = threads / WARP;
        let (start, planes) = self.planes(warps + 1);
        let warp = self.bits32("shr.u32", &[thread, &warp_bits.to_string()]);
        let lane = self.bits32("and.b32", &[thread, &(WARP - 1).to_string()]);
        let slots = self.slots(&start, &warp, &planes);
        let first_lane = self.predicate("setp.eq.u32", &[&lane, "0"]);
        self.put_shared(&first_lane, &slots, 0, &folded);
        let all = self.slots(&start, "0", &planes);
        self.put_shared(&chain.leads, &all, warps, &before_group);
        self.line("bar.sync 0;");
        let drawn = self.draw(chain);

        let unique = self.writer.unique();
        self.line(format!("@!{is_there} bra $finished_{unique};"));
        let values = self.shared_neighbours(&all, warps);
        let folded = self.merge_neighbours(values);
        let before_group = self.get_shared(&all, warps);
        let before = self.merged(&before_group, &folded);
        // The last tile of a group computes the prefix of the next group.
        let whole: Vec<Name> = self
            .kinds()
            .into_iter()
            .enumerate()
            .map(|(part, kind)| {
                let source = format!("[{}+{}]", chain.parked, QUADS_BYTES * threads + part * bytes(kind));
                self.result(kind.into(), &format!("ld.shared.{}", type_of(kind)), &[&source])
            })
            .collect();
        let whole = [whole[0].clone(), whole[whole.len() - 1].clone()];
        let after = self.merged(&before, &whole);
        let ends = self.predicate("setp.eq.u32", &[&tile.of_group, &(GROUP - 1).to_string()]);
        let publishes = self.predicate("and.pred", &[&chain.leads, &ends]);
        let next = self.plus(&tile.tile_index, 1);
        let next = self.group(&next);
        self.publish(&publishes, &after, of_groups, &next);

        let address = self.bits32("mad.lo.u32", &[thread, "16", &chain.parked]);
        let mut at = 0;
        for access in 0..key.accesses as usize {
            let mut planes: Vec<Vec<Name>> = Vec::new();
            for kind in self.kinds() {
                let (lanes, mut plane) = (16 / bytes(kind), Vec::new());
                while plane.len() < QUAD {
                    let some: Vec<Name> = (0..lanes).map(|_| self.writer.register(kind.into())).collect();
                    let (list, kind) = (some.join(", "), type_of(kind));
                    self.line(format!("ld.shared.v{lanes}.{kind} {{{list}}}, [{address}+{at}];"));
                    plane.extend(some);
                    at += 16 * threads;
                }
                planes.push(plane);
            }
            let last = planes.len() - 1;
            let values: Vec<Folded> = (0..planes[0].len())
                .map(|at| [planes[0][at].clone(), planes[last][at].clone()])
                .map(|value| self.merged(&before, &value))
                .collect();
            self.store_scanned(key, &tile.part, access, &values, "");
        }
        self.line(format!("$finished_{unique}:"));
        drawn
    }

    /// Returns the index of the prefix of the group that begins with this tile. Such tiles are at least a
    /// group apart, within a row and between rows, because a row's first tile has no prefix; therefore no two
    /// share an index.
    fn group(&mut self, tile: &str) -> Name {
        self.index("shr.u32", "shr.u64", &[tile, &GROUP.trailing_zeros().to_string()])
    }

    /// Writes a value, each word with its flag.
    fn publish(&mut self, guard: &str, value: &Folded, plane: usize, index: &str) {
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
            let address = self.slot(plane + at, index);
            let both = self.result(Register::Bits64, "mov.b64", &[&format!("{{{word}, {flag}}}")]);
            self.line(format!("@{guard} st.volatile.global.u64 [{address}], {both};"));
        }
    }

    /// Waits for the flags of several values at once. A value that is not awaited is the identity.
    fn await_values(&mut self, awaited: &[Awaited<'_>]) -> Vec<Folded> {
        let count = words(&self.compiled.rules);
        let identity = self.compiled.rules.identity;
        let bits: Vec<u64> = self
            .kinds()
            .into_iter()
            .enumerate()
            .flat_map(|(part, kind)| (0..bytes(kind) / 4).map(move |word| identity[part] >> (32 * word)))
            .collect();
        let mut slots = Vec::new();
        for value in awaited {
            for (word, bits) in bits.iter().enumerate() {
                let slot = self.slot(value.plane + word, &value.index);
                // As if it had arrived.
                let both = ((1 << 32) | (bits & 0xffff_ffff)).to_string();
                slots.push((value.guard, slot, self.result(Register::Bits64, "mov.b64", &[&both])));
            }
        }
        let unique = self.writer.unique();
        self.line(format!("$wait_{unique}:"));
        for (guard, slot, both) in &slots {
            self.line(format!("@{guard} ld.volatile.global.u64 {both}, [{slot}];"));
        }
        let mut found = Vec::new();
        let mut set: Option<Name> = None;
        for (_, _, both) in &slots {
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
        found
            .chunks(count)
            .map(|words| {
                let mut words = words.iter();
                self.each_part(|kernel, _, kind| {
                    let words: Vec<Name> = words.by_ref().take(bytes(kind) / 4).cloned().collect();
                    match &words[..] {
                        [word] => kernel.result(kind.into(), "mov.b32", &[word]),
                        halves => {
                            kernel.result(kind.into(), "mov.b64", &[&format!("{{{}}}", halves.join(", "))])
                        }
                    }
                })
            })
            .collect()
    }

    /// Returns the address of a word with its flag.
    fn slot(&mut self, plane: usize, index: &str) -> Name {
        let base = self.base(plane);
        self.address(&base, Some(index), SLOT)
    }
}
