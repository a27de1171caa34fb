//! Reductions and scans on a device do what they do on the CPU, bit for bit, whatever the layout; and twice the same.

use selvedge::tensor::{Axes, Device, Tensor};
use selvedge::types::{Bool, DType, Slice};

use super::fuse::value::{Value, same, special, write};
use crate::support::{Outcome, device_tests};

device_tests! {
    folds_have_the_bits_of_the_cpu, layouts_of_reductions_do, long_rows_and_columns_do, statistics_have_the_bits_of_the_cpu, scans_have_them_too,
    long_scans_do, repeated_scans_are_equal, more_than_31_bits_of_elements_are_folded => alone(),
}

type Reduction = (&'static str, fn(&Tensor, Axes<'_>) -> selvedge::Result<Tensor>);

const FOLDS: &[Reduction] = &[
    ("sum", |x, axes| x.sum(axes)),
    ("prod", |x, axes| x.prod(axes)),
    ("min", |x, axes| x.min(axes)),
    ("max", |x, axes| x.max(axes)),
    ("argmin", |x, axes| x.argmin(axes)),
    ("argmax", |x, axes| x.argmax(axes)),
    ("any", |x, axes| x.any(axes)),
    ("all", |x, axes| x.all(axes)),
    ("count_nonzero", |x, axes| x.count_nonzero(axes)),
];

const STATISTICS: &[Reduction] = &[
    ("mean", |x, axes| x.mean_keepdim(axes)),
    ("var", |x, axes| x.var(axes, 1)),
    ("std", |x, axes| x.std(axes, 0)),
    ("norm 1", |x, axes| x.norm(1.0, axes)),
    ("norm 2", |x, axes| x.norm(2.0, axes)),
    ("norm 2.5", |x, axes| x.norm(2.5, axes)),
    ("norm inf", |x, axes| x.norm(f64::INFINITY, axes)),
    ("logsumexp", |x, axes| x.logsumexp(axes)),
];

/// Numbers of mixed signs and sizes; some special ones where `hard`.
fn values(dtype: DType, shape: &[usize], hard: bool) -> selvedge::Result<Tensor> {
    let count = shape.iter().product::<usize>();
    if hard {
        let all: Vec<Value> = special(dtype);
        let mut bytes = vec![0; count * dtype.size()];
        for (index, element) in bytes.chunks_exact_mut(dtype.size()).enumerate() {
            write(dtype, all[index * 5 % all.len()], element);
        }
        return Tensor::from_bytes(&bytes, dtype, shape, &Device::cpu());
    }
    let numbers: Vec<f32> =
        (0..count as u32).map(|k| (k.wrapping_mul(2_654_435_761) >> 16) as f32 / 4096.0 - 7.5).collect();
    Tensor::from_vec(numbers, shape, &Device::cpu())?.cast(dtype)
}

#[track_caller]
fn assert_same(what: &str, cpu: &Tensor, device: &Tensor) {
    assert_eq!((cpu.dtype(), cpu.shape()), (device.dtype(), device.shape()), "{what}");
    let (left, right) = (cpu.to_bytes().expect("bytes"), device.to_bytes().expect("bytes"));
    let size = cpu.dtype().size();
    for (index, (left, right)) in left.chunks(size).zip(right.chunks(size)).enumerate() {
        assert!(
            same(cpu.dtype(), left, right),
            "{what}: {index} is {left:?} on the CPU, {right:?} on the device"
        );
    }
}

/// Computes reductions on both; one that has no meaning for the dtype has none on either.
fn compare<'a>(
    reductions: &[Reduction],
    what: &str,
    here: &Tensor,
    there: &Tensor,
    axes: impl Into<Axes<'a>>,
) -> selvedge::Result<usize> {
    let (axes, mut count) = (axes.into(), 0);
    for (name, reduce) in reductions {
        let Ok(wanted) = reduce(here, axes) else {
            assert!(reduce(there, axes).is_err(), "{name} of {}", here.dtype());
            continue;
        };
        assert_same(
            &format!("{name} of {} over {axes:?}, {what}", here.dtype()),
            &wanted,
            &reduce(there, axes)?,
        );
        count += 1;
    }
    Ok(count)
}

fn computed() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_storage_only())
}

fn folds_have_the_bits_of_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    let mut count = 0;
    for dtype in computed() {
        for hard in [false, true] {
            let here = values(dtype, &[6, 35, 24], hard)?;
            let there = here.to(&device)?;
            for axes in [
                Axes::All,
                Axes::Of(&[0]),
                Axes::Of(&[1]),
                Axes::Of(&[2]),
                Axes::Of(&[0, 2]),
                Axes::Of(&[0, 1]),
                Axes::Of(&[1, 2]),
            ] {
                count += compare(FOLDS, "contiguous", &here, &there, axes)?;
            }
        }
    }
    assert!(count > 1500, "{count}");
    Ok(())
}

#[allow(clippy::reversed_empty_ranges, reason = "-1 counts from the end")]
fn layouts_of_reductions_do() -> Outcome {
    let device = Device::cuda(0)?;
    for dtype in [DType::U8, DType::BF16, DType::F32, DType::I64, DType::C128] {
        let here = values(dtype, &[70, 90], false)?;
        let there = here.to(&device)?;
        type View = fn(&Tensor) -> selvedge::Result<Tensor>;
        let views: [(&str, View); 6] = [
            ("transposed", |x| x.t()),
            ("backwards", |x| x.flip(&[0, 1])),
            ("stepped", |x| x.slice(1, Slice::from(1..).step(3))),
            ("misaligned", |x| x.slice(1, 1..-1)),
            ("rows left out", |x| x.slice(0, Slice::from(..).step(2))),
            ("broadcast", |x| x.narrow(1, 3, 1)?.expand(&[70, 33])),
        ];
        for (name, view) in views {
            for axes in [Axes::All, Axes::Of(&[]), Axes::Of(&[0]), Axes::Of(&[1])] {
                compare(FOLDS, name, &view(&here)?, &view(&there)?, axes)?;
            }
        }
    }
    Ok(())
}

fn long_rows_and_columns_do() -> Outcome {
    let device = Device::cuda(0)?;
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::U8, DType::C64] {
        for shape in [
            &[1 << 22][..],
            &[3, 1_000_001],
            &[300_000, 8],
            &[2_000_003, 1],
            &[70_000, 33],
            &[500_000, 4],
            &[4, 500_000],
            &[16_385, 3],
        ] {
            let here = values(dtype, shape, false)?;
            let there = here.to(&device)?;
            for axis in 0..shape.len() as isize {
                compare(&FOLDS[..6], &format!("{shape:?}"), &here, &there, &[axis])?;
            }
        }
    }
    Ok(())
}

fn statistics_have_the_bits_of_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    for dtype in computed() {
        let here = values(dtype, &[9, 1100, 12], false)?;
        let there = here.to(&device)?;
        for axes in [Axes::All, Axes::Of(&[]), Axes::Of(&[0]), Axes::Of(&[1]), Axes::Of(&[2])] {
            compare(STATISTICS, "contiguous", &here, &there, axes)?;
        }
    }
    Ok(())
}

/// The axis of a scan.
fn only(axes: Axes<'_>) -> isize {
    match axes {
        Axes::Of(&[axis]) => axis,
        _ => 0,
    }
}

const SCANS: &[Reduction] = &[
    ("cumsum", |x, axes| x.cumsum(only(axes))),
    ("cumprod", |x, axes| x.cumprod(only(axes))),
    ("cummin", |x, axes| x.cummin(only(axes))),
    ("cummax", |x, axes| x.cummax(only(axes))),
];

fn scans_have_them_too() -> Outcome {
    let device = Device::cuda(0)?;
    for dtype in computed() {
        for shape in [&[40, 1000][..], &[2000, 7], &[33, 100], &[9000, 3], &[1, 8192], &[5, 1]] {
            let here = values(dtype, shape, shape[0] == 33)?;
            let there = here.to(&device)?;
            for axis in [0, 1] {
                compare(SCANS, &format!("{shape:?}"), &here, &there, &[axis])?;
            }
        }
    }
    Ok(())
}

fn long_scans_do() -> Outcome {
    let device = Device::cuda(0)?;
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::U8, DType::C128] {
        for shape in [&[(1 << 23) + 5][..], &[3, 700_001], &[1 << 21]] {
            let here = values(dtype, shape, false)?;
            compare(&SCANS[..1], &format!("{shape:?}"), &here, &here.to(&device)?, &[-1])?;
        }
    }
    Ok(())
}

/// Whichever block comes first, the order is one.
fn repeated_scans_are_equal() -> Outcome {
    let there = values(DType::F32, &[1 << 25], false)?.to(&Device::cuda(0)?)?;
    let first = there.cumsum(0)?;
    for round in 0..20 {
        let differ = there.cumsum(0)?.ne(&first)?.any(..)?.item::<Bool>()? == Bool::from(true);
        assert!(!differ, "round {round} differs");
    }
    Ok(())
}

fn more_than_31_bits_of_elements_are_folded() -> Outcome {
    let device = Device::cuda(0)?;
    let count = (1usize << 31) + 12_345;
    let Ok(ones) = Tensor::full(&[count], 1, DType::U8, &device) else {
        println!("no memory for {count} bytes");
        return Ok(());
    };
    assert_eq!(ones.sum(..)?.item::<i64>()?, count as i64);
    assert_eq!(ones.argmax(..)?.item::<i64>()?, 0);
    let spread = ones.narrow(0, 0, 1)?.expand(&[count])?;
    assert_eq!(spread.sum(..)?.item::<i64>()?, count as i64);
    Ok(())
}
