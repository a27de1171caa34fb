//! [`Call`], which operation an index belongs to.

macro_rules! calls {
    ($($call:ident $name:literal)*) => {
        /// An operation that reads indices, as kernels report it: by its number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub(super) enum Call {
            $($call),*
        }

        const CALLS: &[(Call, &str)] = &[$((Call::$call, $name)),*];
    };
}

calls! {
    Gather "gather"
    TakeAlongAxis "take_along_axis"
    IndexSelect "index_select"
    Take "take"
    Scatter "scatter"
    IndexCopy "index_copy"
    Put "put"
    OneHot "one_hot"
}

impl Call {
    /// The call of a number; that of a number that is none's is the first one's.
    pub(super) fn of_code(code: u32) -> Call {
        CALLS.get(code as usize).map_or(Call::Gather, |(call, _)| *call)
    }

    /// The method's name.
    pub(super) fn name(self) -> &'static str {
        CALLS.get(self as usize).map_or("indexing", |(_, name)| name)
    }
}
