//! Constants and elementwise operations: sections 1, 3, 4, 6, 10 and 12.

use selvedge::srt::{
    Correction, ESTAR, INVERSE_PHI, INVERSE_PHI_SQUARED, LN_PHI, PHI, PROJECTION_NORM, Q_DEFICIT,
    ResidualMode, SQRT5, Uniform, box_muller, complex_divide, complex_reciprocal, compound_correction,
    correct, correct_chain, correction, gauss, golden_inner, golden_normalize, golden_rotate, golden_weight,
    golden_weight_of_rows, noise_stream, noise_words, normalize_phase, phi_residual, phi_residual_gelu,
    phi_residual_layer_norm, phi_residual_relu, phi_weighted_sum, q_deficit, quantize_phase_pi,
    residual_modulated_noise, rotate_phase, special_correction, structure_dimension, suppression,
    uniform_noise,
};
use selvedge::{Complex, Result, Tensor};

use super::{Case, CaseDevice, Class, Numbers, numbers, on_device, on_host, tensor, vector};

pub fn constants() -> Vec<Case> {
    let of = |name, run, bits: u64| on_host(name, "1", Class::T0, run, f64::from_bits(bits)).within(0.0, 0.0);
    vec![
        of("PHI", || Ok(PHI.into()), 0x3ff9_e377_9b97_f4a8),
        of("INVERSE_PHI", || Ok(INVERSE_PHI.into()), 0x3fe3_c6ef_372f_e950),
        of("INVERSE_PHI_SQUARED", || Ok(INVERSE_PHI_SQUARED.into()), 0x3fd8_7221_91a0_2d61),
        of("SQRT5", || Ok(SQRT5.into()), 0x4001_e377_9b97_f4a8),
        of("LN_PHI", || Ok(LN_PHI.into()), 0x3fde_cc2c_aec5_160a),
        of("ESTAR", || Ok(ESTAR.into()), 0x4033_ffc5_0428_0d97),
        of("Q_DEFICIT", || Ok(Q_DEFICIT.into()), 0x3f9c_0d79_305b_59e4),
        of("PROJECTION_NORM", || Ok(PROJECTION_NORM.into()), 0x3fe0_d2ca_0da1_530d),
    ]
}

fn complex(device: &CaseDevice, parts: &[(f64, f64)]) -> Result<Tensor> {
    let elements: Vec<Complex<f64>> = parts.iter().map(|(re, im)| Complex::new(*re, *im)).collect();
    Tensor::from_slice(&elements, &[elements.len()], device)?.cast(device.dtype.complex())
}

/// The identity and the residual of section 4.
fn pair(device: &CaseDevice) -> Result<[Tensor; 2]> {
    Ok([vector(device, &[1.0, -1.0, 0.5, -2.0])?, vector(device, &[1.0, 2.0, -3.0, 1.0])?])
}

fn residual(device: &CaseDevice, mode: ResidualMode) -> Result<Numbers> {
    let [x, r] = pair(device)?;
    numbers([&phi_residual(&x, &r, mode)?])
}

fn relu(device: &CaseDevice, mode: ResidualMode) -> Result<Numbers> {
    let [x, r] = pair(device)?;
    numbers([&phi_residual_relu(&x, &r, mode)?])
}

pub fn cases() -> Vec<Case> {
    let mut cases = of_complex_numbers();
    cases.extend(of_residuals());
    cases.extend(of_weights());
    cases.extend(of_noise());
    cases.extend(of_corrections());
    cases
}

fn of_complex_numbers() -> Vec<Case> {
    let angle = 1.9416110387254664f64;
    vec![
        on_device(
            "complex_divide",
            "3.1",
            Class::T1,
            |d| {
                let (x, y) = (complex(d, &[(1.0, 2.0)])?, complex(d, &[(3.0, -4.0)])?);
                numbers([&complex_divide(&x, &y)?])
            },
            vec![-0.2, 0.4],
        )
        .in_f32(),
        on_device(
            "complex_divide, 1e200",
            "3.1",
            Class::T1,
            |d| {
                let large = complex(d, &[(1e200, 1e200)])?;
                numbers([&complex_divide(&large, &large)?])
            },
            vec![1.0, 0.0],
        ),
        on_device(
            "complex_reciprocal",
            "3.1",
            Class::T1,
            |d| numbers([&complex_reciprocal(&complex(d, &[(3.0, -4.0)])?)?]),
            vec![0.12, 0.16],
        )
        .in_f32(),
        on_device(
            "rotate_phase",
            "3.2",
            Class::T2,
            |d| numbers([&rotate_phase(&complex(d, &[(1.0, 0.0)])?, 1.0)?]),
            vec![1f64.cos(), 1f64.sin()],
        )
        .in_f32(),
        on_device(
            "golden_rotate",
            "3.2",
            Class::T2,
            |d| numbers([&golden_rotate(&complex(d, &[(1.0, 0.0)])?)?]),
            vec![angle.cos(), angle.sin()],
        )
        .in_f32(),
        on_device(
            "normalize_phase",
            "3.2",
            Class::T2,
            |d| numbers([&normalize_phase(&complex(d, &[(3.0, -4.0), (0.0, 0.0)])?)?]),
            vec![0.6, -0.8, 0.0, 0.0],
        )
        .in_f32(),
        on_device(
            "quantize_phase_pi",
            "3.2",
            Class::T2,
            |d| numbers([&quantize_phase_pi(&complex(d, &[(1.0, 0.9)])?, 3)?]),
            vec![0.6726812023536857, 1.1651180197731044],
        )
        .in_f32(),
        on_device(
            "phi_weighted_sum",
            "3.3",
            Class::T3(3),
            |d| numbers([&phi_weighted_sum(&complex(d, &[(1.0, 1.0), (2.0, 0.0), (0.0, 3.0)])?)?]),
            vec![2.23606797749979, 2.1458980337503157],
        )
        .in_f32(),
    ]
}

fn of_residuals() -> Vec<Case> {
    vec![
        on_device(
            "phi_residual, phi",
            "4.1",
            Class::T0,
            |d| residual(d, ResidualMode::Phi),
            vec![1.618033988749895, 0.2360679774997898, -1.3541019662496847, -1.381966011250105],
        )
        .in_f32(),
        on_device(
            "phi_residual, symmetric",
            "4.1",
            Class::T0,
            |d| residual(d, ResidualMode::PhiSymmetric),
            vec![1.2360679774997898, 0.6180339887498949, -1.5450849718747373, -0.6180339887498949],
        )
        .in_f32(),
        on_device(
            "phi_residual, standard",
            "4.1",
            Class::T0,
            |d| residual(d, ResidualMode::Standard),
            vec![2.0, 1.0, -2.5, -1.0],
        )
        .in_f32(),
        on_device(
            "phi_residual_relu",
            "4.2",
            Class::T0,
            |d| relu(d, ResidualMode::Phi),
            vec![1.618033988749895, 0.2360679774997898, 0.0, 0.0],
        )
        .in_f32(),
        on_device(
            "phi_residual_gelu",
            "4.3",
            Class::T2,
            |d| {
                let [x, r] = pair(d)?;
                numbers([&phi_residual_gelu(&x, &r)?])
            },
            vec![1.5323808892233788, 0.14006051781202092, -0.1191940454667957, -0.1156152353135927],
        )
        .in_f32(),
        on_device(
            "phi_residual_layer_norm, mean and variance",
            "4.4",
            Class::T3(4),
            |d| {
                let [x, r] = pair(d)?;
                let v = phi_residual(&x, &r, ResidualMode::Phi)?;
                let mean = v.mean_all()?;
                numbers([&mean, &v.sub(&mean)?.square()?.mean_all()?])
            },
            vec![-0.22049150281252627, 1.5556795646881048],
        )
        .in_f32(),
        on_device(
            "phi_residual_layer_norm",
            "4.4",
            Class::T3(4),
            |d| {
                let [x, r] = pair(d)?;
                let [x, r] = [x.reshape(&[1, 4])?, r.reshape(&[1, 4])?];
                numbers([&phi_residual_layer_norm(&x, &r, None, None, 1e-5)?])
            },
            vec![1.4740363266779406, 0.3660461942780231, -0.9088712727004656, -0.9312112482554981],
        )
        .in_f32_within(1e-5, 0.0),
    ]
}

fn of_weights() -> Vec<Case> {
    let weights = vec![0.5390030827240446, 0.2905243231860233, 0.08440438236269689, 0.003839911733366907];
    vec![
        on_device(
            "golden_weight",
            "6.1",
            Class::T2,
            |d| numbers([&golden_weight(&vector(d, &[1.0, 2.0, 4.0, 9.0])?)?]),
            weights.clone(),
        )
        .in_f32(),
        on_device(
            "golden_weight_of_rows",
            "6.1",
            Class::T2,
            |d| {
                let rows = [0i32, 1, 0, 0, 1, 0, -1, 0, 0, 0, 2, 0, 2, -2, 0, 1];
                numbers([&golden_weight_of_rows(&Tensor::from_slice(&rows, &[4, 4], d)?)?])
            },
            weights,
        ),
        on_device(
            "golden_inner",
            "6.2",
            Class::T3(3),
            |d| numbers([&golden_inner(&vector(d, &[1.0, 2.0, 3.0])?, &vector(d, &[4.0, 5.0, 6.0])?)?]),
            vec![10.90930970976899],
        )
        .in_f32(),
        on_device(
            "golden_normalize",
            "6.3",
            Class::T3(3),
            |d| numbers([&golden_normalize(&vector(d, &[1.0, 2.0, 3.0])?)?]),
            vec![0.585031781594391, 0.6306678675418335, 0.5098978871700715],
        )
        .in_f32(),
        on_device(
            "golden_normalize, Z",
            "6.3",
            Class::T3(3),
            |d| {
                // The first element is 1/√(Z + 1e-10).
                let first = golden_normalize(&vector(d, &[1.0, 2.0, 3.0])?)?.select(0, 0)?;
                numbers([&first.square()?.reciprocal()?.sub(1e-10)?])
            },
            2.9217367340083653,
        )
        .in_f32(),
    ]
}

/// Mean and variance of normal numbers of one seed.
fn moments(device: &CaseDevice) -> Result<Numbers> {
    let g = gauss(7, 0, &[20_000], device)?;
    let mean = g.mean_all()?;
    numbers([&mean, &g.sub(&mean)?.square()?.mean_all()?])
}

fn of_noise() -> Vec<Case> {
    let words = [0xe220_a839_7b1d_cdaf_u64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
    let half_open: Vec<f64> = words.iter().map(|word| (word >> 11) as f64 / (1u64 << 53) as f64).collect();
    vec![
        on_device(
            "noise_words",
            "10.1",
            Class::T0,
            |d| numbers([&noise_words(0, 0, &[3], d)?]),
            words.map(i128::from).to_vec(),
        ),
        on_host(
            "noise_stream",
            "10.1",
            Class::T0,
            || Ok([1, 2].map(|purpose| i128::from(noise_stream(2024, 0, purpose))).to_vec().into()),
            vec![0x487a_96f9_b989_521b_i128, 0x2ddb_5756_aeff_d857],
        ),
        on_device(
            "uniform_noise",
            "10.1",
            Class::T0,
            |d| numbers([&uniform_noise(0, 0, Uniform::HalfOpen, &[3], d)?]),
            half_open,
        )
        .within(0.0, 0.0),
        on_device(
            "box_muller",
            "10.2",
            Class::T2,
            |d| {
                let u = [0.3, 0.8, (-0.5f64).exp(), 0.0, 1e-10, 0.0, 0.5, 0.25];
                numbers([&box_muller(&vector(d, &u)?)?])
            },
            vec![0.4795188680969606, 1.0, 6.786140424415112, 0.0],
        )
        .within(1e-12, 2e-16)
        .in_f32_within(2e-6, 1e-6),
        on_device(
            "gauss",
            "10.2",
            Class::T2,
            |d| numbers([&gauss(42, 0, &[4], d)?]),
            vec![0.4147197504315305, -0.8918862136277562, 1.7295930879374015, 0.5456204361828646],
        ),
        // Both numbers of the definition have five decimals.
        on_device("gauss, mean and variance", "10.2", Class::T3(20_000), moments, vec![-0.00828, 1.00223])
            .within(0.0, 5e-6),
        on_device(
            "residual_modulated_noise",
            "10.3",
            Class::T2,
            |d| {
                let (g, rho) = (vector(d, &[1.0, 1.0, -1.0])?, vector(d, &[0.0, 0.5, -2.0])?);
                numbers([&residual_modulated_noise(&g, &rho, 0.1, 1.0)?])
            },
            vec![0.1, 0.5159054415340087, -0.9676248220682352],
        )
        .in_f32(),
    ]
}

fn of_corrections() -> Vec<Case> {
    let suppressions = [
        0.9896443467147488,
        0.9833507585797379,
        0.9733353354823298,
        0.9575551436932337,
        0.9330782943790363,
        0.8960190463843524,
    ];
    vec![
        on_host(
            "correction",
            "12.1",
            Class::T0,
            || Ok(vec![correction(248.0, 1)?, correction(24.0, -1)?].into()),
            vec![1.0001104643020955, 0.9988585355450127],
        ),
        on_device(
            "correct",
            "12.2",
            Class::T0,
            |d| {
                let corrections = [Correction::from_structure(0, 1)?, Correction::new(24.0, -1)?];
                numbers([&correct(&vector(d, &[1.0, 1.0])?, &corrections)?])
            },
            vec![1.0001104643020955, 0.9988585355450127],
        )
        .in_f32(),
        on_device(
            "compound_correction",
            "12.2",
            Class::T0,
            |d| numbers([&compound_correction(&vector(d, &[1.0])?, 240.0, 36.0)?]),
            vec![0.9993530832794337],
        )
        .in_f32(),
        on_device(
            "correct_chain",
            "12.3",
            Class::T0,
            |d| {
                let chain =
                    [Correction::new(248.0, 1)?, Correction::new(36.0, -1)?, Correction::new(8.0, 1)?];
                let whole = 0..chain.len();
                numbers([&correct_chain(&tensor(d, &[1], &[100.0])?, &chain, &[whole])?])
            },
            vec![100.27715694061784],
        )
        .in_f32(),
        on_host(
            "special_correction",
            "12.4",
            Class::T0,
            || {
                Ok(vec![
                    special_correction(1, 1.0, 1, 1)?,
                    special_correction(-1, 4.0, 1, 0)?,
                    special_correction(1, 1.0, 2, -1)?,
                ]
                .into())
            },
            vec![1.0443262788428653, 0.8904194123212155, 1.0004638308465519],
        ),
        on_host(
            "suppression",
            "12.5",
            Class::T0,
            || Ok((-2..=3).map(suppression).collect::<Result<Vec<f64>>>()?.into()),
            suppressions.to_vec(),
        ),
        on_host("q_deficit", "12.6", Class::T0, || Ok(q_deficit().into()), 0.027395146919696148)
            .within(0.0, 0.0),
        on_host(
            "structure_dimension",
            "12.6",
            Class::T0,
            || Ok((0..8).map(|i| Ok(structure_dimension(i)?.into())).collect::<Result<Vec<i128>>>()?.into()),
            vec![248i128, 240, 120, 78, 36, 27, 24, 14],
        ),
    ]
}
