//! The table of choices: what was measured on a device, committed in `choices.txt`.
//!
//! What must stay true: the table is part of the build and nothing is measured at run time, so the same build on the same card
//! makes a product of the same shape, dtype and layout in the same way, with the same bits.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use super::plan::Machine;
use super::product::Product;
use super::way::Way;
use crate::error::{Error, Result};
use crate::types::DType;

const COMMITTED: &str = include_str!("choices.txt");

/// The products that share a line: of one kind of device, dtypes and layout, whose sizes round to the same powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Class {
    capability: (i32, i32),
    multiprocessors: u32,
    operand: DType,
    result: DType,
    layout: &'static str,
    /// Of m, n, k and the batch.
    powers: [u8; 4],
}

/// A line of the table: what is best for a class of products on a device.
///
/// ```
/// use selvedge::gemm::{Engine, Machine, Product, TunedChoice, Way};
/// use selvedge::types::DType;
/// let machine = Machine::typical((9, 0));
/// let product = Product::new(4000, 64, 1000);
/// let line = TunedChoice::new(&product, DType::F32, DType::F32, machine, Way::of(Engine::Simt), true);
/// assert_eq!(line.to_string(), "9.0 132 f32 f32 nn 4096 64 1024 1 simt cublas");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunedChoice {
    class: Class,
    own: Way,
    cublas: bool,
}

/// The power of two that a size is nearest to, by ratio. Sizes are whole, so none lies between two.
fn power(size: usize) -> u8 {
    (size.max(1) as f64).log2().round() as u8
}

impl TunedChoice {
    /// For all products of this one's class: this crate's best way, and whether cuBLAS was faster.
    pub fn new(
        product: &Product,
        operand: DType,
        result: DType,
        machine: Machine,
        own: Way,
        cublas: bool,
    ) -> TunedChoice {
        TunedChoice { class: Class::of(product, operand, result, machine), own, cublas }
    }

    /// Whether both are for the same products on the same kind of device.
    pub fn is_for_what(&self, other: &TunedChoice) -> bool {
        self.class == other.class
    }

    /// This crate's best way.
    pub fn own(&self) -> Way {
        self.own
    }

    /// Whether cuBLAS was faster.
    pub fn prefers_cublas(&self) -> bool {
        self.cublas
    }
}

impl Class {
    fn of(product: &Product, operand: DType, result: DType, machine: Machine) -> Class {
        let sizes = [product.m(), product.n(), product.k(), product.count()];
        Class {
            capability: machine.capability,
            multiprocessors: machine.multiprocessors,
            operand,
            result,
            layout: product.layout(),
            powers: sizes.map(power),
        }
    }
}

impl fmt::Display for TunedChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Class { capability: (major, minor), multiprocessors, operand, result, layout, powers } =
            self.class;
        let [m, n, k, batch] = powers.map(|power| 1u128 << power.min(127));
        write!(
            formatter,
            "{major}.{minor} {multiprocessors} {operand} {result} {layout} {m} {n} {k} {batch} {}",
            self.own
        )?;
        if self.cublas { formatter.write_str(" cublas") } else { Ok(()) }
    }
}

impl FromStr for TunedChoice {
    type Err = Error;

    fn from_str(line: &str) -> Result<TunedChoice> {
        let wrong = || {
            let wanted = "CAPABILITY MULTIPROCESSORS OPERAND RESULT LAYOUT M N K BATCH WAY [cublas]";
            Error::invalid("a line of the table of choices", format!("'{line}'"), wanted)
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let (words, cublas) = match words[..] {
            [ref words @ .., "cublas"] if words.len() == 10 => (words, true),
            ref words => (words, false),
        };
        let &[capability, multiprocessors, operand, result, layout, m, n, k, batch, own] = words else {
            return Err(wrong());
        };
        let (major, minor) = capability.split_once('.').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let layout = ["nn", "nt", "tn", "tt"].into_iter().find(|name| *name == layout).ok_or_else(wrong)?;
        Ok(TunedChoice {
            class: Class {
                capability: (major.parse().map_err(|_| wrong())?, minor.parse().map_err(|_| wrong())?),
                multiprocessors: multiprocessors.parse().map_err(|_| wrong())?,
                operand: operand.parse()?,
                result: result.parse()?,
                layout,
                powers: [power(number(m)?), power(number(n)?), power(number(k)?), power(number(batch)?)],
            },
            own: own.parse()?,
            cublas,
        })
    }
}

/// The lines of a table's text; comments and empty lines left out.
fn lines(text: &str) -> impl Iterator<Item = Result<TunedChoice>> + '_ {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::parse)
}

/// What was measured for products of this class; none where nothing was.
pub(super) fn tuned(
    product: &Product,
    operand: DType,
    result: DType,
    machine: Machine,
) -> Option<TunedChoice> {
    static TABLE: OnceLock<HashMap<Class, TunedChoice>> = OnceLock::new();
    // The committed table is held against its grammar by a test.
    let table = TABLE.get_or_init(|| {
        lines(COMMITTED).filter_map(Result::ok).map(|choice| (choice.class, choice)).collect()
    });
    if table.is_empty() {
        return None;
    }
    table.get(&Class::of(product, operand, result, machine)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "9.0 132 bf16 f32 tn 4096 64 16384 8 wgmma/split/128x64x4/swapped cublas";

    #[test]
    fn the_committed_table_is_one() {
        let mut classes = std::collections::HashSet::new();
        for line in lines(COMMITTED) {
            let choice = line.unwrap();
            assert!(choice.own.engine().is_own(), "{choice}");
            assert!(classes.insert(choice.class), "twice: {choice}");
        }
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let choice: TunedChoice = LINE.parse().unwrap();
        assert_eq!(choice.to_string(), LINE);
        assert!(choice.prefers_cublas());
        let plain: TunedChoice = LINE.trim_end_matches(" cublas").parse().unwrap();
        assert!(!plain.prefers_cublas() && plain.own() == choice.own());
        for line in ["", "9.0", &LINE.replace("9.0", "9"), &LINE.replace("tn", "xn"), &format!("{LINE} more")]
        {
            assert!(line.parse::<TunedChoice>().is_err(), "{line}");
        }
    }

    #[test]
    fn sizes_share_a_line_by_their_nearest_power() {
        // Between 2048 and 4096, 2897 is nearer by ratio to the one and 2896 to the other.
        assert_eq!([1, 2, 3, 2896, 2897, 4096, 5792, 5793].map(power), [0, 1, 2, 11, 12, 12, 12, 13]);
        assert_eq!(power(0), 0);
    }
}
