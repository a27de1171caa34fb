//! The kernel that merges partial values: adjacent ones in a thread, then in its warp, then in its block.

use super::{Folded, KernelWriter, plain};
use crate::fuse::language::fold::bytes;
use crate::fuse::plan::reduction::MergeKey;
use crate::fuse::ptx::{Name, StateSpace};

const WARP: usize = 32;

impl KernelWriter<'_> {
    pub(super) fn merge(&mut self, key: &MergeKey) {
        if key.again {
            self.return_without_codes();
        }
        let (threads, count) = (key.threads as usize, key.values as usize);
        let (rows, group) = self.block(key.partial, true);
        let thread = self.bits32("mov.u32", &["%tid.x"]);
        let wide_thread = self.widened(&thread);
        let row = match threads {
            1 => self.times_plus(&rows, &key.across.to_string(), &wide_thread),
            _ => rows,
        };
        let items = self.word(self.parameters.items());
        let inside = self.is_below(&row, &items);
        let last = self.index("sub.u32", "sub.u64", &[&items, "1"]);
        let row = self.lesser(&row, &last);

        if key.again {
            self.take_code(&row);
        }

        let first = match (threads, &group) {
            (1, None) => "0".to_owned(),
            (1, Some(group)) => self.index("mul.lo.u32", "mul.lo.u64", &[group, &count.to_string()]),
            (_, group) => {
                let start = match group {
                    Some(group) => self.times_plus(group, &threads.to_string(), &wide_thread),
                    None => wide_thread,
                };
                self.index("mul.lo.u32", "mul.lo.u64", &[&start, &count.to_string()])
            }
        };
        let values = if key.vectors { self.neighbours(&first, count) } else { self.apart(key, &first, &row) };
        let mut value = self.merge_neighbours(values);
        if threads > 1 {
            let mut distance = 1;
            while distance < WARP {
                let further = self.shuffled(&value, distance);
                value = self.merged(&value, &further);
                distance *= 2;
            }
            let lane = self.bits32("and.b32", &[&thread, &(WARP - 1).to_string()]);
            let leads = self.predicate("setp.eq.u32", &[&lane, "0"]);
            let warp = self.bits32("shr.u32", &[&thread, &WARP.trailing_zeros().to_string()]);
            value = self.merge_warps(value, threads / WARP, threads / WARP, &warp, &leads);
        }
        self.line(format!("@!{inside} bra $exit;"));
        match group {
            Some(group) => self.store_partial(&[value], &group, &row),
            None => {
                if key.stores_codes {
                    self.store_code(&row, &value);
                }
                let coordinates = self.decode(&row, 0..key.outer_dims);
                self.store_results(&[value], &coordinates, 0, false);
            }
        }
        self.line("$exit:");
        self.line("ret;");
    }

    /// Loads the values of a single row starting at `first`, in whole vectors.
    fn neighbours(&mut self, first: &str, count: usize) -> Vec<Folded> {
        let mut planes = Vec::new();
        for (part, kind) in self.kinds().into_iter().enumerate() {
            let base = self.base(part);
            let address = self.address(&base, Some(first), bytes(kind));
            planes.push(self.writer.load_vector(StateSpace::Global, plain(kind), &address, count));
        }
        let last = planes.len() - 1;
        (0..count).map(|at| [planes[0][at][0].clone(), planes[last][at][0].clone()]).collect()
    }

    /// Loads the values of a row starting at `first`, which are as far apart as there are rows.
    fn apart(&mut self, key: &MergeKey, first: &str, row: &str) -> Vec<Folded> {
        let rows = self.word(self.parameters.rows());
        let kinds = self.kinds();
        let bases: Vec<Name> = (0..kinds.len()).map(|part| self.base(part)).collect();
        let count = self.word(self.parameters.row());
        let last = self.index("sub.u32", "sub.u64", &[&count, "1"]);
        // All addresses precede all loads.
        let indices: Vec<(Name, Name)> = (0..key.values as usize)
            .map(|next| {
                let wanted = match first {
                    "0" => self.index("mov.u32", "mov.u64", &[&next.to_string()]),
                    _ => self.plus(first, next),
                };
                let (at, valid) = match key.tail {
                    true => (self.lesser(&wanted, &last), self.is_below(&wanted, &count)),
                    false => (wanted, Name::new()),
                };
                (self.times_plus(&at, &rows, row), valid)
            })
            .collect();
        let loaded: Vec<Folded> = indices
            .iter()
            .map(|(index, _)| {
                self.each_part(|kernel, part, kind| {
                    let address = kernel.address(&bases[part], Some(index), bytes(kind));
                    let source = format!("[{address}]");
                    kernel.result(kind.into(), &format!("ld.global.{}", super::type_of(kind)), &[&source])
                })
            })
            .collect();
        loaded
            .iter()
            .zip(&indices)
            .map(|(value, (_, valid))| match key.tail {
                true => self.or_identity(value, valid),
                false => value.clone(),
            })
            .collect()
    }
}
