//! Reading and writing by index, and tensors put together and taken apart: the device against the CPU, for every size of
//! element and memory layout; wrong indices, which the next call that waits reports; more than 2³² elements.

use num_complex::Complex;
use selvedge::Error;
use selvedge::driver;
use selvedge::tensor::{CrossEntropyOptions, Device, LossReduction, Padding, Tensor};
use selvedge::types::{DType, Slice};

use crate::support::{Need, Outcome, assert_error, device_tests};

device_tests! {
    the_device_moves_what_the_cpu_moves => needs(Need::Isa(8, 0)),
    rows_of_every_width_from_every_start => needs(Need::Isa(8, 0)),
    the_last_of_many_stays => needs(Need::Isa(8, 0)),
    wrong_indices_are_reported_once => in_child(&[]) => needs(Need::Isa(8, 0)),
    wrong_indices_in_graphs_and_on_other_streams_are_reported => in_child(&[]) => needs(Need::Isa(8, 0)),
    wrong_labels_in_graphs_are_reported_by_one_kernel_and_by_several => in_child(&[]) => needs(Need::Isa(8, 0)),
    many_wrong_indices_are_one_report => in_child(&[]) => needs(Need::Isa(8, 0)),
    more_than_2_to_the_32_elements => needs(Need::FreeRunning),
}

const DTYPES: [DType; 8] =
    [DType::U8, DType::Bool, DType::BF16, DType::I32, DType::F32, DType::I64, DType::C64, DType::C128];

/// Numbers that look random: a linear congruential generator's upper half.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

fn cuda() -> selvedge::Result<Device> {
    Device::cuda(0)
}

/// Returns a tensor of these sizes in one of several layouts.
fn tensor_with_layout(
    device: &Device,
    dtype: DType,
    sizes: &[usize],
    layout: usize,
) -> selvedge::Result<Tensor> {
    let counting = |sizes: &[usize]| {
        let numbers: Vec<i32> = (0..sizes.iter().product::<usize>() as i32).map(|x| x % 120).collect();
        Tensor::from_slice(&numbers, sizes, &Device::cpu())?.cast(dtype)?.to(device)
    };
    let rank = sizes.len();
    match layout % 5 {
        1 => {
            let reversed: Vec<usize> = sizes.iter().rev().copied().collect();
            counting(&reversed)?.permute(&(0..rank as isize).rev().collect::<Vec<_>>())
        }
        2 => {
            let wide: Vec<usize> = sizes.iter().map(|size| 2 * size + 1).collect();
            (0..rank as isize)
                .try_fold(counting(&wide)?, |tensor, axis| tensor.slice(axis, Slice::from(1..).step(2)))
        }
        3 => counting(sizes)?.flip(&[-1]),
        4 => {
            let wide: Vec<usize> = sizes.iter().map(|size| size + 1).collect();
            (0..rank).try_fold(counting(&wide)?, |tensor, axis| tensor.narrow(axis as isize, 1, sizes[axis]))
        }
        _ => counting(sizes),
    }
}

fn numbers(tensor: &Tensor) -> selvedge::Result<Vec<Complex<f64>>> {
    tensor.to(&Device::cpu())?.cast(DType::C128)?.to_vec()
}

/// Runs the same on both, and compares.
fn both(what: &str, run: impl Fn(&Device) -> selvedge::Result<Tensor>) -> Outcome {
    let (wanted, found) = (run(&Device::cpu())?, run(&cuda()?)?);
    if wanted.shape() != found.shape() || wanted.dtype() != found.dtype() {
        return Err(format!("{what}: {} instead of {}", found.shape(), wanted.shape()).into());
    }
    if numbers(&wanted)? != numbers(&found)? {
        return Err(format!("{what}: {:?} instead of {:?}", numbers(&found)?, numbers(&wanted)?).into());
    }
    Ok(())
}

fn the_device_moves_what_the_cpu_moves() -> Outcome {
    let mut draws = Draws(1);
    for case in 0..160 {
        let rank = 1 + draws.below(4);
        let sizes: Vec<usize> = (0..rank).map(|_| 1 + draws.below(7)).collect();
        let dtype = DTYPES[case % DTYPES.len()];
        let (layout, other) = (draws.below(5), draws.below(5));
        let axis = draws.below(rank);
        let index_dtype = [DType::I64, DType::I32, DType::I8, DType::I16][draws.below(4)];
        let mut of_index: Vec<usize> = sizes.iter().map(|&size| 1 + draws.below(size)).collect();
        of_index[axis] = draws.below(9);
        let values = |draws: &mut Draws, count: usize, size: usize| -> Vec<i64> {
            (0..count).map(|_| draws.below(2 * size) as i64 - size as i64).collect()
        };
        let count: usize = sizes.iter().product();
        let of_gather = values(&mut draws, of_index.iter().product(), sizes[axis]);
        let of_list = values(&mut draws, of_index[axis], sizes[axis]);
        let of_take = values(&mut draws, 11, count);
        let mut parts = sizes.clone();
        parts[axis] = of_list.len();
        let place = axis as isize;
        let index = |device: &Device, values: &[i64], sizes: &[usize]| {
            Tensor::from_slice(values, sizes, &Device::cpu())?.cast(index_dtype)?.to(device)
        };
        let what = |name: &str| {
            format!("{name} of {dtype} {sizes:?} along {axis}, layouts {layout} and {other}, {case}")
        };
        let x = |device: &Device| tensor_with_layout(device, dtype, &sizes, layout);

        both(&what("gather"), |device| x(device)?.gather(place, &index(device, &of_gather, &of_index)?))?;
        both(&what("index_select"), |device| {
            x(device)?.index_select(place, &index(device, &of_list, &[of_list.len()])?)
        })?;
        both(&what("take"), |device| x(device)?.take(&index(device, &of_take, &[of_take.len()])?))?;
        both(&what("scatter"), |device| {
            let elements = tensor_with_layout(device, dtype, &of_index, other)?;
            x(device)?.scatter(place, &index(device, &of_gather, &of_index)?, &elements)
        })?;
        both(&what("index_copy"), |device| {
            let elements = tensor_with_layout(device, dtype, &parts, other)?;
            x(device)?.index_copy(place, &index(device, &of_list, &[of_list.len()])?, &elements)
        })?;
        both(&what("put"), |device| {
            x(device)?
                .put(&index(device, &of_take, &[11])?, &tensor_with_layout(device, dtype, &[11], other)?)
        })?;
        both(&what("cat"), |device| {
            Tensor::cat(&[&x(device)?, &tensor_with_layout(device, dtype, &parts, other)?], place)
        })?;
        both(&what("roll"), |device| x(device)?.roll(&[case as isize - 80, 1], &[place, -1]))?;
        both(&what("repeat"), |device| x(device)?.repeat(&vec![2; rank]))?;
        both(&what("repeat_interleave"), |device| x(device)?.repeat_interleave(3, place))?;
        let padding = [Padding::ZEROS, Padding::Replicate, Padding::Circular][case % 3];
        both(&what("pad"), |device| x(device)?.pad(&[(1, 1)], padding))?;
        if rank > 1 {
            both(&what("tril"), |device| x(device)?.tril(case as isize % 7 - 3))?;
            both(&what("triu"), |device| x(device)?.triu(case as isize % 7 - 3))?;
        }
        if dtype.is_integer() {
            both(&what("one_hot"), |device| x(device)?.one_hot(120))?;
        }
    }
    Ok(())
}

fn rows_of_every_width_from_every_start() -> Outcome {
    let rows = [3i64, 0, -1, 3, 1];
    for dtype in [DType::U8, DType::BF16, DType::C128] {
        for width in (1..40).chain([64, 256, 257, 1024]) {
            for start in [0, 1, 3, 8] {
                both(&format!("{width} {dtype} from {start}"), |device| {
                    let whole = tensor_with_layout(device, dtype, &[7 * (width + 8) + 8], 0)?;
                    let wide = whole.narrow(0, start, 7 * (width + 8))?.reshape(&[7, -1])?;
                    let list = Tensor::from_slice(&rows, &[5], device)?;
                    let selected = wide.narrow(1, 0, width)?.index_select(0, &list)?;
                    wide.narrow(1, 8, width)?.index_copy(0, &list, &selected)
                })?;
            }
        }
    }
    Ok(())
}

fn the_last_of_many_stays() -> Outcome {
    const COUNT: usize = 1 << 20;
    let mut draws = Draws(5);
    let elements: Vec<i32> = (0..COUNT as i32).collect();
    // The last are so many that they are gone through by the index, and marked in several sweeps on most devices.
    for places in [1000, 1 << 20, 1 << 23] {
        let values: Vec<i32> = (0..COUNT).map(|_| draws.below(places) as i32).collect();
        both("put", |device| {
            let index = Tensor::from_slice(&values, &[COUNT], device)?;
            let elements = Tensor::from_slice(&elements, &[COUNT], device)?;
            Tensor::zeros(&[places], DType::I32, device)?.put(&index, &elements)
        })?;
    }
    let values: Vec<i32> = (0..COUNT).map(|_| draws.below(1000) as i32).collect();
    for count in [100, COUNT] {
        both("rows", |device| {
            let index = Tensor::from_slice(&values[..count], &[count], device)?;
            let elements =
                Tensor::from_slice(&elements[..count], &[count, 1], device)?.expand(&[count, 5])?;
            Tensor::zeros(&[1000, 5], DType::I32, device)?.index_copy(0, &index, &elements)
        })?;
    }
    Ok(())
}

fn wrong_indices_are_reported_once() -> Outcome {
    let device = cuda()?;
    let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &device)?;
    let index = Tensor::new([1i64, -4, 0], &device)?;
    let selected = x.index_select(1, &index)?;
    let found = selected.to_vec::<f32>();
    assert_error!(
        found,
        Error::IndexOutOfRange { operation: "index_select", index: -4, axis: Some(1), size: 3 }
    );
    // Reported once, and the elements at valid indices are right.
    let found = selected.to_vec::<f32>()?;
    if found != [2.0, 0.0, 1.0, 5.0, 0.0, 4.0] {
        return Err(format!("beside the wrong index: {found:?}").into());
    }
    // On another thread, by a wait for the device.
    drop(x.take(&Tensor::new([i64::MAX], &device)?)?);
    let found = std::thread::spawn(move || device.synchronize()).join().map_err(|_| "a panic")?;
    assert_error!(found, Error::IndexOutOfRange { operation: "take", index: i64::MAX, axis: None, size: 6 });
    device.synchronize()?;

    let written = x.scatter(
        0,
        &Tensor::new([[1i32, 2, 0]], &device)?,
        &Tensor::new([[-1.0f32, -2.0, -3.0]], &device)?,
    )?;
    let other = Tensor::new([1i32], &device)?;
    assert_error!(
        other.item::<i32>(),
        Error::IndexOutOfRange { operation: "scatter", index: 2, axis: Some(0), size: 2 }
    );
    let found = written.to_vec::<f32>()?;
    if found != [1.0, 2.0, -3.0, -1.0, 5.0, 6.0] {
        return Err(format!("beside the wrong index: {found:?}").into());
    }
    let list = Tensor::new([0, 5], &device)?;
    let rows = Tensor::zeros(&[2, 3], DType::F32, &device)?;
    drop(x.index_copy(0, &list, &rows)?);
    assert_error!(
        x.to(&Device::cpu()),
        Error::IndexOutOfRange { operation: "index_copy", index: 5, axis: Some(0), size: 2 }
    );
    drop(Tensor::new([7u8], &device)?.one_hot(4)?);
    assert_error!(
        device.synchronize(),
        Error::IndexOutOfRange { operation: "one_hot", index: 7, axis: Some(1), size: 4 }
    );
    // Only the first of several is reported.
    drop((x.take(&list)?, x.gather(0, &Tensor::new([[9]], &device)?)?, x.take(&Tensor::new([6], &device)?)?));
    assert_error!(device.synchronize(), Error::IndexOutOfRange { operation: "gather", index: 9, .. });
    device.synchronize()?;

    let unchecked = x.take_unchecked(&Tensor::new([5, 6, -7], &device)?)?;
    let written =
        x.scatter_unchecked(1, &Tensor::new([[3, 0]], &device)?, &Tensor::new([[7.0f32, 8.0]], &device)?)?;
    if unchecked.to_vec::<f32>()? != [6.0, 0.0, 0.0]
        || written.select(0, 0)?.to_vec::<f32>()? != [8.0, 2.0, 3.0]
    {
        return Err("the unchecked forms do something else".into());
    }
    device.synchronize()?;
    Ok(())
}

fn wrong_indices_in_graphs_and_on_other_streams_are_reported() -> Outcome {
    let device = cuda()?;
    let x = Tensor::new([1.0f32, 2.0, 3.0], &device)?;
    let index = Tensor::new([1i64, 8], &device)?;
    device.synchronize()?;
    let stream = device.stream()?;
    // The first of the process, captured.
    let (graph, result) = stream.capture(|_| x.take(&index))?;
    let graph = graph.instantiate()?;
    device.synchronize()?;
    for _ in 0..3 {
        graph.launch(&stream)?;
        let found = device.synchronize();
        assert_error!(found, Error::IndexOutOfRange { operation: "take", index: 8, axis: None, size: 3 });
    }
    if result.to_vec::<f32>()? != [2.0, 0.0] {
        return Err("the graph's result is another".into());
    }
    let other = driver::Device::new(0)?.stream()?;
    let taken = Device::with_stream(&other, || x.take(&index))?;
    // The reader waits for the other stream.
    assert_error!(taken.to_vec::<f32>(), Error::IndexOutOfRange { operation: "take", index: 8, .. });
    device.synchronize()?;
    Ok(())
}

fn wrong_labels_in_graphs_are_reported_by_one_kernel_and_by_several() -> Outcome {
    let device = cuda()?;
    let options = CrossEntropyOptions { reduction: LossReduction::None, ..CrossEntropyOptions::default() };
    // Classes along rows, and along columns.
    for shape in [&[4usize, 3][..], &[1, 3, 4]] {
        let x = Tensor::from_vec((0..12).map(|at| (at * 5 % 7) as f32).collect(), shape, &device)?;
        let of = |labels: [i64; 4], device: &Device| -> selvedge::Result<Tensor> {
            let sizes: Vec<isize> = if shape.len() == 2 { vec![4] } else { vec![1, 4] };
            Tensor::new(labels, device)?.reshape(&sizes)
        };
        let labels = of([2, -100, 3, 0], &device)?;
        device.synchronize()?;
        let stream = device.stream()?;
        let (graph, (losses, gradient)) =
            stream.capture(|_| x.cross_entropy_with_gradient(&labels, options))?;
        let graph = graph.instantiate()?;
        device.synchronize()?;
        for _ in 0..3 {
            graph.launch(&stream)?;
            let found = device.synchronize();
            assert_error!(
                found,
                Error::IndexOutOfRange { operation: "cross_entropy", index: 3, size: 3, .. }
            );
        }
        let cpu = Device::cpu();
        let (wanted, of_x) =
            x.to(&cpu)?.cross_entropy_with_gradient(&of([2, -100, -100, 0], &cpu)?, options)?;
        let (found, wanted) = (losses.to_vec::<f32>()?, wanted.to_vec::<f32>()?);
        if [0, 1, 3].iter().any(|&row| found[row].to_bits() != wanted[row].to_bits()) {
            return Err(format!("losses {found:?}, not {wanted:?}").into());
        }
        let axis = if shape.len() == 2 { 0 } else { 2 };
        for row in [0, 1, 3] {
            let (found, wanted) = (gradient.select(axis, row)?, of_x.select(axis, row)?);
            if found.to_vec::<f32>()? != wanted.to_vec::<f32>()? {
                return Err(format!("gradient {found:?}, not {wanted:?}").into());
            }
        }
    }
    Ok(())
}

fn many_wrong_indices_are_one_report() -> Outcome {
    let device = cuda()?;
    let x = Tensor::new([1u8, 2, 3], &device)?;
    let index = Tensor::full(&[1 << 24], 77, DType::I32, &device)?;
    let started = std::time::Instant::now();
    let taken = x.take(&index)?;
    assert_error!(device.synchronize(), Error::IndexOutOfRange { operation: "take", index: 77, .. });
    if started.elapsed().as_secs() > 5 {
        return Err(format!("wrong indices took {:?}", started.elapsed()).into());
    }
    if taken.to_vec::<u8>()?.iter().any(|x| *x != 0) {
        return Err("a wrong index read something".into());
    }
    device.synchronize()?;
    Ok(())
}

/// Some of each row's elements, and those around its ends.
fn samples(tensor: &Tensor) -> selvedge::Result<Vec<u8>> {
    let some = tensor.slice(1, Slice::from(..).step(1_000_003))?.to_vec::<u8>()?;
    let last = tensor.slice(1, -40..)?.to_vec::<u8>()?;
    Ok([some, last].concat())
}

fn more_than_2_to_the_32_elements() -> Outcome {
    const WIDTH: usize = (1 << 29) + 13;
    let device = cuda()?;
    let driver = driver::Device::new(0)?;
    if driver.memory_info()?.free < 24 << 30 {
        println!("a device with less than 24 GiB free");
        return Ok(());
    }
    // Bytes by their place, and another start in each row; the width is odd, so that rows are moved byte by byte.
    let place = Tensor::from_slice(&(0..=250u8).collect::<Vec<u8>>(), &[251], &device)?;
    let row = place.repeat(&[WIDTH.div_ceil(251)])?.narrow(0, 0, WIDTH)?;
    let x = Tensor::stack(&[&row, &row.add(50u8)?, &row.add(100u8)?, &row.add(150u8)?], 0)?;
    let rows = [0i64, 3, -2, 1, 3, 0, 2, 2, -4];
    let list = Tensor::from_slice(&rows, &[9], &device)?;
    let selected = x.index_select(0, &list)?;
    let wanted = |row: i64| -> selvedge::Result<Vec<u8>> {
        samples(&x.narrow(0, (if row < 0 { row + 4 } else { row }) as usize, 1)?)
    };
    for (at, &row) in rows.iter().enumerate() {
        if samples(&selected.narrow(0, at, 1)?)? != wanted(row)? {
            return Err(format!("row {at} of {} elements is another", selected.count()).into());
        }
    }
    // All of it into other places, two of them twice.
    let to = Tensor::new([8i64, 7, 6, 5, 4, 3, 2, 8, 1], &device)?;
    let copied = Tensor::zeros(&[9, WIDTH], DType::U8, &device)?.index_copy(0, &to, &selected)?;
    for (at, from) in [(8, 7), (7, 1), (6, 2), (5, 3), (4, 4), (3, 5), (2, 6), (1, 8)] {
        if samples(&copied.narrow(0, at, 1)?)? != wanted(rows[from])? {
            return Err(format!("row {at} of {} elements was not written", copied.count()).into());
        }
    }
    if samples(&copied.narrow(0, 0, 1)?)?.iter().any(|x| *x != 0) {
        return Err("a row that no index names was written".into());
    }
    // Single elements past 2^31 places.
    let flat = copied.flatten(0, -1)?;
    let ends = Tensor::new([-1i64, (1 << 32) + 7, 1 << 31, 5], &device)?;
    let found = flat.take(&ends)?.to_vec::<u8>()?;
    let one = |place: usize| flat.narrow(0, place, 1)?.item::<u8>();
    let wanted = [one(flat.count() - 1)?, one((1 << 32) + 7)?, one(1 << 31)?, one(5)?];
    if found != wanted {
        return Err(format!("single elements are {found:?} instead of {wanted:?}").into());
    }
    Ok(())
}
