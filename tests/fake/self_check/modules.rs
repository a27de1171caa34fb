//! Images, kernels and what they do, the linker, a fault.

use super::*;

fn kernels() -> Outcome {
    let bench = Bench::new()?;
    let (module, stream) = (bench.module(PTX.as_bytes())?, bench.stream()?);
    let combine = bench.function(module, "combine")?;
    let (a, b) = (bench.block(64)?, bench.block(64)?);
    call!(bench, fill(a, 1, 64, stream));
    call!(bench, fill(b, 2, 64, stream));
    let scale = 3.5f32.to_ne_bytes();
    check_equal!(bench.launch(combine, stream, &[&word(a), &word(b), &scale, &word(40)]), SUCCESS);
    call!(bench, stream_synchronize(stream));
    let mut expected = vec![2u8; 40];
    bench.fake.kernel_effect(
        "combine",
        &mut [
            Parameter::Read(&[1; 40]),
            Parameter::Update(&mut expected),
            Parameter::Scalar(&scale),
            Parameter::Scalar(&word(40)),
        ],
    );
    check!(expected != vec![2; 40]);
    expected.extend([2; 24]);
    check_equal!(bench.fake.device_read(b, 64), Some(expected));
    check_equal!(bench.fake.device_read(a, 64), Some(vec![1; 64]));
    bench.no_violation()?;

    // Ordering and bounds are those of the parameters.
    let other = bench.stream()?;
    call!(bench, fill(a, 1, 64, other));
    check_equal!(bench.launch(combine, stream, &[&word(a), &word(b), &scale, &word(40)]), SUCCESS);
    bench.one_violation(&["read by cuLaunchKernel[combine]", "the write by cuMemsetD8Async"])?;
    call!(bench, context_synchronize());
    check_equal!(bench.launch(combine, stream, &[&word(a), &word(b), &scale, &word(65)]), SUCCESS);
    check_equal!(bench.fake.violations().len(), 3);
    check!(bench.fake.violations()[1].contains("past the end"));

    // Shapes.
    let (mut offset, mut size) = (0, 0);
    call!(bench, parameter_info(combine, 3, &raw mut offset, &raw mut size));
    check_equal!((offset, size), (24, 8));
    answers!(INVALID_VALUE, bench, parameter_info(combine, 4, &raw mut offset, &raw mut size));
    let produce = bench.function(module, "produce")?;
    let argument = word(a);
    let mut pointers = [argument.as_ptr().cast_mut().cast::<c_void>()];
    let arguments = pointers.as_mut_ptr();
    answers!(INVALID_VALUE, bench, launch(produce, 1, 1, 1, 1025, 1, 1, 0, stream, arguments, null_mut()));
    answers!(INVALID_VALUE, bench, launch(produce, 1, 1, 1, 1, 1, 1, 50_000, stream, arguments, null_mut()));
    call!(bench, set_attribute(produce, 8, 100_000));
    call!(bench, launch(produce, 1, 1, 1, 1, 1, 1, 50_000, stream, arguments, null_mut()));
    answers!(INVALID_VALUE, bench, set_attribute(produce, 8, 240_000));

    // The module is in use until its kernels are waited for.
    call!(bench, unload(module));
    let found = bench.fake.violations();
    check!(found.last().is_some_and(
        |text| text.contains("release by cuModuleUnload") && text.contains("cuLaunchKernel[produce]")
    ));
    check_equal!(bench.launch(produce, stream, &[&argument]), INVALID_HANDLE);
    Ok(())
}

fn images() -> Outcome {
    let bench = Bench::new()?;
    let (cubin, fatbin) = (bench.fake.make_cubin(PTX), bench.fake.make_fatbin(PTX));
    check!(cubin.starts_with(b"\x7fELF"));
    for image in [PTX.as_bytes(), &cubin, &fatbin] {
        let module = bench.module(image)?;
        let stream = bench.stream()?;
        let produce = bench.function(module, "produce")?;
        let block = bench.block(8)?;
        check_equal!(bench.launch(produce, stream, &[&word(block)]), SUCCESS);
        call!(bench, stream_synchronize(stream));
        let mut expected = [0; 8];
        bench.fake.kernel_effect("produce", &mut [Parameter::Write(&mut expected)]);
        check_equal!(bench.fake.device_read(block, 8), Some(expected.to_vec()));
        let (mut address, mut bytes) = (0, 0);
        call!(bench, global(&raw mut address, &raw mut bytes, module, c"table".as_ptr()));
        check_equal!(bytes, 32);
        check_equal!(bench.fake.device_read(address, 32), Some(vec![0; 32]));
        answers!(500, bench, global(&raw mut address, &raw mut bytes, module, c"chair".as_ptr()));
        call!(bench, unload(module));
    }
    // Bytes that are no image, with the assembler's log.
    let log = [0u8; 256];
    let mut options = [5, 6];
    for (text, code) in [
        (c".version 8.5\n.target sm_80", 222),
        (c".version 8.0\n.target sm_100", 218),
        (c".version 8.0\n.target sm_80\n.visible .entry broken(.param .u64 x", 218),
        (c"hello", 218),
        (c"\x7fELF", 200),
    ] {
        let mut values = [log.as_ptr().cast_mut().cast::<c_void>(), 256 as *mut c_void];
        let (mut module, image) = (0, [text.to_bytes_with_nul(), &[0; 64]].concat());
        let values = values.as_mut_ptr();
        answers!(code, bench, load(&raw mut module, image.as_ptr().cast(), 2, options.as_mut_ptr(), values));
        check!(log[0] != 0);
    }
    // A cubin whose section of PTX has no bytes in the file, only an offset.
    let (mut module, mut damaged) = (0, cubin);
    let headers = usize::try_from(u64::from_le_bytes(damaged[40..48].try_into()?))?;
    let ptx = &mut damaged[headers + 2 * 64..][..64];
    check_equal!(ptx[4], 1);
    ptx[4] = 8;
    ptx[24..32].copy_from_slice(&(1u64 << 40).to_le_bytes());
    answers!(200, bench, load(&raw mut module, damaged.as_ptr().cast(), 0, null_mut(), null_mut()));
    check_equal!(bench.fake.live().modules, 0);
    bench.no_violation()
}

fn linking() -> Outcome {
    let bench = Bench::new()?;
    let second = ".version 8.0\n.target sm_80\n.visible .entry more(.param .u64 more_write_x) { ret; }";
    let (mut state, mut image, mut size) = (0, null_mut(), 0);
    call!(bench, link_create(0, null_mut(), null_mut(), &raw mut state));
    for text in [PTX, second] {
        let (data, bytes) = (text.as_ptr().cast(), text.len());
        call!(bench, link_add(state, 1, data, bytes, null(), 0, null_mut(), null_mut()));
    }
    call!(bench, link_complete(state, &raw mut image, &raw mut size));
    let mut module = 0;
    call!(bench, load(&raw mut module, image, 0, null_mut(), null_mut()));
    call!(bench, link_destroy(state));
    bench.function(module, "more")?;
    bench.function(module, "combine")?;
    let mut late = 0;
    // The image went with its state.
    // SAFETY: the fake keeps the bytes, overwritten.
    check!(unsafe { (bench.driver.load)(&raw mut late, image, 0, null_mut(), null_mut()) } != SUCCESS);
    bench.no_violation()
}

fn lost_context() -> Outcome {
    let bench = Bench::new()?;
    let (module, stream) = (bench.module(PTX.as_bytes())?, bench.stream()?);
    let fault = bench.function(module, "fault_now")?;
    let block = bench.block(8)?;
    let other_context = bench.bind(1)?;
    let (other_stream, other_block) = (bench.stream()?, bench.block(8)?);
    call!(bench, set_current(bench.context));
    check_equal!(bench.launch(fault, stream, &[]), SUCCESS);
    call!(bench, fill(block, 1, 8, stream));
    answers!(LOST, bench, stream_synchronize(stream));
    let mut unused = 0;
    answers!(LOST, bench, allocate(&raw mut unused, 8));
    answers!(LOST, bench, stream_query(stream));
    check!(bench.fake.device_read(block, 8) != Some(vec![1; 8]));
    answers!(LOST, bench, free(block));
    answers!(LOST, bench, stream_destroy(stream));
    answers!(LOST, bench, unload(module));
    check_equal!(bench.fake.live_on(0).blocks, 0);
    call!(bench, set_current(other_context));
    call!(bench, fill(other_block, 1, 8, other_stream));
    call!(bench, stream_synchronize(other_stream));
    bench.no_violation()
}

pub fn tests() -> Vec<Test> {
    vec![
        test("kernels", kernels),
        test("images", images),
        test("linking", linking),
        test("a lost context", lost_context),
    ]
}
