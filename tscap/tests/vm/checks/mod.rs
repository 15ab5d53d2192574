//! What is checked, each on a machine of its own.

mod stamps;

use crate::machine::Rig;

/// A check, by name.
pub type Check = (&'static str, fn(&Rig));

/// Lists checks under the name of their module and their own.
macro_rules! checks {
    ($($module:ident :: $name:ident),* $(,)?) => {
        /// All of them.
        pub const ALL: &[Check] = &[
            $((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),*
        ];
    };
}

checks![stamps::ktime,];
