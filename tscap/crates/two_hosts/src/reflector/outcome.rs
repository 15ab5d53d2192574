//! What becomes of a request.

use serde::{Serialize, Serializer};

macro_rules! outcomes {
    ($($outcome:ident $name:literal $meaning:literal)*) => {
        /// What becomes of a request: each has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Outcome {
            $(#[doc = $meaning] $outcome,)*
        }

        impl Outcome {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$outcome),*];

            /// Its name in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$outcome => $name,)*
                }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$outcome => $meaning,)*
                }
            }
        }
    };
}

outcomes! {
    Answered       "answered"        "A reply was sent."
    NotSent        "not_sent"        "The kernel did not take the reply."
    Short          "short"           "Fewer octets than a test packet has."
    Corrupt        "corrupt"         "The multiplier of its Error Estimate is 0."
    FromReflector  "from_reflector"  "It came from the port of a reflector: they would answer each other without end."
    NotToOne       "not_to_one"      "It was sent to a broadcast or multicast address."
    NotFromOne     "not_from_one"    "Its source is the address of no single host."
    NotAllowed     "not_allowed"     "Its source may not be answered (--from)."
    TooMany        "too_many"        "Its source, or all of them, had more requests than may be answered (--max-rate)."
    NotAuthentic   "not_authentic"   "It is not signed by the key."
    UnknownSession "unknown_session" "Its session identifier is none of those given (--ssid)."
    Replayed       "replayed"        "A request with its sequence number was answered in the session before, or it is too old."
    NoSessionLeft  "no_session_left" "As many sessions as are remembered are in use."
    NoStamp        "no_stamp"        "The kernel has not said when it arrived."
}

/// How many requests had which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes([u64; Outcome::ALL.len()]);

impl Outcomes {
    /// How many had this one.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that there were.
    pub fn counted(&self) -> impl Iterator<Item = (Outcome, u64)> {
        let all = Outcome::ALL.into_iter().map(|it| (it, self.of(it)));
        all.filter(|it| it.1 > 0)
    }

    /// Counts more of one.
    pub fn add(&mut self, outcome: Outcome, count: u64) {
        self.0[outcome as usize] += count;
    }
}

impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = Outcome::ALL.into_iter();
        serializer.collect_map(all.map(|it| (it.name(), self.of(it))))
    }
}
