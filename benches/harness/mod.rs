//! What every GPU benchmark shares: turns of own and reference, the bare driver as the reference, random data, and
//! the report that a run leaves.

pub mod bare;
pub mod machine;
pub mod random;
pub mod report;
pub mod turns;
