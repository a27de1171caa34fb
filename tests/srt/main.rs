//! The golden-ratio operations on the CPU: the worked numbers of their definitions, properties, and bad input.

mod common;
mod complex;
mod cone;
mod constants;
mod corrections;
mod e8;
mod evolver;
mod exact;
mod fibonacci;
mod noise;
mod norms;
mod operands;
mod phases;
mod products;
mod recursion;
mod residual;
mod rows;
mod snap;
mod symbolic;
mod syntony;
mod weights;
mod worked;

#[path = "../../src/bin/selvedge/srt/worked/mod.rs"]
mod cases;

/// Checks that a number is within a relative bound of another one.
#[track_caller]
fn close(found: f64, wanted: f64, bound: f64) {
    let error = (found - wanted).abs();
    assert!(found == wanted || error <= bound * wanted.abs(), "{found} instead of {wanted}: off by {error}");
}
