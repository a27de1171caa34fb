//! Moving data: tensors put together and taken apart, read and written by index, and what becomes of an index that leads
//! nowhere. The same program runs on a GPU and on the CPU.

mod common;

use selvedge::Error;
use selvedge::tensor::{Device, Padding, Tensor};
use selvedge::types::DType;

fn moving() -> selvedge::Result<()> {
    let (device, reason) = Device::choose();
    match reason {
        None => println!("on {device}"),
        Some(reason) => println!("on the CPU, because there is no GPU to run this on: {reason}"),
    }

    // Put together, taken apart. Parts are views; what is put together is a copy.
    let x = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &device)?;
    let ones = Tensor::ones(&[2, 1], DType::F32, &device)?;
    let wide = Tensor::cat(&[&x, &ones], 1)?;
    println!("cat\n{wide}");
    for part in wide.split(&[1, 3], 1)? {
        println!("split {}\n{part}", part.shape());
    }
    println!("stack\n{}", Tensor::stack(&[&x, &x.flip(&[1])?], 0)?);
    println!("pad\n{}", x.pad(&[(0, 1), (1, 1)], Padding::Reflect)?);
    println!("roll\n{}", x.roll(&[1], &[1])?);
    println!("tril\n{}", x.tril(0)?);
    println!("repeat\n{}", x.repeat(&[1, 2])?);
    println!("masked_fill\n{}", x.masked_fill(&x.gt(4.0)?, -1.0)?);

    // By index: rows of a table, as of an embedding, and the largest of each row put at a place of its own.
    let table = x.repeat_interleave(2, 0)?;
    let words = Tensor::new([3i64, 0, -1], &device)?;
    println!("index_select\n{}", table.index_select(0, &words)?);
    let places = Tensor::new([[2, 0], [0, 0]], &device)?;
    println!("gather\n{}", x.gather(1, &places)?);
    println!("one_hot\n{}", words.add(1)?.one_hot(5)?);

    // If several elements go to one place, the last one wins, in every run on every device.
    let mut counts = Tensor::zeros(&[4], DType::I32, &device)?;
    let to = Tensor::new([1, 3, 1], &device)?;
    counts.in_place().put(&to, &Tensor::new([10, 20, 30], &device)?)?;
    println!("put {counts}");

    // An index that leads nowhere reads nothing. On the CPU the call returns the error; on a GPU the call has long returned when
    // the kernel finds it, and the next one that waits for the device tells.
    let wrong = Tensor::new([0i64, 4], &device)?;
    match table.index_select(0, &wrong).and_then(|rows| rows.to_vec::<f32>()) {
        Err(error @ Error::IndexOutOfRange { .. }) => println!("{error}"),
        Err(other) => return Err(other),
        Ok(rows) => println!("an index was not checked: {rows:?}"),
    }
    println!("unchecked\n{}", table.index_select_unchecked(0, &wrong)?);
    Ok(())
}

fn main() -> std::process::ExitCode {
    common::run(moving)
}
