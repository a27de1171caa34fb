//! Counts that no memory has, in a process of limited memory: each is an error, and none ends the process.
#![cfg(target_os = "linux")]

use std::process::Command;

use selvedge::tensor::Generator;
use selvedge::{DType, Device, Error, Tensor};

/// The variable of a process that makes the calls.
const CHILD: &str = "SELVEDGE_TEST_LARGE_COUNTS";

#[test]
fn counts_that_no_memory_has_are_errors() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    // 4 GiB of addresses.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 4194304 && exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    shell.args(["--exact", "large_counts::the_calls", "--nocapture", "--test-threads=1"]);
    let output = shell.env(CHILD, "1").env("SELVEDGE_THREADS", "2").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("all are errors"), "{text}");
}

#[test]
fn the_calls() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let cpu = Device::cpu();
    for count in [1usize << 44, 1 << 58, 1 << 62] {
        let wide = |dtype| Tensor::zeros(&[1], dtype, &cpu).unwrap().expand(&[count]);
        let (Ok(x), Ok(bytes), Ok(floats)) = (wide(DType::I64), wide(DType::U8), wide(DType::F32)) else {
            // Shapes of more than 2^63 bytes are refused.
            assert!(count > 1 << 58);
            continue;
        };
        let one = Tensor::zeros(&[1], DType::I64, &cpu).unwrap();
        let generator = Generator::new(1);
        let nothing = |result: Result<Tensor, Error>| result.map(drop);
        let table: Vec<(&str, Result<(), Error>)> = vec![
            ("zeros", nothing(Tensor::zeros(&[count], DType::U8, &cpu))),
            ("full", nothing(Tensor::full(&[count], 1.5, DType::F64, &cpu))),
            ("linspace", nothing(Tensor::linspace(0.0, 1.0, count, DType::F32, &cpu))),
            ("eye", nothing(Tensor::eye(count, 1, DType::F32, &cpu))),
            ("rand", nothing(generator.rand(&[count], DType::F32, &cpu))),
            ("randn", nothing(generator.randn(&[count], DType::F32, &cpu))),
            ("permutation", nothing(generator.permutation(count, &cpu))),
            ("one_hot", nothing(one.one_hot(count))),
            ("bincount", nothing(x.bincount(0))),
            ("bincount of bytes", nothing(bytes.bincount(0))),
            ("minlength", nothing(one.bincount(count))),
            ("histc", nothing(floats.histc(4, 0.0, 1.0))),
            ("histc of all", nothing(floats.histc(4, 0.0, 0.0))),
            ("bins", nothing(Tensor::zeros(&[1], DType::F32, &cpu).unwrap().histc(count, 0.0, 1.0))),
            ("contiguous", nothing(x.contiguous())),
            ("cast", nothing(x.cast(DType::F32))),
            ("add", nothing(&x + &x)),
            ("sort", x.sort(0, false).map(drop)),
            ("unique", nothing(x.unique())),
            ("cumsum", nothing(x.cumsum(0))),
            ("cat", nothing(Tensor::cat(&[&x, &one], 0))),
            ("repeat", nothing(one.repeat(&[count]))),
            ("repeat_interleave", nothing(one.repeat_interleave(count, 0))),
            ("max_all", nothing(floats.max_all())),
            ("sum_all", nothing(floats.sum_all())),
            ("prod_all", nothing(floats.prod_all())),
            ("to_vec", x.to_vec::<i64>().map(drop)),
            ("unbind", x.unbind(0).map(drop)),
            ("chunk", x.chunk(count, 0).map(drop)),
        ];
        #[cfg(feature = "io")]
        let table = table.into_iter().chain([("write_npy", x.write_npy("/dev/null"))]);
        for (name, result) in table {
            let error = result.map_or_else(|error| error.to_string(), |()| panic!("{name} of {count}"));
            assert!(!error.contains("panic"), "{name} of {count}: {error}");
        }
    }
    println!("all are errors");
}
