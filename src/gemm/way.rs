//! [`Way`], an engine with the division of a product that it is to use: what the table of choices names.

use std::fmt;
use std::str::FromStr;

use super::engine::Engine;
use crate::error::{Error, Result};

/// An engine, and how it divides a product where it can in several ways. It is shown and read as `simt` or
/// `wgmma/pairs/256`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// As the engine finds best.
    Any(Engine),
    /// By pairs of blocks, in tiles of so many columns, of which the last round may be divided among all pairs.
    Pairs { columns: u32, divided: bool },
    /// By clusters that divide k, in tiles of so many rows of one operand and of the other.
    Split { rows: u32, columns: u32, splits: u32, swapped: bool },
}

impl Way {
    /// The one that the engine finds best.
    pub const fn of(engine: Engine) -> Way {
        Way(Kind::Any(engine))
    }

    pub(super) const fn pairs(columns: u32, divided: bool) -> Way {
        Way(Kind::Pairs { columns, divided })
    }

    pub(super) const fn split(rows: u32, columns: u32, splits: u32, swapped: bool) -> Way {
        Way(Kind::Split { rows, columns, splits, swapped })
    }

    /// The engine.
    pub const fn engine(self) -> Engine {
        match self.0 {
            Kind::Any(engine) => engine,
            Kind::Pairs { .. } | Kind::Split { .. } => Engine::Wgmma,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Any(engine) => write!(formatter, "{engine}"),
            Kind::Pairs { columns, divided } => {
                let divided = if divided { "/divided" } else { "" };
                write!(formatter, "wgmma/pairs/{columns}{divided}")
            }
            Kind::Split { rows, columns, splits, swapped } => {
                let swapped = if swapped { "/swapped" } else { "" };
                write!(formatter, "wgmma/split/{rows}x{columns}x{splits}{swapped}")
            }
        }
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(text: &str) -> Result<Way> {
        let parts: Vec<&str> = text.split('/').collect();
        let pairs = |columns: &str, divided| Some(Way::pairs(columns.parse().ok()?, divided));
        let split = |text: &str, swapped| -> Option<Way> {
            let [rows, columns, splits] = text.split('x').collect::<Vec<_>>().try_into().ok()?;
            Some(Way::split(rows.parse().ok()?, columns.parse().ok()?, splits.parse().ok()?, swapped))
        };
        let way = match parts[..] {
            [name] => Engine::ALL.into_iter().find(|engine| engine.name() == name).map(Way::of),
            ["wgmma", "pairs", columns] => pairs(columns, false),
            ["wgmma", "pairs", columns, "divided"] => pairs(columns, true),
            ["wgmma", "split", sizes] => split(sizes, false),
            ["wgmma", "split", sizes, "swapped"] => split(sizes, true),
            _ => None,
        };
        let wanted = "an engine, wgmma/pairs/COLUMNS[/divided] or wgmma/split/ROWSxCOLUMNSxSPLITS[/swapped]";
        way.ok_or_else(|| Error::invalid("a way to multiply", format!("'{text}'"), wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_they_are_shown() {
        let ways = Engine::ALL.map(Way::of).into_iter().chain([
            Way::pairs(256, false),
            Way::pairs(64, true),
            Way::split(128, 64, 4, false),
            Way::split(64, 16, 1, true),
        ]);
        for way in ways {
            assert_eq!(way.to_string().parse::<Way>().unwrap(), way);
        }
        for text in [
            "",
            "mma2",
            "wgmma/pairs",
            "wgmma/pairs/x",
            "wgmma/split/64",
            "wgmma/split/64x4",
            "wgmma/split/64x64x4/turned",
        ] {
            assert!(text.parse::<Way>().unwrap_err().to_string().contains(&format!("'{text}'")), "{text}");
        }
    }
}
