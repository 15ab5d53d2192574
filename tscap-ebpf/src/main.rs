//! The programs of `tscap capture`: one for each hook and clock, all over the same
//! body. The stamp is the first thing that a program does.
#![no_std]
#![no_main]

mod clock;
mod copy;
mod filter;
mod frame;
mod kfunc;
mod maps;
mod object;
mod record;
mod ring;
mod tsc;
mod vlan;

use aya_ebpf::{macros::xdp, programs::XdpContext};

use crate::clock::{Clock, Ktime, Tai, TscKfunc, TscPerf};
use crate::frame::{Frame, Received};
use crate::record::{Fault, record};

/// Programs at XDP by the name that [`tscap_common::hook::Hook::program`] gives them.
macro_rules! at_xdp {
    ($($program:ident: $clock:ty;)*) => {$(
        #[xdp(frags)]
        pub fn $program(ctx: XdpContext) -> u32 {
            let stamp = <$clock>::read();
            record(Received::<true>(ctx.ctx), stamp, Fault::None)
        }

        const _: () = {
            let name = Received::<true>::HOOK.program(<$clock>::DOMAIN);
            assert!(is_same(name.as_bytes(), stringify!($program).as_bytes()));
        };
    )*};
}

at_xdp! {
    tscap_ktime: Ktime;
    tscap_tai: Tai;
    tscap_tsc_perf: TscPerf;
    tscap_tsc_kfunc: TscKfunc;
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [second, others @ ..]) = (one, other)
        && *first == *second
    {
        (one, other) = (rest, others);
    }
    one.is_empty() && other.is_empty()
}
