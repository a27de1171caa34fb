//! From the texts of `--arg` and `--out` to what is launched.
//!
//! A plan is complete before a device is touched: texts are parsed, files opened and their headers and lengths checked,
//! names resolved. Whatever can be refused without a device is refused here.

use std::path::{Path, PathBuf};

use selvedge::Error;
use selvedge::io::npy::NpyFile;
use selvedge::types::DType;

use crate::failure::Failure;
use crate::files;
use crate::scalar::{self, Scalar};

/// An argument as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// `[NAME=]FILE.npy[:DTYPE]`
    File { name: Option<String>, path: PathBuf, dtype: Option<DType> },
    /// `NAME:DTYPE[SHAPE]`
    Buffer { name: String, dtype: DType, shape: Vec<usize> },
    /// `VALUE:DTYPE`
    Scalar { text: String, dtype: DType, value: Scalar },
}

const FORMS: &str = "FILE.npy, NAME=FILE.npy, NAME:DTYPE[SHAPE] or VALUE:DTYPE";

impl Spec {
    /// Reads one `--arg`; the error says what was found and wanted.
    pub fn parse(text: &str) -> Result<Spec, String> {
        if let Some((file, dtype)) = split_file(text) {
            let dtype = dtype.map(parse_dtype).transpose()?;
            // A path may contain '=' itself, unless what stands before it is a name: then ./ goes before it.
            let (name, path) = match file.split_once('=') {
                Some((name, path)) if is_name(name) => (Some(name.to_owned()), path),
                _ => (None, file),
            };
            return Ok(Spec::File { name, path: path.into(), dtype });
        }
        let Some((left, right)) = text.rsplit_once(':') else {
            return Err(format!("found '{text}'; wanted {FORMS}"));
        };
        if let Some((dtype, shape)) = right.split_once('[') {
            if !is_name(left) {
                return Err(format!(
                    "found the name '{left}'; wanted letters, digits and _, such as out:f32[1024]"
                ));
            }
            let shape = shape.strip_suffix(']').and_then(parse_shape);
            let shape = shape.ok_or_else(|| {
                format!(
                    "found the shape '{}'; wanted lengths such as [1024] or [32,32]",
                    &right[dtype.len()..]
                )
            })?;
            return Ok(Spec::Buffer { name: left.to_owned(), dtype: parse_dtype(dtype)?, shape });
        }
        let dtype = parse_dtype(right)?;
        let value = scalar::parse(left, dtype).map_err(|message| {
            if is_name(left) {
                format!("{message} (an output of zeros has a shape: {left}:{dtype}[LENGTH])")
            } else {
                message
            }
        })?;
        Ok(Spec::Scalar { text: left.to_owned(), dtype, value })
    }
}

/// An `--out` as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSpec {
    pub name: String,
    pub path: PathBuf,
}

impl OutputSpec {
    /// Reads one `--out`.
    pub fn parse(text: &str) -> Result<OutputSpec, String> {
        match text.split_once('=') {
            Some((name, path)) if is_name(name) && !path.is_empty() => {
                Ok(OutputSpec { name: name.to_owned(), path: path.into() })
            }
            _ => Err(format!("found '{text}'; wanted NAME=FILE.npy with the name of an argument")),
        }
    }
}

/// An argument's source, ready to be uploaded.
#[derive(Debug)]
pub enum Source {
    File(NpyFile),
    Zeros,
    Scalar { text: String, value: Scalar },
}

/// An argument that can be launched.
#[derive(Debug)]
pub struct Argument {
    /// Its name, or what it was written as.
    pub label: String,
    pub source: Source,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// `true` if the kernel may write to it.
    pub written: bool,
    /// The file that it is saved to.
    pub saved_to: Option<PathBuf>,
}

impl Argument {
    /// Bytes on the device; 0 for a scalar.
    pub fn bytes(&self) -> u64 {
        match self.source {
            Source::Scalar { .. } => 0,
            _ => self.shape.iter().product::<usize>() as u64 * self.dtype.size() as u64,
        }
    }
}

/// Opens the files, resolves the names and checks both.
pub fn plan(specs: &[Spec], outputs: &[OutputSpec]) -> Result<Vec<Argument>, Failure> {
    let mut arguments: Vec<(Option<String>, Argument)> = Vec::new();
    for spec in specs {
        let (name, argument) = argument(spec)?;
        if let Some(name) = &name
            && arguments.iter().any(|(other, _)| other.as_ref() == Some(name))
        {
            return Err(invalid(format!("two arguments with the name '{name}'"), "a name for each"));
        }
        arguments.push((name, argument));
    }
    for (number, output) in outputs.iter().enumerate() {
        files::check_writable(&output.path)?;
        if outputs[..number].iter().any(|other| other.path == output.path) {
            return Err(invalid(
                format!("two outputs to {}", output.path.display()),
                "a file for each --out",
            ));
        }
        let Some((_, argument)) =
            arguments.iter_mut().find(|(name, _)| name.as_deref() == Some(&output.name))
        else {
            let names: Vec<&str> = arguments.iter().filter_map(|(name, _)| name.as_deref()).collect();
            let wanted = if names.is_empty() {
                "an argument with a name, NAME:DTYPE[SHAPE] or NAME=FILE.npy".to_owned()
            } else {
                format!("one of {}", names.join(", "))
            };
            return Err(invalid(format!("--out {}, but no argument has that name", output.name), wanted));
        };
        if argument.saved_to.is_some() {
            return Err(invalid(format!("--out {} twice", output.name), "one file an argument"));
        }
        argument.written = true;
        argument.saved_to = Some(output.path.clone());
    }
    Ok(arguments.into_iter().map(|(_, argument)| argument).collect())
}

fn argument(spec: &Spec) -> Result<(Option<String>, Argument), Failure> {
    Ok(match spec {
        Spec::File { name, path, dtype } => {
            let file = NpyFile::open(path)?;
            let file = match dtype {
                Some(dtype) => file.with_dtype(*dtype)?,
                None => file,
            };
            let argument = Argument {
                label: name.clone().unwrap_or_else(|| path.display().to_string()),
                dtype: file.dtype()?,
                shape: file.shape().to_vec(),
                source: Source::File(file),
                written: false,
                saved_to: None,
            };
            (name.clone(), argument)
        }
        Spec::Buffer { name, dtype, shape } => {
            let bytes = shape.iter().try_fold(dtype.size(), |bytes, length| bytes.checked_mul(*length));
            if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
                return Err(invalid(format!("{name}:{dtype}{shape:?}"), "a shape that fits an address"));
            }
            let argument = Argument {
                label: name.clone(),
                source: Source::Zeros,
                dtype: *dtype,
                shape: shape.clone(),
                written: true,
                saved_to: None,
            };
            (Some(name.clone()), argument)
        }
        Spec::Scalar { text, dtype, value } => {
            let argument = Argument {
                label: text.clone(),
                source: Source::Scalar { text: text.clone(), value: *value },
                dtype: *dtype,
                shape: Vec::new(),
                written: false,
                saved_to: None,
            };
            (None, argument)
        }
    })
}

pub fn invalid(found: impl Into<String>, wanted: impl Into<String>) -> Failure {
    Error::InvalidArgument { operation: "arguments", found: found.into(), wanted: wanted.into() }.into()
}

/// `x.npy` and `x.npy:f32`; nothing where the text names no such file.
fn split_file(text: &str) -> Option<(&str, Option<&str>)> {
    let is_file = |path: &str| {
        Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
    };
    if is_file(text) {
        return Some((text, None));
    }
    text.rsplit_once(':').filter(|(path, _)| is_file(path)).map(|(path, dtype)| (path, Some(dtype)))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn parse_dtype(text: &str) -> Result<DType, String> {
    text.parse().map_err(|error: Error| match error {
        Error::InvalidArgument { found, wanted, .. } => format!("found the dtype {found}; wanted {wanted}"),
        error => error.to_string(),
    })
}

/// `1024` or `32,32`; empty for a single element.
fn parse_shape(text: &str) -> Option<Vec<usize>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|length| length.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: Option<&str>, path: &str, dtype: Option<DType>) -> Spec {
        Spec::File { name: name.map(str::to_owned), path: path.into(), dtype }
    }

    #[test]
    fn files_by_their_ending() {
        assert_eq!(Spec::parse("in.npy"), Ok(file(None, "in.npy", None)));
        assert_eq!(Spec::parse("in.npy:float32"), Ok(file(None, "in.npy", Some(DType::F32))));
        assert_eq!(Spec::parse("x=a/in.npy:bf16"), Ok(file(Some("x"), "a/in.npy", Some(DType::BF16))));
        assert_eq!(Spec::parse("./x=in.npy"), Ok(file(None, "./x=in.npy", None)));
        assert_eq!(Spec::parse("C:\\data\\in.NPY"), Ok(file(None, "C:\\data\\in.NPY", None)));
    }

    #[test]
    fn outputs_have_a_shape() {
        let buffer = |shape: &[usize]| {
            Ok(Spec::Buffer { name: "out".to_owned(), dtype: DType::F32, shape: shape.to_vec() })
        };
        assert_eq!(Spec::parse("out:f32[1024]"), buffer(&[1024]));
        assert_eq!(Spec::parse("out:f32[32, 32]"), buffer(&[32, 32]));
        assert_eq!(Spec::parse("out:f32[]"), buffer(&[]));
        for shape in ["[", "[1", "[1,]", "[-1]", "[1x2]", "[1]]"] {
            let message = Spec::parse(&format!("out:f32{shape}")).unwrap_err();
            assert!(message.contains(shape) && message.contains("[1024]"), "{message}");
        }
        assert!(Spec::parse("2out:f32[1]").unwrap_err().contains("'2out'"));
    }

    #[test]
    fn scalars_have_none() {
        let three = Spec::Scalar { text: "3".to_owned(), dtype: DType::I32, value: Scalar::I32(3) };
        assert_eq!(Spec::parse("3:i32"), Ok(three));
        let message = Spec::parse("out:f32").unwrap_err();
        assert!(message.contains("'out'") && message.contains("out:f32[LENGTH]"), "{message}");
        assert!(Spec::parse("3:i33").unwrap_err().contains("'i33'"));
        assert!(Spec::parse("3").unwrap_err().contains("VALUE:DTYPE"));
        assert!(Spec::parse("in.txt").unwrap_err().contains("FILE.npy"));
    }

    #[track_caller]
    fn refused(arguments: &[&str], outputs: &[&str], parts: &[&str]) {
        let specs: Vec<Spec> = arguments.iter().map(|text| Spec::parse(text).unwrap()).collect();
        let outputs: Vec<OutputSpec> = outputs.iter().map(|text| OutputSpec::parse(text).unwrap()).collect();
        let failure = plan(&specs, &outputs).unwrap_err();
        assert_eq!(failure.code, crate::failure::BAD_INPUT);
        for part in parts {
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }

    #[test]
    fn names_are_resolved_before_anything_runs() {
        refused(&["a:f32[1]", "a:f32[2]"], &[], &["two arguments", "'a'"]);
        refused(&["a:f32[1]", "b:f32[1]", "1:i32"], &["c=r.npy"], &["--out c", "one of a, b"]);
        refused(&["1:i32"], &["c=r.npy"], &["an argument with a name"]);
        refused(&["a:f32[1]", "b:f32[1]"], &["a=r.npy", "b=r.npy"], &["two outputs to r.npy"]);
        refused(&["a:f32[1]"], &["a=r.npy", "a=s.npy"], &["--out a twice"]);
        refused(&["a:f32[1]"], &["a=no-such-folder/r.npy"], &["folder does not exist"]);
        refused(&["a:f32[9223372036854775807,4]"], &[], &["fits an address"]);
        refused(&["no-such-file.npy"], &[], &["no such file"]);
        assert!(OutputSpec::parse("r.npy").is_err_and(|message| message.contains("NAME=FILE.npy")));
    }

    #[test]
    fn a_plan_says_what_is_written() {
        let specs = ["out:f32[4,2]", "3:i32", "rest:u8[]"].map(|text| Spec::parse(text).unwrap());
        let outputs = [OutputSpec::parse("out=result.npy").unwrap()];
        let arguments = plan(&specs, &outputs).unwrap();
        assert_eq!(arguments.iter().map(Argument::bytes).collect::<Vec<_>>(), [32, 0, 1]);
        assert_eq!(
            arguments.iter().map(|argument| argument.written).collect::<Vec<_>>(),
            [true, false, true]
        );
        assert_eq!(arguments[0].saved_to.as_deref(), Some(Path::new("result.npy")));
    }
}
