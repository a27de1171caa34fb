//! The choice of an engine, and its explanation.
//!
//! Invariants: the choice is a function of the product, its types, the alignment of its operands, the device and the engines that the
//! caller allows. Nothing is measured at run time, so the same call on the same card has the same bits every time.

use std::fmt;

use super::configuration::Configuration;
use super::engine::{Choice, Engine, Unsupported};
use super::geometry::Geometry;
use super::parallel_split_k::{self, ParallelSplitK};
use super::problem::GemmProblem;
use super::product::{OPERATION, Product};
use crate::error::{Error, Result};
use crate::images::DeviceProperties;
use crate::trace::Arguments;
use crate::types::DType;

/// The configuration that computes a problem, and the engines that come before it.
pub(super) struct Selection {
    pub configuration: Configuration,
    /// Slices of k that take its place.
    pub split: Option<ParallelSplitK>,
    /// The preferred engines that do not compute the problem, with their reasons.
    unsupported: Vec<(Engine, Unsupported)>,
}

impl Selection {
    /// Returns the geometry of the kernels.
    fn geometry(&self, problem: &GemmProblem<'_>) -> Geometry {
        match &self.split {
            Some(split) => split.geometry(problem),
            None => self.configuration.geometry(problem),
        }
    }

    /// Returns the call in a trace.
    #[cold]
    pub fn traced(&self, problem: &GemmProblem<'_>) -> Arguments {
        let Geometry { kernel, tile: (rows, columns), tiles, blocks, .. } = self.geometry(problem);
        let mut arguments: Arguments = vec![
            ("product", problem.product.to_string().into()),
            ("dtype", problem.operand.name().into()),
            ("result", problem.result.name().into()),
            ("engine", self.configuration.engine().name().into()),
            ("kernel", kernel.into()),
        ];
        if tiles > 0 {
            arguments.push(("tile", format!("{rows}x{columns}").into()));
            arguments.push(("blocks", blocks.into()));
        }
        if !self.unsupported.is_empty() {
            let reasons: Vec<String> =
                self.unsupported.iter().map(|(engine, reason)| format!("not {engine}: {reason}")).collect();
            arguments.push(("reasons", reasons.join("; ").into()));
        }
        // A complex multiplication and addition are four of each.
        let parts = if matches!(problem.operand, DType::C64 | DType::C128) { 4.0 } else { 1.0 };
        arguments.push(("operations", (parts * problem.product.operations()).into()));
        arguments.push(("bytes", problem.bytes().into()));
        arguments
    }
}

/// Selects the first engine that the caller allows and that computes the problem.
pub(super) fn select(problem: &GemmProblem<'_>) -> Result<Selection> {
    let choice = match problem.product.choice() {
        Some(choice) => choice,
        None => Choice::from_environment()?,
    };
    let mut unsupported = Vec::new();
    for engine in Engine::ALL {
        let selected = match choice.allows(engine) {
            true => Configuration::select(engine, problem),
            false => Err(Unsupported::NotAsked(choice)),
        };
        match selected {
            Ok(configuration) => {
                // The slices would depend on the rows.
                let is_split = !problem.product.is_batch_invariant();
                let split = is_split.then(|| parallel_split_k::select(problem, engine)).flatten();
                return Ok(Selection { configuration, split, unsupported });
            }
            Err(reason) => unsupported.push((engine, reason)),
        }
    }
    let asked = unsupported.iter().filter(|(_, reason)| !matches!(reason, Unsupported::NotAsked(_)));
    let reasons: Vec<String> = asked.map(|(engine, reason)| format!("{engine}: {reason}")).collect();
    let GemmProblem { product, operand, result, .. } = problem;
    let found = format!("{product} of {operand} into {result}, asked of '{choice}'; {}", reasons.join("; "));
    Err(Error::invalid(OPERATION, found, "an engine that supports it (SELVEDGE_GEMM, Product::by)"))
}

/// The engine that runs a product, its kernel, and the reasons why no preferred engine does. `Display` prints lines.
///
/// ```
/// use selvedge::gemm::{Engine, DeviceProperties, Plan, Product};
/// use selvedge::types::DType;
/// let product = Product::new(4096, 4096, 4096);
/// let plan = Plan::explain(&product, DType::BF16, DType::BF16, DeviceProperties::reference((9, 0)))?;
/// assert_eq!(plan.engine(), Engine::Wgmma);
/// // Cards without these instructions, and a type that they do not multiply.
/// let on = |capability| Plan::explain(&product, DType::BF16, DType::BF16, DeviceProperties::reference(capability));
/// assert_eq!((on((8, 0))?.engine(), on((7, 0))?.engine()), (Engine::Mma, Engine::Simt));
/// let plan = Plan::explain(&product, DType::F64, DType::F64, DeviceProperties::reference((9, 0)))?;
/// assert!(plan.to_string().contains("wgmma: it does not multiply f64 into f64"));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    head: String,
    engine: Engine,
    geometry: Geometry,
    unsupported: Vec<(Engine, Unsupported)>,
}

impl Plan {
    /// Explains the product of operands at aligned addresses, on a device that need not be there. The environment's overrides apply as
    /// in a call: `SELVEDGE_GEMM`, `SELVEDGE_ARCH` and `SELVEDGE_IMAGE`.
    ///
    /// # Errors
    ///
    /// As [`gemm`](super::gemm): a product that cannot be, or that no engine which was asked for runs.
    pub fn explain(
        product: &Product,
        operand: DType,
        result: DType,
        properties: DeviceProperties,
    ) -> Result<Plan> {
        product.check()?;
        let problem = GemmProblem::from_types(product, operand, result, properties);
        let selection = select(&problem)?;
        let geometry = selection.geometry(&problem);
        let Selection { configuration, unsupported, .. } = selection;
        let engine = configuration.engine();
        let (major, minor) = properties.capability;
        let head = format!(
            "{product} of {operand} into {result}, compute capability {major}.{minor}, {} multiprocessors",
            properties.multiprocessors
        );
        Ok(Plan { head, engine, geometry, unsupported })
    }

    /// Operands that are copied before the product, into aligned rows.
    pub fn copied(&self) -> &[char] {
        &self.geometry.copied
    }

    /// Rows and columns of a tile; none where a library divides the product.
    pub fn tile(&self) -> Option<(u32, u32)> {
        Some(self.geometry.tile).filter(|_| self.geometry.tiles > 0)
    }

    /// Tiles of the result, and blocks of the grid.
    pub fn work(&self) -> (u64, u32) {
        (self.geometry.tiles, self.geometry.blocks)
    }

    /// The engine that runs.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The kernel's name, or the function's of a library.
    pub fn kernel(&self) -> &str {
        &self.geometry.kernel
    }

    /// Returns the depths of the slices of k that are products of their own, in the order in which their results are added: parallel
    /// split-K. Empty where one kernel computes all of k.
    pub fn slices(&self) -> Vec<usize> {
        self.geometry.slices.map_or_else(Vec::new, |slices| slices.depths())
    }

    /// Returns the preferred engines that do not compute the product, with their reasons.
    pub fn unsupported(&self) -> &[(Engine, Unsupported)] {
        &self.unsupported
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Geometry {
            family,
            kernel,
            tile: (rows, columns),
            tiles,
            blocks,
            copied,
            splits,
            stream_k_tiles,
            slices,
        } = &self.geometry;
        writeln!(formatter, "{}: {}", self.head, self.engine)?;
        match tiles {
            0 => write!(formatter, "  {kernel} of {family}")?,
            _ => write!(
                formatter,
                "  kernel {kernel} of {family}: {tiles} tiles of {rows} x {columns} by {blocks} blocks"
            )?,
        }
        if *splits > 1 {
            write!(formatter, "\n  {splits} blocks divide k, and add their sums in its order")?;
        }
        if *stream_k_tiles > 0 {
            write!(
                formatter,
                "\n  all blocks divide the k of the last {stream_k_tiles} tiles, and add their sums from the first one on"
            )?;
        }
        if let Some(slices) = slices {
            write!(formatter, "\n  a batch of {} slices of {} k", slices.count, slices.depth)?;
            if slices.rest > 0 {
                write!(formatter, ", and one of {}", slices.rest)?;
            }
            write!(formatter, "; {} adds their products with k ascending", slices.kernel())?;
        }
        for operand in copied {
            write!(
                formatter,
                "\n  {operand} is copied first, into rows that begin where the engine can read them"
            )?;
        }
        for (engine, reason) in &self.unsupported {
            write!(formatter, "\n  not {engine}: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::gemm::{Operation, packed, wgmma};
    use crate::images::{self, Overrides, entries};

    const HOPPER: DeviceProperties = DeviceProperties::reference((9, 0));

    fn engine(product: Product, operand: DType, result: DType, properties: DeviceProperties) -> Engine {
        Plan::explain(&product, operand, result, properties).unwrap().engine()
    }

    #[test]
    fn tensor_cores_run_what_they_can() {
        let product = Product::new(64, 64, 64);
        for operand in [DType::F16, DType::BF16] {
            for result in [operand, DType::F32] {
                assert_eq!(engine(product, operand, result, HOPPER), Engine::Wgmma);
                assert_eq!(
                    engine(product, operand, result, DeviceProperties::reference((8, 0))),
                    Engine::Mma
                );
                // Instructions of 9.0 alone.
                assert_eq!(
                    engine(product, operand, result, DeviceProperties::reference((10, 0))),
                    Engine::Mma
                );
                assert_eq!(
                    engine(product, operand, result, DeviceProperties::reference((7, 0))),
                    Engine::Simt
                );
            }
        }
        assert_eq!(engine(product, DType::F32, DType::F32, HOPPER), Engine::Simt);
        // Without depth, and with rows that begin anywhere.
        assert_eq!(engine(Product::new(64, 64, 0), DType::BF16, DType::BF16, HOPPER), Engine::Mma);
        let odd = Product::new(64, 63, 32);
        assert_eq!(engine(odd, DType::BF16, DType::BF16, HOPPER), Engine::Mma);
        // Transposed, B has rows of 32; that C's are odd does not matter.
        assert_eq!(engine(odd.b(Operation::Transpose), DType::BF16, DType::BF16, HOPPER), Engine::Wgmma);
    }

    #[test]
    fn large_operands_are_copied_where_their_rows_begin_anywhere() {
        let explain = |product| Plan::explain(&product, DType::BF16, DType::BF16, HOPPER).unwrap();
        let plan = explain(Product::new(1000, 1001, 1002));
        assert_eq!((plan.engine(), &plan.geometry.copied[..]), (Engine::Wgmma, &['A', 'B'][..]));
        assert!(plan.to_string().contains("B is copied first"), "{plan}");
        assert_eq!(explain(Product::new(1000, 1001, 1000)).geometry.copied, ['B']);
        assert_eq!(explain(Product::new(1001, 1000, 1000)).geometry.copied, []);
        // Too little work: copies take as long to begin.
        assert_eq!(explain(Product::new(31, 31, 31)).engine(), Engine::Mma);
        assert_eq!(explain(Product::new(325, 325, 325)).engine(), Engine::Wgmma);
        // One block would take all of a long k.
        assert_eq!(explain(Product::new(17, 17, 1001)).engine(), Engine::Wgmma);
    }

    #[test]
    fn an_engine_asked_for_says_what_it_lacks() {
        let product = Product::new(64, 63, 32).by(Choice::Only(Engine::Wgmma));
        let message =
            |dtype, properties| Plan::explain(&product, dtype, dtype, properties).unwrap_err().to_string();
        assert!(
            message(DType::BF16, HOPPER).contains("needs B with all rows and matrices at multiples of 16")
        );
        assert!(message(DType::F32, HOPPER).contains("does not multiply f32 into f32"));
        assert!(message(DType::BF16, DeviceProperties::reference((8, 6))).contains("8.6"));
        let plan =
            Plan::explain(&product.by(Choice::Only(Engine::Simt)), DType::BF16, DType::F32, HOPPER).unwrap();
        assert_eq!((plan.engine(), plan.kernel()), (Engine::Simt, "gemm_simt_bf16_f32_nn"));
        assert!(plan.to_string().contains("not wgmma: simt was asked for"), "{plan}");
    }

    #[test]
    fn an_algorithm_that_was_asked_for_is_used_or_an_error() {
        let explain = |product: Product, algorithm: &str| {
            let product = product.with_algorithm(algorithm.parse().unwrap());
            Plan::explain(&product, DType::BF16, DType::BF16, HOPPER)
                .map(|plan| (plan.kernel().to_owned(), plan.tile()))
        };
        let product = Product::new(512, 512, 512);
        for (algorithm, kernel, tile) in [
            ("persistent/64", "gemm_wgmma_bf16_nn_64", (256, 64)),
            ("persistent/256", "gemm_wgmma_bf16_nn_256", (256, 256)),
            ("split-k/128x16x1", "gemm_split_bf16_ks_128x16", (128, 16)),
            ("split-k/64x32x2/swapped", "gemm_split_bf16_sk_64x32", (32, 64)),
        ] {
            assert_eq!(explain(product, algorithm).unwrap(), (kernel.to_owned(), Some(tile)));
        }
        // Eight blocks cannot divide 64 k, and no kernel has tiles of 100 columns.
        for (product, algorithm) in
            [(Product::new(64, 64, 64), "split-k/64x64x8"), (product, "persistent/100")]
        {
            let error = explain(product, algorithm).unwrap_err().to_string();
            assert!(
                error.contains(&format!("wgmma: it does not have '{algorithm}' for this product")),
                "{error}"
            );
        }
    }

    #[test]
    fn types_that_no_engine_multiplies_are_an_error() {
        for (operand, result) in
            [(DType::Bool, DType::Bool), (DType::F32, DType::F64), (DType::BF16, DType::F16)]
        {
            let error =
                Plan::explain(&Product::new(1, 1, 1), operand, result, HOPPER).unwrap_err().to_string();
            assert!(error.contains(&format!("{operand} into {result}")), "{error}");
        }
    }

    #[test]
    fn every_kernel_that_is_chosen_is_in_its_family() {
        let layouts = [Operation::None, Operation::Transpose];
        for dtype in DType::ALL.into_iter().filter(|dtype| super::super::element::of_dtype(*dtype).is_some())
        {
            for (a, b) in layouts.into_iter().flat_map(|a| layouts.map(|b| (a, b))) {
                for size in [64, 1024, 8192] {
                    let product = Product::new(size, size, size).a(a).b(b);
                    let plan = Plan::explain(&product, dtype, dtype, HOPPER).unwrap();
                    let family = plan.geometry.family;
                    let image =
                        crate::images::select_with(family, (9, 0), (8, 0), Default::default()).unwrap();
                    let info = crate::driver::image::ImageInfo::parse(&image.bytes().unwrap()).unwrap();
                    assert!(info.kernel(plan.kernel()).is_some(), "{plan}");
                }
            }
        }
    }

    /// The kernels of every engine of this crate, for every type, layout, tile size and forced configuration. Each is
    /// declared for the image that the device gets, and each that is declared for a product is among them.
    #[test]
    fn kernels_are_those_that_the_list_of_images_declares() {
        use Operation::{Adjoint, Conjugate, None, Transpose};
        let operations = [None, Transpose, Conjugate, Adjoint];
        let mut kernels = BTreeSet::new();
        let mut add = |product: Product, operand, result, properties: DeviceProperties| {
            if let Ok(plan) = Plan::explain(&product, operand, result, properties) {
                kernels.insert((plan.geometry.family, plan.geometry.kernel, properties.capability));
                if let Some(slices) = plan.geometry.slices {
                    let kernel = slices.kernel().to_owned();
                    kernels.insert((parallel_split_k::FAMILY, kernel, properties.capability));
                }
                if !plan.geometry.copied.is_empty() {
                    kernels.insert((packed::FAMILY, packed::FAMILY.to_owned(), properties.capability));
                }
            }
        };
        for (a, b) in operations.into_iter().flat_map(|a| operations.map(|b| (a, b))) {
            let square = |size| Product::new(size, size, size).a(a).b(b);
            for (operand, size) in
                DType::ALL.into_iter().flat_map(|operand| [64, 1024, 4096].map(|size| (operand, size)))
            {
                for engine in Engine::ALL.into_iter().filter(|engine| engine.is_own()) {
                    for properties in
                        [(6, 0), (7, 5), (8, 0), (8, 6), (9, 0)].map(DeviceProperties::reference)
                    {
                        let product = square(size).by(Choice::Only(engine));
                        add(product, operand, operand, properties);
                        add(product, operand, DType::F32, properties);
                    }
                }
            }
            for algorithm in wgmma::algorithms(&square(1024), HOPPER) {
                for operand in [DType::F16, DType::BF16] {
                    add(square(1024).with_algorithm(algorithm), operand, operand, HOPPER);
                }
            }
            add(square(1001), DType::BF16, DType::BF16, HOPPER);
            for operand in [DType::F32, DType::F64, DType::C64, DType::C128] {
                add(Product::new(64, 64, 4096).a(a).b(b), operand, operand, HOPPER);
            }
        }
        let mut looked_up = BTreeSet::new();
        for (family, kernel, capability) in kernels {
            let image = images::select_with(family, capability, (8, 0), Overrides::default()).unwrap();
            let declared = entries::declared(family, &image.target().unwrap().to_string());
            assert!(declared.contains(&kernel), "{kernel} is not declared for {image}");
            looked_up.insert(kernel);
        }
        // Products of a few rows have a test of their own.
        let is_planned = |family: &&str| family.starts_with("gemm_") && !family.starts_with("gemm_rows_");
        let families = entries::families().into_iter().filter(is_planned);
        let declared: BTreeSet<String> =
            families.flat_map(|family| entries::declared(family, "sm_80")).collect();
        assert_eq!(
            declared.difference(&looked_up).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "never looked up"
        );
    }
}
