//! Libraries made for the loader's tests: a driver that computes nothing and optional libraries that know their version.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common;
use selvedge::sys::{DriverApi, NvrtcApi};

/// A folder that is removed when the test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("selvedge-sys-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        // The loader reports the paths as the system maps them.
        Folder(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compiles C to a shared library with the given soname.
pub fn library(path: &Path, source: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let soname = path.file_name().unwrap().to_string_lossy();
    let mut hasher = DefaultHasher::new();
    (&soname, source).hash(&mut hasher);
    let folder = common::scratch().join("made");
    let made = folder.join(format!("{:016x}.so", hasher.finish()));
    if !made.exists() {
        compile(&folder, &made, &soname, source);
    }
    fs::copy(made, path).unwrap();
}

/// Compiles it to a file beside `made` and renames that, because other tests may do the same.
fn compile(folder: &Path, made: &Path, soname: &str, source: &str) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    fs::create_dir_all(folder).unwrap();
    let unfinished = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let file = folder.join(&unfinished).with_extension("c");
    let unfinished = folder.join(unfinished);
    fs::write(&file, source).unwrap();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new()
        .cargo_metadata(false)
        .target(&target)
        .host(&target)
        .opt_level(0)
        .out_dir(folder)
        .get_compiler();
    let mut command: Command = compiler.to_command();
    command
        .arg("-shared")
        .arg("-fPIC")
        .arg(format!("-Wl,-soname,{soname}"))
        .arg("-o")
        .arg(&unfinished)
        .arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_file(&file).unwrap();
    fs::rename(&unfinished, made).unwrap();
}

/// How a made driver lets its functions be found.
#[derive(Clone, Copy, PartialEq)]
pub enum Lookup {
    /// `cuGetProcAddress_v2` at exactly the ABI version of the table; nothing else is exported.
    WithStatus,
    /// `cuGetProcAddress`, as from 11.3 to 11.8.
    Plain,
    /// Exported symbols alone.
    Exports,
}

/// A driver to be made.
pub struct Driver {
    pub version: i32,
    /// The status that `cuInit` returns.
    pub init: i32,
    pub lookup: Lookup,
    /// The names of functions that it does not have.
    pub without: Vec<&'static str>,
}

impl Default for Driver {
    fn default() -> Driver {
        Driver { version: 13000, init: 0, lookup: Lookup::Exports, without: Vec::new() }
    }
}

impl Driver {
    /// Makes it as `libcuda.so.1` of a folder.
    pub fn make(&self, folder: &Path) -> PathBuf {
        let mut source = String::from("#include <stddef.h>\n#include <string.h>\n");
        let mut table = String::new();
        for symbol in DriverApi::SYMBOLS {
            if self.without.contains(&symbol.name) || symbol.version > self.version {
                continue;
            }
            let hidden =
                if self.lookup == Lookup::Exports { "" } else { "__attribute__((visibility(\"hidden\"))) " };
            let spelling = symbol.spelling;
            match symbol.name {
                "cuInit" => writeln!(source, "{hidden}int cuInit(unsigned f) {{ return f ? 1 : {}; }}", self.init),
                "cuDriverGetVersion" => {
                    writeln!(source, "{hidden}int cuDriverGetVersion(int *v) {{ *v = {}; return 0; }}", self.version)
                }
                "cuGetErrorName" => writeln!(
                    source,
                    "{hidden}int cuGetErrorName(int c, const char **n) {{ *n = c == 4242 ? \"CUDA_ERROR_OF_TOMORROW\" : NULL; \
                     return *n ? 0 : 1; }}"
                ),
                _ => writeln!(source, "{hidden}int {spelling}(void) {{ return {}; }}", symbol.version),
            }
            .unwrap();
            writeln!(table, "  {{\"{}\", {}, (void *){spelling}}},", symbol.name, symbol.version).unwrap();
        }
        writeln!(
            source,
            "static const struct {{ const char *name; int version; void *function; }} table[] = {{"
        )
        .unwrap();
        writeln!(source, "{table}}};").unwrap();
        // As the driver's: the base name, at a version that is neither older than the ABI nor newer than the driver.
        let body = "*f = NULL; if (version > DRIVER) return 1;\n\
                    for (size_t i = 0; i < sizeof table / sizeof *table; i++)\n\
                    if (!strcmp(table[i].name, name)) { if (table[i].version == version) *f = table[i].function; else STATUS(2); }\n\
                    if (!*f) STATUS(1);\n";
        writeln!(source, "#define DRIVER {}", self.version).unwrap();
        match self.lookup {
            Lookup::WithStatus => writeln!(
                source,
                "#define STATUS(s) (*status = (s))\n\
                 int cuGetProcAddress_v2(const char *name, void **f, int version, unsigned long long flags, int *status) {{\n\
                 if (flags != 1) return 1;\n*status = 0;\n{body}return 0; }}"
            ),
            Lookup::Plain => writeln!(
                source,
                "#define STATUS(s) ((void)0)\n\
                 int cuGetProcAddress(const char *name, void **f, int version, unsigned long long flags) {{\n\
                 if (flags != 1) return 1;\n{body}return *f ? 0 : 500; }}"
            ),
            Lookup::Exports => Ok(()),
        }
        .unwrap();
        let path = folder.join("libcuda.so.1");
        library(&path, &source);
        path
    }
}

/// Makes an NVRTC of a version, with its builtins beside it.
pub fn nvrtc(folder: &Path, major: i32, minor: i32) -> PathBuf {
    let path = folder
        .join(format!("libnvrtc.so.{}", if major == 11 { "11.2".to_owned() } else { major.to_string() }));
    let mut source =
        format!("int nvrtcVersion(int *a, int *b) {{ *a = {major}; *b = {minor}; return 0; }}\n");
    for symbol in NvrtcApi::SYMBOLS.iter().filter(|symbol| symbol.name != "nvrtcVersion") {
        writeln!(source, "int {}(void) {{ return 11; }}", symbol.spelling).unwrap();
    }
    library(&path, &source);
    library(&folder.join(format!("libnvrtc-builtins.so.{major}.{minor}")), "int builtins;");
    path
}

/// Makes a cuBLAS and a cuBLASLt, each of a version as `[major, minor, patch]`.
pub fn cublas(folder: &Path, main: [i32; 3], lt: [i32; 3]) -> PathBuf {
    let path = folder.join(format!("libcublas.so.{}", main[0]));
    let [major, minor, patch] = main;
    library(
        &path,
        &format!(
            "int cublasGetProperty(int p, int *v) {{ int n[] = {{{major}, {minor}, {patch}}}; *v = n[p]; return 0; }}"
        ),
    );
    let number = lt[0] * 10000 + lt[1] * 100 + lt[2];
    let source = format!("unsigned long cublasLtGetVersion(void) {{ return {number}; }}");
    library(&folder.join(format!("libcublasLt.so.{}", main[0])), &source);
    path
}

/// Makes an NCCL that reports a version code.
pub fn nccl(folder: &Path, code: i32) -> PathBuf {
    let path = folder.join("libnccl.so.2");
    library(&path, &format!("int ncclGetVersion(int *v) {{ *v = {code}; return 0; }}"));
    path
}
