//! The time to read an image before the driver sees it, and to check an argument against its parameter. Both delay a
//! program's first kernel.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use selvedge::driver::image::{ArgumentKind, ImageInfo};

const VECTOR_ADD: &str = include_str!("../../csrc/bench/vector_add.ptx");

/// A module of `kernels` kernels, as a compiler would write one: header once, then entry after entry.
fn large_module(kernels: usize) -> String {
    let entry = VECTOR_ADD.find(".visible").unwrap_or(0);
    let mut text = VECTOR_ADD[..entry].to_owned();
    for index in 0..kernels {
        // Writing to a `String` cannot fail.
        let _ =
            writeln!(text, "{}", VECTOR_ADD[entry..].replace("vector_add", &format!("vector_add_{index}")));
    }
    text
}

pub fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("image");
    for (name, text) in [("1 kernel", VECTOR_ADD.to_owned()), ("256 kernels", large_module(256))] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(format!("read PTX of {name}"), |bencher| {
            bencher.iter(|| ImageInfo::parse(black_box(text.as_bytes())).map(|image| image.kernels.len()));
        });
    }
    group.finish();
}

pub fn arguments(criterion: &mut Criterion) {
    let Ok(image) = ImageInfo::parse(VECTOR_ADD.as_bytes()) else { return };
    let Some(parameters) = image.kernel("vector_add").and_then(|kernel| kernel.parameters.as_deref()) else {
        return;
    };
    let given = [
        (ArgumentKind::Address, 8),
        (ArgumentKind::Address, 8),
        (ArgumentKind::Address, 8),
        (ArgumentKind::Integer, 4),
    ];
    criterion.bench_function("check 4 arguments", |bencher| {
        bencher.iter(|| {
            let pairs = black_box(parameters).iter().zip(black_box(&given)).enumerate();
            pairs
                .map(|(index, (parameter, (kind, size)))| parameter.check("vector_add", index, *kind, *size))
                .all(|fits| fits.is_ok())
        });
    });
}
