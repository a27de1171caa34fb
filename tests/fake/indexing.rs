//! Tensors by index on the fake driver: which calls reads and writes make, in which order with other streams, captured and
//! after a reset. (The fake copies nothing; what the kernels copy is proven where they are.)

use libtest_mimic::Failed;
use selvedge::driver;
use selvedge::tensor::{Device, Padding, Tensor};
use selvedge::types::DType;

use super::children;
use super::support::{ChildOutcome, Fake, calls, check};
use super::variant::Variant;
use crate::common::suite::Test;

struct Operands {
    device: Device,
    x: Tensor,
    rows: Tensor,
    list: Tensor,
    index: Tensor,
}

impl Operands {
    fn new() -> selvedge::Result<Operands> {
        let device = Device::cuda(0)?;
        Ok(Operands {
            device,
            x: Tensor::zeros(&[8, 64], DType::F32, &device)?,
            rows: Tensor::zeros(&[4, 64], DType::F32, &device)?,
            list: Tensor::zeros(&[4], DType::I64, &device)?,
            index: Tensor::zeros(&[4, 64], DType::I32, &device)?,
        })
    }
}

/// Child: one launch for a read, two for a write with duplicates and one without; nothing for what is empty or refused.
fn launches(fake: &Fake) -> ChildOutcome {
    let Operands { device, x, rows, list, index } = Operands::new()?;
    let launched = |what: &str, wanted: u64, work: &dyn Fn() -> selvedge::Result<Tensor>| -> ChildOutcome {
        let (found, result) = calls(fake, "cuLaunchKernel", work)?;
        drop(result);
        check(found == wanted, &format!("{what}: {found} launches instead of {wanted}"))
    };
    launched("gather", 1, &|| x.gather(0, &index))?;
    launched("index_select", 1, &|| x.index_select(0, &list))?;
    launched("take", 1, &|| x.take(&index))?;
    // `scatter` writes to a copy, and a fill of the driver clears its marks.
    launched("scatter", 3, &|| x.scatter(0, &index, &rows))?;
    launched("index_copy", 3, &|| x.index_copy(0, &list, &rows))?;
    launched("put", 3, &|| x.put(&index, &rows))?;
    let one = list.narrow(0, 0, 1)?;
    launched("index_copy of one row", 2, &|| x.index_copy(0, &one, &rows.narrow(0, 0, 1)?))?;
    let mut own = x.copy()?;
    let (found, _) = calls(fake, "cuLaunchKernel", || own.in_place().index_copy(0, &list, &rows).map(drop))?;
    check(found == 2, &format!("in place: {found} launches instead of 2"))?;
    // The marks of 2^23 places are more than stays in the cache: two sweeps over the index.
    let wide = Tensor::zeros(&[1 << 23], DType::U8, &device)?;
    launched("put among many", 4, &|| wide.put(&list, &Tensor::zeros(&[4], DType::U8, &device)?))?;
    launched("no rows", 0, &|| x.index_select(0, &list.narrow(0, 0, 0)?))?;
    launched("rows of nothing", 0, &|| x.narrow(1, 0, 0)?.index_select(0, &list))?;
    launched("cat", 2, &|| Tensor::cat(&[&x, &rows], 0))?;
    launched("roll", 4, &|| x.roll(&[1, 2], &[0, 1]))?;
    // The number, four borders, the inside.
    launched("pad", 6, &|| x.pad(&[(1, 1), (1, 1)], Padding::ZEROS))?;
    launched("tril", 1, &|| x.tril(0))?;
    let host = Tensor::zeros(&[4], DType::I64, &Device::cpu())?;
    launched("refused", 0, &|| {
        let error = x.index_select(0, &host).err().map(|error| error.to_string()).unwrap_or_default();
        let wanted = "index_select needs one device, but was given a tensor on cuda:0 and a tensor on cpu";
        if error != wanted {
            return Err(selvedge::Error::InvalidArgument {
                operation: "refused",
                found: error,
                wanted: wanted.into(),
            });
        }
        Ok(x.clone())
    })?;
    device.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: a read waits for the writers of what it reads on another stream, and who writes these afterwards waits for it.
fn order(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    let Operands { device, mut x, rows, mut list, .. } = Operands::new()?;
    let other = driver::Device::new(0)?.stream()?;
    let waits = "cuStreamWaitEvent";
    drop(x.index_select(0, &list)?);
    drop(x.index_copy(0, &list, &rows)?);
    device.synchronize()?;
    let (found, _) = calls(fake, waits, || x.index_select(0, &list))?;
    check(found == 0, "a read waits for its own stream")?;
    Device::with_stream(&other, || x.in_place().fill(1.0).map(drop))?;
    let (found, _) = calls(fake, waits, || x.index_select(0, &list))?;
    check(found == 1, "a read does not wait for the array's writer")?;
    let (found, ()) =
        calls(fake, waits, || Device::with_stream(&other, || list.in_place().fill(1).map(drop)))?;
    check(found == 1, "a writer of the index does not wait for the read")?;
    let (found, _) = calls(fake, waits, || x.in_place().index_copy(0, &list, &rows).map(drop))?;
    check(found >= 1, "a write does not wait for the index's writer")?;
    // The error report of indices is no operand: kernels on two streams do not wait for each other.
    let both = || {
        let first = x.index_select(0, &list)?;
        let second = Device::with_stream(&other, || rows.take(&list))?;
        Ok((first, second))
    };
    // The second time each stream has waited for the writers.
    drop(both()?);
    let (found, _) = calls(fake, waits, both)?;
    check(found == 0, "two reads wait for each other")?;
    drop((x, rows, list));
    device.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// Child: the first read of a process may be captured, and after a reset kernels and their reports are found anew.
fn captured_and_reset(fake: &Fake) -> ChildOutcome {
    let Operands { device, mut x, rows, list, .. } = Operands::new()?;
    device.synchronize()?;
    let stream = device.stream()?;
    let (graph, result) = stream.capture(|_| {
        x.in_place().index_copy(0, &list, &rows)?;
        x.index_select(0, &list)
    })?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    device.synchronize()?;
    drop((graph, result, x, rows, list, stream));
    // SAFETY: nothing else uses CUDA in this process.
    let _ = unsafe { driver::Device::new(0)?.reset()? };
    let Operands { device, x, list, .. } = Operands::new()?;
    drop(x.index_select(0, &list)?.to_vec::<f32>()?);
    device.synchronize()?;
    check(fake.violations().is_empty(), &fake.violations().join("\n"))
}

/// One child of this module by name.
pub fn child(fake: &Fake, arguments: &[String]) -> ChildOutcome {
    match arguments {
        [name] if name == "launches" => launches(fake),
        [name] if name == "order" => order(fake),
        [name] if name == "captured_and_reset" => captured_and_reset(fake),
        other => Err(format!("no child {other:?}").into()),
    }
}

fn run(name: &str) -> Result<(), Failed> {
    // To the fake a kernel writes to the end of its block, so each buffer is a block.
    let settings = &[("SELVEDGE_POOL", "none")];
    children::must_succeed(&Variant::new(12040), "indexing", &[name.to_owned()], settings).map(drop)
}

pub fn tests() -> Vec<Test> {
    ["launches", "order", "captured_and_reset"]
        .into_iter()
        .map(|name| Test::new(format!("indexing::{name}"), move || run(name)))
        .collect()
}
