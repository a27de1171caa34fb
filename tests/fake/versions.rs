//! Drivers of several ages, with symbols missing, and the toolkit's stub.

use libtest_mimic::Failed;
use selvedge::Error;
use selvedge::driver::{self, Device, LaunchConfig, Stream, TensorElement, TensorMap, TensorMapLayout};

use super::kernels::{NEWER_ISA, PTX};
use super::support::Fake;
use super::variant::Variant;
use super::{children, scenario};
use crate::common::suite::Test;

/// Child: what a driver of this version does, and how it says what it does not.
pub fn child(fake: &Fake, arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    match arguments {
        [kind] if kind == "works" => works(fake),
        [kind, symbol] if kind == "missing" => missing(symbol),
        [kind] if kind == "refused" => match Device::count() {
            Err(error) => {
                println!("{error}");
                Ok(())
            }
            Ok(count) => Err(format!("{count} devices").into()),
        },
        other => Err(format!("unknown: {other:?}").into()),
    }
}

fn works(fake: &Fake) -> Result<(), Box<dyn std::error::Error>> {
    scenario::run(fake, &mut || {})?;
    let device = Device::new(0)?;
    let (version, isa) = (driver::driver_version()?, driver::driver_isa()?);
    println!("{version:?} {isa:?}");
    match device.load(NEWER_ISA.as_bytes()) {
        Ok(_) if isa >= (8, 7) => {}
        Err(Error::UnsupportedImage { found, wanted }) if isa < (8, 7) && found.contains("8.7") => {
            let cuda = format!("{}.{}", version.0, version.1);
            if !wanted.contains(&cuda) {
                return Err(format!("the error does not name the driver's CUDA {cuda}: {wanted}").into());
            }
        }
        other => return Err(format!("PTX 8.7 on ISA {isa:?}: {other:?}").into()),
    }
    match selvedge::images::select("gather_32", device.compute_capability(), isa) {
        Ok(_) if isa >= (8, 0) => {}
        Err(Error::UnsupportedImage { found, wanted }) if isa < (8, 0) => println!("{found}; {wanted}"),
        other => return Err(format!("the embedded image on ISA {isa:?}: {:?}", other.map(drop)).into()),
    }
    scenario::settle()?;
    scenario::check_end(fake)
}

/// The call that needs an optional symbol says so; everything else works.
fn missing(symbol: &str) -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = device.load(PTX.as_bytes())?;
    let make = module.function("make")?;
    let mut buffer = stream.zeros::<u8>(64)?;
    let config = LaunchConfig::new(2, 32);
    // SAFETY: the fake driver's kernel touches the bytes that its arguments name.
    unsafe { make.launch(&stream, config, (&mut buffer, 64u64, 1u32))? };
    // SAFETY: as above. A cooperative launch has an older call to fall back on.
    unsafe { make.launch(&stream, config.cooperative(), (&mut buffer, 64u64, 1u32))? };
    let layout = TensorMapLayout::contiguous(TensorElement::U8, &[16, 4], &[16, 4]);
    let result = match symbol {
        // SAFETY: as above.
        "cuLaunchKernelEx" => unsafe { make.launch(&stream, config.cluster(2), (&mut buffer, 64u64, 1u32)) },
        "cuOccupancyMaxActiveClusters" => make.active_clusters(&config).map(drop),
        "cuTensorMapEncodeTiled" => TensorMap::tiled(&buffer, &layout).map(drop),
        "cuGraphGetEdges" => {
            let (graph, ()) = stream.capture(|stream| stream.fill(&mut buffer, 1))?;
            graph.nodes().map(drop)
        }
        "cuGraphExecUpdate" => {
            let (graph, ()) = stream.capture(|stream| stream.fill(&mut buffer, 1))?;
            let (other, ()) = stream.capture(|stream| stream.fill(&mut buffer, 2))?;
            graph.instantiate()?.update(other).map_err(Error::from)
        }
        "cuGraphKernelNodeGetParams" | "cuGraphExecKernelNodeSetParams" => {
            // SAFETY: as above.
            let (graph, ()) = stream
                .capture(|stream| unsafe { make.launch(stream, config, (&mut buffer, 64u64, 1u32)) })?;
            graph.to_dot()?;
            let mut graph = graph.instantiate()?;
            // SAFETY: as above.
            unsafe { graph.set_kernel(0, config, (&mut buffer, 64u64, 2u32)) }
        }
        "cuStreamGetCaptureInfo"
        | "cuStreamUpdateCaptureDependencies"
        | "cuStreamBeginCaptureToGraph"
        | "cuGraphAddNode"
        | "cuGraphConditionalHandleCreate" => {
            let condition = stream.upload(&[1u32])?;
            let part = |stream: &_| Stream::run_if(stream, &condition, |stream| stream.fill(&mut buffer, 1));
            stream.capture(part).map(drop)
        }
        // These are asked where an image cannot be read, and done without.
        "cuFuncGetParamInfo"
        | "cuModuleGetFunctionCount"
        | "cuModuleEnumerateFunctions"
        | "cuFuncGetName" => {
            module.function_names()?;
            return Ok(());
        }
        // The list goes copy by copy.
        "cuMemcpyBatchAsync" => {
            let mut other = stream.zeros::<u8>(64)?;
            let (first, second) = other.split_at_mut(40)?;
            stream.copy_batch(&mut [(buffer.slice(..40)?, first), (buffer.slice(40..)?, second)])?;
            let same = stream.download(&other)? == stream.download(&buffer)?;
            return if same { Ok(()) } else { Err("the list was not copied".into()) };
        }
        other => return Err(format!("no test for the optional {other}").into()),
    };
    match result {
        Err(Error::MissingSymbol { symbol: found, ref needs, ref version, .. })
            if found == symbol && !needs.is_empty() && version.contains("12.4") =>
        {
            Ok(())
        }
        other => Err(format!("without {symbol}: {other:?}").into()),
    }
}

fn refused(variant: &Variant, words: &[&str]) -> Result<(), Failed> {
    let text = children::must_succeed(variant, "version", &["refused".to_owned()], &[])?;
    match words.iter().find(|word| !text.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("the error does not say '{word}':\n{text}").into()),
    }
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for version in [11040, 12000, 12040, 13000] {
        tests.push(Test::new(
            format!("versions::cuda_{}_{}", version / 1000, version % 1000 / 10),
            move || {
                let text =
                    children::must_succeed(&Variant::new(version), "version", &["works".to_owned()], &[])?;
                let says_so = text.contains("12.0");
                if version < 12000 && !says_so {
                    Err(format!("what images need is not said: {text}").into())
                } else {
                    Ok(())
                }
            },
        ));
    }
    for symbol in selvedge::sys::DriverApi::SYMBOLS {
        if symbol.required {
            continue;
        }
        tests.push(Test::new(format!("versions::without_{}", symbol.name), move || {
            // With its older forms, which a lookup by version falls back on.
            let older = format!("{}_v2", symbol.name);
            let variant = Variant::new(12040).omit(&[symbol.spelling, symbol.name, &older]);
            let arguments = ["missing".to_owned(), symbol.name.to_owned()];
            children::must_succeed(&variant, "version", &arguments, &[]).map(drop)
        }));
    }
    for function in ["cuMemAlloc_v2", "cuLaunchKernel"] {
        tests.push(Test::new(format!("versions::refused_without_{function}"), move || {
            refused(&Variant::new(12040).omit(&[function]), &[function.trim_end_matches("_v2")])
        }));
    }
    tests.push(Test::new("versions::without_the_newer_lookup", || {
        let variant = Variant::new(12040).omit(&["cuGetProcAddress_v2"]);
        children::must_succeed(&variant, "version", &["works".to_owned()], &[]).map(drop)
    }));
    tests.push(Test::new("versions::without_any_lookup", || {
        let variant = Variant::new(12040).omit(&["cuGetProcAddress_v2", "cuGetProcAddress"]);
        children::must_succeed(&variant, "version", &["works".to_owned()], &[]).map(drop)
    }));
    tests.push(Test::new("versions::the_stub_is_named", || refused(&Variant::stub(), &["stub"])));
    tests.push(Test::new("versions::no_device", || {
        let variant = Variant::new(12040);
        let ended = children::spawn(&variant, "version", &["refused".to_owned()], &[("FAKE_INIT", "100")])?;
        if ended.success && ended.text.contains("no device") { Ok(()) } else { Err(ended.text.into()) }
    }));
    tests
}
