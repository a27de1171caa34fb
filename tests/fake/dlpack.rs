//! DLPack on CUDA devices: exports and imports are ordered by events and not by the host, and deleters are called once, also
//! after a reset and with a lost context.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge::driver::{self, LaunchConfig, Stream};
use selvedge::tensor::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPACK_FLAG_IS_COPIED, DLPACK_FLAG_READ_ONLY,
    DLPackVersion, DLTensor,
};
use selvedge::{DType, Device, Tensor};

use super::foreign::{allocate, call, create_stream, pointer};
use super::kernels::PTX;
use super::support::{ChildOutcome, Fake, check};
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

type Program = (&'static str, fn(&Fake) -> ChildOutcome);

const PROGRAMS: &[Program] = &[
    ("an_export_waits_by_an_event", exports),
    ("an_export_goes_to_the_default_stream_of_a_thread", per_thread),
    ("an_export_without_a_stream_is_unordered", unordered),
    ("an_import_follows_its_producer", imports),
    ("exports_for_writing_are_waited_for", writable),
    ("pinned_buffers_are_exported_as_pinned_memory", pinned),
    ("arrays_that_cannot_be_used_are_refused", refused),
    ("exports_and_imports_outlive_a_reset", reset),
    ("exports_and_imports_outlive_a_lost_context", lost),
    ("ten_thousand_exchanges_leave_nothing", exchanges),
];

/// Functions by which the host waits.
const HOST_WAITS: [&str; 4] =
    ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuMemcpyDtoH_v2"];

/// The driver's name for the default stream of the calling thread.
const PER_THREAD: u64 = 2;

/// The calls of deleters of [`produce`].
static DELETED: AtomicUsize = AtomicUsize::new(0);

fn deleted() -> usize {
    DELETED.load(Ordering::Relaxed)
}

fn host_waits(fake: &Fake) -> u64 {
    HOST_WAITS.iter().map(|name| fake.call_count(name)).sum()
}

/// A producer's struct with the arrays that it points to.
struct Producer {
    managed: DLManagedTensorVersioned,
    shape: [i64; 2],
    strides: [i64; 2],
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    DELETED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the context is the box of `produce`, and this is its only call.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Producer>()) });
}

/// Describes device memory of other code as a matrix of 16 rows of 4 floats.
fn produce(address: u64, flags: u64) -> NonNull<DLManagedTensorVersioned> {
    let producer = Box::into_raw(Box::new(Producer {
        managed: DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
            flags,
            dl_tensor: DLTensor {
                data: pointer(address),
                device: DLDevice { device_type: 2, device_id: 0 },
                ndim: 2,
                dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
        },
        shape: [16, 4],
        strides: [4, 1],
    }));
    // SAFETY: the box was just made, and goes to the caller.
    unsafe {
        (*producer).managed.manager_ctx = producer.cast();
        (*producer).managed.dl_tensor.shape = (&raw mut (*producer).shape).cast();
        (*producer).managed.dl_tensor.strides = (&raw mut (*producer).strides).cast();
        NonNull::from(&mut (*producer).managed)
    }
}

/// Frees an export, as its consumer does.
fn finish(managed: NonNull<DLManagedTensorVersioned>) -> ChildOutcome {
    // SAFETY: the export is live, and its deleter is called once.
    unsafe {
        let deleter = (*managed.as_ptr()).deleter.ok_or("an export without a deleter")?;
        deleter(managed.as_ptr());
    }
    Ok(())
}

/// The address of an export's elements.
fn address(managed: NonNull<DLManagedTensorVersioned>) -> u64 {
    // SAFETY: the export is live.
    unsafe { (*managed.as_ptr()).dl_tensor.data.addr() as u64 }
}

/// Copies device memory on a stream of other code.
fn foreign_copy(fake: &Fake, target: u64, source: u64, bytes: usize, stream: u64) -> ChildOutcome {
    let current = fake.current_context();
    fake.foreign_set(fake.primary_context(0));
    // SAFETY: the types are the driver's.
    let code = unsafe {
        type Copy = unsafe extern "C" fn(u64, u64, usize, u64) -> i32;
        fake.driver::<Copy>("cuMemcpyDtoDAsync_v2")?(target, source, bytes, stream)
    };
    fake.foreign_set(current);
    check(code == 0, &format!("cuMemcpyDtoDAsync: {code}"))
}

/// Fills device memory on a stream of other code.
fn foreign_fill(fake: &Fake, target: u64, value: u32, count: usize, stream: u64) -> ChildOutcome {
    let current = fake.current_context();
    fake.foreign_set(fake.primary_context(0));
    // SAFETY: the types are the driver's.
    let code = unsafe {
        type Fill = unsafe extern "C" fn(u64, u32, usize, u64) -> i32;
        fake.driver::<Fill>("cuMemsetD32Async")?(target, value, count, stream)
    };
    fake.foreign_set(current);
    check(code == 0, &format!("cuMemsetD32Async: {code}"))
}

/// Sixty-four floats that the device's stream has not yet written.
fn unfinished(device: &Device, bits: u32) -> selvedge::Result<Tensor> {
    let stream = device.stream()?;
    let mut buffer = stream.uninitialized::<f32>(64)?;
    stream.fill(&mut buffer, f32::from_bits(bits))?;
    Tensor::from_buffer(buffer, &[16, 4])
}

/// Copies a tensor on another stream of this library.
fn copy(tensor: &Tensor) -> selvedge::Result<Tensor> {
    let stream = driver::Device::new(0)?.stream()?;
    let mut buffer = stream.uninitialized::<f32>(64)?;
    stream.copy(&tensor.device_slice::<f32>()?, &mut buffer)?;
    Tensor::from_buffer(buffer, &[16, 4])
}

fn bits(tensor: &Tensor) -> selvedge::Result<Vec<u32>> {
    Ok(tensor.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

fn exports(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    let device = Device::cuda(0)?;
    let raw = create_stream(fake, fake.primary_context(0))?;
    let target = allocate(fake, 256)?;
    // SAFETY: the stream lives until the end of this function.
    let consumer = unsafe { Stream::from_raw(&driver::Device::new(0)?, pointer(raw))? };
    let x = unfinished(&device, 0x4040_0000)?;
    let (waits, waited) = (host_waits(fake), fake.call_count("cuStreamWaitEvent"));
    let exported = x.to_dlpack(Some(&consumer))?;
    check(host_waits(fake) == waits, "the host waited for an export")?;
    check(fake.call_count("cuStreamWaitEvent") == waited + 1, "the consumer's stream does not wait")?;
    // SAFETY: the export is live.
    let tensor = unsafe { *exported.as_ptr() };
    check(tensor.flags == DLPACK_FLAG_READ_ONLY, &format!("flags {}", tensor.flags))?;
    let place = (tensor.dl_tensor.device.device_type, tensor.dl_tensor.device.device_id);
    check(place == (2, 0), &format!("device {place:?}"))?;
    foreign_copy(fake, target, address(exported), 256, raw)?;
    // The consumer's work goes on behind the deleter, and the memory is not reused before it.
    drop(x);
    let waits = host_waits(fake);
    finish(exported)?;
    let next = unfinished(&device, 0x4080_0000)?;
    check(host_waits(fake) == waits, "the host waited for a deleter")?;
    check(bits(&next)? == [0x4080_0000; 64], "the next tensor has other elements")?;
    drop((next, consumer));
    call(fake, "cuStreamSynchronize", raw)?;
    let found = fake.device_read(target, 256).ok_or("the target is gone")?;
    check(found == 0x4040_0000u32.to_ne_bytes().repeat(64), "the consumer overtook the export")?;
    call(fake, "cuStreamDestroy_v2", raw)?;
    call(fake, "cuMemFree_v2", target)
}

/// A consumer on the default stream of its thread, whose deleter another thread calls.
fn per_thread(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    fake.set_default_streams(true);
    let device = Device::cuda(0)?;
    let target = allocate(fake, 256)?;
    // SAFETY: the default stream of this thread lives as long as the context.
    let consumer = unsafe { Stream::from_raw(&driver::Device::new(0)?, pointer(PER_THREAD))? };
    let x = unfinished(&device, 0x4040_0000)?;
    let waits = host_waits(fake);
    let exported = x.to_dlpack(Some(&consumer))?;
    foreign_copy(fake, target, address(exported), 256, PER_THREAD)?;
    drop((x, consumer));
    let address = exported.as_ptr().expose_provenance();
    let deleted = std::thread::scope(|scope| {
        let delete = || {
            let exported = NonNull::new(std::ptr::with_exposed_provenance_mut(address));
            exported.is_some_and(|exported| finish(exported).is_ok())
        };
        scope.spawn(delete).join()
    });
    check(deleted.unwrap_or(false), "the other thread could not free the export")?;
    // It takes the memory, behind the consumer's work.
    let next = unfinished(&device, 0x4080_0000)?;
    check(host_waits(fake) == waits, "the host waited")?;
    check(bits(&next)? == [0x4080_0000; 64], "the next tensor has other elements")?;
    call(fake, "cuStreamSynchronize", PER_THREAD)?;
    let found = fake.device_read(target, 256).ok_or("the target is gone")?;
    check(found == 0x4040_0000u32.to_ne_bytes().repeat(64), "the consumer overtook the export")?;
    drop(next);
    call(fake, "cuMemFree_v2", target)
}

/// The fake driver sees what [`exports`] prevents.
fn unordered(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    let device = Device::cuda(0)?;
    let raw = create_stream(fake, fake.primary_context(0))?;
    let target = allocate(fake, 256)?;
    let x = unfinished(&device, 0x4040_0000)?;
    let exported = x.to_dlpack(None)?;
    foreign_copy(fake, target, address(exported), 256, raw)?;
    call(fake, "cuStreamSynchronize", raw)?;
    check(!fake.violations().is_empty(), "a consumer without a stream was not seen")?;
    device.synchronize()?;
    finish(exported)?;
    drop(x);
    call(fake, "cuStreamDestroy_v2", raw)?;
    call(fake, "cuMemFree_v2", target)?;
    fake.reset();
    Ok(())
}

fn imports(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    let device = Device::cuda(0)?;
    let raw = create_stream(fake, fake.primary_context(0))?;
    let memory = allocate(fake, 256)?;
    // SAFETY: the stream lives until the end of this function.
    let producer = unsafe { Stream::from_raw(&driver::Device::new(0)?, pointer(raw))? };
    // The producer's own stream is the thread's: its work still runs.
    foreign_fill(fake, memory, 7, 64, raw)?;
    let waits = host_waits(fake);
    // SAFETY: the memory lives until the deleter's call.
    let x = Device::with_stream(&producer, || unsafe { Tensor::from_dlpack(produce(memory, 0)) })?;
    // Another stream of this library waits for the producer's.
    let first = copy(&x)?;
    check(host_waits(fake) == waits, "the host waited for an import")?;
    check(bits(&first)? == [7; 64], "the copy overtook the producer")?;
    let view = x.reshape(&[64])?;
    drop(x);
    check(deleted() == 0, "the deleter was called before the last view went")?;
    let last = copy(&view)?;
    drop(view);
    check(deleted() == 0, "the deleter was called before the last use was done")?;
    device.synchronize()?;
    driver::Device::new(0)?.synchronize()?;
    check(deleted() == 1, &format!("{} calls of the deleter", deleted()))?;
    drop((first, last));
    // Elements are copied before a write, also those that the producer lets others write to.
    for flags in [DLPACK_FLAG_READ_ONLY, 0] {
        // SAFETY: as above.
        let mut x = unsafe { Tensor::from_dlpack(produce(memory, flags))? };
        device.stream()?.fill(&mut x.device_slice_mut::<f32>()?, 1.0)?;
        check(x.to_vec::<f32>()? == [1.0; 64], "the copy has other elements")?;
        let found = fake.device_read(memory, 256).ok_or("the memory is gone")?;
        check(found == 7u32.to_ne_bytes().repeat(64), &format!("memory with flags {flags} was written"))?;
    }
    drop(producer);
    device.synchronize()?;
    check(deleted() == 3, &format!("{} calls of the deleter", deleted()))?;
    call(fake, "cuStreamDestroy_v2", raw)?;
    call(fake, "cuMemFree_v2", memory)
}

fn writable(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    let device = Device::cuda(0)?;
    let raw = create_stream(fake, fake.primary_context(0))?;
    // SAFETY: the stream lives until the end of this function.
    let consumer = unsafe { Stream::from_raw(&driver::Device::new(0)?, pointer(raw))? };
    // Elements that a clone shares are copied, those of one tensor are not.
    for shared in [true, false] {
        let x = unfinished(&device, 0x4040_0000)?;
        let clone = shared.then(|| x.clone());
        let exported = x.into_dlpack(Some(&consumer))?;
        // SAFETY: the export is live.
        let flags = unsafe { (*exported.as_ptr()).flags };
        check(flags == if shared { DLPACK_FLAG_IS_COPIED } else { 0 }, &format!("flags {flags}"))?;
        foreign_fill(fake, address(exported), 9, 64, raw)?;
        // Back in: on the thread's stream the consumer's writes are waited for.
        // SAFETY: the export is taken over once, and the consumer issues no more work.
        let back = Device::with_stream(&consumer, || unsafe { Tensor::from_dlpack(exported) })?;
        let waits = host_waits(fake);
        let found = copy(&back)?;
        check(host_waits(fake) == waits, "the host waited for a consumer")?;
        check(bits(&found)? == [9; 64], "the consumer's writes are lost")?;
        if let Some(clone) = clone {
            check(bits(&clone)? == [0x4040_0000; 64], "a clone shows the consumer's writes")?;
        }
    }
    // The deleters come with the end of the copies, and the stream lives until then.
    drop(consumer);
    device.synchronize()?;
    call(fake, "cuStreamDestroy_v2", raw)
}

fn pinned(fake: &Fake) -> ChildOutcome {
    fake.set_strict(true);
    let owner = driver::Device::new(0)?;
    let mut buffer = owner.pinned::<f32>(6)?;
    buffer.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let place = buffer.as_ptr();
    let refused = Tensor::from_pinned(owner.pinned::<f32>(6)?, &[7]);
    check(refused.is_err_and(|error| error.to_string().contains('7')), "a shape of 7 elements was accepted")?;
    let mut x = Tensor::from_pinned(buffer, &[2, 3])?;
    check(x.is_pinned() && x.device().is_cpu(), "the tensor is not in pinned memory")?;
    x.in_place().mul(10.0)?;
    let (versioned, legacy) = (x.to_dlpack(None)?, x.to_dlpack_legacy(None)?);
    // SAFETY: the exports are live.
    let (first, second) = unsafe { ((*versioned.as_ptr()).dl_tensor, *legacy.as_ptr()) };
    for tensor in [first, second.dl_tensor] {
        let device = (tensor.device.device_type, tensor.device.device_id);
        check(device == (3, 0), &format!("device {device:?}"))?;
        check(tensor.data.cast::<f32>().cast_const() == place, "an export has other memory")?;
    }
    // The elements outlive the tensor, and the upload of one is that of pinned memory.
    drop(x);
    // SAFETY: the export is taken over once.
    let back = unsafe { Tensor::from_dlpack(versioned)? };
    let uploaded = back.to(&Device::cuda(0)?)?;
    check(uploaded.to_vec::<f32>()? == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0], "the elements are others")?;
    drop(back);
    check(owner.pinned::<f32>(6)?.as_ptr() != place, "the block was reused while an export had it")?;
    // SAFETY: the deleter is called once.
    unsafe { second.deleter.ok_or("an export without a deleter")?(legacy.as_ptr()) };
    let (one, other) = (owner.pinned::<f32>(6)?, owner.pinned::<f32>(6)?);
    check([one.as_ptr(), other.as_ptr()].contains(&place), "the block did not return to the pool")
}

fn refused(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let memory = allocate(fake, 256)?;
    type Change = fn(&mut DLTensor);
    let cases: [(&str, Change); 6] = [
        ("device 9", |tensor| tensor.device.device_id = 9),
        ("device -1", |tensor| tensor.device.device_id = -1),
        ("device type 13", |tensor| tensor.device.device_type = 13),
        ("does not know", |tensor| tensor.data = pointer(0x1000)),
        ("does not know", |tensor| tensor.byte_offset = 4),
        ("memory of device 0", |tensor| tensor.device.device_id = 1),
    ];
    for (wanted, change) in cases {
        let mut managed = produce(memory, 0);
        // SAFETY: the struct is this function's; it is refused and stays so.
        let found = unsafe {
            change(&mut managed.as_mut().dl_tensor);
            Tensor::from_dlpack(managed).map(drop)
        };
        match found {
            Err(error) if error.to_string().contains(wanted) => {}
            other => return Err(format!("{wanted}: {other:?}").into()),
        }
        check(deleted() == 0, "the deleter of a refused array was called")?;
        // SAFETY: the caller deletes what was refused.
        unsafe { delete(managed.as_ptr()) };
        DELETED.store(0, Ordering::Relaxed);
    }
    // No elements need no memory.
    let empty = Tensor::zeros(&[0, 4], DType::F64, &device)?.to_dlpack(None)?;
    check(address(empty) == 0, "an empty export has an address")?;
    // SAFETY: the export is taken over once.
    let back = unsafe { Tensor::from_dlpack(empty)? };
    check(back.shape()[..] == [0, 4] && back.device() == device, "an empty array came back as another")?;
    call(fake, "cuMemFree_v2", memory)
}

/// An export and an import, which work still uses.
fn one_of_each(
    fake: &Fake,
) -> Result<(NonNull<DLManagedTensorVersioned>, Tensor), Box<dyn std::error::Error>> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let exported = unfinished(&device, 0x4040_0000)?.to_dlpack(Some(&stream))?;
    // SAFETY: the memory goes with its context.
    let imported = unsafe { Tensor::from_dlpack(produce(allocate(fake, 256)?, 0))? };
    drop(copy(&imported)?);
    Ok((exported, imported))
}

/// Both go after their context, and new ones are exchanged in the next.
fn gone(fake: &Fake, exported: NonNull<DLManagedTensorVersioned>, imported: Tensor) -> ChildOutcome {
    check(imported.to_vec::<f32>().is_err(), "an import of a context that is gone was read")?;
    check(imported.to_dlpack(None).is_ok_and(|again| finish(again).is_ok()), "an export of what is gone")?;
    finish(exported)?;
    drop(imported);
    check(deleted() == 1, &format!("{} calls of the deleter after the context", deleted()))?;
    let violations = fake.violations();
    check(violations.is_empty(), &violations.join("\n"))
}

fn reset(fake: &Fake) -> ChildOutcome {
    let (exported, imported) = one_of_each(fake)?;
    // SAFETY: nothing else uses the device.
    unsafe { driver::Device::new(0)?.reset()? };
    gone(fake, exported, imported)?;
    let (exported, imported) = one_of_each(fake)?;
    finish(exported)?;
    drop(imported);
    Device::cuda(0)?.synchronize()?;
    check(deleted() == 2, &format!("{} calls of the deleter in the new context", deleted()))
}

fn lost(fake: &Fake) -> ChildOutcome {
    let (exported, imported) = one_of_each(fake)?;
    let device = driver::Device::new(0)?;
    let stream = device.stream()?;
    let kernel = device.load(PTX.as_bytes())?.function("fault_now")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    // SAFETY: the fake driver's kernel touches nothing.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&mut buffer,))? };
    check(stream.synchronize().is_err() && device.is_lost(), "the context is not lost")?;
    gone(fake, exported, imported)
}

fn exchanges(fake: &Fake) -> ChildOutcome {
    let device = Device::cuda(0)?;
    let raw = create_stream(fake, fake.primary_context(0))?;
    let memory = allocate(fake, 256)?;
    // SAFETY: the stream lives until the end of this function.
    let consumer = unsafe { Stream::from_raw(&driver::Device::new(0)?, pointer(raw))? };
    let x = unfinished(&device, 0x4040_0000)?;
    let exchange = || -> ChildOutcome {
        finish(x.to_dlpack(Some(&consumer))?)?;
        // SAFETY: the memory lives until the deleter's call.
        drop(unsafe { Tensor::from_dlpack(produce(memory, 0))? });
        Ok(())
    };
    let resident = || -> Result<usize, Box<dyn std::error::Error>> {
        let pages = std::fs::read_to_string("/proc/self/statm")?;
        Ok(pages.split(' ').nth(1).ok_or("no resident pages")?.parse::<usize>()? * 4096)
    };
    for _ in 0..1000 {
        exchange()?;
    }
    device.synchronize()?;
    let (live, before) = (fake.live(), resident()?);
    for _ in 0..10_000 {
        exchange()?;
    }
    device.synchronize()?;
    let (now, after) = (fake.live(), resident()?);
    check(deleted() == 11_000, &format!("{} calls of the deleter", deleted()))?;
    let objects = |live: &super::support::Counts| (live.blocks, live.events, live.streams);
    check(objects(&live) == objects(&now), &format!("grew to {}", fake.describe_live()))?;
    // The fake driver's log grows with the calls; an exchange that leaks its struct alone would leave over a megabyte.
    let calls = fake.calls();
    check(after < before + (8 << 20), &format!("{before} to {after} bytes, {calls} calls"))?;
    drop((x, consumer));
    call(fake, "cuStreamDestroy_v2", raw)?;
    call(fake, "cuMemFree_v2", memory)
}

/// Child: one program.
pub fn child(fake: &Fake, arguments: &[String]) -> ChildOutcome {
    fake.set_devices(2);
    let wanted = arguments.first().map(String::as_str);
    let program = PROGRAMS.iter().find(|(name, _)| Some(*name) == wanted);
    let (_, program) = program.ok_or("no such program")?;
    // Opened first, so that the contexts exist.
    driver::Device::new(0)?;
    driver::Device::new(1)?;
    fake.foreign_set(0);
    program(fake)?;
    scenario::settle().or_else(|error| match error {
        selvedge::Error::ContextLost { .. } => Ok(()),
        other => Err(other),
    })?;
    let violations = fake.violations();
    check(violations.is_empty(), &violations.join("\n"))
}

pub fn tests() -> Vec<Test> {
    let test = |&(name, _): &Program| {
        Test::new(format!("dlpack::{name}"), move || {
            children::must_succeed(&Variant::new(12040), "dlpack", &[name.to_owned()], &[]).map(drop)
        })
    };
    PROGRAMS.iter().map(test).collect()
}
