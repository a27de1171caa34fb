//! Softmax, normalisation, losses and their gradients on a device have the bits of the CPU, for rows of every schedule.

use selvedge::fuse::Expr;
use selvedge::srt::{GoldenNorm, golden_batch_norm_2d};
use selvedge::tensor::{CrossEntropyOptions, Device, Fused, Generator, NormGradients, Tensor, TensorOperand};
use selvedge::types::DType;

use crate::support::compare::{Agreement, Case, check};
use crate::support::{Outcome, device_tests};

device_tests! {
    rows_have_the_bits_of_the_cpu, a_million_short_rows_do, rows_of_a_million_do, sums_over_many_rows_do, sums_over_long_rows_do, columns_do, channels_do,
    large_channels_do, cross_entropy_does, narrow_casts_within_rows_do,
    dropout_by_position_before_a_norm_does, a_softmax_of_more_inputs_than_a_kernel_has_does,
}

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

fn gradients(found: NormGradients) -> Vec<Tensor> {
    [found.input].into_iter().chain(found.weight).chain(found.bias).collect()
}

/// Of a matrix, its gradient, and a weight and a bias along rows.
const OF_ROWS: &[Case] = &[
    ("softmax", |x| Ok(vec![x[0].softmax(-1)?, x[0].softmax(0)?])),
    ("log_softmax", |x| Ok(vec![x[0].log_softmax(-1)?, x[0].log_softmax(0)?])),
    ("softmax_backward", |x| Ok(vec![x[0].softmax(-1)?.softmax_backward(&x[1], -1, None)?])),
    ("softmax_backward with a residual", |x| {
        Ok(vec![x[0].softmax(-1)?.softmax_backward(&x[1], -1, Some(&x[0]))?])
    }),
    ("log_softmax_backward with a residual", |x| {
        Ok(vec![x[0].log_softmax(-1)?.log_softmax_backward(&x[1], -1, Some(&x[0]))?])
    }),
    ("log_softmax_backward", |x| Ok(vec![x[0].log_softmax(-1)?.log_softmax_backward(&x[1], -1, None)?])),
    ("layer_norm", |x| Ok(vec![x[0].layer_norm(&[x[2].count()], Some(&x[2]), Some(&x[3]), 1e-5)?])),
    ("layer_norm_backward", |x| {
        let sizes = [x[2].count()];
        Ok(gradients(x[0].layer_norm_backward(&x[1], &sizes, Some(&x[2]), 1e-5, Some(&x[1]), true)?))
    }),
    ("rms_norm", |x| Ok(vec![x[0].rms_norm(&[x[2].count()], Some(&x[2]), Some(1e-5))?])),
    ("standardize", |x| Ok(vec![x[0].standardize(-1)?])),
    ("normalize", |x| Ok(vec![x[0].normalize(2.0, -1, 1e-12)?, x[0].normalize(1.0, -1, 1e-12)?])),
];

fn rows_have_the_bits_of_the_cpu() -> Outcome {
    let generator = Generator::new(1);
    // A part of a warp, a warp, several warps, and rows that fill the registers of a block.
    for (rows, length) in [(70, 5), (33, 256), (9, 1000), (3, 4097), (1, 20_000)] {
        for dtype in FLOATS {
            let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
            let operands =
                [randn(&[rows, length])?, randn(&[rows, length])?, randn(&[length])?, randn(&[length])?];
            check(OF_ROWS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

fn a_million_short_rows_do() -> Outcome {
    let generator = Generator::new(8);
    for length in 1..=8 {
        for dtype in [DType::F32, DType::BF16] {
            let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
            let matrix = [1_000_000, length];
            let operands = [randn(&matrix)?, randn(&matrix)?, randn(&[length])?, randn(&[length])?];
            check(OF_ROWS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Rows that each stage reads again, and so few that several blocks share each.
fn rows_of_a_million_do() -> Outcome {
    let generator = Generator::new(9);
    for rows in [2, 16] {
        for length in [131_072, 1 << 20] {
            let randn = |shape: &[usize]| generator.randn(shape, DType::F32, &Device::cpu());
            let matrix = [rows, length];
            let operands = [randn(&matrix)?, randn(&matrix)?, randn(&[length])?, randn(&[length])?];
            check(OF_ROWS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Of a matrix, its gradient and a weight.
const WITH_SUMS: &[Case] = &[
    ("layer_norm_backward", |x| {
        Ok(gradients(x[0].layer_norm_backward(&x[1], &[x[2].count()], Some(&x[2]), 1e-5, None, true)?))
    }),
    ("rms_norm_backward", |x| {
        Ok(gradients(x[0].rms_norm_backward(&x[1], &[x[2].count()], Some(&x[2]), None, None, true)?))
    }),
];

/// Rows of a cluster, whose last chunk has 2: 130 rows, which take two kernels, and rows enough for one.
fn sums_over_long_rows_do() -> Outcome {
    let generator = Generator::new(6);
    for length in [5000, 8192, 16_384, 20_000, 32_768] {
        // At least 512 warps have chunks of 64 rows.
        let many = 64 * 512usize.div_ceil(length / 1024) + 2;
        for (rows, dtype) in [(130, DType::BF16), (130, DType::F32), (many, DType::BF16), (many, DType::F32)]
        {
            let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
            let operands = [randn(&[rows, length])?, randn(&[rows, length])?, randn(&[length])?];
            check(WITH_SUMS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Rows enough for the sums over groups in the kernel of the program: a part of a warp, a warp, and a block of warps.
fn sums_over_many_rows_do() -> Outcome {
    let generator = Generator::new(5);
    for (rows, length) in [(33_000, 12), (32_801, 40), (32_769, 257), (9000, 4096)] {
        for dtype in [DType::BF16, DType::F32] {
            let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
            let operands = [randn(&[rows, length])?, randn(&[rows, length])?, randn(&[length])?];
            check(WITH_SUMS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Over the first axis of a matrix with its gradient.
const OF_COLUMNS: &[Case] = &[
    ("softmax", |x| Ok(vec![x[0].softmax(0)?])),
    ("log_softmax", |x| Ok(vec![x[0].log_softmax(0)?])),
    ("softmax_backward", |x| Ok(vec![x[0].softmax(0)?.softmax_backward(&x[1], 0, None)?])),
    ("standardize", |x| Ok(vec![x[0].standardize(0)?])),
    ("normalize", |x| Ok(vec![x[0].normalize(2.0, 0, 1e-12)?])),
    ("the softmax of channels", |x| Ok(vec![x[0].unsqueeze(0)?.unsqueeze(2)?.softmax(1)?])),
];

/// A thread a column, a part of a block, a block, and clusters of 2, 5 and 8 blocks for a tile of columns.
fn columns_do() -> Outcome {
    let generator = Generator::new(10);
    for length in [3, 33, 256, 1000, 1024, 1025, 4097, 8192] {
        for columns in [7, 33, 1000] {
            for dtype in FLOATS {
                let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
                let operands = [randn(&[length, columns])?, randn(&[length, columns])?];
                check(OF_COLUMNS, &operands, Agreement::Bits)?;
            }
        }
    }
    Ok(())
}

/// Of an input with channels, its gradient, and a weight, a bias, a mean and a variance of channels.
const OF_CHANNELS: &[Case] = &[
    ("group_norm", |x| Ok(vec![x[0].group_norm(3, Some(&x[2]), Some(&x[3]), 1e-5)?])),
    ("group_norm_backward", |x| {
        Ok(gradients(x[0].group_norm_backward(&x[1], 3, Some(&x[2]), 1e-5, None, true)?))
    }),
    ("batch_norm", |x| Ok(vec![x[0].batch_norm(&x[4], &x[5], Some(&x[2]), Some(&x[3]), 1e-5)?])),
    ("batch_norm_training", |x| {
        let (mut mean, mut variance) = (x[4].copy()?, x[5].copy()?);
        let running = Some((&mut mean, &mut variance));
        let y = x[0].batch_norm_training(running, Some(&x[2]), Some(&x[3]), 0.1, 1e-5)?;
        Ok(vec![y, mean, variance])
    }),
    ("batch_norm_backward", |x| Ok(gradients(x[0].batch_norm_backward(&x[1], Some(&x[2]), 1e-5, None)?))),
];

fn channels_do() -> Outcome {
    let generator = Generator::new(2);
    for shape in [&[40, 6][..], &[5, 12, 7], &[4, 9, 17, 33]] {
        for dtype in [DType::BF16, DType::F32, DType::F64] {
            let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
            let channels = [shape[1]];
            let mut operands = vec![randn(shape)?, randn(shape)?];
            for _ in 0..3 {
                operands.push(randn(&channels)?);
            }
            operands.push(randn(&channels)?.abs()?);
            check(OF_CHANNELS, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}

/// Channels by elements and by vectors, of a warp, of a block, and of clusters of each size.
fn large_channels_do() -> Outcome {
    const CASES: &[Case] = &[
        ("batch_norm_training", |x| {
            let (mut mean, mut variance) = (x[1].copy()?, x[2].copy()?);
            let running = Some((&mut mean, &mut variance));
            let y = x[0].batch_norm_training(running, Some(&x[1]), Some(&x[2]), 0.1, 1e-5)?;
            Ok(vec![y, mean, variance])
        }),
        ("group_norm", |x| Ok(vec![x[0].group_norm(1, Some(&x[1]), Some(&x[2]), 1e-5)?])),
    ];
    const GOLDEN: &[Case] = &[("golden_batch_norm_2d", |x| {
        let norm = GoldenNorm { gamma: Some(&x[1]), beta: Some(&x[2]), ..GoldenNorm::default() };
        Ok(vec![golden_batch_norm_2d(&x[0], &norm, None)?])
    })];
    let generator = Generator::new(6);
    for shape in [[6, 5, 7, 9], [8, 3, 33, 17], [16, 8, 14, 14], [64, 8, 28, 28], [64, 32, 56, 56]] {
        for dtype in [DType::F32, DType::BF16, DType::F64] {
            let randn = |shape: &[usize]| generator.randn(shape, dtype, &Device::cpu());
            let channels = [shape[1]];
            let operands = [randn(&shape)?, randn(&channels)?, randn(&channels)?.abs()?];
            check(CASES, &operands, Agreement::Bits)?;
            if dtype != DType::BF16 {
                check(GOLDEN, &operands, Agreement::Bits)?;
            }
        }
    }
    Ok(())
}

/// Of logits and labels.
const OF_LABELS: &[Case] = &[
    ("cross_entropy", |x| Ok(vec![x[0].cross_entropy(&x[1], CrossEntropyOptions::default())?])),
    ("cross_entropy with its gradient", |x| {
        let options = CrossEntropyOptions { label_smoothing: 0.1, ..CrossEntropyOptions::default() };
        let (loss, gradient) = x[0].cross_entropy_with_gradient(&x[1], options)?;
        Ok(vec![loss, gradient])
    }),
    ("cross_entropy with its gradient in place", |x| {
        let mut logits = x[0].copy()?;
        let options = CrossEntropyOptions { label_smoothing: 0.1, ..CrossEntropyOptions::default() };
        let loss = logits.in_place().cross_entropy_with_gradient(&x[1], options)?;
        Ok(vec![loss, logits])
    }),
    ("cross_entropy with an ignored label that f32 does not hold", |x| {
        let (mut logits, ignore_index) = (x[0].copy()?, -16_777_217);
        let labels = x[1].eq(-100)?.choose(ignore_index, &x[1])?;
        let options = CrossEntropyOptions { ignore_index, ..CrossEntropyOptions::default() };
        let (loss, gradient) = x[0].cross_entropy_with_gradient(&labels, options)?;
        let in_place = logits.in_place().cross_entropy_with_gradient(&labels, options)?;
        Ok(vec![loss, gradient, in_place, logits])
    }),
    ("at labels", |x| Ok(vec![x[0].gather(1, &x[1].maximum(0)?.unsqueeze(1)?)?])),
];

fn cross_entropy_does() -> Outcome {
    let (generator, cpu) = (Generator::new(3), Device::cpu());
    for (rows, classes) in [(300, 3), (9, 1000), (9, 1001), (1, 20_000), (16, 50_257)] {
        for dtype in FLOATS {
            let mut labels = generator.randint(0, classes as i64, &[rows], DType::I64, &cpu)?;
            labels.slice_mut(0, 1..2)?.fill(-100)?;
            let logits = generator.randn(&[rows, classes], dtype, &cpu)?;
            check(OF_LABELS, &[logits, labels], Agreement::Bits)?;
        }
    }
    Ok(())
}

fn narrow_casts_within_rows_do() -> Outcome {
    const CASES: &[Case] = &[("casts", |x| {
        let found = Fused::with_outputs(|[x]| {
            let shares = x / x.max_group();
            [DType::F16, DType::BF16].map(|dtype| {
                let square = (shares.cast(dtype) * shares.cast(dtype)).cast(dtype);
                square.cast(DType::F32) - shares
            })
        });
        Ok(found.run_all([&x[0]])?.to_vec())
    })];
    for dtype in FLOATS {
        let x = Generator::new(4).randn(&[37, 300], dtype, &Device::cpu())?;
        check(CASES, &[x], Agreement::Bits)?;
    }
    Ok(())
}

fn dropout_by_position_before_a_norm_does() -> Outcome {
    const CASES: &[Case] = &[("dropout and layer norm", |x| {
        let found = Fused::with_outputs(|[x, residual]| {
            let graph = x.graph();
            let [seed, offset] = [3u64, 1 << 33].map(|number| graph.number(number, DType::U64));
            let [word] = graph.random(DType::U32, seed, offset);
            let kept = word.ge(graph.number(1u64 << 30, DType::U32)).choose(x * 1.25, x * 0.0);
            let y = kept + residual;
            let centered = y - y.mean_group();
            [centered / (centered.square().mean_group() + 1e-5).sqrt(), y]
        });
        Ok(found.run_all([&x[0], &x[1]])?.to_vec())
    })];
    for (rows, length) in [(70, 5), (33, 256), (9, 1000), (9, 1001), (5, 4096), (16, 40_000)] {
        for dtype in FLOATS {
            let randn = |seed| Generator::new(seed).randn(&[rows, length], dtype, &Device::cpu());
            check(CASES, &[randn(4)?, randn(5)?], Agreement::Bits)?;
        }
    }
    Ok(())
}

/// A program that is divided into several kernels, which store the values between them.
fn a_softmax_of_more_inputs_than_a_kernel_has_does() -> Outcome {
    const MANY: usize = 70;
    fn softmax(x: [Expr<'_>; MANY]) -> Expr<'_> {
        let sum = (2..MANY).fold(x[0] * x[1], |sum, at| sum + x[at] * x[at * 7 % MANY]);
        let powers = (sum - sum.max_group()).exp();
        powers / powers.sum_group()
    }
    const CASES: &[Case] = &[
        ("softmax", |x| {
            let operands: [&Tensor; MANY] = std::array::from_fn(|at| &x[at]);
            let (softmax, sums) = (Fused::new(softmax), Fused::new(|x| softmax(x).sum_over_groups()));
            Ok(vec![softmax.run(operands)?, sums.run(operands)?])
        }),
        ("softmax in place", |x| {
            let mut first = x[0].copy()?;
            let others: [TensorOperand<'_>; MANY - 1] = std::array::from_fn(|at| (&x[at + 1]).into());
            Fused::new(softmax).run_in_place([&mut first], others)?;
            Ok(vec![first])
        }),
        ("differences in place", |x| {
            let mut first = x[0].copy()?;
            let mut second = x[1].copy()?;
            let others: [TensorOperand<'_>; MANY - 2] = std::array::from_fn(|at| (&x[at + 2]).into());
            let softmax = Fused::with_outputs(|x| [softmax(x), x[0] - x[1]]);
            softmax.run_in_place([&mut first, &mut second], others)?;
            Ok(vec![first, second])
        }),
    ];
    let generator = Generator::new(7);
    for (rows, length) in [(70, 5), (9, 1001), (130, 4096)] {
        for dtype in [DType::F32, DType::BF16] {
            let randn = |_| generator.randn(&[rows, length], dtype, &Device::cpu());
            let operands: Vec<Tensor> = (0..MANY).map(randn).collect::<Result<_, _>>()?;
            check(CASES, &operands, Agreement::Bits)?;
        }
    }
    Ok(())
}
