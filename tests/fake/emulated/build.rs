//! Families of kernels as libraries of the host: their own sources, compiled as C++ on the machine of `csrc/emulation`.
//!
//! A header of that folder stands in for the one of the same name in `csrc/kernels`. The names of a
//! family's kernels are read from its preprocessed source. Libraries are cached in the target folder by a fingerprint of the sources.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common;
use crate::variant::{compile, make, scratch};

/// A family of kernels: one source, compiled with one set of macros.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Family {
    /// In `csrc/kernels`.
    pub source: &'static str,
    pub defines: &'static [&'static str],
    /// Blocks of a cluster where the launch does not say.
    pub cluster: u32,
    /// Clusters that run beside each other: 1 where shared memory is a variable of the source, which all blocks then share.
    pub resident: u32,
    /// True if clusters start in any order: kernels that rely on an ascending one have `false`.
    pub any_order: bool,
    /// An injected fault: a text of the kernels' sources and its replacement.
    pub fault: Option<(&'static str, &'static str)>,
}

/// The text before and after a kernel's source. Dynamic shared memory is each block's own.
const BEFORE: &str = "#include \"machine.hpp\"\n";
const SHARED: [&str; 2] =
    ["extern __shared__ unsigned char shared_memory[];", "#define shared_memory (emulated::shared_bytes())"];
const BEHIND: &str = r#"
struct Launch {
    const char* kernel;
    unsigned grid[3], block[3], cluster, shared, programmatic;
    const unsigned char* values;
    const emulated::Memory* memory;
    size_t memories;
};
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT void emulated_seed(unsigned long long seed) { emulated::seed() = seed | 1; }
EXPORT int emulated_run(const Launch* launch) {
    for (const emulated::Kernel& kernel : kernels) {
        if (strcmp(kernel.name, launch->kernel)) continue;
        const unsigned *grid = launch->grid, *block = launch->block;
        emulated::run(kernel.name, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
                      launch->cluster ? launch->cluster : CLUSTER, RESIDENT, ANY_ORDER, launch->shared, launch->programmatic != 0,
                      launch->memory, launch->memories, kernel.entry(launch->values));
        return 1;
    }
    return 0;
}
"#;

/// `__global__` on the emulated machine.
const KERNEL: &str = "visibility(\"protected\")";

/// The C++ compiler.
fn compiler() -> Command {
    Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()))
}

/// All headers and the source in one folder, those of the emulation in the place of the kernels' own.
fn gather(family: &Family, folder: &Path) -> io::Result<()> {
    let source = fs::read_to_string(common::repository().join("csrc/kernels").join(family.source))?;
    // A fault is in the family's source, or else in a header.
    let in_source = family.fault.is_some_and(|(right, _)| source.contains(right));
    let mut injected = false;
    for place in ["csrc/kernels", "csrc/emulation"] {
        for entry in fs::read_dir(common::repository().join(place))? {
            let path = entry?.path();
            let is_header =
                path.extension().is_some_and(|extension| extension == "cuh" || extension == "hpp");
            let (Some(name), true) = (path.file_name(), is_header || path.ends_with(family.source)) else {
                continue;
            };
            let mut text = fs::read_to_string(&path)?.replace(SHARED[0], SHARED[1]);
            if let Some((right, wrong)) = family.fault.filter(|_| is_header != in_source) {
                injected |= text.contains(right);
                text = text.replace(right, wrong);
            }
            fs::write(folder.join(name), text)?;
        }
    }
    match family.fault {
        Some((right, _)) if !injected => {
            Err(io::Error::other(format!("'{right}' is not in {} or a header", family.source)))
        }
        _ => Ok(()),
    }
}

/// The names of the kernels in a preprocessed source.
fn names(preprocessed: &str) -> Vec<&str> {
    let kernels = preprocessed.split(KERNEL).skip(1).filter_map(|text| text.split_once("void"));
    kernels.filter_map(|(_, head)| head.split('(').next()).map(str::trim).collect()
}

/// Compiles the family, unless the same one is there already, and returns its library.
pub fn build(family: &Family) -> io::Result<PathBuf> {
    let unfinished = scratch(&format!("emulated-{}-{:?}", std::process::id(), std::thread::current().id()))?;
    gather(family, &unfinished)?;
    let mut hasher = DefaultHasher::new();
    // A faulty library is made for one small product, which takes less time than to optimize it.
    let level = if family.fault.is_some() { "-O0" } else { "-O2" };
    (family, level, BEFORE, SHARED, BEHIND).hash(&mut hasher);
    let mut files: Vec<_> = fs::read_dir(&unfinished)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in &files {
        fs::read(file.path())?.hash(&mut hasher);
    }
    let library = scratch("emulated")?.join(format!("{:016x}.so", hasher.finish()));
    let made = make(&library, |target| {
        let main = unfinished.join("main.cpp");
        let mut text = format!("{BEFORE}#include \"{}\"\n", family.source);
        fs::write(&main, &text)?;
        let flags = |command: &mut Command| {
            command.args([level, "-std=c++17", "-w", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off"]);
            // Each library has a machine of its own, also in a process that loads several.
            command.args(["-fvisibility=hidden", "-fno-gnu-unique"]);
            command.args(family.defines);
        };
        let mut command = compiler();
        flags(&mut command);
        let output = command.args(["-E", "-P"]).arg(&main).output()?;
        let preprocessed = String::from_utf8_lossy(&output.stdout);
        let names = names(&preprocessed);
        if !output.status.success() || names.is_empty() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let mut list = String::new();
        for name in names {
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "static std::function<void()> run_{name}(const unsigned char* values) \
                 {{ return emulated::unpacked({name}, values); }}"
            );
            let _ = writeln!(list, "    {{\"{name}\", run_{name}}},");
        }
        let _ = writeln!(text, "static const emulated::Kernel kernels[] = {{\n{list}}};");
        let Family { cluster, resident, any_order, .. } = *family;
        let order = u8::from(any_order);
        let _ = writeln!(text, "enum {{ CLUSTER = {cluster}, RESIDENT = {resident}, ANY_ORDER = {order} }};");
        fs::write(&main, text + BEHIND)?;
        let mut command = compiler();
        flags(&mut command);
        compile(command.args(["-shared", "-o"]).arg(target).arg(&main))
    });
    fs::remove_dir_all(&unfinished)?;
    made.map(|()| library)
}
