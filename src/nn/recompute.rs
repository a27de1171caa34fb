//! [`Recompute`], the choice of the activations that a backward computes again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The activations of a transformer that a backward computes again in place of reading saved ones: PyTorch's activation
/// checkpointing. Losses, gradients and random draws have the same bits with each choice.
///
/// ```
/// use selvedge::nn::Recompute;
/// assert_eq!("feed-forward".parse::<Recompute>()?, Recompute::FeedForward);
/// assert_eq!(Recompute::Blocks.to_string(), "blocks");
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recompute {
    /// None: the most memory, the least time.
    #[default]
    Nothing,
    /// The feed-forward of each block and the norm before it.
    FeedForward,
    /// All of each block but its input: the least memory, for about one more forward.
    Blocks,
}

impl Recompute {
    /// All choices, from the most memory to the least.
    pub const ALL: [Recompute; 3] = [Recompute::Nothing, Recompute::FeedForward, Recompute::Blocks];
}

impl fmt::Display for Recompute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Recompute::Nothing => "nothing",
            Recompute::FeedForward => "feed-forward",
            Recompute::Blocks => "blocks",
        })
    }
}

impl FromStr for Recompute {
    type Err = Error;

    fn from_str(name: &str) -> Result<Recompute> {
        let named = Recompute::ALL.into_iter().find(|choice| choice.to_string() == name);
        named.ok_or_else(|| {
            Error::invalid("Recompute", format!("'{name}'"), "nothing, feed-forward or blocks")
        })
    }
}
