//! Parity of the elementwise compiler: each operation, for each dtype and each way in which operands lie, on the CPU against
//! a reference written apart from it, its PTX through an interpreter against the CPU bit for bit, and, where there is
//! a device, what that computes against the CPU bit for bit.
//!
//! `SELVEDGE_PTX_OUT=folder` writes every kernel's text there, once each, for `scripts/check_fuse.py`, which assembles them.
//! `--time` prints the table's times instead; see `timing`.

mod arrays;
mod classes;
mod coordinates;
mod harness;
mod interpreter;
mod memory;
mod narrow;
mod normal;
mod operations;
mod pure;
mod random;
mod rares;
mod reduced;
mod reductions;
mod reference;
mod rules;
mod scans;
mod schedule;
mod sweeps;
mod texts;
mod tiles;
mod timing;
mod value;
mod vectors;
mod words;

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
    let arguments = libtest_mimic::Arguments::from_args();
    if !arguments.list {
        match harness::device() {
            Ok(stream) => eprintln!("with {}", stream.device()),
            Err(_) => eprintln!("there is no device: its kernels run through the interpreter alone"),
        }
    }
    let mut trials = operations::trials();
    trials.extend(coordinates::trials());
    trials.extend(random::trials());
    trials.extend(rares::trials());
    trials.extend(reductions::trials());
    trials.extend(rules::trials());
    trials.extend(scans::trials());
    trials.extend(narrow::trials());
    trials.extend(sweeps::trials());
    trials.extend(tiles::trials());
    trials.extend(vectors::trials());
    trials.extend(normal::trials());
    trials.extend(words::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
