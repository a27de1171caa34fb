//! Matrix products: section 2.

use selvedge::gemm::Operation;
use selvedge::srt::{
    ProductMode, bmm, gemm, golden_anticommutator, golden_commutator, mm, mm_corrected, mm_golden_phase,
    mm_golden_weighted, mm_hn, mm_nh, mm_nt, mm_phi, mm_tn, mm_tt, phi_pow, projection_sum, weighted_sum,
};
use selvedge::{DType, Result, Tensor};

use super::{Case, CaseDevice, Class, Computation, Numbers, numbers, on_host, tensor};

/// The 3 × 2 and 3 × 3 matrices of section 2.1.
fn tall(device: &CaseDevice) -> Result<Tensor> {
    tensor(device, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

fn mask(device: &CaseDevice) -> Result<Tensor> {
    tensor(device, &[3, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0])
}

/// The matrices of sections 2.2 to 2.7.
fn a(device: &CaseDevice) -> Result<Tensor> {
    tensor(device, &[2, 2], &[1.0, 2.0, 3.0, 4.0])
}

fn b(device: &CaseDevice) -> Result<Tensor> {
    tensor(device, &[2, 2], &[0.0, 1.0, 1.0, 0.0])
}

type Product = fn(&CaseDevice, ProductMode) -> Result<Numbers>;

/// The example in both modes: bit-exact as T0, or T1 if a scale follows the product, and fast as T3.
fn both(
    name: &str,
    section: &'static str,
    exact: Class,
    terms: u32,
    run: Product,
    wanted: &[f64],
) -> [Case; 2] {
    let case = |name: &str, class, mode| {
        Case::new(name, section, class, Computation::Product(run, mode), wanted.to_vec().into()).in_f32()
    };
    [
        case(&format!("{name}, exact"), exact, ProductMode::Exact),
        case(&format!("{name}, fast"), Class::T3(terms), ProductMode::Fast),
    ]
}

pub fn cases() -> Vec<Case> {
    let (t0, t1) = (Class::T0, Class::T1);
    let square = [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0];
    let of_columns = [6.0, 8.0, 5.0, 8.0, 10.0, 8.0];
    let phased: Vec<f64> = [2.0, 1.0, 4.0, 3.0]
        .into_iter()
        .flat_map(|x| [x * -0.3623748900804799, x * 0.9320324238132277])
        .collect();
    let mut cases = Vec::new();
    cases.extend(both("mm", "2.1", t0, 2, |d, m| numbers([&mm(&a(d)?, &b(d)?, m)?]), &[2.0, 1.0, 4.0, 3.0]));
    cases.extend(both(
        "mm_tn",
        "2.1",
        t0,
        3,
        |d, m| numbers([&mm_tn(&tall(d)?, &mask(d)?, m)?]),
        &of_columns,
    ));
    cases.extend(both(
        "mm_hn",
        "2.1",
        t0,
        3,
        |d, m| numbers([&mm_hn(&tall(d)?, &mask(d)?, m)?]),
        &of_columns,
    ));
    cases.extend(both(
        "mm_tt",
        "2.1",
        t0,
        3,
        |d, m| numbers([&mm_tt(&tall(d)?, &mask(d)?, m)?]),
        &[11.0, 8.0, 4.0, 14.0, 10.0, 6.0],
    ));
    cases.extend(both("mm_nt", "2.1", t0, 2, |d, m| numbers([&mm_nt(&tall(d)?, &tall(d)?, m)?]), &square));
    cases.extend(both("mm_nh", "2.1", t0, 2, |d, m| numbers([&mm_nh(&tall(d)?, &tall(d)?, m)?]), &square));
    cases.extend(both(
        "bmm",
        "2.1",
        t0,
        2,
        |d, m| {
            let batch = |x: Tensor, y: Tensor| Tensor::stack(&[&x, &y], 0);
            numbers([&bmm(&batch(a(d)?, b(d)?)?, &batch(b(d)?, a(d)?)?, m)?])
        },
        &[2.0, 1.0, 4.0, 3.0, 3.0, 4.0, 1.0, 2.0],
    ));
    cases.extend(both(
        "gemm",
        "2.1",
        t0,
        2,
        |d, m| {
            let mut c = a(d)?;
            gemm(2.0, (Operation::None, &a(d)?), (Operation::Transpose, &b(d)?), -1.0, &mut c, m)?;
            numbers([&c])
        },
        &[3.0, 0.0, 5.0, 2.0],
    ));
    cases.push(on_host("phi_pow, n = 10", "2.2", t0, || Ok(phi_pow(10)?.into()), 122.99186938124421));
    // The coefficients of φ^-40 would cancel to 0.
    cases.push(on_host("phi_pow, n = -40", "2.2", t0, || Ok(phi_pow(-40)?.into()), 4.370130339181067e-9));
    cases.extend(both(
        "mm_phi, n = 2",
        "2.2",
        t1,
        2,
        |d, m| numbers([&mm_phi(&a(d)?, &b(d)?, 2, m)?]),
        &[5.23606797749979, 2.618033988749895, 10.47213595499958, 7.854101966249685],
    ));
    cases.extend(both(
        "mm_phi, n = -1",
        "2.2",
        t1,
        2,
        |d, m| numbers([&mm_phi(&a(d)?, &b(d)?, -1, m)?]),
        &[1.2360679774997896, 0.6180339887498948, 2.472135954999579, 1.8541019662496843],
    ));
    cases.extend(both(
        "golden_commutator",
        "2.3",
        t0,
        4,
        |d, m| numbers([&golden_commutator(&a(d)?, &b(d)?, m)?]),
        &[0.1458980337503153, -1.4721359549995796, 3.381966011250105, 1.7639320225002102],
    ));
    cases.extend(both(
        "golden_anticommutator",
        "2.3",
        t0,
        4,
        |d, m| numbers([&golden_anticommutator(&a(d)?, &b(d)?, m)?]),
        &[3.8541019662496847, 3.4721359549995796, 4.618033988749895, 4.23606797749979],
    ));
    cases.extend(both(
        "mm_golden_weighted",
        "2.4",
        t0,
        3,
        |d, m| {
            numbers([&mm_golden_weighted(
                &tensor(d, &[1, 3], &[1.0; 3])?,
                &tensor(d, &[3, 1], &[1.0; 3])?,
                m,
            )?])
        },
        &[1.6234074650867416],
    ));
    cases.extend(both(
        "mm_golden_weighted, w",
        "2.4",
        t0,
        4,
        |d, m| {
            let identity: [f64; 16] = std::array::from_fn(|at| f64::from(u8::from(at % 5 == 0)));
            numbers([&mm_golden_weighted(
                &tensor(d, &[1, 4], &[1.0; 4])?,
                &tensor(d, &[4, 4], &identity)?,
                m,
            )?])
        },
        &[1.0, 0.5390030827240446, 0.08440438236269689, 0.003839911733366907],
    ));
    cases.push(super::on_device(
        "mm_golden_weighted, weights above 0",
        "2.4",
        Class::T4,
        |d| {
            let count = |dtype| -> Result<i128> {
                let ones = Tensor::ones(&[1, 40], dtype, d)?;
                let identity: Vec<f64> = (0..1600).map(|at| f64::from(u8::from(at % 41 == 0))).collect();
                let identity = Tensor::from_slice(&identity, &[40, 40], d)?.cast(dtype)?;
                let weights = mm_golden_weighted(&ones, &identity, ProductMode::Exact)?;
                let weights = weights.cast(DType::F64)?.to_vec::<f64>()?;
                Ok(weights.into_iter().filter(|weight| *weight > 0.0).count() as i128)
            };
            Ok(vec![count(DType::F64)?, count(DType::F32)?].into())
        },
        vec![35i128, 13],
    ));
    cases.extend(both(
        "mm_corrected",
        "2.5",
        t1,
        2,
        |d, m| numbers([&mm_corrected(&a(d)?, &b(d)?, 248.0, 1, m)?]),
        &[2.000220928604191, 1.0001104643020955, 4.000441857208382, 3.0003313929062863],
    ));
    cases.extend(both(
        "mm_golden_phase",
        "2.6",
        t1,
        2,
        |d, m| numbers([&mm_golden_phase(&a(d)?, &b(d)?, 1, m)?]),
        &phased,
    ));
    cases.extend(both(
        "projection_sum",
        "2.7",
        t0,
        5,
        |d, m| {
            let (psi, identity) =
                (tensor(d, &[2, 1], &[1.0, 2.0])?, tensor(d, &[2, 2], &[1.0, 0.0, 0.0, 1.0])?);
            numbers([&projection_sum(&psi, &[&b(d)?, &identity], &[0.5, -0.25], m)?])
        },
        &[1.75, 2.0],
    ));
    cases.push(
        super::on_device(
            "weighted_sum",
            "2.7",
            Class::T3(2),
            |d| numbers([&weighted_sum(&[&a(d)?, &b(d)?], &[0.5, -2.0])?]),
            vec![0.5, -1.0, -0.5, 2.0],
        )
        .in_f32(),
    );
    cases
}
