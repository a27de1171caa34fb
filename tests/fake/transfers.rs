//! Copies of boxes and of lists: every byte where it belongs, in order with other streams, and nothing done on an error.

use selvedge::Error;
use selvedge::driver::{Copy3d, Device, LaunchConfig};

use super::kernels::PTX;
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Copies a box by the definition.
fn by_elements(source: &[u16], destination: &mut [u16], shape: Copy3d) {
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let from = (z * shape.source_rows + y) * shape.source_pitch;
            let to = (z * shape.destination_rows + y) * shape.destination_pitch;
            destination[to..to + shape.width].copy_from_slice(&source[from..from + shape.width]);
        }
    }
}

fn shapes() -> Vec<Copy3d> {
    let packed = Copy3d::packed;
    let wide = |shape: Copy3d, pitch, rows| Copy3d { source_pitch: pitch, source_rows: rows, ..shape };
    vec![
        packed(3, 4, 5),
        wide(packed(3, 4, 5), 9, 6),
        Copy3d { destination_pitch: 8, destination_rows: 7, ..wide(packed(3, 4, 5), 4, 4) },
        wide(packed(7, 1, 6), 7, 3),
        wide(packed(1, 9, 2), 13, 10),
        // Steps that are not taken may be of any size.
        Copy3d { destination_pitch: usize::MAX, destination_rows: usize::MAX, ..packed(600, 1, 1) },
        Copy3d { source_rows: usize::MAX, ..wide(packed(5, 6, 1), 40, 6) },
        packed(0, 4, 5),
        packed(4, 5, 0),
    ]
}

/// Child: boxes between device and device, up and down.
pub fn boxes(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let source: Vec<u16> = (0..1000).collect();
    let from = other.upload(&source)?;
    for shape in shapes() {
        let mut wanted = vec![7u16; 1000];
        by_elements(&source, &mut wanted, shape);
        let mut to = other.uninitialized::<u16>(1000)?;
        other.fill(&mut to, 7)?;
        stream.copy_3d(&from, &mut to, shape)?;
        let near = other.download(&to)?;
        other.fill(&mut to, 7)?;
        stream.copy_3d_from_host(&source, &mut to, shape)?;
        if fake.pageable_pending() != 0 {
            return Err(format!("{shape:?}: the host's side is still in use").into());
        }
        let up = other.download(&to)?;
        let mut down = vec![7u16; 1000];
        stream.copy_3d_to_host(&from, &mut down, shape)?;
        if fake.pageable_pending() != 0 || [near, up, down].iter().any(|found| *found != wanted) {
            return Err(format!("{shape:?} brought other elements").into());
        }
    }

    let calls = fake.calls();
    let mut to = from.device().stream()?.uninitialized::<u16>(59)?;
    let made = fake.calls() - calls;
    let shape = Copy3d::packed(3, 4, 5);
    let short = stream.copy_3d(&from, &mut to, shape);
    let narrow = stream.copy_3d_from_host(&source, &mut to, Copy3d { source_pitch: 2, ..shape });
    let flat = stream.copy_3d_to_host(&from, &mut [0; 99], Copy3d { source_rows: 3, ..shape });
    match (short, narrow, flat) {
        (
            Err(Error::LengthMismatch { wanted: 60, found: 59, .. }),
            Err(Error::InvalidArgument { .. }),
            Err(Error::InvalidArgument { .. }),
        ) => {}
        other => return Err(format!("shapes that leave a side: {other:?}").into()),
    }
    if fake.calls() != calls + made {
        return Err("the driver was called for a shape that does not fit".into());
    }
    let far = Device::new(1)?.stream()?;
    match far.copy_3d(&from, &mut far.uninitialized::<u16>(60)?, shape) {
        Err(Error::DeviceMismatch { operation: "copy_3d", .. }) => {}
        other => return Err(format!("a box between devices: {other:?}").into()),
    }
    drop((from, to, stream, other, far));
    scenario::settle()?;
    scenario::check_end(fake)
}

/// Child: lists of copies, in one call or many.
pub fn lists(fake: &Fake, arguments: &[String]) -> Outcome {
    let one_call = arguments.iter().any(|argument| argument == "one_call");
    let device = Device::new(0)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;

    // Parts of one buffer to parts of another and of itself, of every length, written by another stream.
    let mut from = other.zeros::<u8>(300)?;
    let mut to = stream.zeros::<u8>(600)?;
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe { make.launch(&other, LaunchConfig::new(1, 32), (&mut from, 300u64, 3u32))? };
    let calls = ["cuMemcpyBatchAsync", "cuMemcpyDtoDAsync"].map(|name| fake.call_count(name));
    {
        let mut pairs = Vec::new();
        let (mut rest, mut start) = (to.slice_mut(..)?, 0);
        for length in 0..24 {
            let (part, more) = rest.split_at_mut(length)?;
            let (_gap, more) = more.split_at_mut(1)?;
            pairs.push((from.slice(start..start + length)?, part));
            (rest, start) = (more, start + length);
        }
        stream.copy_batch(&mut pairs)?;
    }
    let made = ["cuMemcpyBatchAsync", "cuMemcpyDtoDAsync"].map(|name| fake.call_count(name));
    let wanted_calls = if one_call { [1, 0] } else { [0, 23] };
    if [made[0] - calls[0], made[1] - calls[1]] != wanted_calls {
        return Err(format!("{calls:?} calls became {made:?}, wanted {wanted_calls:?} more").into());
    }
    let source = other.download(&from)?;
    let mut wanted = Vec::new();
    let mut start = 0;
    for length in 0..24 {
        wanted.extend(&source[start..start + length]);
        wanted.push(0);
        start += length;
    }
    wanted.resize(600, 0);
    if stream.download(&to)? != wanted || source.iter().all(|&byte| byte == 0) {
        return Err("the parts are not where they belong".into());
    }

    // Another device among them, and whole buffers.
    let far = Device::new(1)?.stream()?;
    let mut remote = far.zeros::<u8>(100)?;
    let mut near = [stream.zeros::<u8>(100)?, stream.zeros::<u8>(200)?];
    let [first, second] = &mut near;
    let mut pairs = [
        (from.slice(..100)?, first.slice_mut(..)?),
        (from.slice(100..)?, second.slice_mut(..)?),
        (from.slice(..100)?, remote.slice_mut(..)?),
    ];
    stream.copy_batch(&mut pairs)?;
    let found = [other.download(&near[0])?, other.download(&near[1])?, far.download(&remote)?];
    if found != [source[..100].to_vec(), source[100..].to_vec(), source[..100].to_vec()] {
        return Err("whole buffers or another device's are wrong".into());
    }

    // Errors are found before any driver call.
    let calls = fake.calls();
    let [first, second] = &mut near;
    let mut wrong = [(from.slice(..100)?, first.slice_mut(..)?), (from.slice(..100)?, second.slice_mut(..)?)];
    match stream.copy_batch(&mut wrong) {
        Err(Error::LengthMismatch { operation: "copy_batch", wanted: 200, found: 100 }) => {}
        other => return Err(format!("a pair of two lengths: {other:?}").into()),
    }
    match far.copy_batch(&mut wrong[..1]) {
        Err(Error::DeviceMismatch { operation: "copy_batch", .. }) => {}
        other => return Err(format!("a pair of another device: {other:?}").into()),
    }
    stream.copy_batch(&mut wrong[..0])?;
    if fake.calls() != calls {
        return Err("the driver was called for a list that is wrong or empty".into());
    }
    drop((from, to, near, remote, make, module, stream, other, far));
    scenario::settle()?;
    scenario::check_end(fake)
}

pub fn tests() -> Vec<Test> {
    let lists = |name: &'static str, version: i32, argument: &'static str| {
        Test::new(name, move || {
            children::must_succeed(&Variant::new(version), "transfers_lists", &[argument.to_owned()], &[])
                .map(drop)
        })
    };
    vec![
        Test::new("transfers::boxes_in_three_dimensions", || {
            children::must_succeed(&Variant::new(12040), "transfers_boxes", &[], &[]).map(drop)
        }),
        lists("transfers::lists_in_one_call", 13000, "one_call"),
        lists("transfers::lists_on_an_older_driver", 12040, "one_by_one"),
    ]
}
