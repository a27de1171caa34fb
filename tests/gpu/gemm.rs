//! Matrix products: whole numbers exactly, with every layout, gap, start, batch and odd size; random ones within the bound
//! of backward error analysis; and what must not be read or written is poisoned.

mod bounds;
mod bulk;
mod case;
#[path = "../cases/products.rs"]
mod cases;
mod chains;
mod definition;
mod doubles;
mod epilogues;
mod large;
mod numbers;
mod slices;

use half::{bf16, f16};
use num_complex::Complex;
use selvedge::Error;
use selvedge::driver::{Device, Stream};
use selvedge::gemm::{
    Activation, Choice, DeviceProperties, Engine, Epilogue, Operation, Plan, Product, gemm, gemm_with,
};
use selvedge::types::DType;

use case::has_algorithm;
use cases::{Case, LAYOUTS, for_each_dtype, odd_sizes};
use chains::Chain;
use numbers::{Number, ResultOf};

use crate::support::{Need, Outcome, assert_error, device_tests};

device_tests! {
    every_type_multiplies_whole_numbers_exactly => needs(Need::Isa(8, 0)),
    odd_sizes_in_every_layout => needs(Need::Isa(8, 0)),
    odd_sizes_on_tensor_cores => needs(Need::Isa(8, 0)),
    gaps_starts_and_batches => needs(Need::Isa(8, 0)),
    alpha_and_beta => needs(Need::Isa(8, 0)),
    conjugates => needs(Need::Isa(8, 0)),
    integers_wrap => needs(Need::Isa(8, 0)),
    doubles_have_the_bits_of_fma => needs(Need::Isa(8, 0)),
    errors_are_within_their_bound => needs(Need::Isa(8, 0)),
    two_runs_have_equal_bits => needs(Need::Isa(8, 0)),
    bulk_copies_change_no_bits => needs(Need::Isa(8, 0)),
    few_tiles_and_a_long_k_are_divided => needs(Need::Isa(8, 0)),
    odd_sizes_by_bulk_copies => needs(Need::Isa(8, 0)),
    epilogues_are_exact => needs(Need::Isa(8, 0)),
    bad_epilogues_are_refused => needs(Need::Isa(8, 0)),
    chains_of_products_read_what_was_written => alone() => needs(Need::Isa(8, 0)) => needs(Need::FreeRunning),
    large_products_are_exact => alone() => needs(Need::Isa(8, 0)) => needs(Need::FreeRunning),
    operands_of_more_than_2_to_the_31_elements => alone() => needs(Need::FreeRunning),
    bad_input_is_refused => needs(Need::Isa(8, 0)),
    older_images_multiply => in_child(&[("SELVEDGE_ARCH", "sm_80")]) => needs(Need::Isa(8, 0)),
    ptx_multiplies => in_child(&[("SELVEDGE_IMAGE", "ptx")]) => needs(Need::Isa(8, 0)),
    cublas_multiplies_where_it_is => alone() => needs(Need::Isa(8, 0)),
    the_environment_asks_for_an_engine => in_child(&[("SELVEDGE_GEMM", "simt")]) => needs(Need::Isa(8, 0)),
}

const SIMT: Choice = Choice::Only(Engine::Simt);
const WGMMA: Choice = Choice::Only(Engine::Wgmma);
const MMA: Choice = Choice::Only(Engine::Mma);

fn stream() -> selvedge::Result<Stream> {
    Device::new(0)?.stream()
}

/// Returns whether an engine of the tensor cores can be asked for: the device has them, and an image for it may be loaded.
fn has(engine: Engine) -> selvedge::Result<bool> {
    let properties = DeviceProperties::from_device(&Device::new(0)?)?;
    let product = Product::new(64, 64, 64).by(Choice::Only(engine));
    Ok(Plan::explain(&product, DType::BF16, DType::BF16, properties).is_ok())
}

fn has_wgmma() -> selvedge::Result<bool> {
    has(Engine::Wgmma)
}

/// The engines of this crate that multiply bf16.
fn engines() -> selvedge::Result<Vec<Engine>> {
    let mut engines = Vec::new();
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_own()) {
        if has(engine)? {
            engines.push(engine);
        }
    }
    Ok(engines)
}

/// By ordinary arithmetic, and by the tensor cores too where there are some for the type: by `wgmma` where its rows allow
/// it.
fn every<T: Number, C: ResultOf<T>>(stream: &Stream, case: Case) -> Outcome {
    case.check::<T, C>(stream, SIMT)?;
    let narrow = matches!(T::DTYPE, DType::F16 | DType::BF16);
    let double = matches!(T::DTYPE, DType::F64 | DType::C128);
    if (narrow || double) && has(Engine::Mma)? {
        case.check::<T, C>(stream, MMA)?;
    }
    if narrow && has_wgmma()? && case.multiple.is_multiple_of(8) && case.size.2 > 0 && case.alpha != (0, 0) {
        case.check::<T, C>(stream, WGMMA)?;
    }
    Ok(())
}

fn every_type_multiplies_whole_numbers_exactly() -> Outcome {
    let stream = stream()?;
    for case in cases::layouts_of(cases::SEVERAL_TILES) {
        for_each_dtype!(all, T, C => every::<T, C>(&stream, Case { multiple: 8, ..case })?);
    }
    Ok(())
}

fn odd_sizes_in_every_layout() -> Outcome {
    let stream = stream()?;
    for size in odd_sizes() {
        for case in cases::layouts_of(size) {
            case.check::<f32, f32>(&stream, Choice::Auto)?;
            case.check::<bf16, bf16>(&stream, Choice::Auto)?;
            // Vectors of two, and of one.
            case.check::<f64, f64>(&stream, Choice::Auto)?;
        }
    }
    for size in cases::FEW_ODD_SIZES {
        for case in cases::layouts_of(size) {
            every::<Complex<f64>, Complex<f64>>(&stream, case)?;
            case.check::<u8, u8>(&stream, SIMT)?;
        }
    }
    Ok(())
}

fn odd_sizes_on_tensor_cores() -> Outcome {
    let stream = stream()?;
    if !has_wgmma()? {
        return Ok(());
    }
    for size in odd_sizes().into_iter().filter(|size| size.2 > 0) {
        for case in cases::layouts_of(size) {
            // Rows begin at multiples of 16 bytes, wherever they end.
            let case = Case { multiple: 8, ..case };
            case.check::<bf16, bf16>(&stream, WGMMA)?;
            case.check::<f16, f32>(&stream, WGMMA)?;
            case.check::<f16, f16>(&stream, MMA)?;
            case.check::<f64, f64>(&stream, MMA)?;
            case.check::<Complex<f64>, Complex<f64>>(&stream, MMA)?;
        }
    }
    // Of C, rows may begin anywhere.
    for (m, n, k) in [(129, 127, 64), (300, 77, 40), (7, 257, 65)] {
        let case = Case { operations: (Operation::None, Operation::Transpose), ..Case::new(m, n, k) };
        for beta in [(0, 0), (2, 0)] {
            // A and B with rows of a multiple of 8, by gaps that make them so.
            let up = |size: usize| size.next_multiple_of(8) - size;
            let case = Case { gaps: (up(k), up(k), 0), starts: (0, 0, 1), beta, ..case };
            case.check::<bf16, bf16>(&stream, WGMMA)?;
            case.check::<bf16, f32>(&stream, WGMMA)?;
        }
    }
    Ok(())
}

/// Rows of A and B at multiples of 16 bytes, wherever they end.
fn few_tiles_and_a_long_k_are_divided() -> Outcome {
    let stream = stream()?;
    // Weight gradients of training, and what the emulated kernels run.
    let gradients = [(128, 512, 8192), (512, 128, 8192), (130, 127, 4999)];
    for case in gradients.into_iter().flat_map(cases::layouts_of).chain(cases::of_long_k()) {
        for case in [Case { multiple: 4, ..case }, case.unaligned()] {
            case.check::<f32, f32>(&stream, Choice::Own)?;
            case.check::<f64, f64>(&stream, Choice::Own)?;
        }
    }
    for case in cases::of_long_k() {
        case.check::<Complex<f32>, Complex<f32>>(&stream, Choice::Own)?;
        case.check::<Complex<f64>, Complex<f64>>(&stream, Choice::Own)?;
    }
    epilogues::of_long_k(&stream, &epilogues::all())?;
    slices::in_graphs(&stream)
}

fn odd_sizes_by_bulk_copies() -> Outcome {
    let stream = stream()?;
    for size in odd_sizes() {
        for case in cases::layouts_of(size) {
            let case = Case { multiple: 4, ..case };
            case.check::<f32, f32>(&stream, SIMT)?;
            case.check::<Complex<f32>, Complex<f32>>(&stream, SIMT)?;
        }
    }
    Ok(())
}

fn gaps_starts_and_batches() -> Outcome {
    let stream = stream()?;
    for case in cases::batches_of(cases::BATCHED) {
        let aligned = case.aligned();
        every::<bf16, bf16>(&stream, aligned)?;
        every::<f16, f32>(&stream, aligned)?;
        every::<f32, f32>(&stream, aligned)?;
        every::<f64, f64>(&stream, aligned)?;
        every::<Complex<f64>, Complex<f64>>(&stream, aligned)?;
        let unaligned = case.unaligned();
        unaligned.check::<bf16, bf16>(&stream, Choice::Auto)?;
        unaligned.check::<f32, f32>(&stream, Choice::Auto)?;
        unaligned.check::<Complex<f32>, Complex<f32>>(&stream, Choice::Auto)?;
        every::<f64, f64>(&stream, unaligned)?;
        every::<Complex<f64>, Complex<f64>>(&stream, unaligned)?;
        unaligned.check::<i8, i8>(&stream, Choice::Auto)?;
    }
    Ok(())
}

fn alpha_and_beta() -> Outcome {
    let stream = stream()?;
    for case in cases::SCALED_SIZES[..2].iter().flat_map(|size| cases::factors_of(*size)) {
        let case = Case { multiple: 8, ..case };
        every::<bf16, bf16>(&stream, case.real())?;
        every::<bf16, f32>(&stream, case.real())?;
        every::<f32, f32>(&stream, case.real())?;
        every::<f64, f64>(&stream, case.real())?;
        every::<i16, i16>(&stream, case.real())?;
        every::<u64, u64>(&stream, case.real())?;
        every::<Complex<f32>, Complex<f32>>(&stream, case)?;
        every::<Complex<f64>, Complex<f64>>(&stream, case)?;
    }
    Ok(())
}

fn conjugates() -> Outcome {
    let stream = stream()?;
    for case in cases::conjugates_of(cases::CONJUGATED_SIZES[0]) {
        let case = Case { multiple: 8, ..case };
        every::<Complex<f32>, Complex<f32>>(&stream, case)?;
        every::<Complex<f64>, Complex<f64>>(&stream, case)?;
        every::<f32, f32>(&stream, case)?;
        every::<bf16, bf16>(&stream, case)?;
    }
    Ok(())
}

/// Sums far past the type: the low bits are those of the sums of whole numbers.
fn integers_wrap() -> Outcome {
    let stream = stream()?;
    let case = cases::wrapping();
    case.check::<u8, u8>(&stream, SIMT)?;
    case.check::<i16, i16>(&stream, SIMT)?;
    case.check::<i32, i32>(&stream, SIMT)?;
    case.check::<u32, u32>(&stream, SIMT)?;
    case.check::<i64, i64>(&stream, SIMT)?;
    let (a, b) = (stream.upload(&[u64::MAX, 1 << 63])?, stream.upload(&[u64::MAX, 3])?);
    let mut c = stream.zeros::<u64>(1)?;
    gemm(&stream, &Product::new(1, 1, 2), 1, &a, &b, 0, &mut c)?;
    assert_eq!(stream.download(&c)?, [(1 << 63) + 1]);
    Ok(())
}

fn doubles_have_the_bits_of_fma() -> Outcome {
    let stream = stream()?;
    if has(Engine::Mma)? { doubles::bits_are_those_of_fma(&stream) } else { Ok(()) }
}

fn errors_are_within_their_bound() -> Outcome {
    bounds::every_type(&stream()?, &engines()?)
}

fn two_runs_have_equal_bits() -> Outcome {
    bounds::two_runs(&stream()?, &engines()?)
}

fn bulk_copies_change_no_bits() -> Outcome {
    bulk::bits(&stream()?)
}

fn epilogues_are_exact() -> Outcome {
    let (stream, engines) = (stream()?, engines()?);
    epilogues::every_part(&stream, &engines, &epilogues::all())?;
    if engines.contains(&Engine::Wgmma) {
        epilogues::by_persistent_clusters(&stream, &epilogues::all())?;
        epilogues::derivatives(&stream)?;
    }
    Ok(())
}

/// Buffers that are too short or shared, and types without an order: nothing is launched.
fn bad_epilogues_are_refused() -> Outcome {
    let stream = stream()?;
    let a = stream.upload(&[1.0f32; 12])?;
    let (short, long) = (stream.upload(&[1.0f32; 2])?, stream.upload(&[1.0f32; 9])?);
    let mut c = stream.zeros::<f32>(9)?;
    let product = Product::new(3, 3, 4);
    let mut run =
        |epilogue: Epilogue<'_, f32>| gemm_with(&stream, &product, 1.0, &a, &a, 0.0, &mut c, epilogue);
    assert_error!(run(Epilogue::new().bias_of_columns(&short)), Error::InvalidArgument { found, .. } if found.starts_with("the bias of 2"));
    assert_error!(run(Epilogue::new().bias_of_rows(&short)), Error::InvalidArgument { found, .. } if found.starts_with("the bias of 2"));
    assert_error!(run(Epilogue::new().residual(&short)), Error::InvalidArgument { found, .. } if found.starts_with("the residual of 2"));
    let mut aux = stream.zeros::<f32>(8)?;
    assert_error!(run(Epilogue::new().aux(&mut aux)), Error::InvalidArgument { found, .. } if found.starts_with("aux of 8"));
    run(Epilogue::new().residual(&long))?;
    assert_eq!(stream.download(&c)?, [5.0; 9]);
    let numbers = stream.upload(&[1i32; 12])?;
    let mut whole = stream.zeros::<i32>(9)?;
    let epilogue = Epilogue::new().activation(Activation::Relu);
    let failed = gemm_with(&stream, &product, 1, &numbers, &numbers, 0, &mut whole, epilogue);
    assert_error!(failed, Error::InvalidArgument { found, .. } if found.contains("an epilogue needs a result of f16"));
    Ok(())
}

fn large_products_are_exact() -> Outcome {
    large::products(&stream()?, &engines()?)
}

fn operands_of_more_than_2_to_the_31_elements() -> Outcome {
    large::operands(&stream()?, &engines()?)
}

fn bad_input_is_refused() -> Outcome {
    let stream = stream()?;
    let (a, b) = (stream.upload(&[1.0f32; 12])?, stream.upload(&[1.0f32; 20])?);
    let mut c = stream.zeros::<f32>(15)?;
    let run = |product: Product, c: &mut selvedge::driver::DeviceBuffer<f32>| {
        gemm(&stream, &product, 1.0, &a, &b, 0.0, c)
    };
    run(Product::new(3, 5, 4), &mut c)?;
    // A, B and C each too short, a row that does not fit its leading dimension, results that overlap.
    assert_error!(run(Product::new(4, 3, 4), &mut c), Error::InvalidArgument { found, .. } if found.starts_with("A of"));
    assert_error!(run(Product::new(2, 5, 5), &mut c), Error::InvalidArgument { found, .. } if found.starts_with("B of"));
    assert_error!(run(Product::new(4, 5, 3), &mut c), Error::InvalidArgument { found, .. } if found.starts_with("C of"));
    assert_error!(run(Product::new(3, 5, 4).leading(4, 4, 5), &mut c), Error::InvalidArgument { .. });
    assert_error!(run(Product::new(1, 5, 4).batch(3, 4, 0, 4), &mut c), Error::InvalidArgument { .. });
    // An engine that does not multiply the type.
    assert_error!(run(Product::new(3, 5, 4).by(WGMMA), &mut c), Error::InvalidArgument { found, .. } if found.contains("f32"));
    // None of it was launched.
    assert_eq!(stream.download(&c)?, [4.0; 15]);
    Ok(())
}

/// The image for an older card has no instructions of this one: a product that asks for them fails with that reason.
fn older_images_multiply() -> Outcome {
    let stream = stream()?;
    assert!(!has_wgmma()?);
    let case = Case { multiple: 8, ..Case::new(130, 70, 40) };
    for operations in LAYOUTS {
        Case { operations, ..case }.check::<bf16, bf16>(&stream, Choice::Auto)?;
        Case { operations, ..case }.check::<f32, f32>(&stream, Choice::Auto)?;
    }
    // On the tensor cores that it knows.
    assert!(has(Engine::Mma)?);
    doubles::bits_are_those_of_fma(&stream)?;
    let failed =
        case.check::<bf16, bf16>(&stream, WGMMA).err().and_then(|failed| failed.message().map(str::to_owned));
    assert!(failed.as_ref().is_some_and(|text| text.contains("SELVEDGE_ARCH=sm_80")), "{failed:?}");
    Ok(())
}

fn ptx_multiplies() -> Outcome {
    let stream = stream()?;
    for operations in LAYOUTS {
        let case = Case { operations, multiple: 8, ..Case::new(130, 70, 40) };
        every::<bf16, bf16>(&stream, case)?;
        every::<f16, f32>(&stream, case)?;
        every::<f32, f32>(&stream, case)?;
        every::<f64, f64>(&stream, case)?;
        every::<Complex<f64>, Complex<f64>>(&stream, case)?;
    }
    Ok(())
}

/// As the other engines, element by element; and it does not use TF32, of which a bound would be far off.
fn cublas_multiplies_where_it_is() -> Outcome {
    const CUBLAS: Choice = Choice::Only(Engine::Cublas);
    let stream = stream()?;
    if let Err(error) = selvedge::cublas::version() {
        println!("not run: {error}");
        let failed = Case::new(8, 8, 8).check::<f32, f32>(&stream, CUBLAS).err();
        let text = failed.and_then(|failed| failed.message().map(str::to_owned)).unwrap_or_default();
        assert!(text.contains("cuBLAS could not be loaded"), "{text}");
        return Ok(());
    }
    for case in cases::batches_of(cases::BATCHED) {
        for case in [case, Case { alpha: (2, 1), beta: (-1, 3), ..case.unaligned() }] {
            for_each_dtype!(floats, T, C => case.check::<T, C>(&stream, CUBLAS)?);
        }
    }
    for operations in [(Operation::Adjoint, Operation::None), (Operation::Transpose, Operation::Adjoint)] {
        Case { operations, ..Case::new(35, 20, 17) }.check::<Complex<f64>, Complex<f64>>(&stream, CUBLAS)?;
    }
    bounds::by_cublas(&stream)?;
    epilogues::by_cublas(&stream, &[(136, 72, 40), (16, 136, 328), (304, 1048, 40)])?;
    epilogues::beyond_cublas(&stream)?;
    // Captured, once its kernels are loaded.
    let (a, mut c) = (stream.upload(&[1.0f32; 64 * 64])?, stream.zeros::<f32>(64 * 64)?);
    let product = Product::new(64, 64, 64).by(CUBLAS);
    gemm(&stream, &product, 1.0, &a, &a, 0.0, &mut c)?;
    let (graph, ()) = stream.capture(|stream| gemm(stream, &product, 1.0, &a, &a, 1.0, &mut c))?;
    let graph = graph.instantiate()?;
    graph.launch(&stream)?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(&c)?, [3.0 * 64.0; 64 * 64]);
    Ok(())
}

/// Hundreds of products that each read the one before, launched so that they may overlap where the device can.
fn chains_of_products_read_what_was_written() -> Outcome {
    if !has_wgmma()? {
        return Ok(());
    }
    let streams = [stream()?, stream()?];
    for (rows, columns) in [(64, 64), (16, 256), (200, 256), (256, 256), (512, 512), (768, 768), (1024, 1024)]
    {
        for algorithm in ["", "persistent/64", "persistent/256", "persistent/64/stream-k", "split-k/128x64x2"]
        {
            let algorithm = if algorithm.is_empty() { None } else { Some(algorithm.parse()?) };
            if let Some(algorithm) = algorithm {
                let product = Product::new(rows, columns, columns).with_algorithm(algorithm);
                if !has_algorithm(&streams[0], &product, (DType::BF16, DType::BF16))? {
                    continue;
                }
            }
            let chain = Chain { rows, columns, products: 300, algorithm };
            chains::on_streams(&streams, chain)?;
            chains::in_graphs(&streams[..1], chain)?;
            chains::in_graphs(&streams, chain)?;
        }
    }
    Ok(())
}

fn the_environment_asks_for_an_engine() -> Outcome {
    let properties = DeviceProperties::from_device(&Device::new(0)?)?;
    let explain = |product| Plan::explain(&product, DType::BF16, DType::BF16, properties);
    assert_eq!(explain(Product::new(64, 64, 64))?.engine(), Engine::Simt);
    // The call goes before it.
    let asked = explain(Product::new(64, 64, 64).by(Choice::Auto))?.engine();
    assert_eq!(Some(asked), engines()?.first().copied());
    Case::new(20, 20, 20).check::<bf16, bf16>(&stream()?, Choice::Auto)
}
