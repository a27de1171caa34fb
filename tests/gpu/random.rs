//! Random tensors, ranges, indices and files on a device are what they are on the CPU, bit for bit.

use selvedge::driver;
use selvedge::fuse::{DeviceOutput, Graph, HostOutput};
use selvedge::io::npy::NpyFile;
use selvedge::io::safetensors::SafetensorsFile;
use selvedge::tensor::{Device, Generator, GeneratorState, Tensor, TensorOperand};
use selvedge::types::{DType, Layout, Slice};

use crate::support::{Outcome, device_tests};

device_tests! {
    draws_have_the_bits_of_the_cpu, tensors_beside_a_draw_do, ranges_do, coordinates_do_in_any_layout,
    draws_past_32_bits_go_on => alone(), draws_on_many_streams_are_apart, files_come_and_go, safetensors_come_and_go,
}

const CPU: Device = Device::cpu();

#[track_caller]
fn assert_same(what: &str, there: &Tensor, here: &Tensor) {
    assert!(!there.device().is_cpu() && here.device().is_cpu(), "{what}");
    assert_eq!((there.dtype(), there.shape()), (here.dtype(), here.shape()), "{what}");
    let (there, here) = (there.to_bytes().expect("bytes"), here.to_bytes().expect("bytes"));
    let first = there.iter().zip(&here).position(|(there, here)| there != here);
    assert_eq!(first, None, "{what}: bytes differ");
}

type Draw = dyn Fn(&Generator, &[usize], DType, &Device) -> selvedge::Result<Tensor>;

const FRACTIONS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128];

fn draws_have_the_bits_of_the_cpu() -> Outcome {
    let device = Device::cuda(0)?;
    let integers: Vec<DType> = DType::ALL.into_iter().filter(|dtype| dtype.is_integer()).collect();
    let draws: Vec<(&str, &[DType], Box<Draw>)> = vec![
        ("rand", FRACTIONS, Box::new(|g, s, t, d| g.rand(s, t, d))),
        ("randn", FRACTIONS, Box::new(|g, s, t, d| g.randn(s, t, d))),
        ("uniform", &FRACTIONS[..4], Box::new(|g, s, t, d| g.uniform(-3.0, 0.7, s, t, d))),
        ("normal", &FRACTIONS[..4], Box::new(|g, s, t, d| g.normal(5, 0.1, s, t, d))),
        ("randint", &integers, Box::new(|g, s, t, d| g.randint(0, 100, s, t, d))),
        (
            "randint of many",
            &[DType::I64, DType::U64],
            Box::new(|g, s, t, d| g.randint(3, i64::MAX, s, t, d)),
        ),
        (
            "randint of the widest range",
            &[DType::I64],
            Box::new(|g, s, t, d| g.randint(i64::MIN, i64::MAX, s, t, d)),
        ),
        ("randint of half", &[DType::U64], Box::new(|g, s, t, d| g.randint(5, (1i128 << 63) + 6, s, t, d))),
        ("randint of all", &[DType::U64], Box::new(|g, s, t, d| g.randint(0, 1i128 << 64, s, t, d))),
        ("bernoulli", &DType::ALL, Box::new(|g, s, t, d| g.bernoulli(0.3, s, t, d))),
        ("permutation", &[DType::I64], Box::new(|g, s, _, d| g.permutation(s.iter().product(), d))),
    ];
    for (name, dtypes, draw) in &draws {
        for &dtype in *dtypes {
            for shape in [&[1usize][..], &[], &[0, 3], &[31], &[1024], &[1027], &[7, 333], &[100_000]] {
                let state = GeneratorState { seed: 0x0123_4567_89ab_cdef, offset: (1 << 32) - 20 };
                let (one, other) = (Generator::at(state), Generator::at(state));
                let what = format!("{name} of {dtype}, {shape:?}");
                assert_same(&what, &draw(&one, shape, dtype, &device)?, &draw(&other, shape, dtype, &CPU)?);
                assert_eq!(one.state(), other.state(), "{what}");
            }
        }
    }
    // Every tail of a million draws of f32 and of f64.
    for dtype in [DType::F32, DType::F64] {
        let draw = |device: &Device| Generator::new(6).randn(&[1 << 20], dtype, device);
        assert_same("a million", &draw(&device)?, &draw(&CPU)?);
    }
    Ok(())
}

fn tensors_beside_a_draw_do() -> Outcome {
    let device = Device::cuda(0)?;
    let rows = Tensor::new([[0.0f64], [0.25], [1.0], [7.0]], &CPU)?;
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let rows = rows.cast(dtype)?;
        let there = rows.to(&device)?;
        let shape = &[4, 1001];
        let bernoulli = |rows: &Tensor| Generator::new(1).bernoulli(rows, shape, DType::Bool, &rows.device());
        assert_same("bernoulli", &bernoulli(&there)?, &bernoulli(&rows)?);
        let normal = |rows: &Tensor| Generator::new(1).normal(rows, rows, shape, dtype, &rows.device());
        assert_same("normal", &normal(&there)?, &normal(&rows)?);
        let ends: TensorOperand<'_> = 9.into();
        let uniform = |rows: &Tensor| Generator::new(1).uniform(rows, ends, shape, dtype, &rows.device());
        assert_same("uniform", &uniform(&there)?, &uniform(&rows)?);
    }
    let text = Generator::new(1).bernoulli(&rows, &[4, 3], DType::Bool, &device).unwrap_err().to_string();
    assert!(text.contains("cpu") && text.contains("cuda:0"), "{text}");
    Ok(())
}

fn ranges_do() -> Outcome {
    let device = Device::cuda(0)?;
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        let range = |device: &Device| Tensor::arange(3, 120, 7, dtype, device);
        assert_same("arange", &range(&device)?, &range(&CPU)?);
        if !dtype.is_integer() {
            let range = |device: &Device| Tensor::arange(-1.5, 40.0, 0.37, dtype, device);
            assert_same("arange", &range(&device)?, &range(&CPU)?);
            for count in [0, 1, 2, 1001] {
                let spaced = |device: &Device| Tensor::linspace(-0.3, 7.7, count, dtype, device);
                assert_same("linspace", &spaced(&device)?, &spaced(&CPU)?);
            }
        }
        let eye = |device: &Device| Tensor::eye(65, 130, dtype, device);
        assert_same("eye", &eye(&device)?, &eye(&CPU)?);
    }
    Ok(())
}

fn coordinates_do_in_any_layout() -> Outcome {
    let stream = driver::Device::new(0)?.stream()?;
    let whole = Layout::contiguous(&[66, 4, 70])?;
    let layouts = [
        whole,
        whole.permute(&[2, 1, 0])?,
        whole.flip(&[0, 2])?,
        whole.slice(2, Slice::from(1..).step(3))?,
        whole.narrow(2, 0, 68)?,
        whole.select(1, 2)?,
    ];
    for layout in layouts {
        for dtype in [DType::I64, DType::F32, DType::U8] {
            let graph = Graph::new();
            let [seed, offset] = [7u64, 9].map(|number| graph.number(number, DType::U64));
            let [word] = graph.random(DType::U32, seed, offset);
            let sum = graph.position() * 3 + graph.index(0) * 5 + graph.index(-1) + word;
            let expression = graph.expression(&[sum.cast(dtype)])?;
            let mut here = vec![0u64; layout.end() * dtype.size() / 8 + 1];
            let bytes = layout.end() * dtype.size();
            let memory = &mut bytemuck::cast_slice_mut(&mut here)[..bytes];
            expression.run_host(&[], &[], &mut [HostOutput::of_bytes(dtype, memory, layout)?])?;
            let mut there = stream.zeros::<u8>(bytes)?;
            expression.run(&stream, &[], &[], &mut [DeviceOutput::of_bytes(dtype, &mut there, layout)?])?;
            assert_eq!(
                stream.download(&there)?,
                bytemuck::cast_slice::<u64, u8>(&here)[..bytes],
                "{layout:?}"
            );
        }
    }
    Ok(())
}

fn draws_past_32_bits_go_on() -> Outcome {
    let device = Device::cuda(0)?;
    // One launch cannot count as many; the parts' first elements begin within blocks of words, too.
    let count = (1usize << 32) + 6;
    let drawn = Generator::new(3).randint(0, 251, &[count], DType::U8, &device)?;
    for start in [0, (1 << 31) - 50, (1 << 32) - 100] {
        let part = drawn.narrow(0, start, 101)?.contiguous()?;
        let skipped = start / 2;
        let generator = Generator::at(GeneratorState { seed: 3, offset: skipped as u64 });
        let rest = generator.randint(0, 251, &[102], DType::U8, &CPU)?;
        assert_same("a part", &part, &rest.narrow(0, start % 2, 101)?.contiguous()?);
    }
    let odd = Tensor::arange(0, (1i64 << 31) + 77, 1, DType::I32, &device);
    assert!(odd.is_err(), "past i32");
    let range = Tensor::arange(0, (1i64 << 31) + 77, 1, DType::U32, &device)?;
    let last = range.narrow(0, (1 << 31) - 2, 79)?.to_vec::<u32>()?;
    assert!(last.into_iter().eq((1u32 << 31) - 2..(1 << 31) + 77));
    Ok(())
}

fn draws_on_many_streams_are_apart() -> Outcome {
    let device = Device::cuda(0)?;
    let generator = Generator::new(8);
    let mut all: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| -> selvedge::Result<Vec<Vec<u64>>> {
                    let stream = driver::Device::new(0)?.stream()?;
                    let draw = || generator.randint(0, 1i128 << 64, &[5], DType::U64, &device);
                    (0..20).map(|_| Device::with_stream(&stream, draw)?.to_vec::<u64>()).collect()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread").expect("draws")).collect()
    });
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 160);
    Ok(())
}

fn files_come_and_go() -> Outcome {
    let device = Device::cuda(0)?;
    let path = std::env::temp_dir().join(format!("selvedge-gpu-{}.npy", std::process::id()));
    let here = Generator::new(2).randn(&[5, 3_333_333], DType::F32, &CPU)?;
    let there = here.to(&device)?;
    there.write_npy(&path)?;
    let mut reports = 0;
    let mut file = NpyFile::open(&path)?;
    assert_same("read", &Tensor::read_npy_file(&mut file, &device, &mut |_, _| reports += 1)?, &here);
    // SAFETY: the file is this test's alone.
    let mapped = unsafe { Tensor::map_npy_file(&file, &device, &mut |_, _| reports += 1)? };
    assert_same("mapped", &mapped, &here);
    // Three chunks of 32 MiB, and the mapped pages at once.
    assert!(reports >= 3);
    there.transpose(0, 1)?.write_npy(&path)?;
    assert_same("transposed", &Tensor::read_npy(&path, &device)?, &here.transpose(0, 1)?.contiguous()?);
    let mask = Generator::new(2).bernoulli(0.5, &[1001], DType::Bool, &CPU)?;
    Tensor::write_npz_compressed(&path, &[("x", &there.narrow(1, 5, 1000)?), ("mask", &mask.to(&device)?)])?;
    let found = Tensor::read_npz(&path, &device)?;
    assert_same("x", &found[0].1, &here.narrow(1, 5, 1000)?.contiguous()?);
    assert_same("mask", &found[1].1, &mask);
    std::fs::remove_file(&path)?;
    Ok(())
}

fn safetensors_come_and_go() -> Outcome {
    let device = Device::cuda(0)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tensors.safetensors");
    let generator = Generator::new(2);
    let large = generator.randn(&[5, 3_333_333], DType::F32, &CPU)?;
    let mut tensors = vec![("large".to_owned(), large)];
    for dtype in [DType::BF16, DType::F16, DType::F8E4M3, DType::F8E5M2, DType::I64, DType::Bool] {
        tensors.push((dtype.name().to_owned(), generator.randn(&[7, 9], DType::F32, &CPU)?.cast(dtype)?));
    }
    let there: Vec<Tensor> =
        tensors.iter().map(|(_, tensor)| tensor.to(&device)).collect::<Result<_, _>>()?;
    let listed: Vec<(&str, &Tensor)> =
        tensors.iter().zip(&there).map(|((name, _), tensor)| (name.as_str(), tensor)).collect();
    let mut reports = Vec::new();
    Tensor::write_safetensors_with(&path, &listed, &[], &mut |done, total| reports.push((done, total)))?;
    let found =
        Tensor::read_safetensors_with(&path, &device, &mut |done, total| reports.push((done, total)))?;
    assert!(reports.len() >= 16 && reports.iter().filter(|(done, total)| done == total).count() == 2);
    let mut file = SafetensorsFile::open(&path)?;
    assert_eq!(found.len(), tensors.len());
    for (name, here) in &tensors {
        let read = found.iter().find(|(found, _)| found == name).map(|(_, tensor)| tensor);
        assert_same(name, read.ok_or("no such tensor")?, here);
        // SAFETY: the file is this test's alone.
        assert_same(name, &unsafe { Tensor::map_safetensors_tensor(&mut file, name, &device)? }, here);
    }
    Ok(())
}
