//! Counters of programs: a number, a name in JSON and a meaning for each.

macro_rules! counts {
    (
        $(#[$about:meta])*
        $counts:ident
        $($count:ident $name:literal $meaning:literal)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $counts {
            $(#[doc = $meaning] $count,)*
        }

        impl $counts {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$count),*];

            /// Its name in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$count => $name,)*
                }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$count => $meaning,)*
                }
            }
        }
    };
}

pub(crate) use counts;
