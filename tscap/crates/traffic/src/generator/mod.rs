//! The frame generator: what to send when, and the two ways of sending it.
//!
//! `echo` answers what another sends. `schedule` and `frame` are pure; `native` sends by live frames of
//! `BPF_PROG_TEST_RUN`, `packet` through an AF_PACKET socket; `gaps` tells how
//! well either kept time.

mod due;
mod echo;
mod frame;
mod gaps;
mod native;
mod packet;
mod schedule;
mod sender;
mod target;

pub use echo::{Echo, EchoControl, Echoed};
pub use frame::{Addresses, DISCARD, FrameError, Layout, Network, Template};
pub use gaps::{GapReport, Quantiles};
pub use native::{NativeControl, NativeError, NativeSender};
pub use packet::{PacketControl, PacketError, PacketSender};
pub use schedule::{LineRate, Pacing, Pattern, Period, Rate, Step};
pub use sender::{Control, Orders, SendError, Sender, Sent};
