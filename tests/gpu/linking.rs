//! The driver's linker makes one module of several images, and says which symbol is missing or there twice.

use selvedge::Error;
use selvedge::driver::{Device, LaunchConfig, LinkInput, ModuleOptions};

use crate::support::{Outcome, assert_error, device_tests};

device_tests! {
    a_kernel_calls_a_function_of_another_image, an_undefined_symbol_is_named, a_symbol_defined_twice_is_named,
    nothing_to_link_is_an_error, one_image_links_too,
}

const MAIN: LinkInput<'static> =
    LinkInput { name: "main", image: include_bytes!("../data/gpu/link_main.ptx") };
const TRANSFORM: LinkInput<'static> =
    LinkInput { name: "transform", image: include_bytes!("../data/gpu/link_transform.ptx") };

fn a_kernel_calls_a_function_of_another_image() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    for inputs in [[MAIN, TRANSFORM], [TRANSFORM, MAIN]] {
        let module = device.link(&inputs, &ModuleOptions::default())?;
        let apply = module.function("apply")?;
        let values: Vec<f32> = (0..1000).map(|index| index as f32).collect();
        let input = stream.upload(&values)?;
        let mut out = stream.zeros::<f32>(1000)?;
        // SAFETY: apply(const float*, float*, unsigned) touches 1000 elements of each.
        unsafe { apply.launch(&stream, LaunchConfig::for_elements(1000), (&input, &mut out, 1000u32))? };
        let wanted: Vec<f32> = values.iter().map(|value| 3.0 * value + 1.0).collect();
        assert_eq!(stream.download(&out)?, wanted);
    }
    Ok(())
}

fn an_undefined_symbol_is_named() -> Outcome {
    let device = Device::new(0)?;
    let linked = device.link(&[MAIN], &ModuleOptions::default());
    assert_error!(linked, Error::ImageRejected { log, .. } if log.contains("transform"));
    Ok(())
}

fn a_symbol_defined_twice_is_named() -> Outcome {
    let device = Device::new(0)?;
    let twice = LinkInput { name: "again", ..TRANSFORM };
    let linked = device.link(&[MAIN, TRANSFORM, twice], &ModuleOptions::default());
    assert_error!(linked, Error::ImageRejected { log, .. } if log.contains("transform"));
    Ok(())
}

fn nothing_to_link_is_an_error() -> Outcome {
    let device = Device::new(0)?;
    assert_error!(device.link(&[], &ModuleOptions::default()), Error::InvalidArgument { .. });
    let text = LinkInput { name: "text", image: b"not an image" };
    assert_error!(device.link(&[MAIN, text], &ModuleOptions::default()), Error::NotAnImage { .. });
    Ok(())
}

fn one_image_links_too() -> Outcome {
    let device = Device::new(0)?;
    let basic = LinkInput { name: "basic", image: crate::support::basic_ptx() };
    let module = device.link(&[basic], &ModuleOptions::default())?;
    assert!(module.function_names()?.iter().any(|name| name == "add"));
    assert_eq!(module.function("add")?.parameters().map(<[_]>::len), Some(4), "read from the linked cubin");
    Ok(())
}
