//! Snapping, phases and syntony: sections 9 and 11.

use selvedge::srt::{
    GoldenTensor, PHI, SnapGradientMode, SyntonyAggregate, aggregate_syntony, argmax_syntony, dwell, h_phase,
    h_phase_batch, harmonize_and_crystallize, operator_syntony, phase_cycle, precision_ramp,
    resonant_d_phase, resonant_d_phase_batch, snap, snap_distance, snap_gradient, snap_ramp, snap_residual,
    syntony,
};
use selvedge::{Result, Tensor};

use super::{Case, CaseDevice, Class, Numbers, numbers, on_device, on_host, tensor, vector};

const V: [f64; 4] = [1.0, 0.5, -0.25, 0.125];
const N2: [f64; 4] = [0.0, 1.0, 4.0, 9.0];
const G: [f64; 4] = [0.5, -1.0, 2.0, 0.0];
const S: f64 = 0.8584177266443396;
const FLUX: [f64; 4] = [1.007079113667783, 0.514908526238158, -0.26177715174913596, 0.14527985608151886];
const FLUX_OF_ZERO: [f64; 4] = [1.05, 0.6052993844837284, -0.3331823890802436, 0.2682372542187894];
const HARMONIZED: [f64; 4] =
    [1.007079113667783, 0.38897564445722194, -0.13461833426121053, 0.06850030375458274];

fn points(points: &GoldenTensor) -> Result<Numbers> {
    numbers([points.a(), points.b()])
}

fn snapped(device: &CaseDevice, values: &[f64], bound: i64) -> Result<Numbers> {
    points(&snap(&vector(device, values)?, bound)?)
}

/// The largest residual of the midpoints between neighbouring points of [-3, 3].
fn worst_residual(device: &CaseDevice, bound: i32) -> Result<Numbers> {
    let coefficients = || -bound..=bound;
    let point = |a: i32| coefficients().map(move |b| f64::from(a) + f64::from(b) * PHI);
    let mut points: Vec<f64> = coefficients().flat_map(point).filter(|point| point.abs() <= 3.0).collect();
    points.sort_by(f64::total_cmp);
    let middles: Vec<f64> = points.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let middles = vector(device, &middles)?;
    numbers([&snap_residual(&middles, &snap(&middles, bound.into())?)?.abs()?.max_all()?])
}

fn d_phase(device: &CaseDevice, s: f64) -> Result<Tensor> {
    let [v, n2, g] = [vector(device, &V)?, vector(device, &N2)?, vector(device, &G)?];
    resonant_d_phase(&v, &n2, &g, s, 0.1)
}

fn gradient(device: &CaseDevice, mode: SnapGradientMode) -> Result<Numbers> {
    let flux = vector(device, &[1.5, 2.5, 3.5, 0.5])?;
    numbers([&snap_gradient(&flux, &vector(device, &[2.0, 2.0, 4.0, 1.0])?, &vector(device, &N2)?, mode)?])
}

pub fn cases() -> Vec<Case> {
    let mut cases = of_snapping();
    cases.extend(of_phases());
    cases
}

fn of_snapping() -> Vec<Case> {
    let t4 = Class::T4;
    vec![
        on_device("snap, P = 5", "9.1", t4, |d| snapped(d, &[0.5], 5), vec![-1i128, 1]),
        on_device("snap, P = 3", "9.1", t4, |d| snapped(d, &[2.5], 3), vec![1i128, 1]),
        on_device(
            "snap, P = 10",
            "9.1",
            t4,
            |d| snapped(d, &[0.5, -1.25, 1e6], 10),
            vec![-6i128, 2, 10, 4, -2, 10],
        ),
        on_device(
            "snap, P = 100",
            "9.1",
            t4,
            |d| snapped(d, &[0.5, 1.618033988749895, 2.618033988749895], 100),
            vec![-27i128, 0, 1, 17, 1, 1],
        ),
        on_device(
            "snap, the example state",
            "9.1",
            t4,
            |d| snapped(d, &V, 10),
            vec![1i128, -6, 3, 5, 0, 4, -2, -3],
        ),
        on_device(
            "snap, P = 0 and no number",
            "9.1",
            t4,
            |d| snapped(d, &[7.4, f64::NAN, f64::INFINITY, f64::NEG_INFINITY], 0),
            vec![0i128; 8],
        ),
        // Both numbers of the definition have three digits.
        on_device("snap, worst residual, P = 10", "9.1", Class::T0, |d| worst_residual(d, 10), 0.0451)
            .within(0.0, 5e-5),
        on_device("snap, worst residual, P = 100", "9.1", Class::T0, |d| worst_residual(d, 100), 0.00658)
            .within(0.0, 5e-6),
        on_device(
            "snap_distance",
            "9.1",
            Class::T2,
            |d| {
                let values = vector(d, &[2.0, 2.5])?;
                numbers([&snap_distance(&values, &snap(&values, 0)?)?])
            },
            // The bound 0 leaves (0, 0) alone.
            vec![(4.0f64 + 6.25).sqrt()],
        ),
        on_device(
            "harmonize_and_crystallize",
            "9.2",
            t4,
            |d| points(&harmonize_and_crystallize(&vector(d, &FLUX)?, &vector(d, &N2)?, S, 10)?.0),
            vec![1i128, 2, -5, -8, 0, -1, 3, 5],
        )
        .in_f32(),
        on_device(
            "harmonize_and_crystallize, S",
            "9.2",
            Class::T3(4),
            |d| numbers([&harmonize_and_crystallize(&vector(d, &FLUX)?, &vector(d, &N2)?, S, 10)?.1]),
            0.9193003277430948,
        )
        .in_f32(),
        on_host(
            "precision_ramp",
            "9.3",
            Class::T0,
            || Ok(precision_ramp(100, 5)?.into_iter().map(i128::from).collect::<Vec<_>>().into()),
            vec![100i128, 162, 263, 426, 690, 1117],
        ),
        on_device(
            "snap_ramp",
            "9.3",
            t4,
            |d| match snap_ramp(&vector(d, &[0.5, 1.618033988749895])?, 100, 0)?.first() {
                Some((_, first)) => points(first),
                None => Ok(Vec::<i128>::new().into()),
            },
            vec![-27i128, 0, 17, 1],
        ),
        on_host(
            "dwell",
            "9.3",
            Class::T2,
            || {
                let times = dwell(100.0, S);
                Ok(vec![times.d_phase, times.h_phase].into())
            },
            vec![100.0, 151.14670884504525],
        ),
        on_device(
            "snap_gradient, weighted",
            "9.4",
            Class::T2,
            |d| gradient(d, SnapGradientMode::Weighted),
            vec![0.5, -0.2695015413620223, 0.04220219118134844, 0.0019199558666834534],
        )
        .in_f32(),
        on_device(
            "snap_gradient, magnitude",
            "9.4",
            Class::T2,
            |d| gradient(d, SnapGradientMode::Magnitude),
            vec![0.49999999995, 0.9276384791350497, 5.923863020039019, 130.21132299321326],
        )
        .in_f32(),
        on_device(
            "snap_gradient, plain",
            "9.4",
            Class::T2,
            |d| gradient(d, SnapGradientMode::Plain),
            vec![0.5, -0.5, 0.5, 0.5],
        )
        .in_f32(),
    ]
}

fn of_phases() -> Vec<Case> {
    let (t2, t3) = (Class::T2, Class::T3(4));
    let all_flux: Vec<f64> = FLUX.into_iter().chain(FLUX_OF_ZERO).chain(V).collect();
    vec![
        on_device(
            "resonant_d_phase",
            "11.1",
            t2,
            |d| numbers([&d_phase(d, S)?, &d_phase(d, 0.0)?, &d_phase(d, 1.0)?]),
            all_flux.clone(),
        )
        .in_f32(),
        on_device(
            "resonant_d_phase_batch",
            "11.1",
            t2,
            |d| {
                let [v, g] = [tensor(d, &[3, 4], &V.repeat(3))?, tensor(d, &[3, 4], &G.repeat(3))?];
                numbers([&resonant_d_phase_batch(
                    &v,
                    &vector(d, &N2)?,
                    &g,
                    &vector(d, &[S, 0.0, 1.0])?,
                    0.1,
                )?])
            },
            all_flux,
        )
        .in_f32(),
        on_device(
            "h_phase",
            "11.2",
            t2,
            |d| numbers([&h_phase(&vector(d, &FLUX)?, &vector(d, &N2)?, S)?]),
            HARMONIZED.to_vec(),
        )
        .in_f32(),
        on_device(
            "h_phase_batch",
            "11.2",
            t2,
            |d| {
                let flux = tensor(d, &[2, 4], &FLUX.repeat(2))?;
                numbers([&h_phase_batch(&flux, &vector(d, &N2)?, &vector(d, &[S, 0.0])?)?])
            },
            HARMONIZED.into_iter().chain(FLUX).collect::<Vec<f64>>(),
        )
        .in_f32(),
        on_device(
            "phase_cycle",
            "11.2",
            t2,
            |d| numbers([&phase_cycle(&vector(d, &V)?, &vector(d, &N2)?, 0.0)?]),
            // D without noise; H with S = 0 is the identity.
            V.iter().zip(N2).map(|(v, n2)| v * (1.0 + 0.38196601125010515 * n2.sqrt())).collect::<Vec<f64>>(),
        )
        .in_f32(),
        on_device(
            "syntony",
            "11.3",
            t3,
            |d| {
                let v: Vec<f64> = V.into_iter().chain([0.0, 0.0, 1.0, 0.0]).chain(HARMONIZED).collect();
                numbers([&syntony(&tensor(d, &[3, 4], &v)?, &vector(d, &N2)?)?])
            },
            vec![S, 0.08440438236269689, 0.9234076691373932],
        )
        .in_f32(),
        on_device(
            "aggregate_syntony",
            "11.3",
            t3,
            |d| {
                let s = vector(d, &[0.25, 1.0, 0.5, 0.5])?;
                let of = |aggregate| aggregate_syntony(&s, aggregate);
                let [mean, least] = [of(SyntonyAggregate::Mean)?, of(SyntonyAggregate::Minimum)?];
                numbers([&mean, &least, &of(SyntonyAggregate::Geometric)?])
            },
            vec![0.5625, 0.25, 0.5],
        )
        .in_f32(),
        on_device(
            "operator_syntony",
            "11.4",
            t3,
            |d| {
                let [psi, flux, h] =
                    [vector(d, &[1.0, 0.0])?, vector(d, &[1.1, 0.2])?, vector(d, &[1.05, 0.1])?];
                numbers([&operator_syntony(&psi, &flux, &h)?, &operator_syntony(&psi, &psi, &psi)?])
            },
            vec![0.5000000002236068, 1.0],
        )
        .in_f32(),
        on_device(
            "argmax_syntony",
            "11.4",
            Class::T4,
            |d| {
                let (index, value) = argmax_syntony(&vector(d, &[0.25, f64::NAN, 0.75, 0.75])?)?;
                numbers([&index, &value])
            },
            vec![2.0, 0.75],
        )
        .in_f32(),
    ]
}
