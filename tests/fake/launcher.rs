//! The launcher on the fake driver: names, modules that are loaded once, checks, fallbacks, threads. There is no NVRTC here
//! but in the tests of `sources`, which do nothing where there is none.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use selvedge::Error;
use selvedge::driver::{Argument, Device, DeviceBuffer, LaunchConfig, Stream};
use selvedge::launcher::{Definition, Fallback, LaunchOutcome, Launcher, Origin, Prefer};
use selvedge::nvrtc::Cache;

use super::children;
use super::support::{Fake, Parameter};
use super::variant::Variant;
use crate::common::suite::Test;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// `blend` and `scale` are C++ kernels, `make` is none; each has its effect by the names of its parameters.
const PTX: &str = "\
.version 7.0
.target sm_60
.address_size 64
.visible .entry _Z5blendPKfPfmj(
    .param .u64 _Z5blendPKfPfmj_read_a, .param .u64 _Z5blendPKfPfmj_update_b,
    .param .u64 _Z5blendPKfPfmj_bytes_n, .param .u32 _Z5blendPKfPfmj_salt
) { ret; }
.visible .entry _Z5scaleIfEvPT_f(.param .u64 _Z5scaleIfEvPT_f_write_x, .param .f32 _Z5scaleIfEvPT_f_by) { ret; }
.visible .entry _Z5scaleIdEvPT_d(.param .u64 _Z5scaleIdEvPT_d_write_x, .param .f64 _Z5scaleIdEvPT_d_by) { ret; }
.visible .entry make(.param .u64 make_write_a, .param .u64 make_bytes_n, .param .u32 make_salt) { ret; }
";

/// Of one kernel.
const ONE: &str =
    ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry only(.param .u32 only_n) { ret; }\n";

/// For a later driver than any.
const LATER: &str =
    ".version 99.0\n.target sm_60\n.address_size 64\n.visible .entry only(.param .u32 only_n) { ret; }\n";

const NEVER: &str = "__global__ void only(unsigned n) {}";

selvedge::kernel! {
    /// As it is declared in `PTX`.
    unsafe fn blend(a: &[f32], b: &mut [f32], bytes: u64, salt: u32);
    unsafe fn blend_wide(a: &[f64], b: &mut [f32], bytes: u64, salt: u32);
    unsafe fn blend_short(a: &[f32], b: &mut [f32], bytes: u64);
    unsafe fn blend_float(a: &[f32], b: &mut [f32], bytes: u64, salt: f32,);
    unsafe fn only(n: u32);
}

macro_rules! ensure {
    ($condition:expr, $($words:tt)*) => {
        if !$condition {
            return Err(format!("{}: {}", line!(), format!($($words)*)).into());
        }
    };
}

macro_rules! ensure_error {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            other => return Err(format!("{}: {:?}", line!(), other.map(drop)).into()),
        }
    };
}

// Behind the macros, which it uses.
mod sources;

fn launcher() -> selvedge::Result<Launcher> {
    Launcher::with_cache(&Device::new(0)?, Cache::none())
}

fn names(_: &Fake) -> Outcome {
    let launcher = launcher()?;
    ensure!(launcher.load("make", PTX)?.function()?.name() == "make", "its own name");
    ensure!(launcher.load("blend", PTX)?.function()?.name() == "_Z5blendPKfPfmj", "its C++ name");
    ensure!(launcher.load("anything", ONE)?.function()?.name() == "only", "the only kernel");
    let exact = Definition::new("scale").image(PTX).entry("_Z5scaleIdEvPT_d");
    ensure!(launcher.define(exact)?.function()?.name() == "_Z5scaleIdEvPT_d", "a chosen entry");
    ensure!(launcher.names() == ["anything", "blend", "make", "scale"], "{:?}", launcher.names());

    // Two are called so, and what is chosen must be there.
    ensure_error!(launcher.load("scale", PTX), Error::UnknownName { wanted, found, .. } if wanted == "scale" && found.len() == 4);
    let absent = Definition::new("make").image(PTX).entry("absent");
    ensure_error!(launcher.define(absent), Error::UnknownName { wanted, found, .. }
        if wanted == "absent" && found.contains(&"_Z5blendPKfPfmj".to_owned()));
    ensure_error!(launcher.define(Definition::new("nothing")), Error::InvalidArgument { .. });
    ensure!(launcher.kernel("scale")?.function()?.name() == "_Z5scaleIdEvPT_d", "an error changes nothing");

    // SAFETY: there is no such kernel.
    let run = unsafe { launcher.run("absent", 1, 32, (1u32,)) };
    ensure_error!(run, Error::UnknownName { found, .. } if found == ["anything", "blend", "make", "scale"]);

    // A name that is entered anew; who has the old one keeps it.
    let old = launcher.kernel("make")?;
    launcher.load("make", ONE)?;
    ensure!(launcher.kernel("make")?.function()?.name() == "only", "the new one");
    ensure!(old.function()?.name() == "make" && old.origin() == Some(Origin::Image), "the old one");
    // SAFETY: only does nothing.
    ensure!(unsafe { launcher.run("make", 1, 32, (1u32,))? } == LaunchOutcome::Device, "it runs");
    ensure!(format!("{launcher:?} {old:?}").contains("4 kernels"), "{launcher:?}");
    Ok(())
}

fn modules(fake: &Fake) -> Outcome {
    let device = Device::new(0)?;
    let loads = || fake.call_count("cuModuleLoadDataEx");
    let first = launcher()?;
    let before = loads();
    let make = first.load("make", PTX)?;
    first.load("blend", PTX.as_bytes())?;
    first.load("also", ONE)?;
    let second = launcher()?;
    let scale = second.define(Definition::new("scale").image(PTX).entry("_Z5scaleIfEvPT_f"))?;
    ensure!(loads() - before == 2, "{} loads", loads() - before);
    // On another device it is another module.
    Launcher::with_cache(&Device::new(1)?, Cache::none())?.load("make", PTX)?;
    ensure!(loads() - before == 3, "{} loads", loads() - before);
    // The driver's function alone holds it, too.
    let function = scale.function()?.clone();
    drop((first, second, make, scale));
    let third = launcher()?;
    third.load("make", PTX)?;
    ensure!(loads() - before == 3, "{} loads while it is held", loads() - before);
    drop((third, function));
    device.synchronize()?;
    launcher()?.load("make", PTX)?;
    ensure!(loads() - before == 4, "{} loads after all was dropped", loads() - before);
    Ok(())
}

fn checks(fake: &Fake) -> Outcome {
    let launcher = launcher()?;
    let stream = launcher.stream();
    launcher.load("blend", PTX)?;
    let a = stream.upload(&[1.0f32; 16])?;
    let mut b = stream.upload(&[2.0f32; 16])?;
    let wide = stream.upload(&[2.0f64; 8])?;
    let launches = fake.call_count("cuLaunchKernel");

    // SAFETY: each is refused.
    let error = unsafe { launcher.run("blend", 1, 32, (&wide, &mut b, 64u64, 1u32)) };
    let text = error.map(drop).unwrap_err().to_string();
    for words in ["argument 0", "_Z5blendPKfPfmj", "f64", "'float const*'", "reinterpret::<f32>()"] {
        ensure!(text.contains(words), "no '{words}' in: {text}");
    }
    // SAFETY: as above.
    unsafe {
        ensure_error!(
            launcher.run("blend", 1, 32, (&a, &mut b, 64u64)),
            Error::ArgumentCount { wanted: 4, found: 3, .. }
        );
        ensure_error!(
            launcher.run("blend", 1, 32, (&a, &mut b, 64u64, 1.0f32)),
            Error::ArgumentMismatch { index: 3, .. }
        );
        ensure_error!(
            launcher.run("blend", 1, 32, (&a, &mut b, 64u32, 1u32)),
            Error::ArgumentMismatch { index: 2, .. }
        );
        // The name says that it is a pointer, where PTX only says that it has 8 bytes.
        ensure_error!(
            launcher.run("blend", 1, 32, (a.address(), &mut b, 64u64, 1u32)),
            Error::ArgumentMismatch { index: 0, .. }
        );
        let list = [
            Argument::read(&wide),
            Argument::write(&mut b),
            Argument::integer(64u64),
            Argument::integer(1u32),
        ];
        ensure_error!(launcher.run("blend", 1, 32, &list), Error::ArgumentMismatch { index: 0, .. });
        ensure_error!(launcher.run("blend", 0, 32, &list[..0]), Error::ArgumentCount { found: 0, .. });
        ensure_error!(launcher.run("blend", 0, 32, (&a, &mut b, 64u64, 1u32)), Error::InvalidArgument { .. });
    }
    ensure!(fake.call_count("cuLaunchKernel") == launches, "something was launched");

    let wanted = |salt: u32| {
        let (input, mut output): (Vec<u8>, Vec<u8>) =
            (bytemuck::cast_slice(&[1.0f32; 16]).to_vec(), bytemuck::cast_slice(&[2.0f32; 16]).to_vec());
        let parameters = &mut [
            Parameter::Read(&input),
            Parameter::Update(&mut output),
            Parameter::Scalar(&64u64.to_ne_bytes()),
            Parameter::Scalar(&salt.to_ne_bytes()),
        ];
        fake.kernel_effect("_Z5blendPKfPfmj", parameters);
        output
    };
    let bytes = |stream: &Stream, buffer: &DeviceBuffer<f32>| -> selvedge::Result<Vec<u8>> {
        Ok(bytemuck::cast_slice(&stream.download(buffer)?).to_vec())
    };
    // As a tuple, as a list, and a list as a vector; on another stream too; bytes are memory of any type.
    // SAFETY: blend touches 64 bytes of each.
    unsafe { launcher.run("blend", 1, 32, (&a, &mut b, 64u64, 1u32))? };
    ensure!(bytes(stream, &b)? == wanted(1), "the tuple");
    let mut b = stream.upload(&[2.0f32; 16])?;
    let raw = a.reinterpret::<u8>()?;
    let list = vec![
        Argument::read(&raw),
        Argument::write(&mut b),
        Argument::integer(64u64),
        Argument::integer(2u32),
    ];
    let other = launcher.device().stream()?;
    // SAFETY: as above.
    unsafe { launcher.run_on(&other, "blend", LaunchConfig::new(1, 32), &list)? };
    drop(list);
    ensure!(bytes(stream, &b)? == wanted(2), "the list");

    // A cubin says no kinds; the name does.
    let cubin = fake.make_cubin(PTX);
    ensure_error!(launcher.load("cubin", Vec::new()), Error::NotAnImage { .. });
    launcher.define(Definition::new("cubin").image(cubin).entry("_Z5scaleIfEvPT_f"))?;
    // SAFETY: each is refused.
    unsafe {
        ensure_error!(launcher.run("cubin", 1, 32, (&mut b, 1u32)), Error::ArgumentMismatch { index: 1, .. });
        ensure_error!(
            launcher.run("cubin", 1, 32, (a.address(), 1.0f32)),
            Error::ArgumentMismatch { index: 0, .. }
        );
    }
    Ok(())
}

fn declared(fake: &Fake) -> Outcome {
    let launcher = launcher()?;
    let stream = launcher.stream();
    let kernel = launcher.load("blend", PTX)?;
    let launches = fake.call_count("cuLaunchKernel");
    ensure_error!(blend_wide::bind(&kernel), Error::ArgumentMismatch { index: 0, .. });
    ensure_error!(blend_short::bind(&kernel), Error::ArgumentCount { wanted: 4, found: 3, .. });
    ensure_error!(blend_float::bind(&kernel), Error::ArgumentMismatch { index: 3, .. });
    ensure!(fake.call_count("cuLaunchKernel") == launches, "binding launches nothing");
    let typed = blend::bind(&kernel)?;
    let (a, config) = (stream.upload(&[1.0f32; 32])?, LaunchConfig::new(1, 32));
    let mut b = stream.upload(&[2.0f32; 32])?;
    // SAFETY: blend touches 64 bytes of each.
    unsafe {
        typed.run(stream, config, &a, &mut b, 64, 1)?;
        typed.run(stream, config, a.slice(8..24)?, b.slice_mut(16..)?, 64, 1)?;
        let (part, mut other) = (a.slice(8..24)?, b.slice_mut(16..)?);
        typed.run(stream, config, part, &mut other, 64, 1)?;
    }
    ensure!(fake.call_count("cuLaunchKernel") == launches + 3, "all are launched");
    // A function of the driver module is a kernel, too.
    let function = launcher.device().load(ONE.as_bytes())?.function("only")?;
    let typed = only::bind(&function)?;
    // SAFETY: only does nothing.
    ensure!(unsafe { typed.run(stream, config, 1)? } == LaunchOutcome::Device, "it runs");
    ensure!(typed.kernel().origin() == Some(Origin::Function), "{typed:?}");
    ensure_error!(blend::bind(function), Error::ArgumentCount { wanted: 1, found: 4, .. });
    Ok(stream.synchronize()?)
}

/// Does what `blend` is said to do: adds.
fn adding(taken: Arc<AtomicUsize>) -> Fallback {
    Fallback::cpu(move |launch| {
        taken.fetch_add(1, Ordering::Relaxed);
        if launch.kernel() != "blend" || launch.config().block.x != 32 {
            return Err(Error::ForkedProcess);
        }
        let [a, b, bytes, salt] = launch.arguments()?;
        if a.is_written() || !b.is_written() || bytes.value::<u64>()? != 64 || salt.value::<u32>()? != 5 {
            return Err(Error::ForkedProcess);
        }
        let a = a.slice::<f32>()?;
        b.slice_mut::<f32>()?.iter_mut().zip(a).for_each(|(b, a)| *b += a);
        Ok(())
    })
}

fn fallbacks(fake: &Fake) -> Outcome {
    let launcher = launcher()?;
    let stream = launcher.stream();
    // By default it is an error.
    ensure_error!(launcher.compile("blend", NEVER), Error::LibraryUnavailable { .. });
    ensure!(launcher.names().is_empty(), "{:?}", launcher.names());

    let taken = Arc::new(AtomicUsize::new(0));
    let kernel = launcher.define(Definition::new("blend").source(NEVER).fallback(adding(taken.clone())))?;
    ensure!(kernel.origin().is_none() && kernel.log().is_empty(), "{kernel:?}");
    ensure_error!(kernel.function(), Error::LibraryUnavailable { .. });
    let a = stream.upload(&[1.0f32; 16])?;
    let mut b = stream.upload(&[2.0f32; 20])?;
    let launches = fake.call_count("cuLaunchKernel");
    for round in 1..=2 {
        // SAFETY: nothing is launched.
        let ran = unsafe { launcher.run("blend", 1, 32, (&a, b.slice_mut(2..18)?, 64u64, 5u32))? };
        ensure!(ran == LaunchOutcome::Fallback, "{ran:?}");
        ensure!(kernel.fallbacks_taken() == round && launcher.fallbacks_taken() == round, "round {round}");
    }
    let mut wanted = [2.0f32; 20];
    wanted[2..18].fill(4.0);
    ensure!(stream.download(&b)? == wanted, "{:?}", stream.download(&b)?);
    let list =
        [Argument::read(&a), Argument::write(&mut b), Argument::integer(64u64), Argument::integer(5u32)];
    // SAFETY: as above.
    ensure!(unsafe { launcher.run("blend", 1, 32, &list)? } == LaunchOutcome::Fallback, "a list");
    drop(list);
    ensure!(stream.download(&b)?[..4] == [3.0, 3.0, 5.0, 5.0], "{:?}", stream.download(&b)?);
    ensure!(fake.call_count("cuLaunchKernel") == launches, "something was launched");
    ensure!(taken.load(Ordering::Relaxed) == 3, "taken {taken:?}");

    // Wrong arguments, too; and the error copies nothing to the device.
    let before = stream.download(&b)?;
    // SAFETY: as above.
    unsafe {
        ensure_error!(
            launcher.run("blend", 1, 32, (&a, &mut b, 64u64)),
            Error::ArgumentCount { wanted: 4, found: 3, .. }
        );
        ensure_error!(launcher.run("blend", 1, 32, (&a, &b, 64u64, 5u32)), Error::ForkedProcess);
        ensure_error!(
            launcher.run("blend", 1, 32, (&a, &mut b, 64u32, 5u32)),
            Error::ArgumentMismatch { index: 2, .. }
        );
        ensure_error!(
            launcher.run("blend", 1, 32, (1.0f32, &mut b, 64u64, 5u32)),
            Error::ArgumentMismatch { index: 0, .. }
        );
        let doubles = a.reinterpret::<f64>()?;
        ensure_error!(
            launcher.run("blend", 1, 32, (doubles, &mut b, 64u64, 5u32)),
            Error::ArgumentMismatch { index: 0, .. }
        );
    }
    ensure!(stream.download(&b)? == before, "a fallback that failed has written");

    let views = Fallback::cpu(|launch| {
        let count = launch.all().len();
        let [bytes, flag, pair, address] = launch.arguments()?;
        let odd = bytes.slice::<u32>().is_err() && bytes.slice::<u16>()?.len() == 3;
        let read_only = bytes.slice_mut::<u8>().is_err();
        let flag = flag.value::<bool>()? && flag.value::<u8>().is_err() && flag.slice::<u8>().is_err();
        let pair = pair.value::<[f32; 2]>()? == [1.0, 2.0];
        let address =
            address.slice::<u8>().is_err() && address.value::<u64>().is_err() && address.bytes().len() == 8;
        if (count, odd, read_only, flag, pair, address) == (4, true, true, true, true, true) {
            return Ok(());
        }
        Err(Error::KernelUnavailable {
            kernel: String::new(),
            reasons: format!("{odd} {read_only} {flag} {pair} {address}"),
        })
    });
    launcher.define(Definition::new("views").source(NEVER).fallback(views))?;
    let bytes = stream.upload(&[1u8; 6])?;
    let arguments =
        (&bytes, true, selvedge::driver::ByValue([1.0f32, 2.0]), selvedge::driver::RawAddress(16));
    // SAFETY: as above.
    unsafe { launcher.run("views", 1, 32, arguments)? };
    Ok(())
}

/// A fallback stands in for kernels that cannot be had, and for nothing else.
fn reasons(fake: &Fake) -> Outcome {
    let launcher = launcher()?;
    let stream = launcher.stream();
    let nothing = || Fallback::cpu(|_| Ok(()));
    let run = |name: &str| {
        // SAFETY: only does nothing.
        unsafe { launcher.run(name, 1, 32, (1u32,)) }
    };
    for (name, image) in
        [("later", LATER.as_bytes()), ("half", &fake.make_cubin(ONE)[..100]), ("none", b"text")]
    {
        ensure!(launcher.load(name, image).is_err(), "{name} is loaded");
        launcher.define(Definition::new(name).image(image).fallback(nothing()))?;
        ensure!(run(name)? == LaunchOutcome::Fallback, "{name}");
    }
    // Refused by the driver, as PTX that its assembler rejects.
    const INVALID_PTX: i32 = 218;
    fake.fail("cuModuleLoadDataEx", 1, INVALID_PTX);
    launcher.define(Definition::new("refused").image(ONE).fallback(nothing()))?;
    ensure!(run("refused")? == LaunchOutcome::Fallback, "refused");
    // A failure is not cached.
    launcher.define(Definition::new("refused").image(ONE).fallback(nothing()))?;
    ensure!(run("refused")? == LaunchOutcome::Device, "taken");
    ensure!(launcher.kernel("refused")?.fallbacks_taken() == 0, "not taken");

    // Other failures are errors.
    let no_entry = Definition::new("entry").image(ONE).entry("absent").fallback(nothing());
    ensure_error!(launcher.define(no_entry), Error::UnknownName { .. });
    fake.fail("cuModuleLoadDataEx", 1, 2);
    let memory = Definition::new("memory").image(format!("{ONE}// another\n")).fallback(nothing());
    ensure!(launcher.define(memory).is_err(), "too little memory is no reason");
    // SAFETY: it is refused.
    ensure_error!(unsafe { launcher.run("refused", 1, 32, (1.0f32,)) }, Error::ArgumentMismatch { .. });
    fake.fail("cuLaunchKernel", 1, 800);
    ensure!(run("refused").is_err(), "a launch that fails is no reason");
    stream.synchronize()?;

    fake.lose_context(0, 700);
    ensure!(stream.synchronize().is_err(), "lost");
    ensure_error!(run("refused"), Error::ContextLost { .. });
    let lost = Definition::new("lost").image(format!("{ONE}// third\n")).fallback(nothing());
    ensure_error!(launcher.define(lost), Error::ContextLost { .. });
    Ok(())
}

fn preferences(_: &Fake) -> Outcome {
    let launcher = launcher()?;
    for prefer in [Prefer::Image, Prefer::Source] {
        let both = Definition::new("only").source(NEVER).image(ONE).prefer(prefer);
        ensure!(launcher.define(both)?.origin() == Some(Origin::Image), "{prefer:?}");
        let neither = Definition::new("neither").source(NEVER).image(LATER).prefer(prefer);
        let error = launcher.define(neither.clone()).map(drop);
        ensure_error!(error, Error::KernelUnavailable { kernel, reasons }
            if kernel == "neither" && reasons.contains("99.0") && reasons.contains("NVRTC"));
        launcher.define(neither.fallback(Fallback::cpu(|_| Ok(()))))?;
        // A wrong entry name is an error, though the source could be compiled.
        let absent = Definition::new("only").source(NEVER).image(ONE).entry("absent").prefer(prefer);
        ensure_error!(launcher.define(absent), Error::UnknownName { .. });
    }
    Ok(())
}

fn threads(fake: &Fake) -> Outcome {
    const THREADS: usize = 8;
    const ROUNDS: u32 = 100;
    let launcher = launcher()?;
    launcher.load("blend", PTX)?;
    launcher.define(Definition::new("cpu").source(NEVER).fallback(Fallback::cpu(|_| Ok(()))))?;
    let (launches, loads) = (fake.call_count("cuLaunchKernel"), fake.call_count("cuModuleLoadDataEx"));
    let together = Barrier::new(THREADS);
    let one = |number: usize| -> Outcome {
        let stream = launcher.device().stream()?;
        let a = stream.upload(&[number as f32; 16])?;
        let mut b = stream.upload(&[2.0f32; 16])?;
        let input: Vec<u8> = bytemuck::cast_slice(&[number as f32; 16]).to_vec();
        let mut wanted: Vec<u8> = bytemuck::cast_slice(&[2.0f32; 16]).to_vec();
        together.wait();
        for round in 0..ROUNDS {
            if round % 10 == number as u32 {
                // Entered anew meanwhile, from the module that is there.
                launcher.load("blend", PTX)?;
            }
            let arguments = (&a, &mut b, 64u64, round);
            // SAFETY: blend touches 64 bytes of each.
            unsafe { launcher.run_on(&stream, "blend", LaunchConfig::new(1, 32), arguments)? };
            let parameters = &mut [
                Parameter::Read(&input),
                Parameter::Update(&mut wanted),
                Parameter::Scalar(&64u64.to_ne_bytes()),
                Parameter::Scalar(&round.to_ne_bytes()),
            ];
            fake.kernel_effect("_Z5blendPKfPfmj", parameters);
            // SAFETY: nothing is launched.
            unsafe { launcher.run("cpu", 1, 32, (round,))? };
        }
        ensure!(bytemuck::cast_slice::<f32, u8>(&stream.download(&b)?) == wanted, "thread {number}");
        Ok(())
    };
    let one = |number| one(number).map_err(|error| error.to_string());
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || one(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a panic".to_owned())?)
    })?;
    let all = THREADS as u64 * u64::from(ROUNDS);
    ensure!(fake.call_count("cuLaunchKernel") - launches == all, "launches");
    ensure!(launcher.fallbacks_taken() == all, "{} fallbacks", launcher.fallbacks_taken());
    ensure!(fake.call_count("cuModuleLoadDataEx") == loads, "it was loaded again");
    Ok(())
}

fn grids(_: &Fake) -> Outcome {
    let kernel = launcher()?.load("only", ONE)?;
    let function = kernel.function()?;
    let (most, block) = function.suggested_block_size(0)?;
    ensure!(most > 0 && block > 0, "{most} {block}");
    for count in [0, 1, block as usize, block as usize + 1, 1_000_000] {
        let config = function.config_for_elements(count, 0)?;
        let blocks = count.div_ceil(block as usize).max(1);
        ensure!((config.grid, config.block) == ((blocks as u32).into(), block.into()), "{config:?}");
        let config = function.config_for_loop(count, 0)?;
        ensure!(config.grid.x == (blocks as u32).min(most), "{config:?}");
    }
    ensure_error!(function.config_for_elements(usize::MAX, 0), Error::LaunchLimit { what: "grid x", .. });
    ensure!(function.config_for_loop(usize::MAX, 0)?.grid.x == most, "a loop takes any count");
    let required = ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry only(.param .u32 only_n) .reqntid 16, 4, 1 { ret; }\n";
    let kernel = launcher()?.load("only", required)?;
    let config = kernel.function()?.config_for_elements(129, 256)?;
    ensure!((config.grid, config.block, config.shared) == (3.into(), (16, 4).into(), 256), "{config:?}");
    Ok(())
}

pub fn child(fake: &Fake, arguments: &[String]) -> Outcome {
    let test = TESTS.iter().find(|(name, ..)| arguments.first().is_some_and(|asked| asked == name));
    test.ok_or("no such test")?.1(fake)?;
    let violations: HashSet<String> = fake.violations().into_iter().collect();
    ensure!(violations.is_empty(), "{violations:?}");
    Ok(())
}

type Run = fn(&Fake) -> Outcome;

/// Each with whether NVRTC may be there.
const TESTS: &[(&str, Run, bool)] = &[
    ("a_name_means_one_kernel", names, false),
    ("an_image_is_loaded_once", modules, false),
    ("wrong_arguments_launch_nothing", checks, false),
    ("a_declaration_is_held_against_the_kernel", declared, false),
    ("a_fallback_gets_the_arguments", fallbacks, false),
    ("a_fallback_stands_in_for_nothing_else", reasons, false),
    ("image_and_source_by_choice", preferences, false),
    ("threads_run_by_name", threads, false),
    ("grids", grids, false),
    ("sources_where_there_is_nvrtc", sources::sources, true),
];

pub fn tests() -> Vec<Test> {
    let test = |&(name, _, nvrtc): &(&'static str, Run, bool)| {
        Test::new(format!("launcher::{name}"), move || {
            let settings: &[(&str, &str)] = if nvrtc { &[] } else { &[("SELVEDGE_LIBNVRTC", "none")] };
            let arguments = [name.to_owned()];
            children::must_succeed(&Variant::new(12040), "launcher", &arguments, settings).map(drop)
        })
    };
    TESTS.iter().map(test).collect()
}
