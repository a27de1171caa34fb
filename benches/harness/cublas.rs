//! cuBLAS as the reference of our products, opened by a handle and prototypes of this file's own: the library under test
//! must not have opened it, and shares nothing with it but the memory that both read.

use std::ffi::c_void;
use std::path::PathBuf;
use std::process::Command;
use std::ptr;

use super::bare::{Address, Bare, Handle, functions};
use super::report::Failure;

functions! {
    create = "cublasCreate_v2"(*mut Handle);
    set_stream = "cublasSetStream_v2"(Handle, Handle);
    set_workspace = "cublasSetWorkspace_v2"(Handle, Address, usize);
    version = "cublasGetVersion_v2"(Handle, *mut i32);
    multiply = "cublasGemmEx"(
        Handle, i32, i32, i32, i32, i32, *const c_void, Address, i32, i32, Address, i32, i32, *const c_void, Address, i32,
        i32, i32, i32
    );
    multiply_batch = "cublasGemmStridedBatchedEx"(
        Handle, i32, i32, i32, i32, i32, *const c_void, Address, i32, i32, i64, Address, i32, i32, i64, *const c_void,
        Address, i32, i32, i64, i32, i32, i32
    );
}

/// The bytes of a handle's workspace, as frameworks set it on such cards.
pub(super) const WORKSPACE: usize = 64 << 20;
/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT: i32 = -1;

/// An element type as cuBLAS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

impl Kind {
    /// `cudaDataType`.
    pub(super) fn data(self) -> i32 {
        match self {
            Kind::F16 => 2,
            Kind::BF16 => 14,
            Kind::F32 => 0,
            Kind::F64 => 1,
            Kind::C64 => 4,
            Kind::C128 => 5,
        }
    }

    /// `cublasComputeType_t`: f32 or f64, without the tensor cores' shortcuts for f32.
    pub(super) fn compute(self) -> i32 {
        if matches!(self, Kind::F64 | Kind::C128) { 70 } else { 68 }
    }

    /// `cudaDataType` of the factors.
    pub(super) fn scale(self) -> i32 {
        match self {
            Kind::F16 | Kind::BF16 => Kind::F32.data(),
            kind => kind.data(),
        }
    }
}

/// A product of row-major matrices that are contiguous, or a batch of them.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub batch: usize,
    pub operand: Kind,
    pub result: Kind,
}

/// A handle on the bare driver's stream.
pub struct Cublas {
    functions: Functions,
    handle: Handle,
    /// The path at which it was found.
    pub path: PathBuf,
    /// Its version, as 130100.
    pub version: i32,
}

fn check(status: i32, call: &str) -> Result<(), Failure> {
    if status == 0 { Ok(()) } else { Err(format!("{call} gave status {status}").into()) }
}

/// The places to search: `SELVEDGE_BENCH_CUBLAS`, the linker's search path, the toolkit, the wheels of `python3`.
fn candidates() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::env::var_os("SELVEDGE_BENCH_CUBLAS").map(PathBuf::from).into_iter().collect();
    for major in [13, 12] {
        let name = format!("libcublas.so.{major}");
        paths.push(PathBuf::from(&name));
        paths.push(PathBuf::from(format!("/usr/local/cuda/lib64/{name}")));
    }
    let find = "import glob, nvidia\nfor p in nvidia.__path__:\n print(*glob.glob(p + '/*/lib/libcublas.so.*'), sep='\\n')";
    if let Ok(output) = Command::new("python3").args(["-c", find]).output() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        paths.extend(text.lines().filter(|line| !line.is_empty()).map(PathBuf::from));
    }
    paths
}

impl Cublas {
    /// Opens the first library that there is.
    pub fn open(bare: &Bare) -> Result<Cublas, Failure> {
        let candidates = candidates();
        let found = candidates.iter().find_map(|path| Some((Functions::open_at(path).ok()?, path.clone())));
        let (functions, path) = found.ok_or_else(|| format!("no cuBLAS at any of {candidates:?}"))?;
        let (mut handle, mut version) = (ptr::null_mut(), 0);
        let workspace = bare.allocate(WORKSPACE)?;
        // SAFETY: the pointers are to locals; stream and workspace live as long as the process.
        unsafe {
            check((functions.create)(&mut handle), "cublasCreate")?;
            check((functions.set_stream)(handle, bare.stream), "cublasSetStream")?;
            check((functions.set_workspace)(handle, workspace, WORKSPACE), "cublasSetWorkspace")?;
            check((functions.version)(handle, &mut version), "cublasGetVersion")?;
        }
        Ok(Cublas { functions, handle, path, version })
    }

    /// Gives one product to the stream. Column-major is what it speaks: Cᵀ = op(B)ᵀ op(A)ᵀ.
    ///
    /// # Safety
    ///
    /// The addresses are of contiguous matrices of the call's shapes.
    pub unsafe fn multiply(&self, call: &Call, a: Address, b: Address, c: Address) -> Result<(), Failure> {
        let Call { m, n, k, a_transposed, b_transposed, batch, operand, result } = *call;
        // A one in each type, with a 0 for the imaginary part.
        let (one_32, zero_32) = ([1.0f32, 0.0], [0.0f32; 2]);
        let (one_64, zero_64) = ([1.0f64, 0.0], [0.0f64; 2]);
        let (one, zero): (*const c_void, *const c_void) = match operand.compute() {
            70 => (one_64.as_ptr().cast(), zero_64.as_ptr().cast()),
            _ => (one_32.as_ptr().cast(), zero_32.as_ptr().cast()),
        };
        let leading =
            |transposed: bool, rows: usize, columns: usize| if transposed { rows } else { columns } as i32;
        let (lda, ldb) = (leading(a_transposed, m, k), leading(b_transposed, k, n));
        let (handle, ta, tb) = (self.handle, i32::from(a_transposed), i32::from(b_transposed));
        let (from, to, compute) = (operand.data(), result.data(), operand.compute());
        let (m32, n32, k32) = (m as i32, n as i32, k as i32);
        // SAFETY: the caller vouches for the addresses; the scalars are read before the call returns.
        let status = unsafe {
            if batch == 1 {
                (self.functions.multiply)(
                    handle, tb, ta, n32, m32, k32, one, b, from, ldb, a, from, lda, zero, c, to, n32,
                    compute, DEFAULT,
                )
            } else {
                let (stride_a, stride_b, stride_c) = ((m * k) as i64, (k * n) as i64, (m * n) as i64);
                (self.functions.multiply_batch)(
                    handle,
                    tb,
                    ta,
                    n32,
                    m32,
                    k32,
                    one,
                    b,
                    from,
                    ldb,
                    stride_b,
                    a,
                    from,
                    lda,
                    stride_a,
                    zero,
                    c,
                    to,
                    n32,
                    stride_c,
                    batch as i32,
                    compute,
                    DEFAULT,
                )
            }
        };
        check(status, "cuBLAS's product")
    }
}
