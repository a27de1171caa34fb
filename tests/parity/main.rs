//! Parity tests of the elementwise compiler. Each operation is tested for each dtype and each layout of
//! operands: on the CPU against an independent reference, its PTX in an interpreter against the CPU bit for
//! bit, and on a device, if there is one, against the CPU bit for bit.
//!
//! `SELVEDGE_PTX_OUT=folder` writes every kernel's text there once, for `scripts/check_fuse.py`, which
//! assembles them. `--time` prints times instead; see `timing`.

mod approximations;
mod arrays;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod coordinates;
mod harness;
mod interpreter;
mod narrow;
mod native;
mod native_coordinates;
#[cfg(target_arch = "x86_64")]
mod native_faults;
#[cfg(target_arch = "x86_64")]
mod native_streaming;
mod normal;
mod operations;
mod random;
mod random_rows;
mod rares;
mod reduced;
mod reductions;
mod reference;
mod row_arrays;
mod row_columns;
mod row_draws;
mod row_lengths;
mod row_outputs;
mod row_powers;
mod row_runs;
mod row_sections;
mod row_spans;
mod row_squares;
mod row_sums;
mod rows;
mod rows_in_place;
mod rules;
mod scans;
mod sweeps;
#[cfg(feature = "srt")]
mod symbolic;
mod texts;
mod tiles;
mod timing;
mod value;
mod vectors;
mod words;

use common::sampling::Share;
use common::suite::Suite;
// Files of the library that `symbolic` includes name these.
#[cfg(feature = "srt")]
use selvedge::{fuse, srt, types};

/// The share of tables that runs unless the whole set is asked for.
const TABLES: Share = Share { one_in: 8, least: 2 };
/// The share of cases that take a second or more.
const SLOW_TABLES: Share = Share { one_in: 3, least: 1 };
/// The share of random row programs.
const RANDOM: Share = Share { one_in: 8, least: 40 };

fn main() -> std::process::ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if let Some(place) = given.iter().position(|argument| argument == "--time") {
        let filter = given.get(place + 1).map_or("", String::as_str);
        return match timing::print(filter) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                std::process::ExitCode::FAILURE
            }
        };
    }
    let mut suite = Suite::new("parity");
    if !suite.lists() {
        match harness::device() {
            Ok(stream) => eprintln!("with {}", stream.device()),
            Err(_) => eprintln!("there is no device: its kernels run through the interpreter alone"),
        }
    }
    for table in [
        operations::tests(),
        native::tests(),
        coordinates::tests(),
        reductions::tests(),
        rows::tests(),
        row_columns::tests(),
        scans::tests(),
        tiles::tests(),
    ] {
        suite.sample("parity", TABLES, table);
    }
    for table in [narrow::tests(), scans::large(), row_lengths::many(), row_spans::large()] {
        suite.sample("parity", SLOW_TABLES, table);
    }
    suite.sample("random", RANDOM, random_rows::tests());
    for all in [
        approximations::tests(),
        interpreter::tests(),
        random::tests(),
        random_rows::always(),
        rows::always(),
        rows_in_place::always(),
        row_arrays::always(),
        row_outputs::tests(),
        row_powers::tests(),
        row_columns::always(),
        row_draws::always(),
        row_lengths::always(),
        row_sections::always(),
        row_spans::always(),
        row_squares::tests(),
        row_sums::always(),
        rares::tests(),
        native::always(),
        native_coordinates::always(),
        random::always(),
        #[cfg(target_arch = "x86_64")]
        native_faults::tests(),
        #[cfg(target_arch = "x86_64")]
        native_streaming::always(),
        rules::tests(),
        words::tests(),
        sweeps::tests(),
        #[cfg(feature = "srt")]
        symbolic::tests(),
        vectors::tests(),
        normal::tests(),
    ] {
        suite.add(all);
    }
    suite.run()
}
