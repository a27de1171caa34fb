//! The golden-ratio theory in one cycle: exact numbers, a state and its syntony, the D and H phases, and the nearest lattice point.
//!
//! ```text
//! cargo run --features srt --example 19-golden-ratio
//!
//! φ^10 = 34 + 55 φ = 122.99186938124421
//! q = 0.027395146919696148, 1 + q/248 = 1.0001104643020955
//! syntony of the state      0.858418
//! after D                   0.849527
//! after H                   0.923408
//! on the lattice            0.919300
//! lattice points            1, 2 - φ, -5 + 3 φ, -8 + 5 φ
//! distance to the lattice   0.026383
//! ```

use std::process::ExitCode;

use selvedge::srt::{
    GoldenExact, correction, h_phase, harmonize_and_crystallize, phi_pow, q_deficit, resonant_d_phase,
    snap_distance, syntony,
};
use selvedge::{Device, Tensor};

fn cycle() -> selvedge::Result<()> {
    // Powers of φ are whole numbers in Z[φ], so they are exact there.
    println!("φ^10 = {} = {}", GoldenExact::phi_pow(10)?, phi_pow(10)?);
    println!("q = {}, 1 + q/248 = {}", q_deficit(), correction(248.0, 1)?);

    // A state of four modes. n² is the squared norm of each: low modes weigh the most, by exp(-n²/φ).
    let device = Device::best();
    let [v, n2, noise] = [[1.0, 0.5, -0.25, 0.125], [0.0, 1.0, 4.0, 9.0], [0.5, -1.0, 2.0, 0.0]];
    let (v, n2) = (Tensor::new(v, &device)?, Tensor::new(n2, &device)?);
    let s = syntony(&v, &n2)?.item::<f64>()?;
    println!("syntony of the state      {s:.6}");

    // D spreads the state over its modes, the more the less its syntony; H damps the high modes again.
    let flux = resonant_d_phase(&v, &n2, &Tensor::new(noise, &device)?, s, 0.1)?;
    println!("after D                   {:.6}", syntony(&flux, &n2)?.item::<f64>()?);
    let harmonized = h_phase(&flux, &n2, s)?;
    println!("after H                   {:.6}", syntony(&harmonized, &n2)?.item::<f64>()?);

    // The cycle ends on the points a + bφ with |a|, |b| <= 10 nearest to the state.
    let (points, on_lattice) = harmonize_and_crystallize(&flux, &n2, s, 10)?;
    println!("on the lattice            {:.6}", on_lattice.item::<f64>()?);
    let texts: Vec<String> =
        points.to_vec()?.into_iter().map(|point| GoldenExact::from(point).to_string()).collect();
    println!("lattice points            {}", texts.join(", "));
    println!("distance to the lattice   {:.6}", snap_distance(&harmonized, &points)?.item::<f64>()?);
    Ok(())
}

fn main() -> ExitCode {
    match cycle() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
