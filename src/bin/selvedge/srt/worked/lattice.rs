//! E8 and the golden cones: sections 13 and 14.

use selvedge::srt::{
    E8Layout, E8Roots, GoldenCone, e8_quantize, e8_roots, e8_weights, golden_cone_project, golden_cone_test,
    project_e8, quadratic_form, theta_sum, weight_8d,
};
use selvedge::{Result, Tensor};

use super::{Case, CaseDevice, Class, Numbers, numbers, on_device, tensor};

/// One row of eight that begins with these numbers.
fn row(device: &CaseDevice, first: &[f64]) -> Result<Tensor> {
    let mut all = [0.0; 8];
    all.iter_mut().zip(first).for_each(|(entry, first)| *entry = *first);
    tensor(device, &[1, 8], &all)
}

fn projected(device: &CaseDevice, layout: E8Layout) -> Result<Numbers> {
    let (par, perp) = project_e8(&row(device, &[1.0, 1.0])?, layout)?;
    numbers([&par, &perp])
}

fn roots(device: &CaseDevice) -> Result<Tensor> {
    e8_roots(E8Roots::All, device)?.cast(device.dtype)
}

const EXAMPLES: [[f64; 8]; 3] = [
    [0.9, 0.1, -0.2, 0.3, 0.0, 1.2, 0.4, -0.65],
    [0.6, 0.4, 0.55, 0.45, 0.5, 0.7, 0.3, -0.45],
    // A deep hole.
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
];

fn examples(device: &CaseDevice) -> Result<Tensor> {
    tensor(device, &[3, 8], &EXAMPLES.concat())
}

/// Counts of the quadratic form of the roots, times √5, at -4, -2, 0, 2 and 4.
fn counts_of_the_form(device: &CaseDevice, layout: E8Layout) -> Result<Numbers> {
    let mut counts = vec![0i128; 5];
    for value in quadratic_form(&roots(device)?, layout)?.to_vec::<f64>()? {
        let step = value * 5f64.sqrt() / 2.0;
        let at = step.round() + 2.0;
        if (step - step.round()).abs() < 1e-12 && (0.0..5.0).contains(&at) {
            counts[at as usize] += 1;
        }
    }
    Ok(counts.into())
}

pub fn cases() -> Vec<Case> {
    let mut cases = of_e8();
    cases.extend(of_cones());
    cases
}

fn of_e8() -> Vec<Case> {
    vec![
        on_device(
            "e8_roots",
            "13.1",
            Class::T0,
            |d| {
                let count = |set| -> Result<i128> { Ok(e8_roots(set, d)?.shape()[0] as i128) };
                let e6 = e8_roots(E8Roots::E6, d)?.to_vec::<f64>()?;
                let first = |root: &[f64]| root.iter().copied().find(|entry| *entry != 0.0);
                let positive = e6.chunks(8).filter(|root| first(root) > Some(0.0)).count() as i128;
                Ok(vec![count(E8Roots::All)?, count(E8Roots::Positive)?, count(E8Roots::E6)?, positive]
                    .into())
            },
            vec![240i128, 120, 72, 36],
        ),
        on_device(
            "e8_weights",
            "13.1",
            Class::T0,
            |d| numbers([&e8_weights(241, d)?.narrow(0, 240, 1)?]),
            vec![-2.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ),
        on_device(
            "project_e8, offset4",
            "13.2",
            Class::T1,
            |d| projected(d, E8Layout::Offset4),
            vec![
                0.5257311121191336,
                0.5257311121191336,
                0.0,
                0.0,
                0.85065080835204,
                0.85065080835204,
                0.0,
                0.0,
            ],
        )
        .in_f32(),
        on_device(
            "project_e8, adjacent",
            "13.2",
            Class::T1,
            |d| projected(d, E8Layout::Adjacent),
            vec![1.3763819204711736, 0.0, 0.0, 0.0, -0.32491969623290634, 0.0, 0.0, 0.0],
        )
        .in_f32(),
        on_device(
            "quadratic_form",
            "13.3",
            Class::Relative(-13),
            |d| {
                let (v, half) = (row(d, &[1.0, 1.0])?, row(d, &[0.5; 8])?);
                let of = |v: &Tensor, layout| quadratic_form(v, layout);
                numbers([
                    &of(&v, E8Layout::Offset4)?,
                    &of(&v, E8Layout::Adjacent)?,
                    &of(&half, E8Layout::Offset4)?,
                    &of(&half, E8Layout::Adjacent)?,
                    &of(&row(d, &[1.0, 0.0, 1.0])?, E8Layout::Offset4)?,
                ])
            },
            vec![
                -0.8944271909999161,
                1.788854381999832,
                1.788854381999832,
                1.788854381999832,
                -0.8944271909999161,
            ],
        )
        .in_f32(),
        on_device(
            "quadratic_form of the roots",
            "13.3",
            Class::T4,
            |d| counts_of_the_form(d, E8Layout::Offset4),
            vec![24i128, 24, 144, 24, 24],
        ),
        on_device(
            "quadratic_form of the roots, adjacent",
            "13.3",
            Class::T4,
            |d| counts_of_the_form(d, E8Layout::Adjacent),
            vec![24i128, 24, 144, 24, 24],
        ),
        on_device(
            "e8_quantize",
            "13.4",
            Class::T0,
            |d| numbers([&e8_quantize(&examples(d)?)?]),
            [
                [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0],
                [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.5, -0.5],
                [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ]
            .concat(),
        )
        // In f32 the second one is a tie that rounding decides.
        .within(0.0, 0.0),
        on_device(
            "e8_quantize, squared distance",
            "13.4",
            Class::T3(8),
            |d| {
                let v = examples(d)?;
                numbers([&v.sub(&e8_quantize(&v)?)?.square()?.sum(-1)?])
            },
            vec![0.6725, 0.7075, 1.0],
        )
        .in_f32(),
        on_device(
            "theta_sum",
            "13.5",
            Class::T3(36),
            |d| {
                let roots = e8_roots(E8Roots::Cone(GoldenCone::Null), d)?.cast(d.dtype)?;
                numbers([&theta_sum(&roots, 1.0, 2.0, E8Layout::Offset4)?])
            },
            93.11969749001811,
        )
        .in_f32(),
    ]
}

fn of_cones() -> Vec<Case> {
    vec![
        on_device(
            "golden_cone_test",
            "14.1",
            Class::T4,
            |d| {
                let count = |cone, tolerance| -> Result<i128> {
                    let inside = golden_cone_test(&roots(d)?, cone, tolerance)?.to_vec::<u8>()?;
                    Ok(inside.into_iter().map(i128::from).sum())
                };
                let (pair, null) = (GoldenCone::Pair, GoldenCone::Null);
                Ok(vec![count(pair, 0.0)?, count(pair, 1e-9)?, count(null, null.tolerance())?].into())
            },
            vec![40i128, 8, 36],
        )
        .in_f32(),
        on_device(
            "golden_cone_project, pair",
            "14.2",
            Class::Relative(-12),
            |d| {
                let v = row(d, &[1.0, 1.0, 2.0, 1.0, 0.0, -1.0, -1.0, 0.0])?;
                numbers([&golden_cone_project(&v, GoldenCone::Pair)?])
            },
            vec![
                1.170820393249937,
                0.7236067977499789,
                2.0,
                1.0,
                0.0,
                -1.0,
                -0.7236067977499789,
                -0.447213595499958,
            ],
        )
        .in_f32(),
        on_device(
            "golden_cone_project, null",
            "14.2",
            Class::Relative(-10),
            |d| numbers([&golden_cone_project(&row(d, &[1.0])?, GoldenCone::Null)?]),
            vec![
                0.9766665385445064,
                -0.04770930859881196,
                0.02943288415696502,
                -0.10577342977181231,
                0.0020328353947202944,
                0.08112232192956959,
                0.02343977746351326,
                0.03638863953222676,
            ],
        )
        .within(1e-10, 0.0)
        .in_f32(),
        on_device(
            "golden_cone_project, null, μ",
            "14.2",
            Class::Relative(-10),
            |d| {
                // The point is v + μ c₀ without another vector of the cone. The second entry of v is 0.
                let point = golden_cone_project(&row(d, &[1.0])?, GoldenCone::Null)?;
                numbers([&point.select(1, 1)?.div(-0.312330)?])
            },
            0.15275288508568488,
        )
        .within(1e-10, 0.0)
        .in_f32(),
        on_device(
            "weight_8d",
            "14.3",
            Class::T2,
            |d| numbers([&weight_8d(&row(d, &[1.0, 0.0, 1.0])?)?, &weight_8d(&row(d, &[-1.0, 0.0, -1.0])?)?]),
            vec![1.7380892966614983, 1e-9],
        )
        .in_f32(),
    ]
}
