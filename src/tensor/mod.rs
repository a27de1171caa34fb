//! Tensors: arrays of any dtype on the CPU and CUDA devices, as in NumPy and PyTorch.

#[cfg(feature = "ndarray")]
mod array;
mod convert;
mod device;
mod display;
mod elementwise;
mod evaluate;
mod fused;
mod in_place;
mod indexing;
mod making;
mod moving;
mod numerals;
mod operand;
mod recipe;
mod storage;
mod tensor;
mod views;

pub use convert::Nested;
pub use device::Device;
#[allow(unused_imports)] // The parts that use these come next.
pub(crate) use device::{Current, stream};
#[allow(unused_imports)]
pub(crate) use evaluate::{Source, Target, broadcast, evaluate, evaluate_into};
pub use fused::{Fused, Operands, fuse};
pub use in_place::{TensorMut, WithOutput};
pub use moving::Padding;
pub use operand::Operand;
#[allow(unused_imports)]
pub(crate) use storage::{Fresh, Memory, MemoryMut};
pub use tensor::Tensor;
#[allow(unused_imports)]
pub(crate) use tensor::one_device;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_stands() {
        let cpu = Device::cpu();
        let a = Tensor::new([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &cpu).unwrap();
        let b = Tensor::new([10.0f32, 20.0, 30.0], &cpu).unwrap();
        assert_eq!((&a + &b).unwrap().to_vec::<f32>().unwrap(), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
        assert_eq!((2.0 - &b).unwrap().to_vec::<f32>().unwrap(), [-8.0, -18.0, -28.0]);
        let c = a.gt(2.5).unwrap().choose(&a, 0).unwrap();
        assert_eq!(c.to_vec::<f32>().unwrap(), [0.0, 0.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(c.cast(crate::types::DType::I8).unwrap().to_vec::<i8>().unwrap(), [0, 0, 3, 4, 5, 6]);
    }
}
