//! Ranks that compute together: each estimates π from its own points, and all have the mean.
//!
//! ```text
//! cargo run --features collective --example 24-ranks
//! selvedge launch --ranks 2 -- cargo run --features collective --example 24-ranks
//!
//! rank 0 of 2: 3.1419 here, 3.1416 with all ranks
//! ```
//!
//! Without a launcher, two threads are the ranks.

use std::process::ExitCode;

use selvedge::Result;
use selvedge::collective::{Communicator, ReduceOp, WorldOptions};

/// The share of a square's points within its circle, by points in the order of two sequences of low discrepancy.
fn estimate(first: usize, count: usize) -> f64 {
    let fraction = |at: usize, step: f64| (at as f64 * step).fract();
    let is_inside = |at: &usize| {
        let (x, y) = (fraction(*at, 0.754_877_666_246_692_7), fraction(*at, 0.569_840_290_998_053_2));
        x * x + y * y < 1.0
    };
    4.0 * (first..first + count).filter(is_inside).count() as f64 / count as f64
}

fn run(rank: &Communicator) -> Result<()> {
    const POINTS: usize = 200_000;
    let own = estimate(rank.rank() * POINTS, POINTS);
    let mut all = [own];
    rank.all_reduce(&mut all, ReduceOp::Mean)?;
    println!("rank {} of {}: {own:.4} here, {:.4} with all ranks", rank.rank(), rank.world_size(), all[0]);
    assert!((all[0] - std::f64::consts::PI).abs() < 1e-3);
    Ok(())
}

fn ranks() -> Result<()> {
    if let Some(options) = WorldOptions::from_environment()? {
        return run(&Communicator::connect(&options)?);
    }
    let ranks = Communicator::in_process(2)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks.iter().map(|rank| scope.spawn(move || run(rank))).collect();
        // A thread that panics shows it.
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn main() -> ExitCode {
    match ranks() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
