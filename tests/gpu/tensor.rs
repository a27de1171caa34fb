//! Tensors on a device do what they do on the CPU, bit for bit; memory goes between devices; programs are captured.

use selvedge::Error;
use selvedge::driver;
use selvedge::fuse::{Number, Operation};
use selvedge::tensor::{Device, Fused, Tensor, TensorOperand, fuse};
use selvedge::types::{Bool, DType, Slice};

use super::fuse::value::{Value, same, special, write};
use crate::support::{Need, Outcome, device_tests};

device_tests! {
    operations_have_the_bits_of_the_cpu, in_place_they_do_too, views_do, numbers_do, numbers_are_used_by_value,
    tensors_without_dimensions_take_part_by_kind, casts_do, fused_functions_do,
    parts_are_written_alone, elements_come_and_go, truth_values_are_zeros_and_ones, bad_input_is_an_error,
    streams_are_waited_for, threads_share_tensors, programs_are_captured => alone(),
    too_large_tensors_are_refused => alone(),
    kernels_of_ones_own_take_tensors, products_with_a_zero_have_the_bits_of_the_cpu,
    devices_exchange_tensors => needs(Need::TwoDevices),
}

fn cuda() -> selvedge::Result<Device> {
    Device::cuda(0)
}

/// Values of a dtype on the CPU, from the `start`th special one on.
fn values(dtype: DType, shape: &[usize], start: usize) -> selvedge::Result<Tensor> {
    let special: Vec<Value> = special(dtype);
    let mut bytes = vec![0; shape.iter().product::<usize>() * dtype.size()];
    for (index, element) in bytes.chunks_exact_mut(dtype.size()).enumerate() {
        write(dtype, special[(start + index * (start + 1)) % special.len()], element);
    }
    Tensor::from_bytes(&bytes, dtype, shape, &Device::cpu())
}

#[track_caller]
fn assert_same(what: &str, cpu: &Tensor, device: &Tensor) {
    assert_eq!((cpu.dtype(), cpu.shape()), (device.dtype(), device.shape()), "{what}");
    assert!(!device.device().is_cpu(), "{what}: not on the device");
    let (left, right) = (cpu.to_bytes().expect("bytes"), device.to_bytes().expect("bytes"));
    let size = cpu.dtype().size();
    for (index, (left, right)) in left.chunks(size).zip(right.chunks(size)).enumerate() {
        assert!(
            same(cpu.dtype(), left, right),
            "{what}: element {index} is {left:?} on the CPU, {right:?} on the device"
        );
    }
}

/// Calls `each` for every operation and dtype, with operands on the CPU and on the device.
fn for_each_operation(mut each: impl FnMut(&str, Operation, &[Tensor], &[Tensor]) -> Outcome) -> Outcome {
    let device = cuda()?;
    let mut count = 0;
    for &operation in Operation::ALL {
        for dtype in operation.dtypes().iter() {
            let operands = (0..operation.arity())
                .map(|k| values(dtype, &[7, 33], 3 * k))
                .collect::<Result<Vec<_>, _>>()?;
            let there = operands.iter().map(|operand| operand.to(&device)).collect::<Result<Vec<_>, _>>()?;
            each(&format!("{} of {dtype}", operation.name()), operation, &operands, &there)?;
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
    Ok(())
}

fn others(tensors: &[Tensor]) -> Vec<TensorOperand<'_>> {
    tensors[1..].iter().map(TensorOperand::from).collect()
}

fn operations_have_the_bits_of_the_cpu() -> Outcome {
    for_each_operation(|what, operation, cpu, device| {
        let (here, there) =
            (cpu[0].operation(operation, &others(cpu))?, device[0].operation(operation, &others(device))?);
        assert_same(what, &here, &there);
        Ok(())
    })
}

fn in_place_they_do_too() -> Outcome {
    for_each_operation(|what, operation, cpu, device| {
        let (mut here, mut there) = (cpu[0].copy()?, device[0].copy()?);
        here.in_place().operation(operation, &others(cpu))?;
        there.in_place().operation(operation, &others(device))?;
        assert_same(what, &here, &there);
        Ok(())
    })
}

/// The same views of both.
fn shown(x: &Tensor) -> selvedge::Result<Vec<Tensor>> {
    Ok(vec![
        x.t()?,
        x.flip(&[0, 1])?,
        x.slice(0, Slice::from(..5).step(-2))?,
        x.slice(1, Slice::from(1..).step(3))?,
        x.slice(1, 1..)?,
        x.select(0, -1)?,
        x.diagonal(1, 0, 1)?,
        x.unfold(1, 4, 2)?,
        x.narrow(0, 2, 0)?,
        x.select(0, 0)?.select(0, 5)?,
        x.unsqueeze(1)?.expand(&[7, 3, 33])?,
        x.t()?.reshape(&[3, -1])?,
        x.flatten(0, 1)?,
    ])
}

fn views_do() -> Outcome {
    for dtype in DType::ALL {
        let cpu = values(dtype, &[7, 33], 1)?;
        let device = cpu.to(&cuda()?)?;
        for (index, (here, there)) in shown(&cpu)?.iter().zip(shown(&device)?).enumerate() {
            let what = format!("view {index} of {dtype}");
            assert_same(&what, here, &there);
            assert_same(&what, &here.copy()?, &there.copy()?);
            if !dtype.is_storage_only() {
                assert_same(&what, &here.choose(here, 1)?, &there.choose(&there, 1)?);
            }
        }
    }
    Ok(())
}

fn numbers_do() -> Outcome {
    for dtype in Operation::Add.dtypes().iter() {
        let (cpu, device) = (values(dtype, &[50], 1)?, values(dtype, &[50], 1)?.to(&cuda()?)?);
        for number in [0.1, -3.0, 1e30] {
            if !Number::from(number).fits(dtype) && (&cpu * number).is_err() {
                assert!((&device * number).is_err(), "{dtype} times {number}");
                continue;
            }
            assert_same(&format!("{dtype} times {number}"), &(&cpu * number)?, &(&device * number)?);
            assert_same(&format!("{number} less {dtype}"), &(number - &cpu)?, &(number - &device)?);
        }
        assert_same(&format!("full {dtype}"), &cpu.full_like(1)?, &device.full_like(1)?);
        assert_same(&format!("zeros of {dtype}"), &cpu.zeros_like()?, &device.zeros_like()?);
    }
    Ok(())
}

/// The numbers are held by few of the dtypes.
fn numbers_are_used_by_value() -> Outcome {
    let device = cuda()?;
    let comparisons = [
        Operation::Equal,
        Operation::NotEqual,
        Operation::Less,
        Operation::LessEqual,
        Operation::Greater,
        Operation::GreaterEqual,
    ];
    for dtype in Operation::Less.dtypes().iter() {
        let here = values(dtype, &[500], 0)?;
        let there = here.to(&device)?;
        for number in [-1.0, 0.5, 266.0, 1e6, 1e19, 1e39, -1e300, f64::NAN, f64::INFINITY] {
            for operation in comparisons {
                let others = [TensorOperand::from(number)];
                let what = format!("{} of {dtype} and {number}", operation.name());
                let wanted = here.operation(operation, &others)?;
                assert_same(&what, &wanted, &there.operation(operation, &others)?);
                let mut output = Tensor::zeros(&[500], DType::Bool, &device)?;
                there.with_output(&mut output).operation(operation, &others)?;
                assert_same(&what, &wanted, &output);
                let fused = Fused::new(move |[x, y]| x.operation(operation, &[y])).run((&there, number))?;
                assert_same(&what, &wanted, &fused);
            }
        }
        if dtype.is_integer() {
            let clamped = |x: &Tensor| x.clamp(-1i64 << 40, u64::MAX);
            if let Ok(wanted) = clamped(&here) {
                assert_same(&format!("clamp of {dtype}"), &wanted, &clamped(&there)?);
            }
            assert!(there.add(1u64 << 63).is_err() || dtype == DType::U64, "{dtype}");
            assert!(
                Tensor::full(&[2], -1i64 << 40, dtype, &device).is_err() || dtype == DType::I64,
                "{dtype}"
            );
        }
    }
    Ok(())
}

fn tensors_without_dimensions_take_part_by_kind() -> Outcome {
    let device = cuda()?;
    for array in Operation::Mul.dtypes().iter() {
        for scalar in Operation::Mul.dtypes().iter() {
            let (x, y) = (values(array, &[70], 0)?, values(scalar, &[], 3)?);
            let (here, there) = ([&x, &y], [x.to(&device)?, y.to(&device)?]);
            let what = format!("{array} and {scalar}");
            assert_same(&what, &here[0].mul(here[1])?, &there[0].mul(&there[1])?);
            assert_same(&what, &here[1].mul(here[0])?, &fuse([&there[1], &there[0]], |[y, x]| y * x)?);
        }
    }
    Ok(())
}

fn casts_do() -> Outcome {
    for from in DType::ALL {
        let (cpu, device) = (values(from, &[60], 1)?, values(from, &[60], 1)?.to(&cuda()?)?);
        for to in DType::ALL {
            assert_same(&format!("{from} to {to}"), &cpu.cast(to)?, &device.cast(to)?);
        }
    }
    Ok(())
}

fn fused_functions_do() -> Outcome {
    let f = Fused::with_outputs(|[a, b, scale]| [((a * b + scale).relu() * 2.0 - a).abs().sqrt(), a.lt(b)]);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32] {
        let (a, b) = (values(dtype, &[40, 33], 1)?, values(dtype, &[33], 2)?);
        let (there, row) = (a.to(&cuda()?)?, b.to(&cuda()?)?);
        let ([x, y], [u, v]) = (f.run_all((&a, &b, 1.5))?, f.run_all((&there, &row, 1.5))?);
        assert_same(&format!("the first output of {dtype}"), &x, &u);
        assert_same(&format!("the second output of {dtype}"), &y, &v);
        let (mut into, mut truth) = (u.zeros_like()?, v.zeros_like()?);
        f.run_into((&there, &row, 1.5), [&mut into, &mut truth])?;
        assert_same("into memory that was there", &x, &into);
        assert!(f.explain((&there, &row, 1.5))?.to_string().contains(".entry"));
    }
    Ok(())
}

fn parts_are_written_alone() -> Outcome {
    let cpu = values(DType::I32, &[7, 33], 1)?;
    let (mut here, mut there) = (cpu.copy()?, cpu.to(&cuda()?)?);
    let clone = there.clone();
    for x in [&mut here, &mut there] {
        let row = x.select(0, 0)?.flip(&[0])?;
        x.slice_mut(0, Slice::from(1..).step(2))?.slice(1, 3..20)?.add(7)?.mul(-1)?;
        x.in_place().t()?.narrow(0, 30, 2)?.fill(9)?;
        x.in_place().select(0, 0)?.assign(&row)?;
        row.with_output(x.slice_mut(0, 2..4)?).maximum(3)?;
    }
    assert_same("a tensor written in parts", &here, &there);
    assert_same("its clone", &cpu, &clone);
    Ok(())
}

fn elements_come_and_go() -> Outcome {
    let device = cuda()?;
    let large: Vec<f32> = (0..3 << 20).map(|index| index as f32).collect();
    let x = Tensor::from_slice(&large, &[3 << 10, 1 << 10], &device)?;
    assert_eq!(x.narrow(0, 1 << 10, 1)?.to_vec::<f32>()?, large[1 << 20..(1 << 20) + (1 << 10)]);
    assert!(x.to(&Device::cpu())?.to_vec::<f32>()? == large);
    assert_eq!(Tensor::new([[1.5f64]], &device)?.item::<f64>()?, 1.5);
    assert!(Tensor::new([0i8; 0], &device)?.to_vec::<i8>()?.is_empty());
    assert_eq!(Tensor::new([1u16, 2], &device)?.to_string(), "[1 2]");
    assert!(format!("{x:?}").contains("device=cuda:0"));
    assert!(x.to_string().starts_with("[[0.000000e+00"), "{x}");
    Ok(())
}

fn truth_values_are_zeros_and_ones() -> Outcome {
    let x = Tensor::from_bytes(&[0, 1, 2, 255], DType::Bool, &[4], &cuda()?)?;
    assert_eq!(bytemuck::cast_slice::<Bool, u8>(&x.to_vec::<Bool>()?), [0, 1, 1, 1]);
    assert_eq!(x.flip(&[0])?.to_bytes()?, [1, 1, 1, 0]);
    Ok(())
}

fn bad_input_is_an_error() -> Outcome {
    let (here, there) = (Tensor::new([1.0f32, 2.0], &Device::cpu())?, Tensor::new([1.0f32, 2.0], &cuda()?)?);
    let error = (&here + &there).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { operation: "add", .. }), "{error}");
    assert!(matches!(here.clone().in_place().assign(&there).map(drop), Err(Error::DeviceMismatch { .. })));
    let three = Tensor::new([1.0f32; 3], &cuda()?)?;
    assert!(matches!(&there + &three, Err(Error::InvalidArgument { .. })));
    assert!(matches!(there.bit_and(&there), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(there.to_vec::<f64>(), Err(Error::DTypeMismatch { .. })));
    assert!(matches!(there.as_slice::<f32>(), Err(Error::DeviceMismatch { .. })));
    assert_eq!(there.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

fn streams_are_waited_for() -> Outcome {
    let device = cuda()?;
    let own = driver::Device::new(0)?.stream()?;
    let mut x = Tensor::zeros(&[1 << 20], DType::F32, &device)?;
    for round in 0..200 {
        // Back and forth between the two streams, each on what the other wrote.
        if round % 2 == 0 {
            x.in_place().add(1)?;
        } else {
            x = Device::with_stream(&own, || &x * 1)?;
        }
    }
    assert!(x.to_vec::<f32>()?.iter().all(|x| *x == 100.0));
    Ok(())
}

fn threads_share_tensors() -> Outcome {
    let device = cuda()?;
    let x = Tensor::new([[2.0f32; 100]; 100], &device)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let x = &x;
                scope.spawn(move || -> selvedge::Result<bool> {
                    let stream = driver::Device::new(0)?.stream()?;
                    let work = || -> selvedge::Result<bool> {
                        let mut own = x.clone();
                        for _ in 0..100 {
                            own.in_place().add(thread)?;
                        }
                        Ok(own.to_vec::<f32>()?.iter().all(|x| *x == 2.0 + 100.0 * thread as f32))
                    };
                    if thread % 2 == 0 { work() } else { Device::with_stream(&stream, work) }
                })
            })
            .collect();
        for thread in threads {
            assert!(thread.join().expect("no panic")?, "a thread saw another's writes");
        }
        Ok::<(), Error>(())
    })?;
    assert!(x.to_vec::<f32>()?.iter().all(|x| *x == 2.0));
    Ok(())
}

fn programs_are_captured() -> Outcome {
    let device = cuda()?;
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &device)?;
    let mut total = x.zeros_like()?;
    let own = driver::Device::new(0)?.stream()?;
    for stream in [device.stream()?, own] {
        let (graph, result) = stream.capture(|stream| {
            Device::with_stream(stream, || {
                let scaled = (&x.t()? * 2.0)?;
                total.in_place().add(&scaled)?;
                fuse([&scaled, &total], |[x, y]| (x - y).abs())
            })
        })?;
        let graph = graph.instantiate()?;
        let before = total.to_vec::<f32>()?;
        for launch in 1..=3 {
            graph.launch(&stream)?;
            let wanted: Vec<f32> =
                before.iter().zip([2.0, 6.0, 4.0, 8.0]).map(|(x, y)| x + launch as f32 * y).collect();
            assert_eq!(total.to_vec::<f32>()?, wanted);
            let rest: Vec<f32> =
                wanted.iter().zip([2.0, 6.0, 4.0, 8.0]).map(|(x, y)| (y - x).abs()).collect();
            assert_eq!(result.to_vec::<f32>()?, rest);
        }
    }
    Ok(())
}

fn too_large_tensors_are_refused() -> Outcome {
    let device = cuda()?;
    let x = Tensor::ones(&[1], DType::F64, &device)?;
    assert!(matches!(Tensor::zeros(&[1 << 40], DType::F64, &device), Err(Error::OutOfMemory { .. })));
    assert!(matches!(x.expand(&[1 << 40])?.neg(), Err(Error::OutOfMemory { .. })));
    assert_eq!((&x + &x)?.item::<f64>()?, 2.0);
    Ok(())
}

fn kernels_of_ones_own_take_tensors() -> Outcome {
    let mut x = Tensor::new([1.0f32, 2.0, 3.0], &cuda()?)?;
    let clone = x.clone();
    let stream = cuda()?.stream()?;
    stream.fill(&mut x.device_slice_mut::<f32>()?.slice_mut(1..)?, 7.0)?;
    assert_eq!(x.to_vec::<f32>()?, [1.0, 7.0, 7.0]);
    assert_eq!(stream.download(&clone.slice(0, 1..)?.device_slice::<f32>()?)?, [2.0, 3.0]);
    assert!(x.flip(&[0])?.device_slice::<f32>().is_err());
    Ok(())
}

/// Lengths of a warp, a block, several launches and several tiles; partial products overflow unless there are few.
fn products_with_a_zero_have_the_bits_of_the_cpu() -> Outcome {
    let device = cuda()?;
    for length in [3, 100, 5000, 200_000] {
        let changes: [&[(usize, f64)]; 6] = [
            &[],
            &[(length / 2, 0.0)],
            &[(length - 1, -0.0), (0, -3e4)],
            &[(1, 0.0), (length - 1, f64::INFINITY)],
            &[(0, f64::NEG_INFINITY)],
            &[(0, f64::NAN), (1, 0.0)],
        ];
        for (row, changes) in changes.into_iter().enumerate() {
            let mut values = vec![3e4; length];
            changes.iter().for_each(|(place, value)| values[*place] = *value);
            let x = Tensor::from_vec(values, &[length], &Device::cpu())?;
            for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128] {
                let x = x.cast(dtype)?;
                let there = x.to(&device)?;
                let what = format!("row {row} of {length} {dtype}");
                assert_same(&what, &x.prod(&[])?, &there.prod(&[])?);
                assert_same(&what, &x.cumprod(0)?, &there.cumprod(0)?);
                let columns = |x: &Tensor| x.unsqueeze(1)?.expand(&[length, 5])?.contiguous()?.prod(&[0]);
                assert_same(&what, &columns(&x)?, &columns(&there)?);
            }
        }
    }
    Ok(())
}

fn devices_exchange_tensors() -> Outcome {
    let (first, second) = (Device::cuda(0)?, Device::cuda(1)?);
    let x = Tensor::from_vec((0..1 << 20).collect::<Vec<i32>>(), &[1 << 10, 1 << 10], &first)?;
    for _ in 0..20 {
        // Written on the one, moved, written on the other, and moved back, without a wait in between.
        let there = (&x + 1)?.t()?.to(&second)?;
        let back = (&there * 2)?.to(&first)?;
        let wanted = ((&x + 1)? * 2)?.t()?.to_vec::<i32>()?;
        assert!(back.to_vec::<i32>()? == wanted);
        assert!(matches!(&there + &x, Err(Error::DeviceMismatch { .. })));
    }
    Ok(())
}
