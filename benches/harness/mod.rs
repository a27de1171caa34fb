//! Items that the benchmarks share: the command line, turns of own and reference, the bare driver as the reference,
//! programs in Python in turns beside it, random data, and the report that a run leaves.

pub mod bare;
pub mod bare_graph;
pub mod bare_pool;
pub mod beside_copy;
pub mod c_source;
pub mod cublas;
pub mod cublaslt;
pub mod machine;
pub mod program;
pub mod python;
pub mod pytorch;
pub mod pytorch_on_cpu;
pub mod random;
pub mod report;
pub mod tensor_bench;
pub mod turns;
