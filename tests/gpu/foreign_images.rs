//! placeholder
use crate::support::promises;
promises! {}
