//! The description of one launch of a foreign image, as `scripts/make_foreign_images.py` writes it, and its run.

use std::borrow::Cow;

use half::f16;
use selvedge::Error;
use selvedge::driver::{Argument, Device, DeviceBuffer, LaunchConfig, Stream, driver_isa};
use selvedge::launcher::{Definition, Kernel, LaunchOutcome, Launcher};
use selvedge::nvrtc::Cache;

/// An element type by name.
#[derive(Clone, Copy)]
struct Element {
    name: &'static str,
    size: usize,
    float: bool,
}

const ELEMENTS: [Element; 9] = [
    Element { name: "u8", size: 1, float: false },
    Element { name: "i16", size: 2, float: false },
    Element { name: "i32", size: 4, float: false },
    Element { name: "u32", size: 4, float: false },
    Element { name: "i64", size: 8, float: false },
    Element { name: "u64", size: 8, float: false },
    Element { name: "f16", size: 2, float: true },
    Element { name: "f32", size: 4, float: true },
    Element { name: "f64", size: 8, float: true },
];

impl Element {
    fn parse(name: &str) -> Result<Element, String> {
        ELEMENTS.into_iter().find(|element| element.name == name).ok_or_else(|| format!("no type '{name}'"))
    }

    /// The value's bytes.
    fn bytes(self, value: f64) -> Vec<u8> {
        match (self.float, self.size) {
            (true, 2) => f16::from_f64(value).to_ne_bytes().to_vec(),
            (true, 4) => (value as f32).to_ne_bytes().to_vec(),
            (true, _) => value.to_ne_bytes().to_vec(),
            // Little-endian on every host of CUDA, so the low bytes come first.
            (false, size) => (value as i64).to_ne_bytes()[..size].to_vec(),
        }
    }

    fn argument(self, value: f64) -> Argument<'static> {
        match (self.float, self.size) {
            (true, 2) => Argument::float(f16::from_f64(value)),
            (true, 4) => Argument::float(value as f32),
            (true, _) => Argument::float(value),
            (false, 1) => Argument::integer(value as i64 as u8),
            (false, 2) => Argument::integer(value as i64 as u16),
            (false, 4) => Argument::integer(value as i64 as u32),
            (false, _) => Argument::integer(value as i64),
        }
    }
}

/// Elements as bytes.
struct Data {
    element: Element,
    bytes: Vec<u8>,
}

impl Data {
    fn parse(words: &[&str]) -> Result<Data, String> {
        let [element, form, numbers @ ..] = words else { return Err("no data".to_owned()) };
        let element = Element::parse(element)?;
        let numbers = numbers.iter().map(|word| number(word)).collect::<Result<Vec<f64>, _>>()?;
        let values = match (*form, numbers.as_slice()) {
            ("values", _) => numbers,
            ("ramp", &[first, step, count]) => (0..count as usize).map(|i| first + step * i as f64).collect(),
            _ => return Err(format!("data '{form}' of {} numbers", numbers.len())),
        };
        Ok(Data { element, bytes: values.into_iter().flat_map(|value| element.bytes(value)).collect() })
    }

    fn count(&self) -> u64 {
        (self.bytes.len() / self.element.size) as u64
    }

    fn check(&self, found: &[u8], what: &str) -> Result<(), String> {
        let size = self.element.size;
        match self.bytes.chunks(size).zip(found.chunks(size)).position(|(wanted, found)| wanted != found) {
            _ if found.len() != self.bytes.len() => Err(format!("{what} has {} bytes", found.len())),
            None => Ok(()),
            Some(index) => {
                let at = index * size..(index + 1) * size;
                let (found, wanted) = (&found[at.clone()], &self.bytes[at]);
                Err(format!(
                    "element {index} of {what} is {found:02x?}, wanted {wanted:02x?} ({})",
                    self.element.name
                ))
            }
        }
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("'{word}' is no number"))
}

/// A parameter of a kernel.
enum Parameter {
    Buffer { data: Data, written: bool, view: bool },
    Scalar(Element, f64),
    Null,
}

/// The devices that an image runs on.
struct Image {
    file: String,
    target: Option<(i32, i32)>,
    rule: String,
    isa: (i32, i32),
}

impl Image {
    fn parse(words: &[&str]) -> Result<Image, String> {
        let (file, target, rule, isa) = match words {
            [file, "any", "isa", isa] => (file, None, "any", isa),
            [file, target, rule, "isa", isa] => {
                let target: i32 = number(target.trim_start_matches("sm_"))?;
                (file, Some((target / 10, target % 10)), *rule, isa)
            }
            _ => return Err(format!("an image of {words:?}")),
        };
        let (major, minor) = isa.split_once('.').ok_or("no ISA")?;
        Ok(Image {
            file: (*file).to_owned(),
            target,
            rule: rule.to_owned(),
            isa: (number(major)?, number(minor)?),
        })
    }

    fn fits(&self, capability: (i32, i32)) -> bool {
        let Some(target) = self.target else { return true };
        match self.rule.as_str() {
            "later" => capability >= target,
            "minors" => capability.0 == target.0 && capability.1 >= target.1,
            _ => capability == target,
        }
    }
}

/// One launch, the images that it is done with, and its result.
#[derive(Default)]
pub struct Description {
    images: Vec<Image>,
    kernel: String,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
    shared: u32,
    parameters: Vec<Parameter>,
    globals_before: Vec<(String, Data)>,
    globals_after: Vec<(String, Data)>,
}

impl Description {
    pub fn parse(text: &str) -> Result<Description, String> {
        let mut it = Description::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            it.line(&words)
                .map_err(|error| format!("{error} in '{}'", line.chars().take(60).collect::<String>()))?;
        }
        Ok(it)
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let buffer =
            |data: Data, access: &str, view| Parameter::Buffer { data, written: access == "write", view };
        match words {
            ["image", rest @ ..] => self.images.push(Image::parse(rest)?),
            ["kernel", name] => self.kernel = (*name).to_owned(),
            ["grid", x, y, z] => self.grid = (number(x)?, number(y)?, number(z)?),
            ["block", x, y, z] => self.block = (number(x)?, number(y)?, number(z)?),
            ["shared", bytes] => self.shared = number(bytes)?,
            [access @ ("read" | "write"), data @ ..] => {
                self.parameters.push(buffer(Data::parse(data)?, access, false));
            }
            ["view", access @ ("read" | "write"), data @ ..] => {
                self.parameters.push(buffer(Data::parse(data)?, access, true));
            }
            ["integer" | "float", element, value] => {
                self.parameters.push(Parameter::Scalar(Element::parse(element)?, number(value)?));
            }
            ["null"] => self.parameters.push(Parameter::Null),
            ["write_global", name, data @ ..] => {
                self.globals_before.push(((*name).to_owned(), Data::parse(data)?));
            }
            ["read_global", name, data @ ..] => {
                self.globals_after.push(((*name).to_owned(), Data::parse(data)?));
            }
            _ => return Err("no such line".to_owned()),
        }
        Ok(())
    }

    /// Launches each image that runs on the device, by itself and through a launcher, and checks the results; the others
    /// must be refused. Returns how many ran.
    pub fn run<'a>(
        &self,
        device: Device,
        read: impl Fn(&str) -> Result<Cow<'a, [u8]>, String>,
    ) -> Result<usize, String> {
        let mut ran = 0;
        for image in &self.images {
            let bytes = read(&image.file)?;
            let fits = image.fits(device.compute_capability());
            let known = image.isa <= driver_isa().map_err(|error| error.to_string())?;
            match device.load(&bytes) {
                Ok(module) if fits => {
                    let text = |error: Error| format!("{}: {error}", image.file);
                    let kernel = module.function(&self.kernel).map_err(text)?.into();
                    self.launch(&kernel).map_err(|error| format!("{}: {error}", image.file))?;
                    let launcher = Launcher::with_cache(&device, Cache::none()).map_err(text)?;
                    let definition = Definition::new("foreign").image(&*bytes).entry(&self.kernel);
                    let kernel = launcher.define(definition).map_err(text)?;
                    self.launch(&kernel).map_err(|error| format!("{} by name: {error}", image.file))?;
                    ran += 1;
                }
                Ok(_) => return Err(format!("{} was loaded, which is for {:?}", image.file, image.target)),
                Err(Error::UnsupportedImage { .. }) if !fits || !known => {}
                Err(error) => return Err(format!("{}: {error}", image.file)),
            }
        }
        Ok(ran)
    }

    fn launch(&self, kernel: &Kernel) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let module = kernel.function().map_err(text)?.module();
        let stream = module.device().stream().map_err(text)?;
        for (name, data) in &self.globals_before {
            module.global::<u8>(name).and_then(|global| global.write(&stream, &data.bytes)).map_err(text)?;
        }
        let mut buffers = self.buffers(&stream).map_err(text)?;
        {
            let mut left = buffers.iter_mut();
            let mut arguments = Vec::new();
            for parameter in &self.parameters {
                arguments.push(match parameter {
                    Parameter::Null => Argument::raw_address(0),
                    Parameter::Scalar(element, value) => element.argument(*value),
                    Parameter::Buffer { data, written, view } => {
                        let buffer = left.next().ok_or("a buffer for each parameter")?;
                        match (view, written) {
                            (true, _) => {
                                let size = data.element.size as u64;
                                Argument::by_value([buffer.address(), data.count(), data.count(), size])
                            }
                            (false, true) => Argument::write(buffer),
                            (false, false) => Argument::read(&*buffer),
                        }
                    }
                });
            }
            let config = LaunchConfig::new(self.grid, self.block).shared(self.shared);
            // SAFETY: the description is of this kernel: its buffers have the sizes that it uses, and views are of
            // buffers that live until the download below, on the same stream.
            let ran = unsafe { kernel.run(&stream, config, &arguments) }.map_err(text)?;
            if ran != LaunchOutcome::Device {
                return Err("it ran elsewhere".to_owned());
            }
        }
        let data = self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Buffer { data, .. } => Some(data),
            _ => None,
        });
        for (index, (data, buffer)) in data.zip(&buffers).enumerate() {
            data.check(&stream.download(buffer).map_err(text)?, &format!("buffer {index}"))?;
        }
        for (name, data) in &self.globals_after {
            let found = module.global::<u8>(name).and_then(|global| global.read(&stream)).map_err(text)?;
            data.check(&found, name)?;
        }
        Ok(())
    }

    /// Returns the buffers of a launch. Inputs have their values; outputs begin as something else.
    fn buffers(&self, stream: &Stream) -> selvedge::Result<Vec<DeviceBuffer<u8>>> {
        let mut buffers = Vec::new();
        for parameter in &self.parameters {
            if let Parameter::Buffer { data, written, .. } = parameter {
                let poison = vec![0xAB; data.bytes.len()];
                buffers.push(stream.upload(if *written { &poison } else { &data.bytes })?);
            }
        }
        Ok(buffers)
    }
}
