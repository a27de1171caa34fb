//! DLPack on the CPU: exports and imports share memory, keep layouts and flags, and call deleters once.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use selvedge::tensor::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_IS_COPIED,
    DLPACK_FLAG_READ_ONLY, DLPackVersion, DLTensor,
};
use selvedge::types::{DType, Slice};
use selvedge::{Device, Result, Tensor};

/// A producer of six floats as a matrix of two rows. Its context counts calls of the deleter.
struct Producer {
    elements: [f32; 6],
    shape: [i64; 2],
    strides: [i64; 2],
    deleted: Arc<AtomicUsize>,
}

unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: the context is the box of `produce`.
    let producer = unsafe { Box::from_raw((*managed).manager_ctx.cast::<Producer>()) };
    producer.deleted.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the struct is the box of `produce`.
    drop(unsafe { Box::from_raw(managed) });
}

fn produce(deleted: &Arc<AtomicUsize>) -> NonNull<DLManagedTensorVersioned> {
    let producer = Box::into_raw(Box::new(Producer {
        elements: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        shape: [2, 3],
        strides: [3, 1],
        deleted: deleted.clone(),
    }));
    // SAFETY: the box was just made.
    let dl_tensor = unsafe {
        DLTensor {
            data: (&raw mut (*producer).elements).cast(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: 2,
            dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
            shape: (&raw mut (*producer).shape).cast(),
            strides: (&raw mut (*producer).strides).cast(),
            byte_offset: 0,
        }
    };
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 9 },
        manager_ctx: producer.cast::<c_void>(),
        deleter: Some(delete),
        flags: 0,
        dl_tensor,
    };
    NonNull::from(Box::leak(Box::new(managed)))
}

/// Changes a producer's struct, and imports it. A struct that is refused is deleted, as the caller does.
fn import(
    deleted: &Arc<AtomicUsize>,
    change: impl FnOnce(&mut DLManagedTensorVersioned, &mut Producer),
) -> Result<Tensor> {
    let mut managed = produce(deleted);
    // SAFETY: the struct and its context are those of `produce`, and are taken over once.
    unsafe {
        let producer = &mut *managed.as_ref().manager_ctx.cast::<Producer>();
        change(managed.as_mut(), producer);
        Tensor::from_dlpack(managed).inspect_err(|_| delete(managed.as_ptr()))
    }
}

#[test]
fn every_dtype_is_shared_both_ways() -> Result<()> {
    for dtype in DType::ALL {
        let bytes: Vec<u8> = (0..6 * dtype.size()).map(|byte| (byte % 2) as u8).collect();
        let x = Tensor::from_bytes(&bytes, dtype, &[2, 3], &Device::cpu())?;
        let view = x.transpose(0, 1)?.slice(0, Slice::from(..).step(-1))?.narrow(1, 1, 1)?;
        let exported = view.to_dlpack(None)?;
        // SAFETY: the struct is live until it is taken over.
        let raw = unsafe { *exported.as_ptr() };
        assert_eq!((raw.version.major, raw.flags), (1, DLPACK_FLAG_READ_ONLY), "{dtype}");
        assert_eq!(usize::from(raw.dl_tensor.dtype.bits), 8 * dtype.size(), "{dtype}");
        // SAFETY: the struct is taken over once.
        let back = unsafe { Tensor::from_dlpack(exported)? };
        assert_eq!((back.dtype(), back.shape()), (dtype, view.shape()));
        assert_eq!(back.layout().strides(), view.layout().strides(), "{dtype}");
        assert_eq!(back.to_bytes()?, view.to_bytes()?, "{dtype}");
        // SAFETY: as above.
        let legacy = unsafe { Tensor::from_dlpack_legacy(view.to_dlpack_legacy(None)?)? };
        assert_eq!(legacy.to_bytes()?, view.to_bytes()?, "{dtype}");
    }
    Ok(())
}

#[test]
fn an_import_reads_the_producers_memory_and_deletes_it_once() -> Result<()> {
    let deleted = Arc::new(AtomicUsize::new(0));
    let mut address = std::ptr::null();
    let x = import(&deleted, |_, producer| address = producer.elements.as_ptr())?;
    assert_eq!(x.as_slice::<f32>()?.as_ptr(), address);
    let view = x.select(0, 1)?;
    drop(x);
    assert_eq!(view.to_vec::<f32>()?, [4.0, 5.0, 6.0]);
    assert_eq!(deleted.load(Ordering::Relaxed), 0);
    drop(view);
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn strides_offsets_and_null_strides_describe_the_elements() -> Result<()> {
    let deleted = Arc::new(AtomicUsize::new(0));
    let backwards = import(&deleted, |managed, producer| {
        (producer.shape, producer.strides) = ([3, 2], [-1, 3]);
        managed.dl_tensor.byte_offset = 8;
    })?;
    assert_eq!(backwards.to_vec::<f32>()?, [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);
    let dense = import(&deleted, |managed, _| managed.dl_tensor.strides = std::ptr::null_mut())?;
    assert_eq!(dense.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let repeated = import(&deleted, |_, producer| producer.strides = [0, 1])?;
    assert_eq!(repeated.to_vec::<f32>()?, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    drop((backwards, dense, repeated));
    assert_eq!(deleted.load(Ordering::Relaxed), 3);
    Ok(())
}

#[test]
fn pinned_memory_stays_pinned_from_an_import_to_an_export() -> Result<()> {
    let deleted = Arc::new(AtomicUsize::new(0));
    let pinned = import(&deleted, |managed, _| managed.dl_tensor.device.device_type = 3)?;
    assert!(pinned.device().is_cpu() && pinned.is_pinned());
    let view = pinned.select(0, 1)?;
    assert!(view.is_pinned());
    let (versioned, legacy) = (view.to_dlpack(None)?, view.to_dlpack_legacy(None)?);
    // SAFETY: the structs are live until they are taken over, once.
    unsafe {
        let devices = [(*versioned.as_ptr()).dl_tensor.device, (*legacy.as_ptr()).dl_tensor.device];
        assert_eq!(devices.map(|device| (device.device_type, device.device_id)), [(3, 0); 2]);
        let back = [Tensor::from_dlpack(versioned)?, Tensor::from_dlpack_legacy(legacy)?];
        assert!(back.iter().all(Tensor::is_pinned));
        assert_eq!(back[1].as_slice::<f32>()?.as_ptr(), view.as_slice::<f32>()?.as_ptr());
    }
    // Results and copies are in ordinary memory.
    assert!(!(&pinned + 1.0)?.is_pinned() && !pinned.copy()?.is_pinned());
    let ordinary = import(&deleted, |_, _| ())?;
    assert!(!ordinary.is_pinned());
    drop((pinned, view, ordinary));
    assert_eq!(deleted.load(Ordering::Relaxed), 2);
    Ok(())
}

#[test]
fn a_write_never_reaches_the_producer() -> Result<()> {
    let deleted = Arc::new(AtomicUsize::new(0));
    for flags in [0, DLPACK_FLAG_READ_ONLY] {
        for holds_a_view in [false, true] {
            let mut memory = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
            let mut x = import(&deleted, |managed, _| {
                managed.flags = flags;
                managed.dl_tensor.data = memory.as_mut_ptr().cast();
            })?;
            let view = if holds_a_view { Some(x.narrow(0, 0, 1)?) } else { None };
            assert!(!x.is_unique());
            x.in_place().mul(10.0)?;
            assert_eq!(x.to_vec::<f32>()?, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
            if let Some(view) = view {
                assert_eq!(view.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
            }
            assert_eq!(memory, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "flags {flags}, a view: {holds_a_view}");
        }
    }
    assert_eq!(deleted.load(Ordering::Relaxed), 4, "the arrays were left for copies");
    let mut last = import(&deleted, |_, _| {})?;
    last.as_slice_mut::<f32>()?[0] = 7.0;
    assert_eq!(last.to_vec::<f32>()?[..2], [7.0, 2.0]);
    assert_eq!(deleted.load(Ordering::Relaxed), 5);
    Ok(())
}

#[test]
fn a_write_to_an_import_of_before_version_1_never_reaches_the_producer() -> Result<()> {
    let source = Tensor::new([1.0f32, 2.0], &Device::cpu())?;
    // SAFETY: each export is taken over once.
    let [mut x, y] = [source.to_dlpack_legacy(None)?, source.to_dlpack_legacy(None)?]
        .map(|exported| unsafe { Tensor::from_dlpack_legacy(exported) })
        .map(Result::unwrap);
    x.in_place().mul(10.0)?;
    assert_eq!(x.to_vec::<f32>()?, [10.0, 20.0]);
    // Two imports of one array share its memory, but no write.
    assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(source.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn an_export_for_writing_owns_its_elements() -> Result<()> {
    let x = Tensor::new([1.0f32, 2.0], &Device::cpu())?;
    let shared = x.clone().into_dlpack(None)?;
    // SAFETY: the struct is live until its deleter is called, once.
    unsafe {
        assert_eq!((*shared.as_ptr()).flags, DLPACK_FLAG_IS_COPIED);
        *(*shared.as_ptr()).dl_tensor.data.cast::<f32>() = 9.0;
        ((*shared.as_ptr()).deleter.unwrap())(shared.as_ptr());
    }
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    let address = x.as_slice::<f32>()?.as_ptr();
    let alone = x.into_dlpack_legacy(None)?;
    // SAFETY: as above.
    unsafe {
        let managed: DLManagedTensor = *alone.as_ptr();
        assert_eq!(managed.dl_tensor.data.cast::<f32>().cast_const(), address);
        managed.deleter.unwrap()(alone.as_ptr());
    }
    Ok(())
}

#[test]
fn arrays_without_elements_and_without_dimensions_are_exchanged() -> Result<()> {
    for shape in [&[0, 3][..], &[], &[2, 0]] {
        let x = Tensor::zeros(shape, DType::F64, &Device::cpu())?;
        let exported = x.to_dlpack(None)?;
        // SAFETY: the struct is taken over once.
        let back = unsafe {
            assert_eq!((*exported.as_ptr()).dl_tensor.data.is_null(), x.count() == 0);
            Tensor::from_dlpack(exported)?
        };
        assert_eq!(back.shape()[..], *shape);
        assert_eq!(back.to_vec::<f64>()?.len(), x.count());
    }
    Ok(())
}

#[test]
fn structs_that_cannot_be_used_are_refused_and_stay_the_callers() {
    type Change = fn(&mut DLManagedTensorVersioned, &mut Producer);
    let cases: [(&str, Change); 18] = [
        ("version 2.0", |managed, _| managed.version = DLPackVersion { major: 2, minor: 0 }),
        ("version 0.9", |managed, _| managed.version = DLPackVersion { major: 0, minor: 9 }),
        ("elements of 4 lanes", |managed, _| managed.dl_tensor.dtype.lanes = 4),
        ("elements of 0 lanes", |managed, _| managed.dl_tensor.dtype.lanes = 0),
        ("type code 17 with 4 bits", |managed, _| {
            managed.dl_tensor.dtype = DLDataType { code: 17, bits: 4, lanes: 1 };
        }),
        ("type code 2 with 80 bits", |managed, _| managed.dl_tensor.dtype.bits = 80),
        ("device type 10", |managed, _| managed.dl_tensor.device.device_type = 10),
        ("-1 dimensions", |managed, _| managed.dl_tensor.ndim = -1),
        ("17 dimensions", |managed, _| managed.dl_tensor.ndim = 17),
        ("null shape", |managed, _| managed.dl_tensor.shape = std::ptr::null_mut()),
        ("shape [2, -3]", |_, producer| producer.shape = [2, -3]),
        ("dlpack", |_, producer| producer.shape = [i64::MAX, i64::MAX]),
        ("strides", |_, producer| producer.strides = [i64::MAX, 1]),
        ("strides", |_, producer| producer.strides = [i64::MIN, 1]),
        ("null data", |managed, _| managed.dl_tensor.data = std::ptr::null_mut()),
        ("byte offset", |managed, _| managed.dl_tensor.byte_offset = 1 << 63),
        ("byte offset", |managed, _| managed.dl_tensor.byte_offset = u64::MAX),
        ("elements of f32 at", |managed, _| managed.dl_tensor.byte_offset = 2),
    ];
    for (wanted, change) in cases {
        let deleted = Arc::new(AtomicUsize::new(0));
        let error = import(&deleted, change).map(drop).unwrap_err().to_string();
        assert!(error.contains(wanted) || wanted == "dlpack", "{wanted}: {error}");
        assert_eq!(deleted.load(Ordering::Relaxed), 1, "{wanted}: the caller's own call alone");
    }
}
