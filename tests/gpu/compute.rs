//! `GpuCompute` on a device: a vector sum and a matrix product from source, a product of tensors beside the CPU, and a fallback that was asked for.

use std::time::Instant;

use selvedge::driver::Device;
use selvedge::launcher::{GpuArg, GpuCompute, LaunchOutcome, Launcher};
use selvedge::nvrtc::Cache;
use selvedge::tensor::{self, Tensor};

use crate::launcher::ADD;
use crate::support::{Need, Numbers, Outcome, assert_all, device_tests};

device_tests! {
    a_vector_sum_of_1024 => needs(Need::Nvrtc),
    a_product_from_source_is_that_of_the_cpu => needs(Need::Nvrtc),
    a_product_is_ten_times_as_fast_as_on_the_cpu => needs(Need::FreeRunning),
    a_source_that_does_not_compile_falls_back_where_asked,
}

fn compute() -> selvedge::Result<GpuCompute> {
    Ok(Launcher::with_cache(&Device::new(0)?, Cache::none())?.into())
}

fn a_vector_sum_of_1024() -> Outcome {
    let gpu = compute()?;
    gpu.compile_kernel("add", ADD)?;
    let (a, b) = (gpu.upload(&[1.0f32; 1024])?, gpu.upload(&[2.0f32; 1024])?);
    let mut sum = gpu.allocate::<f32>(1024)?;
    let arguments = vec![GpuArg::from(&a), (&b).into(), (&mut sum).into(), 1024u32.into()];
    // SAFETY: add touches 1024 elements of each.
    let ran = unsafe { gpu.run_kernel("add", (4, 1, 1), (256, 1, 1), arguments)? };
    assert_eq!((ran, gpu.fallbacks_taken()), (LaunchOutcome::Device, 0));
    assert_all(&gpu.download(&sum)?, 3.0, "the sum");
    // The operands are consumed by the launch, the result by its download.
    let mut again = gpu.allocate::<f32>(1024)?;
    let arguments = [GpuArg::from(a), GpuArg::from(b), GpuArg::from(&mut again), GpuArg::U32(1024)];
    // SAFETY: as above.
    unsafe { gpu.run_kernel("add", 4, 256, arguments)? };
    let mut elements = vec![0.0; 1024];
    gpu.download_into(again, &mut elements)?;
    assert_all(&elements, 3.0, "the sum of consumed buffers");
    Ok(())
}

/// A product in tiles of 32 x 32, each thread one element.
const PRODUCT: &str = "__global__ void product(const float *a, const float *b, float *c, unsigned n) {
    __shared__ float left[32][32], right[32][33];
    unsigned row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (unsigned tile = 0; tile < n; tile += 32) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
        for (unsigned k = 0; k < 32; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}";

/// A square matrix of small whole numbers, so that every order of the sums gives the same.
fn matrix(size: usize, numbers: &mut Numbers) -> selvedge::Result<Tensor> {
    let elements: Vec<f32> = (0..size * size).map(|_| (numbers.next() % 5) as f32 - 2.0).collect();
    Tensor::from_vec(elements, &[size, size], &tensor::Device::cpu())
}

fn a_product_from_source_is_that_of_the_cpu() -> Outcome {
    const N: usize = 1024;
    let gpu = compute()?;
    gpu.compile_kernel("product", PRODUCT)?;
    let mut numbers = Numbers(5);
    let (left, right) = (matrix(N, &mut numbers)?, matrix(N, &mut numbers)?);
    let (a, b) = (gpu.upload(&left.to_vec::<f32>()?)?, gpu.upload(&right.to_vec::<f32>()?)?);
    let mut c = gpu.allocate::<f32>(N * N)?;
    let arguments = vec![GpuArg::from(&a), GpuArg::from(&b), GpuArg::from(&mut c), GpuArg::U32(N as u32)];
    // SAFETY: product touches 1024 x 1024 elements of each.
    unsafe { gpu.run_kernel("product", (32, 32), (32, 32), arguments)? };
    assert!(gpu.download(c)? == left.matmul(&right)?.to_vec::<f32>()?, "the product is wrong");
    Ok(())
}

/// The CPU's product is this crate's own, by one thread: the factor then does not depend on the host's number of processors.
fn a_product_is_ten_times_as_fast_as_on_the_cpu() -> Outcome {
    const N: usize = 4096;
    let device = tensor::Device::cuda(0)?;
    let stream = device.stream()?;
    let mut numbers = Numbers(6);
    let (left, right) = (matrix(N, &mut numbers)?, matrix(N, &mut numbers)?);
    let (a, b) = (left.to(&device)?, right.to(&device)?);
    let time = |repetitions: usize,
                run: &mut dyn FnMut() -> selvedge::Result<Tensor>|
     -> selvedge::Result<(f64, Tensor)> {
        let mut result = run()?;
        let mut least = f64::INFINITY;
        for _ in 0..repetitions {
            stream.synchronize()?;
            let start = Instant::now();
            result = run()?;
            stream.synchronize()?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok((least, result))
    };
    let (device_time, found) = time(3, &mut || a.matmul(&b))?;
    selvedge::set_threads(1);
    let on_host = time(1, &mut || left.matmul(&right));
    selvedge::set_threads(0);
    let (host_time, wanted) = on_host?;
    assert!(found.to_bytes()? == wanted.to_bytes()?, "the product is wrong");
    println!("4096^3: {:.3} ms on the device, {:.1} ms on a CPU thread", device_time * 1e3, host_time * 1e3);
    assert!(host_time > 10.0 * device_time, "{device_time} s against {host_time} s");
    Ok(())
}

fn a_source_that_does_not_compile_falls_back_where_asked() -> Outcome {
    let gpu = compute()?;
    let source = "__global__ void add(const float *a, const float *b, float *sum, unsigned n) { nonsense; }";
    assert!(gpu.compile_kernel("add", source).is_err(), "nonsense is compiled");
    gpu.compile_kernel_or("add", source, |launch| {
        let [a, b, sum, n] = launch.arguments()?;
        let n = n.value::<u32>()? as usize;
        let pairs = a.slice::<f32>()?.iter().zip(b.slice::<f32>()?);
        sum.slice_mut::<f32>()?.iter_mut().zip(pairs).take(n).for_each(|(sum, (a, b))| *sum = a + b);
        Ok(())
    })?;
    let (a, b) = (gpu.upload(&[1.0f32; 1024])?, gpu.upload(&[2.0f32; 1024])?);
    let mut sum = gpu.allocate::<f32>(1024)?;
    let arguments = vec![GpuArg::from(&a), (&b).into(), (&mut sum).into(), 1024u32.into()];
    // SAFETY: nothing is launched.
    let ran = unsafe { gpu.run_kernel("add", 4, 256, arguments)? };
    assert_eq!((ran, gpu.fallbacks_taken()), (LaunchOutcome::Fallback, 1));
    assert_all(&gpu.download(&sum)?, 3.0, "the sum");
    Ok(())
}
