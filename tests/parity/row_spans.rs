//! Row programs whose groups are spans of adjacent elements, such as the channels of images: every schedule and vector.

use selvedge::fuse::Expr;
use selvedge::types::{DType, Layout};

use super::reductions::contiguous;
use super::rows::{PROGRAMS, Program, Rows, check_on, layer_norm};
use crate::common::suite::Test;

/// A layer norm over a channel, with a weight and a bias of each channel.
const BATCH_NORM: Program = ("batch_norm", &[true, true], layer_norm);
/// The same computed in f64, whose kept values are as long as those in memory.
const WIDE_BATCH_NORM: Program = ("wide_batch_norm", &[], wide_batch_norm);
/// A layer norm over neighbouring channels, with a weight and a bias of each.
const GROUP_NORM: Program = ("group_norm", &[false, false], layer_norm);

fn wide_batch_norm<'g>(x: Expr<'g>, _: &[Expr<'g>]) -> Vec<Expr<'g>> {
    let wide = x.cast(DType::F64);
    let mean = wide.mean_group();
    let variance = (wide - mean).square().mean_group();
    vec![((wide - mean) / (variance + 1e-5).sqrt()).cast(x.dtype()), mean, variance]
}

/// Groups of the elements of each channel in images of shape (N, C, H, W).
fn channels([n, c, h, w]: [usize; 4]) -> Rows {
    let elements = contiguous(&[n, c, h, w]);
    let along = contiguous(&[n, 1, h, w]);
    Rows { elements, written: elements, axes: &[0, 2, 3], groups: contiguous(&[1, c, 1, 1]), along }
}

/// Groups of the elements of neighbouring channels in images of shape (N, G, C / G, H · W).
fn groups([n, g, c, hw]: [usize; 4]) -> Rows {
    let elements = contiguous(&[n, g, c, hw]);
    let along = contiguous(&[1, g, c, 1]);
    Rows { elements, written: elements, axes: &[2, 3], groups: contiguous(&[n, g, 1, 1]), along }
}

fn view(layout: selvedge::Result<Layout>) -> Layout {
    layout.expect("a view")
}

pub fn always() -> Vec<Test> {
    vec![Test::new("rows::spans".to_owned(), || {
        spans();
        Ok(())
    })]
}

fn spans() {
    const OLD_AND_NEW: &[(i32, i32)] = &[(9, 0), (7, 5)];
    let check = |given, dtype, rows: &Rows, schedule: &str| {
        check_on(given, dtype, rows, schedule, &[false, true], OLD_AND_NEW);
    };
    for (sizes, dtype, schedule) in [
        // A span of 63 elements has no vectors.
        ([6, 5, 7, 9], DType::F32, "a warp for each row, in registers; 8 rows a block; element by element"),
        ([6, 5, 7, 8], DType::F32, "a warp for each row, in registers; 8 rows a block; vectors of 4"),
        ([6, 5, 7, 8], DType::BF16, "vectors of 8 elements within spans"),
        ([6, 5, 7, 8], DType::F16, "vectors of 8 elements within spans"),
        ([6, 5, 7, 8], DType::F64, "vectors of 2 elements within spans"),
        ([3, 2, 3, 12], DType::BF16, "vectors of 4 elements within spans"),
        ([3, 2, 3, 14], DType::BF16, "vectors of 2 elements within spans"),
        ([3, 2, 3, 14], DType::F32, "vectors of 2 elements within spans"),
        ([8, 3, 33, 17], DType::F32, "a block of 5 warps for each row, in shared memory; element by element"),
        ([9, 3, 18, 16], DType::F32, "a block of 3 warps for each row, in registers; vectors of 4"),
        ([9, 3, 18, 16], DType::BF16, "a block of 3 warps for each row, in registers; vectors of 8"),
    ] {
        check(BATCH_NORM, dtype, &channels(sizes), schedule);
        check(WIDE_BATCH_NORM, dtype, &channels(sizes), schedule.split("; ").last().unwrap_or(""));
    }
    for (sizes, dtype, schedule) in [
        ([2, 3, 5, 64], DType::F32, "a warp for each row, in registers; 8 rows a block; vectors of 4"),
        ([2, 3, 5, 64], DType::BF16, "vectors of 8 elements within spans"),
        ([2, 3, 5, 64], DType::F16, "vectors of 8 elements within spans"),
        ([2, 3, 5, 63], DType::F32, "element by element"),
        ([2, 2, 9, 300], DType::F64, "a block of 3 warps for each row, in registers; vectors of 2"),
    ] {
        check(GROUP_NORM, dtype, &groups(sizes), schedule);
    }
    // Other programs, whose values are of elements, indices and bits.
    for given in PROGRAMS {
        check(given, DType::BF16, &channels([3, 2, 6, 8]), "elements within spans");
    }
    let whole = channels([4, 3, 4, 8]);
    let strided = |sizes: [usize; 4], strides: [isize; 4], at| view(Layout::strided(&sizes, &strides, at));
    for (rows, schedule) in [
        // Gaps between spans that keep vectors, or do not.
        (
            Rows { elements: strided([4, 3, 4, 8], [104, 32, 8, 1], 8), ..channels([4, 3, 4, 8]) },
            "vectors of 4",
        ),
        (
            Rows { written: strided([4, 3, 4, 8], [98, 32, 8, 1], 0), ..channels([4, 3, 4, 8]) },
            "vectors of 2",
        ),
        (Rows { elements: strided([4, 3, 4, 8], [96, 32, 8, 1], 1), ..channels([4, 3, 4, 8]) }, "element by"),
        (
            Rows { elements: strided([4, 3, 4, 8], [120, 40, 10, 1], 2), ..channels([4, 3, 4, 8]) },
            "vectors of 2",
        ),
        // Rows of images in reverse, and images that are one.
        (Rows { elements: view(whole.elements.flip(&[2])), ..channels([4, 3, 4, 8]) }, "vectors of 4"),
        (Rows { elements: view(whole.elements.flip(&[3])), ..channels([4, 3, 4, 8]) }, "element by"),
        (
            Rows { elements: strided([4, 3, 4, 8], [0, 32, 8, 1], 0), ..channels([4, 3, 4, 8]) },
            "vectors of 4",
        ),
    ] {
        check(BATCH_NORM, DType::F32, &rows, schedule);
    }
}

/// Channels that do not fit registers.
pub fn large() -> Vec<Test> {
    let cases = [
        (
            "one_block",
            BATCH_NORM,
            DType::BF16,
            [33, 16, 32, 32],
            "a block of 11 warps for each row, in shared memory; vectors of 8",
        ),
        (
            "clusters_of_2",
            BATCH_NORM,
            DType::BF16,
            [70, 8, 32, 32],
            "a cluster of 2 blocks of 12 warps for each row, in shared memory; vectors of 8",
        ),
        (
            "clusters_of_4",
            BATCH_NORM,
            DType::F64,
            [50, 4, 28, 28],
            "a cluster of 4 blocks of 10 warps for each row, in shared memory; vectors of 2",
        ),
        (
            "clusters_of_8",
            BATCH_NORM,
            DType::F32,
            [64, 2, 56, 56],
            "a cluster of 8 blocks of 13 warps for each row, in shared memory; vectors of 4",
        ),
        (
            "wide",
            WIDE_BATCH_NORM,
            DType::F32,
            [50, 8, 28, 28],
            "a cluster of 2 blocks of 10 warps for each row, in shared memory; vectors of 4",
        ),
    ];
    let test = |(name, given, dtype, sizes, schedule): (&str, Program, DType, [usize; 4], &'static str)| {
        Test::new(format!("rows::spans::{name}"), move || {
            check_on(given, dtype, &channels(sizes), schedule, &[false], &[(9, 0)]);
            Ok(())
        })
    };
    cases.map(test).into()
}
