//! The choice of an engine, and its explanation.
//!
//! What must stay true: the choice is a function of the product, its types, the alignment of its operands, the machine and
//! what was asked for; nothing is measured at run time. So the same call on the same card has the same bits every time.

use std::fmt;

use super::engine::{Choice, Engine, Lack};
use super::product::{OPERATION, Product};
use super::{epilogue, mma, simt, wgmma};
use crate::driver::Device;
use crate::error::{Error, Result};
use crate::types::DType;

/// What a choice needs to know of a device and its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// The compute capability.
    pub capability: (i32, i32),
    /// The newest PTX ISA that the driver assembles; images need 8.0 (CUDA 12.0).
    pub driver_isa: (i32, i32),
    /// The multiprocessors.
    pub multiprocessors: u32,
}

impl Machine {
    /// This device.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn of(device: &Device) -> Result<Machine> {
        super::kernels::machine(device)
    }

    /// One of this compute capability that is not at hand: with the multiprocessors of an H200, and the oldest driver that
    /// images are made for.
    pub const fn typical(capability: (i32, i32)) -> Machine {
        Machine { capability, driver_isa: (8, 0), multiprocessors: 132 }
    }
}

/// One call.
pub(super) struct Situation<'a> {
    pub product: &'a Product,
    pub operand: DType,
    pub result: DType,
    /// Of A, B and C.
    pub addresses: [u64; 3],
    pub machine: Machine,
    /// Whether there is anything to do before numbers are rounded.
    pub has_epilogue: bool,
}

/// How an engine divides a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub family: &'static str,
    pub kernel: String,
    pub tile: (u32, u32),
    pub tiles: u64,
    pub blocks: u32,
    /// The operands that are copied first, into rows that the engine can read.
    pub copied: Vec<char>,
    /// Blocks that divide k.
    pub splits: u32,
}

fn lacks(engine: Engine, situation: &Situation<'_>) -> Option<Lack> {
    if let Some(lack) = epilogue::lacks(situation.result).filter(|_| situation.has_epilogue) {
        return Some(lack);
    }
    match engine {
        Engine::Wgmma => wgmma::lacks(situation),
        Engine::Mma => mma::lacks(situation),
        Engine::Simt => simt::lacks(situation),
    }
}

/// The first engine that was asked for and lacks nothing, and what those before it lack.
pub(super) fn choose(situation: &Situation<'_>) -> Result<(Engine, Vec<(Engine, Lack)>)> {
    let choice = match situation.product.choice() {
        Some(choice) => choice,
        None => Choice::from_environment()?,
    };
    let mut lacking = Vec::new();
    for engine in Engine::ALL {
        let lack =
            if choice.allows(engine) { lacks(engine, situation) } else { Some(Lack::NotAsked(choice)) };
        match lack {
            None => return Ok((engine, lacking)),
            Some(lack) => lacking.push((engine, lack)),
        }
    }
    let asked = lacking.iter().filter(|(_, lack)| !matches!(lack, Lack::NotAsked(_)));
    let reasons: Vec<String> = asked.map(|(engine, lack)| format!("{engine}: {lack}")).collect();
    let Situation { product, operand, result, .. } = situation;
    let found = format!("{product} of {operand} into {result}, asked of '{choice}'; {}", reasons.join("; "));
    Err(Error::invalid(OPERATION, found, "an engine that lacks nothing (SELVEDGE_GEMM, Product::by)"))
}

/// Which engine runs a product and how, and why no other does. It is shown in lines.
///
/// ```
/// use selvedge::gemm::{Engine, Machine, Plan, Product};
/// use selvedge::types::DType;
/// let product = Product::new(4096, 4096, 4096);
/// let plan = Plan::explain(&product, DType::BF16, DType::BF16, Machine::typical((9, 0)))?;
/// assert_eq!(plan.engine(), Engine::Wgmma);
/// // Cards without these instructions, and a type that they do not multiply.
/// let on = |capability| Plan::explain(&product, DType::BF16, DType::BF16, Machine::typical(capability));
/// assert_eq!((on((8, 0))?.engine(), on((7, 0))?.engine()), (Engine::Mma, Engine::Simt));
/// let plan = Plan::explain(&product, DType::F64, DType::F64, Machine::typical((9, 0)))?;
/// assert!(plan.to_string().contains("wgmma: it does not multiply f64 into f64"));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    head: String,
    engine: Engine,
    geometry: Geometry,
    lacking: Vec<(Engine, Lack)>,
}

impl Plan {
    /// For operands at aligned addresses, on a machine that need not be there. The environment's overrides count, as in a
    /// call: `SELVEDGE_GEMM`, `SELVEDGE_ARCH` and `SELVEDGE_IMAGE`.
    ///
    /// # Errors
    ///
    /// As [`gemm`](super::gemm): a product that cannot be, or that no engine which was asked for runs.
    pub fn explain(product: &Product, operand: DType, result: DType, machine: Machine) -> Result<Plan> {
        product.check()?;
        let situation =
            Situation { product, operand, result, addresses: [0; 3], machine, has_epilogue: false };
        let (engine, lacking) = choose(&situation)?;
        let geometry = match engine {
            Engine::Wgmma => wgmma::geometry(&situation),
            Engine::Mma => mma::geometry(&situation),
            Engine::Simt => simt::geometry(&situation)?,
        };
        let (major, minor) = machine.capability;
        let head = format!(
            "{product} of {operand} into {result}, compute capability {major}.{minor}, {} multiprocessors",
            machine.multiprocessors
        );
        Ok(Plan { head, engine, geometry, lacking })
    }

    /// The engine that runs.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The kernel's name.
    pub fn kernel(&self) -> &str {
        &self.geometry.kernel
    }

    /// What the engines that would have been preferred lack.
    pub fn lacking(&self) -> &[(Engine, Lack)] {
        &self.lacking
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Geometry { family, kernel, tile: (rows, columns), tiles, blocks, copied, splits } =
            &self.geometry;
        writeln!(formatter, "{}: {}", self.head, self.engine)?;
        write!(
            formatter,
            "  kernel {kernel} of {family}: {tiles} tiles of {rows} x {columns} by {blocks} blocks"
        )?;
        if *splits > 1 {
            write!(formatter, "\n  {splits} blocks divide k, and add their sums in its order")?;
        }
        for operand in copied {
            write!(
                formatter,
                "\n  {operand} is copied first, into rows that begin where the engine can read them"
            )?;
        }
        for (engine, lack) in &self.lacking {
            write!(formatter, "\n  not {engine}: {lack}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Operation;

    const HOPPER: Machine = Machine::typical((9, 0));

    fn engine(product: Product, operand: DType, result: DType, machine: Machine) -> Engine {
        Plan::explain(&product, operand, result, machine).unwrap().engine()
    }

    #[test]
    fn tensor_cores_run_what_they_can() {
        let product = Product::new(64, 64, 64);
        for operand in [DType::F16, DType::BF16] {
            for result in [operand, DType::F32] {
                assert_eq!(engine(product, operand, result, HOPPER), Engine::Wgmma);
                assert_eq!(engine(product, operand, result, Machine::typical((8, 0))), Engine::Mma);
                // Instructions of 9.0 alone.
                assert_eq!(engine(product, operand, result, Machine::typical((10, 0))), Engine::Mma);
                assert_eq!(engine(product, operand, result, Machine::typical((7, 0))), Engine::Simt);
            }
        }
        assert_eq!(engine(product, DType::F32, DType::F32, HOPPER), Engine::Simt);
        // Without depth, and with rows that begin anywhere.
        assert_eq!(engine(Product::new(64, 64, 0), DType::BF16, DType::BF16, HOPPER), Engine::Mma);
        let odd = Product::new(64, 63, 64);
        assert_eq!(engine(odd, DType::BF16, DType::BF16, HOPPER), Engine::Mma);
        // Stored transposed, B has rows of 64; that C's are odd does not matter.
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
        // Just too little work.
        assert_eq!(explain(Product::new(321, 321, 321)).engine(), Engine::Mma);
        assert_eq!(explain(Product::new(325, 325, 325)).engine(), Engine::Wgmma);
    }

    #[test]
    fn an_engine_asked_for_says_what_it_lacks() {
        let product = Product::new(64, 63, 64).by(Choice::Only(Engine::Wgmma));
        let message =
            |dtype, machine| Plan::explain(&product, dtype, dtype, machine).unwrap_err().to_string();
        assert!(
            message(DType::BF16, HOPPER).contains("needs B with all rows and matrices at multiples of 16")
        );
        assert!(message(DType::F32, HOPPER).contains("does not multiply f32 into f32"));
        assert!(message(DType::BF16, Machine::typical((8, 6))).contains("8.6"));
        let plan =
            Plan::explain(&product.by(Choice::Only(Engine::Simt)), DType::BF16, DType::F32, HOPPER).unwrap();
        assert_eq!((plan.engine(), plan.kernel()), (Engine::Simt, "gemm_simt_bf16_f32_nn"));
        assert!(plan.to_string().contains("not wgmma: simt was asked for"), "{plan}");
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
                    let overrides = crate::images::Overrides {
                        kind: Some(crate::driver::image::ImageKind::Ptx),
                        architecture: None,
                    };
                    let image =
                        crate::images::select_with(plan.geometry.family, (9, 0), (8, 0), overrides).unwrap();
                    let ptx = String::from_utf8(image.bytes().unwrap()).unwrap();
                    assert!(ptx.contains(&format!(".entry {}(", plan.kernel())), "{plan}");
                }
            }
        }
    }
}
