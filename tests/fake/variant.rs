//! Building the fake driver, at test time, in as many variants as tests need: a driver of another version, one without some
//! symbols, the toolkit's stub.
//!
//! Variants differ in one file and in the symbols that the linker exports, so another one takes little time. Built
//! libraries are cached under the target folder by a fingerprint of sources and variant.

#![allow(dead_code, reason = "each test module uses its own part")]

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common;

/// The folder of the fake's sources.
const SOURCES: &str = "csrc/fake_driver";
/// The list of exported functions, one `X(base, version, spelling)` a line.
const FUNCTIONS: &str = include_str!("../../csrc/fake_driver/functions.h");
/// The one file that the variants compile differently.
const VARIANT_SOURCE: &str = "entry.c";
/// The program that checks the fake from C; no part of the library.
const SELF_TEST: &str = "self_test.c";

/// One build of the fake.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct Variant {
    /// The CUDA version that it reports, as 12040. Functions newer than it are not exported.
    pub version: i32,
    /// Functions left out besides, by exported name.
    pub omit: Vec<String>,
    /// The toolkit's stub: every function answers 34.
    pub stub: bool,
    /// Anything; another label is another file and so another instance in one process.
    pub label: String,
}

impl Variant {
    /// A driver of this version with all of its functions.
    pub fn new(version: i32) -> Self {
        Self { version, omit: Vec::new(), stub: false, label: String::new() }
    }

    /// The same without these functions.
    pub fn omit(mut self, functions: &[&str]) -> Self {
        self.omit.extend(functions.iter().map(|name| (*name).to_owned()));
        self
    }

    /// The same as another instance.
    pub fn label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// The toolkit's stub library.
    pub fn stub() -> Self {
        Self { stub: true, ..Self::new(12040) }
    }
}

/// An exported function: base name, version of the ABI, exported spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    pub base: &'static str,
    pub version: i32,
    pub spelling: &'static str,
}

/// Every function that the fake knows.
pub fn functions() -> Vec<Function> {
    let line = |line: &'static str| {
        let mut parts = line.trim().strip_prefix("X(")?.split(')').next()?.split(", ");
        let (base, version, spelling) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Function { base, version: version.parse().ok()?, spelling })
    };
    FUNCTIONS.lines().filter_map(line).collect()
}

/// The exported names that this variant leaves out.
fn left_out(variant: &Variant) -> Vec<&str> {
    let newer = functions().into_iter().filter(|f| f.version > variant.version).map(|f| f.spelling);
    newer.chain(variant.omit.iter().map(String::as_str)).collect()
}

/// The C compiler that the `cc` crate finds for this host.
pub fn compiler() -> Command {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    cc::Build::new()
        .target(&target)
        .host(&target)
        .opt_level(2)
        .debug(false)
        .cargo_metadata(false)
        .get_compiler()
        .to_command()
}

/// The C files of the library, sorted.
pub fn sources() -> io::Result<Vec<PathBuf>> {
    let folder = common::repository().join(SOURCES);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "c") && !path.ends_with(SELF_TEST) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The C program that checks the fake by itself.
pub fn self_test() -> PathBuf {
    common::repository().join(SOURCES).join(SELF_TEST)
}

/// A folder for build products, made when missing.
pub fn scratch(name: &str) -> io::Result<PathBuf> {
    let folder = common::scratch().join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Returns a number for the sources in a folder of the repository and for what is made of them. It does not depend on
/// the repository's path, so that a bundle finds what was built elsewhere.
pub fn fingerprint(sources: &str, made: impl Hash) -> io::Result<u64> {
    let folder = common::repository().join(sources);
    let mut hasher = DefaultHasher::new();
    made.hash(&mut hasher);
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    for file in files {
        file.file_name().hash(&mut hasher);
        fs::read(file.path())?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Runs a compiler command; its messages become the error.
pub fn compile(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let mut words = vec![command.get_program()];
    words.extend(command.get_args());
    Err(io::Error::other(format!("{words:?}\n{}", String::from_utf8_lossy(&output.stderr))))
}

/// The flags that every file of the library is compiled with.
const FLAGS: [&str; 7] =
    ["-std=gnu11", "-O2", "-fPIC", "-pthread", "-Wall", "-Wextra", "-fvisibility=hidden"];

/// Makes `target` by a command that writes to another place first, unless it is there: several processes may try.
pub fn make(target: &Path, run: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    if target.exists() {
        return Ok(());
    }
    let unfinished =
        target.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    run(&unfinished)?;
    fs::rename(&unfinished, target)
}

/// Everything but the file that differs between variants, in one object.
fn common_object() -> io::Result<PathBuf> {
    let object = scratch(&format!("fake-{:016x}", fingerprint(SOURCES, None::<&Variant>)?))?.join("common.o");
    make(&object, |unfinished| {
        let files = sources()?.into_iter().filter(|path| !path.ends_with(VARIANT_SOURCE));
        compile(compiler().args(FLAGS).args(["-r", "-nostdlib"]).args(files).arg("-o").arg(unfinished))
    })?;
    Ok(object)
}

/// Compiles the variant, unless the same one is there already, and returns the path of its `libcuda.so.1`.
pub fn build(variant: &Variant) -> io::Result<PathBuf> {
    let folder = scratch(&format!("fake-{:016x}", fingerprint(SOURCES, Some(variant))?))?;
    let library = folder.join("libcuda.so.1");
    if library.exists() {
        return Ok(library);
    }
    let common = common_object()?;
    let omit = left_out(variant);
    let hidden: String = omit.iter().map(|name| format!(" {name};")).collect();
    let local = if hidden.is_empty() { String::new() } else { format!(" local:{hidden}") };
    let script = folder.join("exports");
    make(&script, |unfinished| fs::write(unfinished, format!("{{ global: cu*; fake_*;{local} }};\n")))?;
    make(&library, |unfinished| {
        let mut command = compiler();
        command
            .args(FLAGS)
            // It is never unloaded: its thread for host functions would be left without code.
            .args(["-shared", "-Wl,-Bsymbolic", "-Wl,-soname,libcuda.so.1", "-Wl,-z,nodelete"])
            .arg(format!("-Wl,--version-script={}", script.display()))
            .arg(format!("-DFAKE_DEFAULT_VERSION={}", variant.version))
            .arg(format!("-DFAKE_STUB={}", i32::from(variant.stub)))
            .arg(format!("-DFAKE_OMIT=\" {} \"", omit.join(" ")))
            .arg(common::repository().join(SOURCES).join(VARIANT_SOURCE))
            .arg(common)
            .arg("-o")
            .arg(unfinished);
        compile(&mut command)
    })?;
    Ok(library)
}
