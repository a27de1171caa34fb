//! The kernel of a run: found in its image, held against its arguments, and lowered where that is wanted and needed.

use selvedge::driver::image::{self, ArgumentKind, ImageInfo};
use selvedge::driver::{Device, Function, driver_isa, driver_version};
use selvedge::nvrtc::{Compiled, Target};
use selvedge::{Error, Result};
use serde_json::{Value, json};

use super::lower::{self, Lowered};
use crate::failure::{BAD_INPUT, Failure};
use crate::options::RunOptions;
use crate::output::Progress;
use crate::plan::{self, Argument};
use crate::source::{self, Source};

/// An image with the kernel that is run.
#[derive(Debug)]
pub struct Prepared {
    image: Vec<u8>,
    info: ImageInfo,
    /// The kernel's name in the image.
    entry: String,
    /// For what and whence, where it was compiled.
    pub compiled: Option<Compilation>,
    pub lowered: Option<Lowered>,
}

/// How an image came from a source.
#[derive(Debug)]
pub struct Compilation {
    pub target: Target,
    pub from_cache: bool,
    pub log: String,
}

impl Prepared {
    /// Checks all that an image tells.
    pub fn from_image(image: Vec<u8>, wanted: &str, arguments: &[Argument]) -> Result<Prepared, Failure> {
        let info = ImageInfo::parse(&image)?;
        Prepared::new(image, info, wanted, arguments)
    }

    fn new(
        image: Vec<u8>,
        info: ImageInfo,
        wanted: &str,
        arguments: &[Argument],
    ) -> Result<Prepared, Failure> {
        let entry = find(&info, wanted)?;
        check_arguments(&info, &entry, arguments)?;
        Ok(Prepared { image, info, entry, compiled: None, lowered: None })
    }

    /// Compiles, or takes from the cache, and checks the same.
    pub fn from_source(
        source: &Source,
        target: Target,
        options: &RunOptions,
        arguments: &[Argument],
    ) -> Result<Prepared, Failure> {
        let expression = is_expression(&options.entry).then_some(options.entry.as_str());
        let compiled = source.compile(target, &source::cache(options.target.no_cache), expression)?;
        source::show_warnings(&compiled);
        let name = expression.and_then(|expression| compiled.lowered_name(expression));
        let name = name.unwrap_or(&options.entry);
        let mut info = ImageInfo::parse(compiled.image())?;
        info.merge_parameters(&ImageInfo::parse(compiled.ptx())?);
        let prepared = Prepared::new(compiled.image().to_vec(), info, name, arguments)?;
        Ok(Prepared { compiled: Some(Compilation::of(&compiled)), ..prepared })
    }

    /// Loads it, which assembles PTX and can take seconds.
    pub fn load(&mut self, device: Device, may_lower: bool) -> Result<Function, Failure> {
        let refused = image::check(&self.info, device.compute_capability(), driver_number()?).err();
        if let Some(error) = refused {
            let Some((image, lowered)) = lower::lower(&self.image, &self.info, driver_isa()?) else {
                return Err(error.into());
            };
            if !may_lower {
                let hint = format!("--lower-ptx-version tries it as {}", lower::named(lowered.to));
                return Err(Failure { code: BAD_INPUT, message: format!("{error} ({hint})") });
            }
            (self.image, self.lowered) = (image, Some(lowered));
        }
        let _progress = Progress::spinner("loading the image");
        let loaded = device.load(&self.image).and_then(|module| module.function(&self.entry));
        loaded.map_err(|error| match self.lowered {
            None => error.into(),
            Some(Lowered { from, to }) => {
                let tried = format!("{}, tried as {}", lower::named(from), lower::named(to));
                let failure = Failure::from(error);
                Failure { message: format!("{tried}: {}", failure.message), ..failure }
            }
        })
    }

    /// Rows of the report's first table.
    pub fn rows(&self, shown: &str) -> Vec<[String; 2]> {
        let mut rows = Vec::new();
        if self.entry != shown {
            rows.push(["kernel".to_owned(), self.entry.clone()]);
        }
        if let Some(compiled) = &self.compiled {
            let whence = if compiled.from_cache { "from the cache" } else { "compiled now" };
            rows.push(["compiled".to_owned(), format!("for {}, {whence}", compiled.target)]);
        }
        if let Some(Lowered { from, to }) = self.lowered {
            let text =
                format!("from {} to {}, which the driver assembled", lower::named(from), lower::named(to));
            rows.push(["lowered".to_owned(), text]);
        }
        rows
    }

    pub fn json(&self) -> Value {
        let isa = |(major, minor): lower::Isa| format!("{major}.{minor}");
        json!({
            "name": self.entry,
            "image": self.info.kind.to_string(),
            "compiled": self.compiled.as_ref().map(Compilation::json),
            "lowered": self.lowered.map(|lowered| json!({ "from": isa(lowered.from), "to": isa(lowered.to) })),
        })
    }
}

impl Compilation {
    pub fn of(compiled: &Compiled) -> Compilation {
        let log = compiled.log().to_owned();
        Compilation { target: compiled.target(), from_cache: compiled.is_from_cache(), log }
    }

    pub fn json(&self) -> Value {
        json!({ "target": self.target.to_string(), "from_cache": self.from_cache, "log": self.log })
    }
}

/// The driver's CUDA version as [`image::check`] takes it, 12040 for 12.4.
fn driver_number() -> Result<i32> {
    driver_version().map(|(major, minor)| major * 1000 + minor * 10)
}

/// Returns `true` for a name that the compiler must read: an instance of a template, or a name in a namespace.
fn is_expression(entry: &str) -> bool {
    entry.contains(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '$')
}

/// The kernel's name in the image: the one asked for, or the only C++ kernel that is called so.
fn find(info: &ImageInfo, wanted: &str) -> Result<String> {
    // Only the driver can look into a compressed entry.
    if info.kernel(wanted).is_some() || !info.complete {
        return Ok(wanted.to_owned());
    }
    let mangled = format!("_Z{}{wanted}", wanted.len());
    let named: Vec<&str> = info.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let called: Vec<&str> = named.iter().filter(|name| name.starts_with(&mangled)).copied().collect();
    match called[..] {
        [only] => Ok(only.to_owned()),
        [] => Err(Error::UnknownName {
            kind: "kernel",
            wanted: wanted.to_owned(),
            found: named.iter().map(|name| (*name).to_owned()).collect(),
        }),
        _ => Err(Error::InvalidArgument {
            operation: "--entry",
            found: format!("several kernels that are called '{wanted}'"),
            wanted: format!("one of {}", called.join(", ")),
        }),
    }
}

/// Holds the arguments against what the image tells of the kernel's parameters. A launch does so again.
fn check_arguments(info: &ImageInfo, entry: &str, arguments: &[Argument]) -> Result<()> {
    let Some(parameters) = info.kernel(entry).and_then(|kernel| kernel.parameters.as_ref()) else {
        return Ok(());
    };
    if parameters.len() != arguments.len() {
        let (wanted, found) = (parameters.len(), arguments.len());
        return Err(Error::ArgumentCount { kernel: entry.to_owned(), wanted, found });
    }
    for (index, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        let (kind, size) = match &argument.source {
            plan::Source::Scalar { value, .. } => (value.kind(), argument.dtype.size()),
            _ => (ArgumentKind::Address, size_of::<u64>()),
        };
        parameter.check(entry, index, kind, size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(entries: &[&str], wanted: &str) -> Result<String> {
        let entry = |name: &&str| format!(".visible .entry {name}() {{ ret; }}\n");
        let body: String = entries.iter().map(entry).collect();
        let text = format!(".version 8.0\n.target sm_60\n.address_size 64\n{body}");
        find(&ImageInfo::parse(text.as_bytes()).unwrap(), wanted)
    }

    #[test]
    fn kernels_are_found_by_what_they_are_called() {
        assert_eq!(found(&["scale", "_Z5scalePf"], "scale").unwrap(), "scale");
        assert_eq!(found(&["_Z5scalePf", "_Z6scalesPf"], "scale").unwrap(), "_Z5scalePf");
        assert_eq!(found(&["_Z5scaleIfEvPT_"], "scale").unwrap(), "_Z5scaleIfEvPT_");
        let error = found(&["_Z5scalePf", "_Z5scalePd"], "scale").unwrap_err().to_string();
        assert!(error.contains("_Z5scalePf, _Z5scalePd"), "{error}");
        let error = found(&["_Z5scalePf"], "cale").unwrap_err();
        assert!(matches!(error, Error::UnknownName { .. }), "{error}");
    }

    #[test]
    fn expressions_are_what_no_name_is() {
        for name in ["scale", "_Z5scalePf", "a$b", ""] {
            assert!(!is_expression(name), "{name}");
        }
        for name in ["scale<float>", "math::scale", "&scale", "scale<1, 2>"] {
            assert!(is_expression(name), "{name}");
        }
    }
}
